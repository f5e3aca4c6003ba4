import { expect, test } from '@jest/globals'
import type { Plan, PlanStep } from '../../domain/placement.ts'
import { type LinearModel, startEngine } from '../../placement/bound/assignment.ts'
import { planDigest, stateFingerprint } from '../../placement/plan.ts'
import { verifyPlan } from '../../placement/verify.ts'
import { patienceMs } from '../support/directory.ts'
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
const move: PlanStep = { step: 1, action: 'migrate', vm: 'small', from: 'a', to: 'b', needs: [], wave: 1 }
const start: PlanStep = { step: 2, action: 'start', vm: 'big', from: 'x', to: 'a', needs: [1], wave: 2 }
const planOf = (...steps: PlanStep[]): Plan => ({
  state: 'planned',
  steps,
  migrations: steps.filter((step) => step.action === 'migrate').length,
  lowerBound: 0,
  proof: { kind: 'trivial' },
  unplaced: [],
  obstacle: null,
  standing: null,
  reason: null,
})

test('a plan that keeps every rule holds', () => {
  expect(verifyPlan(given, planOf(move, start))).toEqual({ ok: true })
})

test.each<[string, Plan, number, string]>([
  [
    'a start before there is room',
    planOf({ ...start, step: 1, needs: [] }, { ...move, step: 2 }),
    1,
    'a is short by 2048 MiB',
  ],
  ['a stranded VM without a place', planOf(move), 0, 'big has no place'],
  ['a start on a draining host', planOf(move, { ...start, to: 'd' }), 2, 'd is draining'],
  ['a start on a dead host', planOf(move, { ...start, to: 'x' }), 2, 'x is dead'],
  ['an unknown host', planOf(move, { ...start, to: 'y' }), 2, 'y is unknown'],
  ['an unknown VM', planOf(move, { ...start, vm: 'y' }), 2, 'y is unknown'],
  ['a move from where the VM is not', planOf({ ...move, from: 'b', to: 'a' }), 1, 'small does not run on b'],
  ['a move to where it is', planOf({ ...move, to: 'a' }), 1, 'small is already on a'],
  ['a start of a running VM', planOf({ ...move, action: 'start' }), 1, 'small already runs on a'],
  [
    'a start of what somebody switched off',
    planOf({ ...start, step: 1, vm: 'off', from: 'a', to: 'b' }),
    1,
    'must not be started',
  ],
  [
    'a group together',
    planOf(move, { step: 2, action: 'migrate', vm: 'kin', from: 'd', to: 'b', needs: [], wave: 1 }),
    2,
    'HA group g is on b',
  ],
  ['a step left out', planOf({ ...move, step: 2 }), 2, 'step 1 is numbered 2'],
  ['a wrong count', { ...planOf(move, start), migrations: 0 }, 0, 'number of migrations'],
  ['steps of a plan that is none', { ...planOf(move, start), state: 'infeasible' }, 0, 'has steps'],
  ['nothing to do while a VM is down', { ...planOf(), state: 'no_action' }, 0, 'big has no place'],
  ['an empty plan', planOf(), 0, 'has no steps'],
])('%s does not hold', (_what, plan, step, reason) => {
  expect(verifyPlan(given, plan)).toEqual({ ok: false, step, reason: expect.stringContaining(reason) })
})

