import type { Counts, Findings } from './chain.ts'
import { formatNumber } from './format.ts'

/** Formats numbers of rows by kind: `50 incidents, 1,843 rows of the log, 12 votes`. */
export function formatCounts(counts: Counts): string {
  return Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([kind, count]) => `${formatNumber(count)} ${count === 1 ? toSingular(kind) : kind}`)
    .join(', ')
}

/** Converts a plural kind to the singular: `rows of the log` becomes `row of the log`. */
function toSingular(kind: string): string {
  if (kind === 'people') return 'person'
  const [noun = '', ...rest] = kind.split(/(?= of )/)
  const last =
    noun === 'changes' || noun === 'rows' || rest.length > 0 ? noun.replace(/s$/, '') : kind.replace(/s$/, '')
  return [last, ...rest].join('')
}

/**
 * Describes what could not be checked because older rows lack the data; null if everything was
 * checked.
 */
export function formatUntold({ untold }: Pick<Findings, 'untold'>): string | null {
  const left = formatCounts(untold)
  return left === '' ? null : `Older rows leave out parts of ${left}. Those parts were not checked.`
}

export const noFindings = (): Findings => ({ differences: [], checked: {}, untold: {} })

/** Adds new findings to earlier ones. */
export function addFindings(into: Findings, more: Findings): void {
  into.differences.push(...more.differences)
  for (const name of ['checked', 'untold'] as const)
    for (const [kind, count] of Object.entries(more[name])) into[name][kind] = (into[name][kind] ?? 0) + count
}
