/** A line of a text that became another: kept, taken out, put in. */
export type Line = { sign: ' ' | '-' | '+'; text: string }

/** How one text became another, line by line, by their longest common subsequence; far-off kept lines are left out. */
export function lines(from: string, to: string): Line[] {
  const a = from.split('\n')
  const b = to.split('\n')
  if (a.length * b.length > compared) {
    return [...a.map((text) => ({ sign: '-' as const, text })), ...b.map((text) => ({ sign: '+' as const, text }))]
  }
  // common[i][j]: how many lines a.slice(i) and b.slice(j) have in common, in order.
  const common = Array.from({ length: a.length + 1 }, () => new Array<number>(b.length + 1).fill(0))
  const at = (i: number, j: number) => common[i]?.[j] ?? 0
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      ;(common[i] as number[])[j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1))
    }
  }
  const all: Line[] = []
  let i = 0
  let j = 0
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      all.push({ sign: ' ', text: a[i] ?? '' })
      i++
      j++
    } else if (i < a.length && (j === b.length || at(i + 1, j) >= at(i, j + 1))) {
      all.push({ sign: '-', text: a[i++] ?? '' })
    } else {
      all.push({ sign: '+', text: b[j++] ?? '' })
    }
  }
  return all.filter((_, index) =>
    all.slice(Math.max(0, index - around), index + around + 1).some(({ sign }) => sign !== ' '),
  )
}

/** More pairs of lines than this would hold up the typing: then all of it is taken out and put in. */
const compared = 1_000_000
/** Kept lines that are shown on either side of a change. */
const around = 2
