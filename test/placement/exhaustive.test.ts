import { readFileSync } from 'node:fs'
import { afterAll, describe, expect, test } from '@jest/globals'
import { generate, tiny } from '../../bench/placement/clusters.ts'
import type { PlacementProblem, Plan, PlanStep } from '../../domain/placement.ts'
import { startEngine } from '../../placement/bound/engine.ts'
import { random } from '../../placement/cluster/capacity.ts'
import { buildInstance, buildModel } from '../../placement/cluster/instance.ts'
import { findBadInterleaving } from '../../placement/interleave.ts'
import { toPlan } from '../../placement/plan.ts'
import { exhaust } from '../../placement/search/exhaust.ts'
import { improve } from '../../placement/search/improve.ts'
import { countMigrations } from '../../placement/search/incumbent.ts'
import { search } from '../../placement/search/search.ts'
import { solve } from '../../placement/solve.ts'
import { verifyPlan } from '../../placement/verify.ts'
import { dead, down, fewestMigrations, host, problem, vm } from './problems.ts'

describe('exhaustive', () => {
  const engine = startEngine('glpk')
  afterAll(() => engine.stop())

  test('plans for small clusters keep every rule in every interleaving and need as few migrations as trying everything finds', async () => {
    let compared = 0
    for (let seed = 1; seed <= 200; seed += 1) {
      const problem = tiny(seed)
      const { instance, names } = buildInstance(problem, buildModel(problem))
      if (instance.evacuees.length === 0) continue
      const deadlineMs = performance.now() + 20_000
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
      const deadlineMs = performance.now() + 5_000
      const found = search(instance, { random: random(seed), noise: 0.5, maxMigrations: 10, deadlineMs })
      const claimed = { ...found, lowerBound: 0, provenBy: 'trivial' as const, certificate: null, isInfeasible: false }
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
      timeoutMs: 30_000,
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
    const plan = await solve(given, { timeoutMs: 30_000, seed: 5 })
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
        deadlineMs: performance.now() + 5_000,
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
