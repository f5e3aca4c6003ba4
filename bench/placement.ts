import { startEngine } from '../placement/bound/engine.ts'
import { random } from '../placement/cluster/budget.ts'
import { buildInstance, buildModel } from '../placement/cluster/instance.ts'
import { explainInfeasibility } from '../placement/search/infeasibility.ts'
import { search } from '../placement/search/search.ts'
import { assessSurvivability } from '../placement/search/survivability.ts'
import { generate } from './placement/clusters.ts'
import { compare } from './placement/compare.ts'
import { beyond, families } from './placement/families.ts'
import { small } from './placement/small.ts'
import { report } from './report.ts'

/**
 * `PARTS=families,small,compare,others,beyond` (all of them without it), `ENGINE=highs`, `SEEDS`, `CASES`, and `PYTHON` for one that has
 * OR-Tools.
 */
export async function placement(): Promise<void> {
  const parts = (process.env.PARTS ?? 'families,small,others,beyond,compare').split(',')
  const engine = process.env.ENGINE === 'highs' ? 'highs' : 'glpk'
  if (parts.includes('families')) await families(engine)
  if (parts.includes('small')) await small()
  if (parts.includes('others')) await others()
  if (parts.includes('beyond')) await beyond()
  if (parts.includes('compare')) await compare()
}

/** What else is promised within a time: who could die next at 100 hosts, and why nothing fits at 10. */
async function others(): Promise<void> {
  const large = generate({ hosts: 100, vms: 2_000, racks: null, load: 0.93, seed: 1 })
  const { instance } = buildInstance(large, buildModel(large))
  const deaths = Array.from({ length: instance.targets }, (_, host) => [host])
  const standingAt = performance.now()
  const outcomes = assessSurvivability(instance, [], deaths, random(1), performance.now() + 10_000)
  const standingMs = performance.now() - standingAt

  const full = generate({ hosts: 10, vms: 100, racks: null, load: 0.97, seed: 1 })
  const [first, second] = full.hosts
  const twoDead = {
    ...full,
    hosts: full.hosts.map((host) => (host === second ? { ...host, state: 'dead' as const } : host)),
    hostIds: [first!.name, second!.name],
  }
  const broken = buildInstance(twoDead, buildModel(twoDead)).instance
  const { unplaced } = search(broken, {
    random: random(1),
    noise: 0,
    maxMigrations: 20,
    deadlineMs: performance.now() + 200,
  })
  const engine = startEngine('glpk')
  const coreAt = performance.now()
  const why = await explainInfeasibility(broken, unplaced, engine, random(1), performance.now() + 10_000)
  const coreMs = performance.now() - coreAt
  engine.stop()
  report('placement others', {
    'N-1 of 100x2000 at 93 % (ms)': Math.round(standingMs),
    'hosts whose VMs restart, move others, not found': ['restarted', 'moved', 'not_found']
      .map((word) => outcomes.filter((each) => each === word).length)
      .join(', '),
    'core of 10x100 with two dead hosts (ms)': Math.round(coreMs),
    'limits in the core': why.core.length,
    'repairs that were tried and do': why.repairs.length,
  })
}
