import { z } from 'zod'
import { severity } from './incident.ts'

/** What would become of one alert of a body, with nothing stored. */
export const explainedAlert = z.object({
  fingerprint: z.string(),
  status: z.enum(['firing', 'resolved']),
  name: z.string(),
  title: z.string(),
  type: z.string(),
  severity,
  /** The sender's own word; null: it gave none, and the severity is the default. */
  severityWord: z.string().nullable(),
  /** `kind:id`, or null. */
  resource: z.string().nullable(),
  /** One sentence: which label named it, or why nothing was found. */
  why: z.string(),
  tried: z.array(
    z.object({ label: z.string(), name: z.string(), result: z.enum(['found', 'unknown', 'several', 'elsewhere']) }),
  ),
  candidates: z.array(z.string()),
  /** What happens to it: opens an incident, repeats one, is a heartbeat, is expected. */
  becomes: z.enum(['opens', 'repeats', 'ends', 'heartbeat', 'nothing']),
  /** The incident that it repeats or ends. */
  incidentId: z.string().nullable(),
  groupKey: z.string().nullable(),
  notes: z.array(z.string()),
})
export type ExplainedAlert = z.infer<typeof explainedAlert>
