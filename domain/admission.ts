import type { Severity } from './incident.ts'

/** A type with incidents that nobody works on yet. */
export type WaitingType = { type: string; isCritical: boolean; isAtWork: boolean }
/** A type whose first incident is being investigated, or is about to be. */
export type LeadingType = { type: string; isCritical: boolean }

/**
 * Which types may be worked on, in the order given (the most urgent, then oldest, first). A slot is for a leader: the followers of a
 * type that is at work already take none. Of several slots one is kept for critical incidents, so that no number of storms of
 * warnings makes one wait.
 */
export function admittedTypes(
  waiting: readonly WaitingType[],
  leading: readonly LeadingType[],
  slots: number,
): string[] {
  const forOthers = Math.max(1, slots - 1)
  let free = slots - leading.length
  let others = leading.filter(({ isCritical }) => !isCritical).length
  const admitted: string[] = []
  for (const { type, isCritical, isAtWork } of waiting) {
    if (isAtWork) {
      admitted.push(type)
      continue
    }
    if (free <= 0 || (!isCritical && others >= forOthers)) continue
    free -= 1
    if (!isCritical) others += 1
    admitted.push(type)
  }
  return admitted
}

/** Does a member of a group wait for its leader to end? Only where the leader is as urgent: a critical one waits for no warning. */
export function waitsForLeader(member: Severity, leader: Severity): boolean {
  return member !== 'critical' || leader === 'critical'
}
