/**
 * The number of ends per minute above which they are suspicious, if they are also more than half of
 * the sender's firing alerts. So many ends probably mean that the sender changed.
 */
export const minMassEnds = 20

export function isMassEnd(counts: { endsInMinute: number; firingBefore: number }): boolean {
  return counts.endsInMinute > minMassEnds && counts.endsInMinute * 2 > counts.firingBefore
}
