import { z } from 'zod'
import { role } from './permissions.ts'

/** A token as the API lists it, without its secret. */
export const apiToken = z.object({
  id: z.string(),
  name: z.string(),
  /**
   * The beginning of the token, enough to recognise a leaked token. Nobody can guess the complete
   * token from it.
   */
  prefix: z.string(),
  /**
   * `sign_in`: the token stands for the browsers of one person who signed in through an identity
   * provider.
   */
  kind: z.enum(['token', 'sign_in']),
  role,
  scopes: z.array(z.string()),
  operator: z.string().nullable(),
  createdAt: z.string(),
  expiresAt: z.string().nullable(),
  lastUsedAt: z.string().nullable(),
  revokedAt: z.string().nullable(),
})

export type ApiToken = z.infer<typeof apiToken>

/** A new token. No other response contains the token in plain text. */
export const newApiToken = apiToken.extend({ token: z.string() })

export type NewApiToken = z.infer<typeof newApiToken>
