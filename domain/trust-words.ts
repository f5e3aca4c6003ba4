import type { TrustCall, TrustStep } from './trust.ts'

/** What pages and terminal say of levels and of the calls that they rest on. */

export function describeStep({ level, cause, by, reason, incidentId }: TrustStep): string {
  if (cause === 'upgrade') return `${level}, since an older version ran it unasked`
  // The words of the audit begin with what they changed.
  const why = reason?.replace(/^(?:From \w+ to \w+|To \w+ after \S+?): /, '') ?? ''
  const who = cause === 'lost' ? `by itself, after ${incidentId ?? 'an incident'}` : `by ${by ?? 'a person'}`
  return `${level}, ${who}${why ? `: ${why}` : ''}`
}

const verifiedWords: Record<string, string> = {
  held: 'verified',
  not_held: 'verification failed',
  open: 'it is not verified yet',
  unproven: 'whether it helped is not proved',
}

export function describeCall({ shadowed, approved, denied, ran, verified, lost, grade }: TrustCall): string {
  const asked = shadowed ? 'recorded in shadow' : denied ? 'denied' : approved ? 'approved' : ran ? 'unasked' : 'asked'
  const ended = ran && verified !== null ? [verifiedWords[verified] ?? verified] : []
  const back = lost && verified !== 'not_held' ? ['it came back'] : []
  const said = grade === null ? (shadowed ? ['to grade'] : []) : [`called ${grade}`]
  return [asked, ...ended, ...back, ...said].join(', ')
}

/** A share between two, in whole percent. */
export function formatInterval({ low, high }: { low: number; high: number }): string {
  return `${Math.floor(low * 100)} to ${Math.ceil(high * 100)} %`
}
