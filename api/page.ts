import { z } from '@hono/zod-openapi'

export const pageQuery = {
  limit: z.coerce.number().int().min(1).max(200).default(50),
  cursor: z.string().min(1).max(100).optional(),
}

/** Numbers as cursors: of rows that are numbered. */
export const numberCursor = z.coerce.number().int().nonnegative().max(2_147_483_647).optional()

export function pageOf<T extends z.ZodType>(item: T) {
  return z.object({ items: z.array(item), nextCursor: z.string().nullable() })
}

/** One page out of `limit + 1` rows that were read: the one too many tells that there is more. */
export function page<T>(rows: T[], limit: number, cursorOf: (last: T) => string | number) {
  const items = rows.slice(0, limit)
  const last = items.at(-1)
  return { items, nextCursor: rows.length > limit && last ? String(cursorOf(last)) : null }
}

/** `open,investigating` as a list of words of an enumeration. */
export function wordsOf<T extends z.ZodEnum>(word: T) {
  const any = word.options.join('|')
  return z
    .string()
    .regex(new RegExp(`^(?:${any})?(?:,(?:${any})?)*$`), `takes ${word.options.join(', ')}, with commas between them`)
    .transform((text) => text.split(',').filter(Boolean) as z.input<T>[])
    .pipe(z.array(word))
    .optional()
}
