import { z } from 'zod'
import { resourceRef } from './registry.ts'

/** The API's answers about an undo. The types are in `undo.ts`, for pages, which load no schema. */

const standing = z.enum(['under_way', 'undone', 'not_done', 'unclear'])

export const listedUndo = z.object({
  /** The write's key, by which its undo is asked. */
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
      /** Facts of the state that the write left: the undo is for that state alone. */
      left: z.record(z.string(), z.string()),
    })
    .nullable(),
  /** Why it may not be taken back; null: nothing that is known speaks against it. */
  refused: z.object({ code: z.string(), detail: z.string() }).nullable(),
  /** Every undo that was asked for, the oldest first. */
  undos: z.array(z.object({ incidentId: z.string(), standing })),
})

export const listedUndos = z.object({ items: z.array(listedUndo) })

export const shownUndo = listedUndo.extend({
  /** What a look of now showed of what the write left; null where nothing says what that was. */
  look: z.object({ isAsLeft: z.boolean(), observed: z.string() }).nullable(),
})
