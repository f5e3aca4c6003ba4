import { afterAll, expect, test } from '@jest/globals'
import type { PlacementProblem, Plan, PlanStep } from '../../domain/placement.ts'
import { startEngine } from '../../placement/bound/assignment.ts'
import { certificateHolds } from '../../placement/certificate.ts'
import { buildInstance, buildModel } from '../../placement/cluster/instance.ts'
import { findShortage, random } from '../../placement/cluster/size-classes.ts'
import { toPlan } from '../../placement/plan.ts'
import { countMigrations } from '../../placement/search/exhaust.ts'
import { improve } from '../../placement/search/improve.ts'
import { solve } from '../../placement/solve.ts'
import { verifyPlan } from '../../placement/verify.ts'
import { patienceMs } from '../support/directory.ts'
import { bruteForce, dead, down, host, mayGo, odd, problem, vm } from './problems.ts'

const engine = startEngine('glpk')
afterAll(() => engine.stop())

const clusters = Array.from({ length: Number(process.env.CLUSTERS ?? 250) }, (_, index) => index + 1)

async function searched(given: PlacementProblem, seed: number) {
  const situation = buildModel(given)
  const { instance, names } = buildInstance(given, situation)
  const isInfeasible = findShortage(given, situation) !== null
  const options = { deadlineMs: performance.now() + patienceMs, random: random(seed), isInfeasible, report: () => {} }
  const known = await improve(instance, engine, options)
  return { instance, known, plan: toPlan(given, instance, names, known) }
}

test('for any inventory a search proves nothing that an exhaustive search contradicts, and the replay accepts its plans', async () => {
  const met = { impossible: 0, solved: 0 }
  for (const seed of clusters) {
    const given = odd(seed)
    const { instance, known, plan } = await searched(given, seed)
    if (instance.evacuees.length === 0) continue
    const best = bruteForce(given)
    if (plan) expect({ seed, ...verifyPlan(given, plan) }).toEqual({ seed, ok: true })
    if (known.isInfeasible) expect({ seed, left: best.left }).not.toEqual({ seed, left: [] })
    if (known.isInfeasible) met.impossible += 1
    if (best.left.length > 0) continue
    met.solved += 1
    expect({ seed, left: known.unplaced }).toEqual({ seed, left: [] })
    expect({ seed, migrations: countMigrations(instance, known.moves) }).toEqual({
      seed,
      migrations: best.migrations,
    })
    expect(known.lowerBound).toBeLessThanOrEqual(best.migrations)
  }
  expect(met.impossible).toBeGreaterThan(20)
  expect(met.solved).toBeGreaterThan(50)
})

test('the replay accepts a step exactly if the exhaustive search does', () => {
  let accepted = 0
  for (const seed of clusters) {
    const given = odd(seed)
    const situation = buildModel(given)
    const stranded = situation.evacuees.flatMap(({ vms }) => vms.map((each) => each.vm))
    if (stranded.length === 0) continue
    const together = new Set(
      situation.evacuees.filter(({ vms }) => vms.length > 1).flatMap(({ vms }) => vms.map((each) => each.vm)),
    )
    for (const { vm: name, host: from, running } of given.vms) {
      if (together.has(name)) continue
      for (const { name: to } of given.hosts) {
        const isUp = running && given.hosts.find((each) => each.name === from)?.state !== 'dead'
        const step: PlanStep = { step: 1, action: isUp ? 'migrate' : 'start', vm: name, from, to, needs: [], wave: 1 }
        const unplaced = stranded.filter((each) => each !== name).map((each) => ({ vm: each, reason: 'left' }))
        const replayed = verifyPlan(given, {
          ...planWith(step),
          state: unplaced.length > 0 ? 'partial' : 'planned',
          unplaced,
        })
        expect({ seed, name, to, ok: replayed.ok, replayed }).toEqual({
          seed,
          name,
          to,
          ok: mayGo(given, name, to) === null,
          replayed,
        })
        if (replayed.ok) accepted += 1
      }
    }
  }
  expect(accepted).toBeGreaterThan(100)
})

test('a VM whose host has no region makes room by moving to any region, so it is not proved that nothing does', async () => {
  // s may only be in osl or on b, which has no region: b is full, and what runs there has room in
  // ams.
  const given = problem(
    [
      host('a', 4, { region: 'osl' }),
      host('b', 4),
      host('c', 8, { region: 'ams' }),
      host('x', 8, { ...dead, region: 'osl' }),
    ],
    [vm('r', 3, 'a'), vm('m', 3, 'b'), vm('s', 3, 'x', down)],
  )
  const plan = await solve(given)
  expect(plan).toMatchObject({ state: 'planned', migrations: 1, obstacle: null })
  expect(plan.steps.map((step) => `${step.action} ${step.vm} > ${step.to}`)).toEqual(['migrate m > c', 'start s > b'])
  expect(verifyPlan(given, plan)).toEqual({ ok: true })
  // One migration does, and a certificate that reckons without c says that it takes two.
  const price = { '3072/3000': 2 }
  expect(certificateHolds(given, { k: 1, scale: 1, price })).toBe(false)
  const closed = { ...given, hosts: given.hosts.filter(({ name }) => name !== 'c') }
  expect(certificateHolds(closed, { k: 1, scale: 1, price })).toBe(true)
})

