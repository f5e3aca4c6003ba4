import { z } from '@hono/zod-openapi'
import { storedMoment } from '../moment.ts'
import { Problem } from '../problem.ts'

/** A place in a list of calls: their moment, and their key where moments are the same. */
export type CallPlace = { begunAt: string; key: string }

const shape = new RegExp(`^(${storedMoment}) ([\\x21-\\x7e]+)$`)

/** As a page gives it for the next one. */
export const callCursor = z.string().max(600).regex(shape, 'is not the cursor of a page').optional()

export const cursorOf = ({ begunAt, key }: CallPlace): string => `${begunAt} ${key}`

export function placeIn(cursor: string | undefined): CallPlace | null {
  if (cursor === undefined) return null
  const [, begunAt, key] = shape.exec(cursor) ?? []
  if (!begunAt || !key) throw new Problem(422, 'INVALID', 'cursor: is not the cursor of a page.')
  return { begunAt, key }
}
