import { z } from '@hono/zod-openapi'
import { Problem } from '../problem.ts'

/** A place in a list of calls: their moment, and their key where moments are the same. */
export type CallPlace = { begunAt: string; key: string }

/** As a page gives it for the next one. */
export const callCursor = z.string().min(1).max(600).optional()

export const cursorOf = ({ begunAt, key }: CallPlace): string => `${begunAt} ${key}`

export function placeIn(cursor: string | undefined): CallPlace | null {
  if (cursor === undefined) return null
  const [, begunAt, key] = /^(\d{4}-\d\d-\d\dT[\d:.]{8,15}Z) (.+)$/.exec(cursor) ?? []
  if (!begunAt || !key) throw new Problem(422, 'INVALID', 'cursor: is none that a page before gave.')
  return { begunAt, key }
}
