import { diffArrays } from 'diff'

/** A line of a text that became another: kept, taken out, put in. */
export type Line = { sign: ' ' | '-' | '+'; text: string }

/** More lines taken out and put in than this would hold up the typing: then all of it is taken out and put in. */
const compared = 500
/** Kept lines that are shown on either side of a change. */
const around = 2

/** How one text became another, line by line; far-off kept lines are left out. */
export function lines(from: string, to: string): Line[] {
  const [before, after] = [from.split('\n'), to.split('\n')]
  const parts = diffArrays(before, after, { maxEditLength: compared }) ?? [
    { value: before, removed: true, added: false },
    { value: after, removed: false, added: true },
  ]
  const all = parts.flatMap(({ value, removed, added }) =>
    value.map((text): Line => ({ sign: removed ? '-' : added ? '+' : ' ', text })),
  )
  return all.filter((_, index) =>
    all.slice(Math.max(0, index - around), index + around + 1).some(({ sign }) => sign !== ' '),
  )
}
