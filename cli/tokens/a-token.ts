import { z } from 'zod'

// Loose, so that what a newer API adds still reaches --json.
export const apiToken = z.looseObject({
  id: z.string(),
  name: z.string(),
  prefix: z.string(),
  role: z.string(),
  scopes: z.array(z.string()),
  operator: z.string().nullable(),
  createdAt: z.string(),
  expiresAt: z.string().nullable(),
  lastUsedAt: z.string().nullable(),
  revokedAt: z.string().nullable(),
})
