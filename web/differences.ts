import { diffArrays } from 'diff'

/** A line of a text that became another: kept, taken out, put in. */
export type DiffLine = { sign: ' ' | '-' | '+'; text: string }

/** More changed lines would hold up the typing: then all is taken out and put in. */
const compared = 500
/** Kept lines that are shown on either side of a change. */
const around = 2

/** How one text became another, line by line; far-off kept lines are left out. */
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

/** One place where two values differ: the way to it, and each value there. `undefined`: none. */
export type ValueChange = { path: string; from: unknown; to: unknown }

/** Changes from one value to another, in the first's order, new places last. */
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