test('a VM may move within its own rack, and not into the rack of its group', () => {
  const racks = { ...given, useRackConstraints: true }
  expect(verifyPlan(racks, planOf(move, start))).toEqual({ ok: true })
  const kin = planOf(move, start, { step: 3, action: 'migrate', vm: 'kin', from: 'd', to: 'a', needs: [], wave: 1 })
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

test.each<[string, Plan, string]>([
  ['a start that does not wait for the room it needs', planOf(move, { ...start, needs: [] }), 'short'],
  ['a need that comes later', planOf({ ...move, needs: [2] }, start), 'does not come before'],
])('%s does not hold, though the order does', (_what, plan, reason) => {
  expect(verifyPlan(given, plan)).toMatchObject({ ok: false, reason: expect.stringContaining(reason) })
})

test('a plan that leaves VMs down has to name exactly these', () => {
  const partial: Plan = { ...planOf(move), state: 'partial', unplaced: [{ vm: 'big', reason: 'no room' }] }
  expect(verifyPlan(given, partial)).toEqual({ ok: true })
  expect(verifyPlan(given, { ...partial, state: 'planned' })).toMatchObject({ ok: false })
  expect(verifyPlan(given, { ...partial, unplaced: [] })).toMatchObject({ ok: false, reason: 'big has no place' })
  const both = [...partial.unplaced, { vm: 'off', reason: 'no room' }]
  expect(verifyPlan(given, { ...partial, unplaced: both })).toMatchObject({
    ok: false,
    reason: 'off has a place, but the plan lists it as without one',
  })
})

test.each([
  ['a pin', { pinnedTo: ['b'] }, 'big is pinned to b'],
  ['a host that is forbidden', { forbiddenHosts: ['a'] }, 'big must not run on a'],
])('%s is kept', (_what, rule, reason) => {
  const vms = given.vms.map((each) => (each.vm === 'big' ? { ...each, ...rule } : each))
  expect(verifyPlan({ ...given, vms }, planOf(move, start))).toEqual({ ok: false, step: 2, reason })
})

test('overcommitted CPU may be used, and reserved RAM may not', () => {
  const tight = { ...given, limits: { cpuOvercommitPercent: 100, ramReservePercent: 10 } }
  expect(verifyPlan(tight, planOf(move, start))).toMatchObject({
    ok: false,
    reason: expect.stringContaining('MiB'),
  })
  const hosts = given.hosts.map((each) => ({ ...each, cpuMc: each.cpuMc / 2 }))
  expect(verifyPlan({ ...given, hosts }, planOf(move, start)).ok).toBe(false)
  const limits = { cpuOvercommitPercent: 200, ramReservePercent: 0 }
  expect(verifyPlan({ ...given, hosts, limits }, planOf(move, start)).ok).toBe(true)
})

test('a busy solver is killed at its time limit, and the next question gets a new one', async () => {
  const engine = startEngine('glpk')
  try {
    const tiny = {
      columns: 1,
      binaries: 1,
      objective: [[0, 1]],
      rows: [{ terms: [[0, 1]], equal: 1 }],
    } satisfies LinearModel
    expect(await engine.solve(tiny, patienceMs)).toMatchObject({ status: 'optimal', values: [1] })
    // Two million terms: only to read them takes longer than the bound.
    const rows = Array.from({ length: 1_000 }, () => ({
      terms: Array.from({ length: 2_000 }, (_, column): [number, number] => [column, 1]),
      atMost: 3,
    }))
    const large: LinearModel = { ...tiny, columns: 2_000, binaries: 2_000, rows }
    expect(await engine.solve(large, 50)).toEqual({ status: 'unknown' })
    expect(await engine.solve(tiny, patienceMs)).toMatchObject({ status: 'optimal' })
  } finally {
    engine.stop()
  }
})

test.each(['glpk', 'highs'] as const)('a question in which no VM has a target is answered by %s', async (name) => {
  const engine = startEngine(name)
  const empty = { columns: 0, binaries: 0, objective: [] }
  const free = await engine.solve({ ...empty, rows: [{ terms: [], atMost: 3 }] }, 5_000)
  const needed = await engine.solve({ ...empty, rows: [{ terms: [], equal: 1 }] }, 5_000)
  engine.stop()
  expect([free.status, needed.status]).toEqual(['optimal', 'infeasible'])
})

test('a reserve of a host replaces the percentage for all, in a plan, a certificate and a fingerprint', () => {
  const own = (more: object) => ({
    ...given,
    limits: { cpuOvercommitPercent: 100, ramReservePercent: 10 },
    hosts: given.hosts.map((each) => ({ ...each, ...more })),
  })
  expect(verifyPlan(own({ ramReserveMib: 0 }), planOf(move, start))).toEqual({ ok: true })
  expect(verifyPlan(own({ ramReserveMib: 1 }), planOf(move, start))).toMatchObject({
    reason: expect.stringContaining('short by 1 MiB'),
  })
  expect(verifyPlan(own({ ramReserveMib: 0, cpuReserveMc: 1 }), planOf(move, start))).toMatchObject({
    reason: expect.stringContaining('short by 1 mCPU'),
  })
  expect(stateFingerprint(own({}))).toBe(stateFingerprint(given))
  expect(stateFingerprint(own({ ramReserveMib: 0 }))).not.toBe(stateFingerprint(given))
})
