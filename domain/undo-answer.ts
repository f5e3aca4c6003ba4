import { z } from 'zod'
import { resourceRef } from './registry.ts'

/**
 * Responses of the API about undos. The types are in `undo.ts`: pages import the types and load no
 * schema.
 */

const standing = z.enum(['under_way', 'undone', 'not_done', 'unclear'])

export const listedUndo = z.object({
  /** The key of the write, which the request for its undo contains. */
  key: z.string(),
  tool: z.string(),
  said: z.string(),
  by: z.string(),
  at: z.string(),
  targets: z.array(resourceRef),
  undo: z
    .object({
      tool: z.string(),
      arguments: z.record(z.string(), z.unknown()),
      /** Facts about the state that the write left. The undo is valid only for this state. */
      left: z.record(z.string(), z.string()),
    })
    .nullable(),
  /** Why the write may not be undone; null if no reason is known. */
  refused: z.object({ code: z.string(), detail: z.string() }).nullable(),
  /** All requested undos of the write, the oldest first. */
  undos: z.array(z.object({ incidentId: z.string(), standing })),
})

export const listedUndos = z.object({ items: z.array(listedUndo) })

export const shownUndo = listedUndo.extend({
  /** A current read of the state that the write left; null if that state is unknown. */
  look: z.object({ isAsLeft: z.boolean(), observed: z.string() }).nullable(),
})
