/**
 * Fields by which tools mark a partial result. `test/safety/claims/short-answers.test.ts` has a row
 * for each field.
 */

const flags = new Set(['truncated', 'total_is_more', 'isPartial', 'partial', 'stale', 'more', 'isCut', 'ofPoints'])
const cursors = new Set(['nextCursor', 'next_cursor', 'next_offset'])

/** Whether a field shows that the result contains less than was requested. */
export function saysShort(key: string, value: unknown): boolean {
  if (flags.has(key))
    return value === true || (Array.isArray(value) && value.length > 0) || (key === 'ofPoints' && Boolean(value))
  if (cursors.has(key)) return value != null
  if (key === 'notShown' || key === 'otherLines') return Number(value) > 0
  if (!key.endsWith('_unseen')) return false
  const { total } = Object(value) as { total?: unknown }
  return Number(total ?? value) > 0
}

/** Fields with the number of items that are left out. */
const counted = new Set(['ofPoints', 'notShown', 'otherLines'])

/**
 * Whether the top level of a result marks it as partial: cut, from only some servers, stale, or
 * without parts that may not be read.
 */
export function isShort(answer: unknown): boolean {
  if (answer === null || typeof answer !== 'object' || Array.isArray(answer)) return false
  return Object.entries(answer).some(([key, value]) => !counted.has(key) && saysShort(key, value))
}
