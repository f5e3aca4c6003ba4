import { z } from '@hono/zod-openapi'
import { eventAction, eventKind } from '../domain/event.ts'

/** A row of the log as it is answered. Its metadata has a shape per kind, which `domain/event.ts` names. */
export const eventSchema = z
  .object({
    id: z.string(),
    incidentId: z.string(),
    attempt: z.number().int(),
    seq: z.number().int(),
    stepKey: z.string().nullable(),
    turn: z.number().int().nullable(),
    kind: eventKind,
    action: eventAction,
    actor: z.string(),
    detail: z.string(),
    metadata: z.record(z.string(), z.unknown()),
    at: z.string(),
    prevHash: z.string(),
    hash: z.string(),
  })
  .openapi('IncidentEvent')
export type EventAnswer = z.input<typeof eventSchema>
