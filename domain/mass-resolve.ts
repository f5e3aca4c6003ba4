/**
 * Number of ends of alerts per minute above which the ends are suspicious, if they are also more
 * than half of the sender's firing alerts. So many ends probably mean that the sender's
 * configuration changed.
 */
export const minMassEnds = 20

export function isMassEnd(counts: { endsInMinute: number; firingBefore: number }): boolean {
  return counts.endsInMinute > minMassEnds && counts.endsInMinute * 2 > counts.firingBefore
}
