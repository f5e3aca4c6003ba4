import { expect, test } from '@jest/globals'
import { plainPolicy } from '../../domain/refusal.ts'
import type { Risk } from '../../domain/tool.ts'
import { compareLeft, type UndoLook } from '../../domain/undo.ts'
import { fold } from '../../safety/fold.ts'
import { judge, type Policy } from '../../safety/judge.ts'
import { toolFacts } from '../../tools/registry.ts'

const incident = 'inc_00000000000000000000000001'
const left = { 'HEAD of /srv/web': 'a1' }

/** The undo of a write of this risk, as its run brings it before the kernel. */
function ruled(look: UndoLook | undefined, more: Partial<Policy> = {}, risk: Risk = 'high') {
  const preparation = {
    targets: [{ kind: 'vm' as const, id: 'vm-1' }],
    identity: { id: 'vm-1' },
    stateFingerprint: 'now',
    asks: { risk, why: `it takes back vm_stop, which was of ${risk} risk` },
    ...(look && { left: look }),
    dryRun: { possible: true, summary: '', details: {} },
  }
  const args = { id: 'vm-1', reason: 'the wrong VM' }
  const call = {
    callId: 'c1_0',
    tool: 'vm_start',
    arguments: args,
    problem: null,
    prepared: { ok: true as const, preparation },
  }
  const policy = { ...plainPolicy(incident, null), manual: { stateFingerprint: 'now', isUndo: true as const }, ...more }
  return judge(call, toolFacts, fold([], 1, null), policy, 0)
}

const asLeft = compareLeft(left, left, incident)

test('an undo on the state that its write left asks like that write', () => {
  expect(ruled(asLeft)).toMatchObject({ verdict: 'ask', code: 'RISK_HIGH', risk: 'high' })
  expect(ruled(asLeft, {}, 'critical')).toMatchObject({ verdict: 'ask', risk: 'critical' })
})

test.each([
  ['on which something else stands now', compareLeft(left, { 'HEAD of /srv/web': 'b2' }, incident)],
  ['on which something more stands now', compareLeft(left, { ...left, 'HEAD of /srv/api': 'c3' }, incident)],
  ['that cannot be read', compareLeft(left, null, incident)],
  ['that nobody looked at', undefined],
])('an undo on a state %s is refused, whoever approved it', (_, look) => {
  const approval = { id: 'apr_1', callId: 'c1_0', actionDigest: ruled(asLeft).actionDigest, stateFingerprint: 'now' }
  for (const more of [{}, { approval }] as Partial<Policy>[])
    expect(ruled(look, more)).toMatchObject({ verdict: 'refuse', code: 'UNDO_MOVED_ON' })
})

test('each difference is named with its former state', () => {
  expect(compareLeft(left, { 'HEAD of /srv/web': 'b2' }, incident).observed).toBe(
    `the state changed since the write of ${incident}: HEAD of /srv/web is b2, and was a1 then`,
  )
})

test('an approved undo runs on the state that its write left', () => {
  const approval = { id: 'apr_1', callId: 'c1_0', actionDigest: ruled(asLeft).actionDigest, stateFingerprint: 'now' }
  expect(ruled(asLeft, { approval } as Partial<Policy>)).toMatchObject({ verdict: 'run', code: 'APPROVED' })
})
