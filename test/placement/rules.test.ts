import { afterAll, expect, test } from '@jest/globals'
import { generate } from '../../bench/placement/clusters.ts'
import type { PlacementProblem } from '../../domain/placement.ts'
import { startEngine } from '../../placement/bound/assignment.ts'
import { buildInstance, buildModel } from '../../placement/cluster/instance.ts'
import { random } from '../../placement/cluster/size-classes.ts'
import { toPlan } from '../../placement/plan.ts'
import { improve } from '../../placement/search/improve.ts'
import { rebalance } from '../../placement/search/rebalance.ts'
import { refine } from '../../placement/search/refine.ts'
import { verifyPlan } from '../../placement/verify.ts'

const engine = startEngine('glpk')
afterAll(() => engine.stop())

/**
 * Ten hosts with every rule there is: some VMs are pinned, some kept together, some off where they
 * must not be.
 */
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

test('recoveries, drains and rebalancing of clusters with every kind of rule keep all rules', async () => {
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
  expect(Object.keys(told)).toEqual(expect.arrayContaining(['recover planned', 'drain planned', 'rebalance planned']))
})
