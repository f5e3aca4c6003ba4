import { diffArrays } from 'diff'

/** A line in the difference of two texts: kept, removed, added. */
export type DiffLine = { sign: ' ' | '-' | '+'; text: string }

/** The most changed lines, so that typing stays fast. Above this, everything counts as replaced. */
const compared = 500
/** Number of unchanged lines that are shown on either side of a change. */
const around = 2

/** Compares two texts line by line. Unchanged lines that are far from a change are left out. */
export function lines(from: string, to: string): DiffLine[] {
  const [before, after] = [from.split('\n'), to.split('\n')]
  const parts = diffArrays(before, after, { maxEditLength: compared }) ?? [
    { value: before, removed: true, added: false },
    { value: after, removed: false, added: true },
  ]
  const all = parts.flatMap(({ value, removed, added }) =>
    value.map((text): DiffLine => ({ sign: removed ? '-' : added ? '+' : ' ', text })),
  )
  return all.filter((_, index) =>
    all.slice(Math.max(0, index - around), index + around + 1).some(({ sign }) => sign !== ' '),
  )
}

/**
 * One difference between two values: its path, and the value there in each. `undefined` means that
 * there is no value.
 */
export type ValueChange = { path: string; from: unknown; to: unknown }

/**
 * Lists the changes from one value to another, in the order of the first value, with new paths
 * last.
 */
export function listChanges(from: unknown, to: unknown, path = ''): ValueChange[] {
  if (!isBranch(from) || !isBranch(to) || Array.isArray(from) !== Array.isArray(to)) {
    return JSON.stringify(from) === JSON.stringify(to) ? [] : [{ path, from, to }]
  }
  return [...new Set([...Object.keys(from), ...Object.keys(to)])].flatMap((key) =>
    listChanges(own(from, key), own(to, key), Array.isArray(from) ? `${path}[${key}]` : path ? `${path}.${key}` : key),
  )
}

type Branch = Record<string, unknown>

function isBranch(value: unknown): value is Branch {
  return typeof value === 'object' && value !== null
}

function own(branch: Branch, key: string): unknown {
  return Object.hasOwn(branch, key) ? branch[key] : undefined
}