test('a certificate for a state in which a host exceeds its capacity is refused, because such a host may stay as it is', async () => {
  const given = problem(
    [host('a', 4), host('b', 4), host('c', 8), host('x', 8, dead)],
    [vm('a1', 3, 'a'), vm('a2', 3, 'a'), vm('b1', 3, 'b'), vm('b2', 3, 'b'), vm('s', 4, 'x', down)],
  )
  const plan = await solve(given)
  expect(plan).toMatchObject({ state: 'planned', migrations: 0 })
  // Without prices each overfull host would have to give up a VM: two migrations, where the plan
  // has none.
  expect(certificateHolds(given, { k: 1, scale: 1, price: {} })).toBe(false)
  expect(certificateHolds(given, { k: 0, scale: 1, price: {} })).toBe(false)
})

test('a replay moves no VM that the search treats as fixed: its group stays together, its host takes none', () => {
  const given = problem(
    [host('a', 8), host('b', 8), host('d', 8, { state: 'draining' }), host('x', 8, dead)],
    [
      vm('f1', 2, 'a', { affinityGroup: 'app' }),
      vm('f2', 2, 'a', { affinityGroup: 'app' }),
      vm('o', 1, 'd'),
      vm('s', 1, 'x', down),
    ],
  )
  const start: PlanStep = { step: 1, action: 'start', vm: 's', from: 'x', to: 'b', needs: [], wave: 1 }
  const move = (step: number, name: string, from: string): PlanStep => ({
    step,
    action: 'migrate',
    vm: name,
    from,
    to: 'b',
    needs: [],
    wave: 1,
  })
  expect(verifyPlan(given, planWith(start))).toEqual({ ok: true })
  expect(verifyPlan(given, planWith(start, move(2, 'f1', 'a'), move(3, 'f2', 'a')))).toMatchObject({
    ok: false,
    step: 2,
    reason: expect.stringContaining('belongs beside'),
  })
  expect(verifyPlan(given, planWith(start, move(2, 'o', 'd')))).toMatchObject({
    ok: false,
    step: 2,
    reason: expect.stringContaining('d takes no VM'),
  })
})

test('VMs that move as one and come from two hosts, one of them dead, have a plan that the replay accepts', async () => {
  const kin = { affinityGroup: 'app' }
  const given = problem(
    [host('a', 4), host('b', 3), host('d', 8, { state: 'draining' }), host('x', 8, dead)],
    [vm('v1', 2, 'd', kin), vm('v2', 2, 'd', kin), vm('w', 3, 'x', { ...kin, ...down })],
    { intent: 'drain', hostIds: ['d', 'x'] },
  )
  const plan = await solve(given)
  expect(plan.state).toBe('planned')
  const to = new Map(plan.steps.map((step) => [step.vm, step.to]))
  expect([to.get('v1'), to.get('v2'), to.get('w')]).toEqual(['a', 'a', 'b'])
  // All or none of them.
  const { steps } = plan
  const part = {
    ...planWith(
      ...steps.filter((step) => step.vm !== 'v2').map((step, index) => ({ ...step, step: index + 1, needs: [] })),
    ),
  }
  const partial: Plan = { ...part, state: 'partial', unplaced: [{ vm: 'v2', reason: 'left' }] }
  expect(verifyPlan(given, partial)).toMatchObject({ ok: false, reason: 'v1 and v2 of affinity group app are apart' })
})

test('a bound without a proof is refused, and so is an empty claim', () => {
  const given = problem([host('a', 8), host('b', 8), host('d', 8, { state: 'draining' })], [vm('v', 2, 'd')], {
    intent: 'drain',
    hostIds: ['d'],
  })
  const move: PlanStep = { step: 1, action: 'migrate', vm: 'v', from: 'd', to: 'a', needs: [], wave: 1 }
  expect(verifyPlan(given, { ...planWith(move), lowerBound: 1 })).toEqual({ ok: true })
  const still = { ...given, vms: [vm('v', 2, 'a')] }
  expect(verifyPlan(still, { ...planWith({ ...move, from: 'a', to: 'b' }), lowerBound: 1 })).toMatchObject({
    ok: false,
  })
  expect(verifyPlan(still, { ...planWith(), state: 'infeasible' })).toMatchObject({
    ok: false,
    reason: 'every VM has a place',
  })
})

test('for a group that is apart and cannot be brought together no plan is found', async () => {
  const kin = { affinityGroup: 'app' }
  const given = problem(
    [host('a', 4), host('b', 8)],
    [vm('v1', 2, 'a', kin), vm('v2', 2, 'a', kin), vm('w', 7, 'b', kin)],
    { intent: 'rebalance' },
  )
  expect(await solve(given)).toMatchObject({ state: 'not_found', reason: 'no plan was found' })
})

test('racks with the same name in two regions are two, and fail one at a time', async () => {
  const [osl, ams] = [
    { rack: 'r1', region: 'osl' },
    { rack: 'r1', region: 'ams' },
  ]
  const given = problem(
    [host('a', 8, osl), host('b', 8, ams), host('c', 8, { rack: 'r2' }), host('x', 8, dead)],
    [vm('s', 2, 'x', down)],
    { useRackConstraints: true },
  )
  const { standing } = await solve(given)
  expect(standing?.after.map(({ name }) => name)).toEqual(['osl r1', 'ams r1', 'r2'])
})

function planWith(...steps: PlanStep[]): Plan {
  const migrations = steps.filter(({ action }) => action === 'migrate').length
  const none = { unplaced: [], obstacle: null, standing: null, reason: null }
  return { state: 'planned', steps, migrations, lowerBound: 0, proof: { kind: 'trivial' }, ...none }
}
