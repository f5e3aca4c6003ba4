import { expect, test } from '@jest/globals'
import type { Plan, PlanStep } from '../../domain/placement.ts'
import { planDigest, stateFingerprint } from '../../placement/digest.ts'
import { startGlpk } from '../../placement/glpk.ts'
import { verifyPlan } from '../../placement/verify.ts'
import { dead, down, host, problem, vm } from './problems.ts'

const given = problem(
  [host('a', 8, { rack: 'r1' }), host('b', 4, { rack: 'r1' }), host('d', 8, { state: 'draining' }), host('x', 8, dead)],
  [
    vm('small', 2, 'a', { haGroup: 'g' }),
    vm('big', 8, 'x', down),
    vm('kin', 1, 'd', { haGroup: 'g' }),
    vm('off', 1, 'a', down),
  ],
)
const move: PlanStep = { step: 1, action: 'migrate', vm: 'small', from: 'a', to: 'b' }
const start: PlanStep = { step: 2, action: 'start', vm: 'big', from: 'x', to: 'a' }
const planOf = (...steps: PlanStep[]): Plan => ({
  state: 'planned',
  steps,
  migrations: steps.filter((step) => step.action === 'migrate').length,
  reason: null,
})

test('a plan that keeps every rule holds', () => {
  expect(verifyPlan(given, planOf(move, start))).toEqual({ ok: true })
})

test.each<[string, Plan, number, string]>([
  ['a start before there is room', planOf({ ...start, step: 1 }, { ...move, step: 2 }), 1, 'a is short by 2048 MiB'],
  ['a stranded VM without a place', planOf(move), 0, 'big has no place'],
  ['a start on a draining host', planOf(move, { ...start, to: 'd' }), 2, 'd is draining'],
  ['a start on a dead host', planOf(move, { ...start, to: 'x' }), 2, 'x is dead'],
  ['an unknown host', planOf(move, { ...start, to: 'y' }), 2, 'y is unknown'],
  ['an unknown VM', planOf(move, { ...start, vm: 'y' }), 2, 'y is unknown'],
  ['a move from where the VM is not', planOf({ ...move, from: 'b', to: 'a' }), 1, 'small does not run on b'],
  ['a move to where it is', planOf({ ...move, to: 'a' }), 1, 'small is on a already'],
  ['a start of a running VM', planOf({ ...move, action: 'start' }), 1, 'small runs on a already'],
  [
    'a start of what somebody switched off',
    planOf({ ...start, step: 1, vm: 'off', from: 'a', to: 'b' }),
    1,
    'not to be started',
  ],
  [
    'a group together',
    planOf(move, { step: 2, action: 'migrate', vm: 'kin', from: 'd', to: 'b' }),
    2,
    'HA group g is on b',
  ],
  ['a step left out', planOf({ ...move, step: 2 }), 2, 'step 1 is numbered 2'],
  ['a wrong count', { ...planOf(move, start), migrations: 0 }, 0, 'number of migrations'],
  ['steps of a plan that is none', { ...planOf(move, start), state: 'infeasible' }, 0, 'has steps'],
  ['nothing to do while a VM is down', { ...planOf(), state: 'no_action' }, 0, 'big has no place'],
  ['an empty plan', planOf(), 0, 'plans nothing'],
])('%s does not hold', (_what, plan, step, reason) => {
  expect(verifyPlan(given, plan)).toEqual({ ok: false, step, reason: expect.stringContaining(reason) })
})

test('a VM may move within its own rack, and not into the rack of its kin', () => {
  const racks = { ...given, useRackConstraints: true }
  expect(verifyPlan(racks, planOf(move, start))).toEqual({ ok: true })
  const kin = planOf(move, start, { step: 3, action: 'migrate', vm: 'kin', from: 'd', to: 'a' })
  expect(
    verifyPlan({ ...racks, hosts: racks.hosts.map((one) => ({ ...one, ramMib: 99_999, cpuMc: 99_999 })) }, kin),
  ).toEqual({
    ok: false,
    step: 3,
    reason: 'small of HA group g is in rack r1',
  })
})

test('a VM that was not named may not be touched', () => {
  expect(verifyPlan({ ...given, vmIds: ['big'] }, planOf(move, start))).toMatchObject({ ok: false, step: 1 })
})

test('the fingerprint of a state changes with its facts and with nothing else', () => {
  const turned = { hosts: [...given.hosts].reverse(), vms: [...given.vms].reverse() }
  expect(stateFingerprint(turned)).toBe(stateFingerprint(given))
  const moved = { ...given, vms: given.vms.map((one) => (one.vm === 'small' ? { ...one, host: 'b' } : one)) }
  expect(stateFingerprint(moved)).not.toBe(stateFingerprint(given))
  expect(planDigest([move, start])).toMatch(/^[0-9a-f]{64}$/)
  expect(planDigest([start, move])).not.toBe(planDigest([move, start]))
})

test('a solver in the middle of its work is killed at the bound, and is gone for good', async () => {
  const glpk = startGlpk()
  try {
    const tiny = {
      binaries: 1,
      hasLevel: false,
      objective: [[0, 1]] as [number, number][],
      rows: [{ terms: [[0, 1]] as [number, number][], equal: 1 }],
    }
    expect(await glpk.solve({ model: tiny, relativeGap: 0 }, performance.now() + 10_000)).toEqual({
      status: 'optimal',
      values: [1],
    })
    // Two million terms: only to read them takes longer than the bound.
    const rows = Array.from({ length: 1_000 }, () => ({
      terms: Array.from({ length: 2_000 }, (_, column): [number, number] => [column, 1]),
      atMost: 3,
    }))
    const begun = performance.now()
    const large = { model: { ...tiny, binaries: 2_000, rows }, relativeGap: 0 }
    expect(await glpk.solve(large, begun + 150)).toEqual({ status: 'unknown' })
    expect(performance.now() - begun).toBeLessThan(20_000)
    expect(await glpk.solve({ model: tiny, relativeGap: 0 }, performance.now() + 10_000)).toEqual({ status: 'unknown' })
  } finally {
    glpk.stop()
  }
})
