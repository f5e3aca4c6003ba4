import { z } from 'zod'
import { role } from './permissions.ts'

/** A token as the API lists it: never what it is. */
export const apiToken = z.object({
  id: z.string(),
  name: z.string(),
  /** Enough to recognise one that leaked, and nothing to guess the rest by. */
  prefix: z.string(),
  /** `sign_in`: what the browsers of one person stand for who signed in through a provider. */
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

/** The one answer that holds the plain token. */
export const newApiToken = apiToken.extend({ token: z.string() })

export type NewApiToken = z.infer<typeof newApiToken>
