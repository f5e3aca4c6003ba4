import { z } from '@hono/zod-openapi'
import { Problem } from './problem.ts'

export const pageQuery = {
  limit: z.coerce.number().int().min(1).max(200).default(50),
  cursor: z.string().min(1).max(100).optional(),
}

/** The cursor of numbered rows. */
export const numberCursor = z.coerce.number().int().nonnegative().max(2_147_483_647).optional()

export function pageOf<T extends z.ZodType>(item: T) {
  return z.object({ items: z.array(item), nextCursor: z.string().nullable() })
}

/** A page of `limit` rows out of `limit + 1` that were read: the extra row means that there are more. */
export function page<T>(rows: T[], limit: number, cursorOf: (last: T) => string | number) {
  const items = rows.slice(0, limit)
  const last = items.at(-1)
  return { items, nextCursor: rows.length > limit && last ? String(cursorOf(last)) : null }
}

/** Reads `open,investigating` as a list of an enumeration's words. */
export function wordsOf<T extends z.ZodEnum>(word: T) {
  const any = word.options.join('|')
  return z
    .string()
    .regex(new RegExp(`^(?:${any})?(?:,(?:${any})?)*$`), `takes ${word.options.join(', ')}, with commas between them`)
    .transform((text) => text.split(',').filter(Boolean) as z.input<T>[])
    .pipe(z.array(word))
    .optional()
}

const leapYear = '(?:[12]\\d(?:0[48]|[2468][048]|[13579][26])|(?:12|16|20|24|28)00)'
const day = `(?:[12]\\d{3}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1\\d|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)|${leapYear}-02-29)`
const time = '(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d\\.\\d{6}'

/** The pattern of a stored moment, on a day that exists: cursors begin with it. */
export const storedMoment = `${day}T${time}Z`

/** RFC 3339 with any offset, read as UTC: PostgreSQL knows no offset beyond 15:59. */
export const moment = z.iso.datetime({ offset: true }).overwrite((text) => {
  const at = new Date(text)
  return text.endsWith('Z') || Number.isNaN(at.getTime()) ? text : at.toISOString()
})

/** A place in a list of device calls: their moment, and their key where moments are equal. */
export type CallPlace = { begunAt: string; key: string }

const callCursorShape = new RegExp(`^(${storedMoment}) ([\\x21-\\x7e]+)$`)

/** The cursor of a list of device calls, as the page before gave it. */
export const callCursor = z.string().max(600).regex(callCursorShape, 'is not the cursor of a page').optional()

export const cursorOf = ({ begunAt, key }: CallPlace): string => `${begunAt} ${key}`

export function placeIn(cursor: string | undefined): CallPlace | null {
  if (cursor === undefined) return null
  const [, begunAt, key] = callCursorShape.exec(cursor) ?? []
  if (!begunAt || !key) throw new Problem(422, 'INVALID', 'cursor: is not the cursor of a page.')
  return { begunAt, key }
}
