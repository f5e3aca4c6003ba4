import { readFileSync } from 'node:fs'
import { afterAll, describe, expect, test } from '@jest/globals'
import { generate, tiny } from '../../bench/placement/clusters.ts'
import type { PlacementProblem, Plan, PlanStep } from '../../domain/placement.ts'
import { startEngine } from '../../placement/bound/assignment.ts'
import { buildInstance, buildModel } from '../../placement/cluster/instance.ts'
import { findShortage, random } from '../../placement/cluster/size-classes.ts'
import { findBadInterleaving } from '../../placement/obstacle.ts'
import { toPlan } from '../../placement/plan.ts'
import { compareUnplaced, countMigrations, exhaust } from '../../placement/search/exhaust.ts'
import { improve } from '../../placement/search/improve.ts'
import { startWithoutMigrations } from '../../placement/search/leave-down.ts'
import { search } from '../../placement/search/search.ts'
import { solve } from '../../placement/solve.ts'
import { verifyPlan } from '../../placement/verify.ts'
import { patienceMs } from '../support/directory.ts'
import { bruteForce, dead, down, fewestMigrations, host, odd, problem, vm } from './problems.ts'

describe('exhaustive', () => {
  describe('exhaustive', () => {
    const engine = startEngine('glpk')
    afterAll(() => engine.stop())

    test('plans for small clusters keep every rule in every interleaving and need as few migrations as trying everything finds', async () => {
      let compared = 0
      for (let seed = 1; seed <= 200; seed += 1) {
        const problem = tiny(seed)
        const { instance, names } = buildInstance(problem, buildModel(problem))
        if (instance.evacuees.length === 0) continue
        const deadlineMs = performance.now() + patienceMs
        const known = await improve(instance, engine, { deadlineMs, random: random(seed), report: () => {} })
        const plan = toPlan(problem, instance, names, known)
        if (plan) expect({ seed, ...verifyPlan(problem, plan) }).toEqual({ seed, ok: true })
        const fewest = fewestMigrations(problem)
        expect({ seed, isInfeasible: known.isInfeasible }).toEqual({ seed, isInfeasible: fewest === null })
        if (fewest === null) continue
        compared += 1
        expect({ seed, migrations: countMigrations(instance, known.moves), left: known.unplaced }).toEqual({
          seed,
          migrations: fewest,
          left: [],
        })
        expect(known.lowerBound).toBe(fewest)
      }
      expect(compared).toBeGreaterThan(80)
    })

    test('also the search alone, which is all that large clusters have, breaks nothing', () => {
      for (let seed = 1; seed <= 500; seed += 1) {
        const problem = tiny(seed)
        const { instance, names } = buildInstance(problem, buildModel(problem))
        const deadlineMs = performance.now() + patienceMs
        const found = search(instance, { random: random(seed), noise: 0.5, maxMigrations: 10, deadlineMs })
        const claimed = {
          ...found,
          lowerBound: 0,
          provenBy: 'trivial' as const,
          certificate: null,
          isInfeasible: false,
        }
        const plan = toPlan(problem, instance, names, claimed)
        if (plan) expect({ seed, ...verifyPlan(problem, plan) }).toEqual({ seed, ok: true })
      }
    })
  })

  describe('one seed', () => {
    /** A plan by a machine that stands still for half a second as soon as something is known. */
    async function haltedPlan(given: PlacementProblem): Promise<Plan> {
      let isHalted = false
      return await solve(given, {
        timeoutMs: patienceMs,
        seed: 5,
        onProgress() {
          if (isHalted) return
          isHalted = true
          const children = readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, 'utf8')
          for (const pid of children.trim().split(' ').filter(Boolean).map(Number)) {
            process.kill(pid, 'SIGSTOP')
            setTimeout(() => process.kill(pid, 'SIGCONT'), 500)
          }
        },
      })
    }

    test('one seed gives one plan, however fast the machine is', async () => {
      const given = generate({ hosts: 12, vms: 144, racks: null, load: 0.97, seed: 1 })
      const plan = await solve(given, { timeoutMs: patienceMs, seed: 5 })
      const halted = await haltedPlan(given)
      expect(plan.isTimeUp).toBe(false)
      expect(halted).toEqual(plan)
    })

    test('a plan for which the time was too short says that another may be found', async () => {
      const given = generate({ hosts: 50, vms: 1_000, racks: null, load: 0.97, seed: 1 })
      expect((await solve(given, { timeoutMs: 900 })).isTimeUp).toBe(true)
    })

    test('trying everything stops at its deadline and at its work also while it starts VMs', () => {
      // Eleven VMs start anywhere, in billions of ways, before the last turns out to be allowed nowhere.
      const hosts = Array.from({ length: 8 }, (_, index) => host(`h${index}`, 64))
      const many = Array.from({ length: 11 }, (_, index) => vm(`v${index}`, 2, 'x', down))
      const never = vm('never', 1, 'x', { ...down, forbiddenHosts: hosts.map(({ name }) => name) })
      const given = problem([...hosts, host('x', 64, dead)], [...many, never])
      const { instance } = buildInstance(given, buildModel(given))
      expect(exhaust(instance, 150_000, performance.now())).toEqual({ kind: 'unknown' })
      expect(exhaust(instance, 100, Number.POSITIVE_INFINITY)).toEqual({ kind: 'unknown' })
    })
  })

  describe('interleavings', () => {
    /** Begins and ends steps in any order that their needs allow, and tells the first rule that is broken on the way. */
    function play(problem: PlacementProblem, steps: readonly PlanStep[], next: () => number): string | null {
      const hosts = new Map(problem.hosts.map((host) => [host.name, host]))
      const vms = new Map(problem.vms.map((vm) => [vm.vm, vm]))
      const domain = (name: string) => (problem.useRackConstraints && hosts.get(name)?.rack) || name
      /** Where a VM holds room: one place, or two while it moves. */
      const holds = new Map(
        problem.vms.map(({ vm, host, running }) => [
          vm,
          running && host && hosts.get(host)?.state !== 'dead' ? [host] : [],
        ]),
      )
      const begun = new Set<number>()
      const ended = new Set<number>()
      while (ended.size < steps.length) {
        const choices = [
          ...steps
            .filter(({ step, needs }) => !begun.has(step) && needs.every((need) => ended.has(need)))
            .map((step) => ({ step, isBegin: true })),
          ...steps.filter(({ step }) => begun.has(step) && !ended.has(step)).map((step) => ({ step, isBegin: false })),
        ]
        const { step, isBegin } = choices[Math.floor(next() * choices.length)]!
        if (!isBegin) {
          ended.add(step.step)
          holds.set(step.vm, [step.to])
          continue
        }
        begun.add(step.step)
        holds.get(step.vm)!.push(step.to)
        const here = [...holds].filter(([, at]) => at.includes(step.to)).map(([vm]) => vms.get(vm)!)
        const host = hosts.get(step.to)!
        const most = Math.floor((host.cpuMc * problem.limits.cpuOvercommitPercent) / 100)
        if (here.reduce((sum, vm) => sum + vm.ramMib, 0) > host.ramMib) return `${step.to} is short of RAM`
        if (here.reduce((sum, vm) => sum + vm.cpuMc, 0) > most) return `${step.to} is short of CPU`
        const { haGroup } = vms.get(step.vm)!
        for (const [other, at] of holds) {
          if (other === step.vm || haGroup === null || vms.get(other)!.haGroup !== haGroup) continue
          if (at.some((name) => domain(name) === domain(step.to))) return `${step.vm} meets ${other}`
        }
      }
      return null
    }

    test('whatever runs at the same time, no plan breaks a rule; and where a need is left out that matters, the judge sees it', () => {
      let plans = 0
      let broken = 0
      let seen = 0
      for (let seed = 1; seed <= 1_500; seed += 1) {
        const problem = tiny(seed)
        const { instance, names } = buildInstance(problem, buildModel(problem))
        const next = random(seed)
        const found = search(instance, {
          random: next,
          noise: 0.5,
          maxMigrations: 6,
          deadlineMs: performance.now() + patienceMs,
        })
        const known = { ...found, lowerBound: 0, provenBy: 'trivial' as const, certificate: null, isInfeasible: false }
        const steps = toPlan(problem, instance, names, known)?.steps ?? []
        if (!steps.some(({ needs }) => needs.length > 0)) continue
        plans += 1
        expect({ seed, bad: findBadInterleaving(problem, steps) }).toEqual({ seed, bad: null })
        for (let run = 0; run < 20; run += 1)
          expect({ seed, bad: play(problem, steps, next) }).toEqual({ seed, bad: null })

        const careless = steps.map((step) => (next() < 0.5 ? { ...step, needs: [] } : step))
        const runs = Array.from({ length: 30 }, () => play(problem, careless, next))
        if (runs.every((bad) => bad === null)) continue
        broken += 1
        if (findBadInterleaving(problem, careless) !== null) seen += 1
      }
      expect(plans).toBeGreaterThan(30)
      expect(broken).toBeGreaterThan(10)
      expect(seen).toBe(broken)
    })
  })
})

