import { z } from 'zod'

/** Somebody did something. */
export const auditRow = z.object({
  /** Also the cursor of what comes after it: time, table, number. */
  id: z.string(),
  at: z.string(),
  /** A person's name, or what stands for one that is not known. */
  who: z.string(),
  /** As `token.revoked`. */
  what: z.string(),
  subject: z.string(),
  detail: z.string(),
  incidentId: z.string().nullable(),
  address: z.string().nullable(),
})

export type AuditRow = z.infer<typeof auditRow>
