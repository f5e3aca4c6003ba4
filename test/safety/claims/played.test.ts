import { describe, expect, test } from '@jest/globals'
import { claim as claimSchema } from '../../../domain/claim.ts'
import { checkClaim } from '../../../safety/claims/check.ts'
import { evidenceOf } from '../../../safety/claims/rows.ts'
import { fold } from '../../../safety/fold.ts'
import { annotated, playedEndings, written } from './from-played.ts'

describe('the endings of a model in eight investigations', () => {
  test('are recorded literally, with kinds and quotes', () => {
    expect(written()).toEqual(annotated())
    const said = playedEndings().flatMap(({ arguments: args }) => (args.claims ?? []).map(({ text }) => text))
    expect(written().flatMap(({ claims }) => claims.map(({ text }) => text))).toEqual(said)
    expect(written()).toHaveLength(8)
  })

  test.each(playedEndings().map((ending) => [ending.name, ending] as const))(
    '%s: every claim is supported by its quotes',
    (name, { rows, incidentId, bodies }) => {
      const claims = written().find((each) => each.name === name)?.claims ?? []
      for (const claim of claims) expect(claimSchema.safeParse(claim).success).toBe(true)
      const evidence = evidenceOf(fold(rows, 1), incidentId, bodies)
      const problems = claims.map((claim) => checkClaim(claim, evidence))
      expect(problems.map((problem) => problem?.why ?? 'shown')).toEqual(claims.map(() => 'shown'))
    },
  )

  test('rest on a result that the recording cuts in two places, and otherwise on rows', () => {
    const resting = written().flatMap(({ name, restsOnCut }) =>
      restsOnCut.map(({ text, cutRows }) => [name, text, cutRows]),
    )
    expect(resting).toEqual([
      ['08.1', 'started about 00:49:38', [16]],
      ['08.1', 'about 8 s of cpu by 00:50:08', [16]],
    ])
  })
})
