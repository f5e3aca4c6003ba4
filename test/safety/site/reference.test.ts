import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { compilePolicy } from '../../../safety/site/compile.ts'
import { decideBySite } from '../../../safety/site/decide.ts'
import { anyMoment, anyPolicy, anyThing, anyTool, isLook, types } from './policies.ts'
import { type ReferenceAnswer, readPlainly } from './reference.ts'

/** What of a decision is the file's word: where the rule stands is told beside it. */
function plain(decision: ReturnType<typeof decideBySite>['write']): ReferenceAnswer {
  if (decision === null) return null
  const { action, demand: { people, members } = { people: 0, members: null }, isNamed = false } = decision
  return { action, people, members: members === null ? null : [...members].sort(), isNamed }
}

const sorted = (answer: ReferenceAnswer) =>
  answer && { ...answer, members: answer.members && [...answer.members].sort() }

const anyCall = fc.record({
  things: fc.array(anyThing, { maxLength: 3 }),
  tool: anyTool,
  type: fc.constantFrom(...types),
  nowMs: anyMoment,
  isSilenced: fc.boolean(),
})

const aSilence = { is: 'unread', source: null, readAt: null } as const

/** Calls that are held against each policy. */
const callsEach = 5

test('10,000 calls under random policies are decided like a plain reading of the documentation', () => {
  const seen: Record<string, number> = {}
  fc.assert(
    fc.property(anyPolicy, fc.array(anyCall, { minLength: callsEach, maxLength: callsEach }), (policy, calls) => {
      const compiled = compilePolicy(policy, { digest: '', commit: null })
      for (const { things, isSilenced, ...call } of calls) {
        const does = isLook(call.tool) ? ('look' as const) : ('write' as const)
        const expected = readPlainly(policy, { ...call, does, things, isSilenced })
        expect(
          plain(
            decideBySite(compiled, { ...call, things: things as never, silence: isSilenced ? aSilence : null })[does],
          ),
        ).toEqual(sorted(expected))
        const key = `${does} ${expected?.action ?? 'no rule'}`
        seen[key] = (seen[key] ?? 0) + 1
      }
    }),
    { numRuns: Number(process.env.POLICIES ?? 2_000) },
  )
  // Each answer came up often enough to be a test of it.
  for (const key of ['write never', 'write ask', 'write run', 'write no rule', 'look never', 'look no rule'])
    expect([key, (seen[key] ?? 0) > 100]).toEqual([key, true])
  process.stdout.write(`calls held against the reference: ${JSON.stringify(seen)}\n`)
})
