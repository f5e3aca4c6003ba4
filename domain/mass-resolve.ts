/** More ends than this in a minute, and over half of a sender's firing alerts: a changed sender. */
export const minMassEnds = 20

export function isMassEnd(counts: { endsInMinute: number; firingBefore: number }): boolean {
  return counts.endsInMinute > minMassEnds && counts.endsInMinute * 2 > counts.firingBefore
}
