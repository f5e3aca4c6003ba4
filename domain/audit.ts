import { z } from 'zod'

/** One entry of the audit log: an action of a person or program. */
export const auditRow = z.object({
  /** The id, which is also the cursor for the next page: time, table and number. */
  id: z.string(),
  at: z.string(),
  /** The name of the person, or a placeholder for an unknown one. */
  who: z.string(),
  /** The action, such as `token.revoked`. */
  what: z.string(),
  subject: z.string(),
  detail: z.string(),
  incidentId: z.string().nullable(),
  address: z.string().nullable(),
})

export type AuditRow = z.infer<typeof auditRow>
