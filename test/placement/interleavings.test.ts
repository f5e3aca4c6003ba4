import { expect, test } from '@jest/globals'
import { tiny } from '../../bench/placement/clusters.ts'
import type { PlacementProblem, PlanStep } from '../../domain/placement.ts'
import { buildInstance, buildModel } from '../../placement/cluster/instance.ts'
import { random } from '../../placement/cluster/size-classes.ts'
import { findBadInterleaving } from '../../placement/obstacle.ts'
import { toPlan } from '../../placement/plan.ts'
import { search } from '../../placement/search/search.ts'
import { patienceMs } from '../support/directory.ts'

/**
 * Begins and ends steps in any order that their needs allow, and tells the first rule that is
 * broken on the way.
 */
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

test('no plan breaks a rule whatever runs at the same time, and the judge finds an omitted need that matters', () => {
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
    const known = {
      ...found,
      lowerBound: 0,
      provenBy: 'trivial' as const,
      certificate: null,
      isInfeasible: false,
      triage: null,
    }
    const steps = toPlan(problem, instance, names, known)?.steps ?? []
    if (!steps.some(({ needs }) => needs.length > 0)) continue
    plans += 1
    expect({ seed, bad: findBadInterleaving(problem, steps) }).toEqual({ seed, bad: null })
    for (let run = 0; run < 20; run += 1) expect({ seed, bad: play(problem, steps, next) }).toEqual({ seed, bad: null })

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
