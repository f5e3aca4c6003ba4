import { afterAll, describe, expect, test } from '@jest/globals'
import { generate } from '../../bench/placement/clusters.ts'
import type { PlacementProblem, Plan, PlanStep } from '../../domain/placement.ts'
import { type LinearModel, startEngine } from '../../placement/bound/assignment.ts'
import { certificateHolds } from '../../placement/certificate.ts'
import { buildInstance, buildModel } from '../../placement/cluster/instance.ts'
import { findShortage, random } from '../../placement/cluster/size-classes.ts'
import { planDigest, stateFingerprint, toPlan } from '../../placement/plan.ts'
import { countMigrations } from '../../placement/search/exhaust.ts'
import { improve, refine } from '../../placement/search/improve.ts'
import { rebalance } from '../../placement/search/rebalance.ts'
import { solve } from '../../placement/solve.ts'
import { describeReason, listBarred, listReasons } from '../../placement/unplaced.ts'
import { verifyPlan } from '../../placement/verify.ts'
import { patienceMs } from '../support/directory.ts'
import { bruteForce, dead, down, host, mayGo, odd, problem, vm } from './problems.ts'

describe('rules', () => {
  describe('reasons', () => {
    const told = (given: PlacementProblem, name: string, steps: Parameters<typeof listReasons>[1] = []) =>
      listReasons(given, steps, name).map(({ host, reasons }) => `${host}: ${reasons.map(describeReason).join('; ')}`)

    test('each host says all that is in the way, the one that lacks least first', () => {
      const given = problem(
        [host('a', 8), host('b', 8), host('c', 8), host('d', 8, { state: 'draining' }), host('x', 16, dead)],
        [
          vm('m', 6, 'a', { haGroup: 'g' }),
          vm('r', 7, 'b'),
          vm('s', 5, 'c', { cpuMc: 7_000 }),
          vm('w', 4, 'x', { ...down, haGroup: 'g', forbiddenHosts: ['d'] }),
        ],
      )
      expect(told(given, 'w')).toEqual([
        'c: RAM short by 1024 MiB; CPU short by 3000 mCPU',
        'b: RAM short by 3072 MiB; CPU short by 3000 mCPU',
        'a: m of HA group g is on a; RAM short by 2048 MiB; CPU short by 2000 mCPU',
        'x: it is dead',
        'd: it is draining; it must not run there',
      ])
    })

    test('for a picture each live host says in few words why it takes none that stays down, a rule before the room', () => {
      const given = problem(
        [host('a', 8), host('b', 8), host('c', 8), host('x', 16, dead)],
        [
          vm('m', 6, 'a', { haGroup: 'g' }),
          vm('r', 7, 'b'),
          vm('w', 4, 'x', { ...down, haGroup: 'g', forbiddenHosts: ['c'] }),
        ],
      )
      const barred = listBarred(given, { steps: [], unplaced: [{ vm: 'w', reason: '' }] })
      expect(barred.map(({ host, short }) => `${host}: ${short}`)).toEqual([
        'b: 3 GiB short',
        'a: apart from m',
        'c: never here',
      ])
      expect(barred[1]?.text).toMatch(/^w cannot go to a: m of HA group g is on a; RAM short by 2048 MiB/)
      expect(listBarred(given, { steps: [], unplaced: [] })).toEqual([])
    })

    test('what the steps of a plan have done counts: their room is taken, and given back', () => {
      const given = problem(
        [host('a', 8), host('b', 8), host('x', 16, dead)],
        [vm('r', 6, 'a'), vm('s', 6, 'x', down), vm('w', 4, 'x', down)],
      )
      const step = { step: 1, action: 'start' as const, vm: 's', from: 'x', to: 'b', needs: [], wave: 1 }
      const move = { step: 1, action: 'migrate' as const, vm: 'r', from: 'a', to: 'b', needs: [], wave: 1 }
      expect(told(given, 'w')).toEqual(['b: ', expect.stringMatching(/^a: RAM/), 'x: it is dead'])
      expect(told(given, 'w', [step])[0]).toMatch(/^a: RAM short by 2048 MiB/)
      expect(told(given, 'w', [move])[0]).toBe('a: ')
    })

    test('racks, regions, pins, company and reserves are reasons too', () => {
      const racked = problem(
        [host('a', 8, { rack: 'r1' }), host('b', 8, { rack: 'r1' }), host('x', 8, { ...dead, region: 'osl' })],
        [vm('m', 1, 'a', { haGroup: 'g' }), vm('w', 1, 'x', { ...down, haGroup: 'g', pinnedTo: ['b'] })],
        { useRackConstraints: true },
      )
      expect(told(racked, 'w')[0]).toBe('b: m of HA group g is on a')
      const far = { ...racked, hosts: [host('a', 8, { region: 'ams' }), ...racked.hosts.slice(1)] }
      expect(told(far, 'w').find((line) => line.startsWith('a'))).toBe(
        'a: its disks are in region osl; pinned to b; m of HA group g is on a',
      )
      const together = problem(
        [host('a', 8), host('b', 8), host('x', 8, dead)],
        [
          vm('m', 1, 'a', { affinityGroup: 'f' }),
          vm('r', 5, 'a'),
          vm('w', 1, 'x', { ...down, affinityGroup: 'f' }),
          vm('v', 2, 'x', { ...down, affinityGroup: 'f' }),
        ],
        { limits: { cpuOvercommitPercent: 200, ramReservePercent: 10 } },
      )
      expect(told(together, 'w').slice(0, 2)).toEqual([
        'a: RAM short by 1844 MiB',
        expect.stringMatching(/^b: belongs beside m \(f\) on a/),
      ])
    })
  })

  describe('rules', () => {
    const engine = startEngine('glpk')
    afterAll(() => engine.stop())

    /** Ten hosts with every rule there is: some VMs are pinned, some kept together, some off where they must not be. */
    function withRules(seed: number): PlacementProblem {
      const next = random(seed * 77)
      const pick = <T>(...all: T[]): T => all[Math.floor(next() * all.length)] as T
      const intent = pick<PlacementProblem['intent']>('recover', 'drain', 'rebalance')
      const base = generate({
        hosts: 10,
        vms: pick(40, 60, 100),
        racks: pick(null, 5),
        load: pick(0.6, 0.85, 0.9),
        seed,
      })
      const names = base.hosts.map(({ name }) => name)
      const [first, second] = names as [string, string]
      const states = new Map<string, 'live' | 'draining' | 'dead'>([
        [first, intent === 'recover' ? 'dead' : intent === 'drain' ? pick('draining', 'live', 'dead') : 'live'],
        [second, next() < 0.2 ? 'dead' : 'live'],
      ])
      const hosts = base.hosts.map((host) => ({ ...host, state: states.get(host.name) ?? ('live' as const) }))
      const vms = base.vms.map((vm) => {
        const host = intent === 'rebalance' && next() < 0.1 ? pick(...names) : (vm.host as string)
        const isTogether = vm.haGroup === null && next() < 0.3
        return {
          ...vm,
          host,
          running: states.get(host) !== 'dead',
          priority: pick(0, 0, 5, 9),
          affinityGroup: isTogether ? `with-${host}-${pick(1, 2, 3)}` : null,
          forbiddenHosts: next() < 0.1 ? [pick(...names)] : [],
          pinnedTo: next() < 0.05 ? [host, pick(...names)] : [],
        }
      })
      const hostIds = intent === 'rebalance' ? [] : [first, ...(next() < 0.2 ? [second] : [])]
      return {
        ...base,
        intent,
        hostIds,
        hosts,
        vms,
        limits: { cpuOvercommitPercent: pick(100, 150), ramReservePercent: pick(0, 5) },
      }
    }

    test('recoveries, drains and mendings of clusters with every rule there is keep all of them', async () => {
      const told: Record<string, number> = {}
      for (let seed = 1; seed <= 30; seed += 1) {
        const problem = withRules(seed)
        const { instance, names } = buildInstance(problem, buildModel(problem))
        // As long as it is given: each of its plans has to keep the rules, however good it is.
        const options = { deadlineMs: performance.now() + 400, random: random(seed), report: () => {} }
        const known =
          problem.intent === 'rebalance' ? rebalance(instance, options) : await improve(instance, engine, options)
        if (problem.intent !== 'rebalance' && known.unplaced.length === 0) {
          known.moves = refine(instance, known.moves, random(seed), performance.now() + 100)
        }
        const plan = toPlan(problem, instance, names, known)
        if (plan) expect({ seed, ...verifyPlan(problem, plan) }).toEqual({ seed, ok: true })
        const end = `${problem.intent} ${plan?.state ?? 'none'}`
        told[end] = (told[end] ?? 0) + 1
      }
      expect(Object.keys(told)).toEqual(
        expect.arrayContaining(['recover planned', 'drain planned', 'rebalance planned']),
      )
    })
  })

  describe('verify', () => {
    const given = problem(
      [
        host('a', 8, { rack: 'r1' }),
        host('b', 4, { rack: 'r1' }),
        host('d', 8, { state: 'draining' }),
        host('x', 8, dead),
      ],
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
        planOf(move, { step: 2, action: 'migrate', vm: 'kin', from: 'd', to: 'b', needs: [], wave: 1 }),
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
      ['a need that comes later', planOf({ ...move, needs: [2] }, start), 'do not come before'],
    ])('%s does not hold, though the order does', (_what, plan, reason) => {
      expect(verifyPlan(given, plan)).toMatchObject({ ok: false, reason: expect.stringContaining(reason) })
    })

    test('a plan that leaves somebody down has to say whom, and only whom it leaves', () => {
      const partial: Plan = { ...planOf(move), state: 'partial', unplaced: [{ vm: 'big', reason: 'no room' }] }
      expect(verifyPlan(given, partial)).toEqual({ ok: true })
      expect(verifyPlan(given, { ...partial, state: 'planned' })).toMatchObject({ ok: false })
      expect(verifyPlan(given, { ...partial, unplaced: [] })).toMatchObject({ ok: false, reason: 'big has no place' })
      const both = [...partial.unplaced, { vm: 'off', reason: 'no room' }]
      expect(verifyPlan(given, { ...partial, unplaced: both })).toMatchObject({
        ok: false,
        reason: 'off is not without a place',
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

    test('a solver in the middle of its work is killed at the bound, and the next question gets a new one', async () => {
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
  })
})

describe('one definition', () => {
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

  test('whatever an inventory leaves open, a search proves nothing that trying everything contradicts, and the replay accepts its plans', async () => {
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

  test('the replay accepts a step exactly where trying everything takes it', () => {
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

  test('a VM whose host has no region makes room by going to any region, so there is no proof that nothing does', async () => {
    // s may only be in osl or on b, which has no region: b is full, and what runs there has room in ams.
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

  test('a certificate for a state in which a host is over its capacity is refused: such a host may stay as it is', async () => {
    const given = problem(
      [host('a', 4), host('b', 4), host('c', 8), host('x', 8, dead)],
      [vm('a1', 3, 'a'), vm('a2', 3, 'a'), vm('b1', 3, 'b'), vm('b2', 3, 'b'), vm('s', 4, 'x', down)],
    )
    const plan = await solve(given)
    expect(plan).toMatchObject({ state: 'planned', migrations: 0 })
    // Without prices each overfull host would have to give up a VM: two migrations, where the plan has none.
    expect(certificateHolds(given, { k: 1, scale: 1, price: {} })).toBe(false)
    expect(certificateHolds(given, { k: 0, scale: 1, price: {} })).toBe(false)
  })

  test('a replay moves no VM that the search takes to be bound: its group stays together, its host takes none', () => {
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

  test('VMs that go as one and come from two hosts, one of them dead, have a plan that the replay accepts', async () => {
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

  test('a bound without a proof is refused, and so is a claim about nothing', () => {
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
      reason: 'no VM is without a place',
    })
  })

  test('a group that is apart and cannot be brought together is no state in which no rule is broken', async () => {
    const kin = { affinityGroup: 'app' }
    const given = problem(
      [host('a', 4), host('b', 8)],
      [vm('v1', 2, 'a', kin), vm('v2', 2, 'a', kin), vm('w', 7, 'b', kin)],
      { intent: 'rebalance' },
    )
    expect(await solve(given)).toMatchObject({ state: 'not_found', reason: 'no plan was found' })
  })

  test('racks that are called the same in two regions are two, and die one at a time', async () => {
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
})
