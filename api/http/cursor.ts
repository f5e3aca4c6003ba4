import { z } from '@hono/zod-openapi'
import { storedMoment } from './moments.ts'
import { Problem } from './problem.ts'

export const pageQuery = {
  limit: z.coerce.number().int().min(1).max(200).default(50),
  cursor: z.string().min(1).max(100).optional(),
}

/** The cursor of a list whose rows have numbers. */
export const numberCursor = z.coerce.number().int().nonnegative().max(2_147_483_647).optional()

export function pageOf<T extends z.ZodType>(item: T) {
  return z.object({ items: z.array(item), nextCursor: z.string().nullable() })
}

/**
 * Makes a page of `limit` rows from `limit + 1` rows. The additional row shows that more rows
 * follow.
 */
export function page<T>(rows: T[], limit: number, cursorOf: (last: T) => string | number) {
  const items = rows.slice(0, limit)
  const last = items.at(-1)
  return { items, nextCursor: rows.length > limit && last ? String(cursorOf(last)) : null }
}

/** A position in a list of device calls: the time, and the key if times are equal. */
type DeviceCallPosition = { begunAt: string; key: string }

const callCursorShape = new RegExp(`^(${storedMoment}) ([\\x21-\\x7e]+)$`)

/** The cursor of a list of device calls, as the previous page returned it. */
export const callCursor = z.string().max(600).regex(callCursorShape, 'is not the cursor of a page').optional()

export const cursorOf = ({ begunAt, key }: DeviceCallPosition): string => `${begunAt} ${key}`

export function placeIn(cursor: string | undefined): DeviceCallPosition | null {
  if (cursor === undefined) return null
  const [, begunAt, key] = callCursorShape.exec(cursor) ?? []
  if (!begunAt || !key) throw new Problem(422, 'INVALID', 'cursor: is not the cursor of a page.')
  return { begunAt, key }
}