describe('partial', () => {
  const engine = startEngine('glpk')
  afterAll(() => engine.stop())

  /** A rack of two hosts is dead. Of two HA groups the other member runs in the rack that is left. */
  function deadRack(): PlacementProblem {
    const [r1, r2] = [
      { rack: 'osl-r1', region: 'osl' },
      { rack: 'osl-r2', region: 'osl' },
    ]
    const sized = (name: string, ramMib: number, cpuMc: number, on: string, haGroup: string | null, priority: number) =>
      vm(name, 1, on, { ramMib, cpuMc, haGroup, priority, running: on === 'host-3' || on === 'host-4' })
    const cpu = { cpuMc: 16_000 }
    return problem(
      [
        host('host-1', 32, { ...dead, ...r1, ...cpu }),
        host('host-2', 32, { ...dead, ...r1, ...cpu }),
        host('host-3', 32, { ...r2, ...cpu }),
        host('host-4', 32, { ...r2, ...cpu }),
      ],
      [
        sized('vm-101', 8_192, 4_000, 'host-1', 'ha-ledger', 100),
        sized('vm-102', 6_144, 3_000, 'host-1', 'ha-broker', 80),
        sized('vm-103', 6_144, 3_000, 'host-1', null, 0),
        sized('vm-104', 10_240, 5_000, 'host-2', null, 0),
        sized('vm-105', 8_192, 3_000, 'host-2', 'ha-search', 60),
        sized('vm-106', 4_096, 2_500, 'host-2', null, 0),
        sized('vm-107', 8_192, 4_000, 'host-3', 'ha-ledger', 100),
        sized('vm-108', 6_144, 3_000, 'host-3', 'ha-mail', 40),
        sized('vm-109', 8_192, 3_500, 'host-3', null, 0),
        sized('vm-110', 8_192, 4_000, 'host-4', 'ha-broker', 80),
        sized('vm-111', 6_144, 3_000, 'host-4', 'ha-cache', 20),
        sized('vm-112', 5_120, 2_500, 'host-4', null, 0),
      ],
      { useRackConstraints: true },
    )
  }

  const reasonOf = (plan: Plan, name: string) => plan.unplaced.find((each) => each.vm === name)?.reason

  test('a VM that racks keep down says so, names those of lower priority that start, and is offered the plan without racks', async () => {
    const plan = await solve(deadRack())
    expect(plan.state).toBe('partial')
    const placed = plan.steps.map((step) => step.vm)
    expect(placed).toContain('vm-105')
    expect(placed).not.toContain('vm-101')
    const ledger = plan.unplaced.find((each) => each.vm === 'vm-101')
    expect(ledger).toMatchObject({
      priority: 100,
      haGroup: 'ha-ledger',
      overtakenBy: expect.arrayContaining(['vm-105']),
    })
    expect(ledger?.reason).toMatch(
      /^rack spread of ha-ledger: vm-107 is in rack osl-r2; VMs of lower priority get a place/,
    )
    expect(ledger?.reason).toContain('it starts with use_rack_constraints: false')
    expect(reasonOf(plan, 'vm-102')).toMatch(/^rack spread of ha-broker: vm-110 is in rack osl-r2;/)
    expect(plan.steps.find((step) => step.vm === 'vm-105')).toMatchObject({ priority: 60, haGroup: 'ha-search' })
    const [relaxed] = plan.obstacle?.repairs ?? []
    expect(relaxed).toMatchObject({ kind: 'drop_racks', name: 'use_rack_constraints', amount: null })
    expect(relaxed?.text).toMatch(
      /^With use_rack_constraints: false vm-101 \(priority 100\) and vm-102 \(priority 80\) would/,
    )
    expect(plan.reason).toContain('With use_rack_constraints: false vm-101')

    const free = await solve({ ...deadRack(), useRackConstraints: false })
    expect(free.steps.map((step) => step.vm)).toEqual(expect.arrayContaining(['vm-101', 'vm-102', 'vm-105']))
    // No VM of lower priority takes what a more important one is left without.
    for (const { vm: name, priority } of free.unplaced) {
      for (const step of free.steps) expect(`${name}: ${step.priority! >= priority!}`).toBe(`${name}: true`)
    }
  })

  test('each reason names its rule: the room on which host, the region, the pin, the company, the spread', async () => {
    const [osl, ams] = [{ region: 'osl' }, { region: 'ams' }]
    const plan = await solve(
      problem(
        [host('a', 4, osl), host('b', 4, osl), host('c', 64, ams), host('x', 64, { ...dead, ...osl })],
        [
          vm('r', 3, 'a', { haGroup: 'g' }),
          vm('s', 3, 'b', { affinityGroup: 'app' }),
          vm('t', 1, 'b', { haGroup: 'g' }),
          vm('wide', 3, 'x', down),
          vm('pinned', 2, 'x', { ...down, pinnedTo: ['a'] }),
          vm('kin', 2, 'x', { ...down, affinityGroup: 'app' }),
          vm('apart', 1, 'x', { ...down, haGroup: 'g' }),
        ],
      ),
    )
    expect(reasonOf(plan, 'wide')).toBe('no room for 3072 MiB and 3000 mCPU was found on a and b; region osl only')
    expect(reasonOf(plan, 'pinned')).toMatch(/^no room for 2048 MiB and 2000 mCPU was found on a; .*pinned to a/)
    expect(reasonOf(plan, 'kin')).toMatch(/^no room for .* was found on b; .*only beside s \(app\) on b/)
    expect(reasonOf(plan, 'apart')).toMatch(/^host spread of g: r is on a, t is on b/)
  })

  test('whom a small plan leaves down is the least harm that trying everything finds, and takes the fewest migrations', async () => {
    let partial = 0
    for (let seed = 1; seed <= 120; seed += 1) {
      const given = odd(seed)
      const situation = buildModel(given)
      const { instance, names } = buildInstance(given, situation)
      if (instance.evacuees.length === 0 || findShortage(given, situation) === null) continue
      const options = {
        deadlineMs: performance.now() + patienceMs,
        random: random(seed),
        isInfeasible: true,
        report: () => {},
      }
      const known = await improve(instance, engine, options)
      const plan = toPlan(given, instance, names, known)
      const best = bruteForce(given)
      const left = situation.evacuees.flatMap(({ vms }, index) => (known.unplaced.includes(index) ? vms : []))
      const harm = (list: string[]) =>
        given.vms
          .filter((each) => list.includes(each.vm))
          .map((each) => each.priority)
          .sort()
      expect({ seed, harm: harm(left.map((each) => each.vm)) }).toEqual({ seed, harm: harm(best.left) })
      expect({ seed, migrations: plan?.migrations ?? 0 }).toEqual({ seed, migrations: best.migrations })
      if (plan?.state === 'partial') partial += 1
    }
    expect(partial).toBeGreaterThan(10)
  })

  /** Twelve hosts and many more VMs than have room, of all sizes and three priorities. */
  function overfull(seed: number): PlacementProblem {
    const next = random(seed)
    const upTo = (most: number) => 1 + Math.floor(next() * most)
    const hosts = Array.from({ length: 12 }, (_, index) => host(`h${index}`, 16 + upTo(16)))
    const running = hosts.flatMap(({ name }) => [vm(`${name}-a`, upTo(7), name), vm(`${name}-b`, upTo(7), name)])
    const stranded = Array.from({ length: 40 }, (_, index) =>
      vm(`s${index}`, upTo(12), 'x', { ...down, priority: [0, 5, 9][index % 3] as number }),
    )
    return problem([...hosts, host('x', 512, dead)], [...running, ...stranded])
  }

  test.each([3])('of an overfull cluster (%i) a plan starts no less than starts alone would', async (seed) => {
    const given = overfull(seed)
    const { instance, names } = buildInstance(given, buildModel(given))
    const [moves, left] = await startWithoutMigrations(instance, engine, performance.now() + patienceMs)
    expect(moves.length + left.length).toBe(instance.evacuees.length)
    expect(moves.every(({ from }) => from < 0)).toBe(true)
    // It searches for as long as it may.
    const plan = await solve(given, { timeoutMs: 5_000 })
    expect(plan.state).toBe('partial')
    expect(verifyPlan(given, plan)).toEqual({ ok: true })
    const numbers = new Map(names.placementGroups.map(({ vms: [first] }, index) => [first?.vm, index]))
    const stays = plan.unplaced.map((each) => numbers.get(each.vm) as number)
    expect(compareUnplaced(instance, stays, left)).toBeLessThanOrEqual(0)
  })
})
