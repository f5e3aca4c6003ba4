import { z } from 'zod'
import { incidentType } from './incident.ts'
import { idPattern } from './kinds.ts'
import { inventoryKind, resourceRef } from './registry.ts'
import type { KindStop } from './stop.ts'

/**
 * Responses of the API about stops. The types are in `stop.ts`: pages import the types and load no
 * schema.
 */

/** A resource that the registry may list. */
export const stoppable = z.strictObject({ kind: inventoryKind, id: z.string().regex(idPattern) })

const kindStop = z.object({
  id: z.string(),
  type: incidentType,
  tool: z.string().max(100).nullable(),
  resource: resourceRef.nullable(),
  at: z.string(),
  until: z.string().nullable(),
  by: z.string(),
  reason: z.string(),
}) satisfies z.ZodType<KindStop>

export const stopList = z.object({ items: z.array(kindStop) })

/** The response to a stop. `withdrawn`: how many questions to people the stop withdrew. */
export const stopAnswer = z.object({ stop: kindStop, withdrawn: z.number().int() })
