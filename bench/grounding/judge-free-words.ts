import type { ClaimGrade } from '../../domain/hypothesis.ts'
import { findingsOf, refusedBy } from '../../safety/claims/ending.ts'
import { fold } from '../../safety/fold.ts'
import { type FreeEnding, type FreeScene, freeScenes } from './free-words.ts'

/**
 * The judge's result on an ending in free words. `refused`: the ending is not allowed, for the
 * reason in `why`.
 */
type FreeOutcome = { scene: string; ending: FreeEnding; grade: ClaimGrade | 'refused'; why: string | null }

/** Judges each ending separately, as the only claim of a repair. A pure function. */
export function judgeFreeWords(scenes: readonly FreeScene[] = freeScenes): FreeOutcome[] {
  return scenes.flatMap(({ name, rows, endings }) => {
    const state = fold(rows, 1, null)
    return endings.map((ending): FreeOutcome => {
      const said = { text: '', claims: [ending.claim] }
      const findings = findingsOf(said, state, rows[0]?.incidentId ?? '', new Map())
      const [claim] = findings.claims
      const isRefused = refusedBy(findings, true)
      const why = claim?.problem ? `${claim.problem.code}: ${claim.problem.why}` : (claim?.why ?? null)
      return { scene: name, ending, grade: isRefused ? 'refused' : (claim?.grade ?? 'C'), why }
    })
  })
}

/** Computes the shares of endings in free words that the bench prints, by truth and grade. */
export function sumUpFreeWords(outcomes: readonly FreeOutcome[]): Record<string, string> {
  const of = (isTrue: boolean) => outcomes.filter(({ ending }) => ending.isTrue === isTrue)
  const share = (among: readonly FreeOutcome[], grades: readonly string[]) => {
    const hits = among.filter(({ grade }) => grades.includes(grade)).length
    return `${hits} of ${among.length}, ${((hits / Math.max(1, among.length)) * 100).toFixed(2)} %`
  }
  return {
    'free words, true, by rows': share(of(true), ['A']),
    "free words, true, in the agent's words": share(of(true), ['B']),
    'free words, true, not shown or refused': share(of(true), ['C', 'refused']),
    'free words, false, by rows': share(of(false), ['A']),
    "free words, false, in the agent's words": share(of(false), ['B']),
    'free words, false, not shown or refused': share(of(false), ['C', 'refused']),
  }
}
