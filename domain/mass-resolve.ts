/** More ends than this within a minute, and more than half of a sender's firing alerts: it is the sender that changed. */
export const minMassEnds = 20

export function isMassEnd(counts: { endsInMinute: number; firingBefore: number }): boolean {
  return counts.endsInMinute > minMassEnds && counts.endsInMinute * 2 > counts.firingBefore
}
