import { z } from 'zod'

/** A tool, or a permission to access something, that an investigation would have needed. */
export const capabilityGap = z.object({
  id: z.string(),
  incidentId: z.string(),
  category: z.enum(['investigation', 'remediation', 'notification']),
  description: z.string(),
  actor: z.string(),
  at: z.string(),
})

export type CapabilityGap = z.infer<typeof capabilityGap>
