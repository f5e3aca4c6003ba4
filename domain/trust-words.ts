import type { TrustCall, TrustStep } from './trust.ts'

/** Describes levels of trust, and the calls on which they are based, for pages and terminal. */

export function describeStep({ level, cause, by, reason, incidentId }: TrustStep): string {
  if (cause === 'upgrade') return `${level}, because an older version ran it without approval`
  // Removes the beginning of the reason from the audit log, which only repeats the change of the
  // level.
  const why = reason?.replace(/^(?:From \w+ to \w+|To \w+ after \S+?): /, '') ?? ''
  const who = cause === 'lost' ? `automatically, after ${incidentId ?? 'an incident'}` : `by ${by ?? 'a person'}`
  return `${level}, ${who}${why ? `: ${why}` : ''}`
}

const verifiedWords: Record<string, string> = {
  held: 'verified',
  not_held: 'verification failed',
  open: 'it is not verified yet',
  unproven: 'nothing can verify that it worked',
}

export function describeCall({ shadowed, approved, denied, ran, verified, lost, grade }: TrustCall): string {
  const steps = [
    ['recorded in shadow', shadowed],
    ['denied', denied],
    ['approved', approved],
    ['without approval', ran],
    ['approval requested', true],
  ] as const
  const asked = steps.find(([, holds]) => holds)?.[0]
  const ended = ran && verified !== null ? [verifiedWords[verified] ?? verified] : []
  const back = lost && verified !== 'not_held' ? ['it came back'] : []
  const said = grade === null ? (shadowed ? ['to grade'] : []) : [`graded ${grade}`]
  return [asked, ...ended, ...back, ...said].join(', ')
}

/** Formats the interval of a share in whole per cent. */
export function formatInterval({ low, high }: { low: number; high: number }): string {
  return `${Math.floor(low * 100)} to ${Math.ceil(high * 100)} %`
}
