import { afterAll, expect, test } from '@jest/globals'
import { drawCluster } from '../../bench/placement/drawn.ts'
import type { PlacementProblem, Triage, TriageLevel } from '../../domain/placement.ts'
import { startEngine } from '../../placement/bound/assignment.ts'
import { buildInstance, buildModel } from '../../placement/cluster/instance.ts'
import { findShortage, random } from '../../placement/cluster/size-classes.ts'
import { listUnplaced } from '../../placement/plan.ts'
import { improve } from '../../placement/search/improve.ts'
import { describeClass, findTriageFault } from '../../placement/triage-certificate.ts'
import { toTriage } from '../../placement/triage-proof.ts'
import { patienceMs } from '../support/directory.ts'
import { bruteForce, dead, down, host, odd, problem, vm } from './problems.ts'

const engine = startEngine('highs')
afterAll(() => engine.stop())

/** Three VMs of 3 GiB on 2 × 4 GiB: one stays down, whatever is tried. */
const given = problem(
  [host('a', 4), host('b', 4), host('x', 16, dead)],
  [
    vm('runs', 1, 'a'),
    vm('one', 3, 'x', { ...down, priority: 9 }),
    vm('two', 3, 'x', { ...down, priority: 5 }),
    vm('three', 3, 'x', { ...down, priority: 5 }),
  ],
)
const level: TriageLevel = {
  priority: 5,
  down: 1,
  scale: 10,
  ramUnit: 1_024,
  cpuUnit: 1_000,
  weights: { 9: 10 },
  price: { '3072/3000 priority 9': 10, '3072/3000 priority 5': 10 },
}

test('prices that show that one of three has to stay down are accepted', () => {
  expect(findTriageFault(given, ['two'], [level])).toBeNull()
})

test.each<[string, string[], Partial<TriageLevel>, string]>([
  ['a forged price', ['two'], { price: { '3072/3000 priority 5': 10 } }, 'does not show that 1 of priority 5'],
  ['a price above what its VM weighs', ['two'], { weights: {} }, 'does not show that 1 of priority 5'],
  ['a level that is not the one that stays down', ['two'], { priority: 9 }, 'priority 5 comes before 9'],
  [
    'a count that is not the one of the plan',
    ['two'],
    { down: 2 },
    '1 of priority 5 stay down, but the certificate states 2',
  ],
  ['a plan that leaves one more down', ['two', 'three'], { down: 2 }, 'does not show that 2 of priority 5'],
  ['a level below one that has none', ['one', 'two'], {}, 'priority 9 comes before 5'],
  ['a priority of which nobody stays down', [], {}, 'no VM of priority 5 stays down'],
  ['units that lose what is short', ['two'], { ramUnit: 1_000_000, cpuUnit: 1_000_000 }, 'does not show'],
  ['a table that nobody could hold', ['two'], { ramUnit: 1, cpuUnit: 1 }, 'takes too long'],
])('%s is refused', (_, unplaced, more, why) => {
  expect(findTriageFault(given, unplaced, [{ ...level, ...more }])).toContain(why)
})

test('for a state in which a host exceeds its capacity nothing is shown', () => {
  const full = { ...given, vms: [...given.vms, vm('more', 5, 'b')] }
  expect(findTriageFault(full, ['two'], [level])).toBe('b is already over its capacity')
})

/** What the search says of this cluster, by name. */
async function triageOf(asked: PlacementProblem): Promise<{ unplaced: string[]; triage: Triage | undefined } | null> {
  const situation = buildModel(asked)
  if (situation.evacuees.length === 0) return null
  const { instance, names } = buildInstance(asked, situation)
  const incumbent = await improve(instance, engine, {
    deadlineMs: performance.now() + patienceMs,
    random: random(1),
    isInfeasible: findShortage(asked, situation) !== null,
    report: () => {},
  })
  const told = listUnplaced(names, incumbent.unplaced, instance)
  return {
    unplaced: told.map((each) => each.vm),
    triage: toTriage(asked, instance, names, { known: incumbent, down: told }),
  }
}

const countOf = ({ vms }: PlacementProblem, names: readonly string[], priority: number) =>
  vms.filter((each) => each.priority === priority && names.includes(each.vm)).length

test(
  'on tiny clusters no certificate claims more than an exhaustive search finds, and most overfull ones get one',
  async () => {
    let certified = 0
    let overfull = 0
    for (let seed = 1; seed <= 300; seed += 1) {
      const asked = odd(seed)
      const found = await triageOf(asked)
      if (!found || found.unplaced.length === 0) continue
      const best = bruteForce(asked)
      overfull += 1
      if (!found.triage || found.triage.proof === 'exhausted') continue
      const levels = found.triage.levels ?? []
      certified += found.triage.proof === 'certificate' ? 1 : 0
      for (const each of levels)
        expect([seed, each.priority, countOf(asked, best.left, each.priority)]).toEqual([
          seed,
          each.priority,
          each.down,
        ])
    }
    expect(overfull).toBeGreaterThan(80)
    expect(certified / overfull).toBeGreaterThan(0.5)
  },
  60_000 + patienceMs,
)

test(
  'for any prices, a choice with more harm than the best is never shown to be necessary',
  () => {
    let tried = 0
    let shown = 0
    for (let seed = 1; seed <= 300; seed += 1) {
      const asked = odd(seed)
      const model = buildModel(asked)
      const stranded = model.evacuees.flatMap(({ vms }) => vms)
      if (stranded.length === 0) continue
      const { left } = bruteForce(asked)
      const next = random(seed)
      const more = stranded.filter(({ vm: name }) => !left.includes(name))
      const worse = more[Math.floor(next() * more.length)]
      if (!worse) continue
      const unplaced = [...left, worse.vm]
      const priorities = [...new Set(stranded.map(({ priority }) => priority))].sort((a, b) => b - a)
      for (let attempt = 0; attempt < 12; attempt += 1) {
        const drawn = (names: string[]) =>
          priorities
            .filter((each) => each >= worse.priority && countOf(asked, names, each) > 0)
            .map((priority) => drawLevel(asked, { priority, down: countOf(asked, names, priority) }, next))
        expect([seed, findTriageFault(asked, unplaced, drawn(unplaced))]).not.toEqual([seed, null])
        tried += 1
        const best = drawn(left)
        if (best.length > 0 && findTriageFault(asked, left, best) === null) shown += 1
      }
    }
    expect(tried).toBeGreaterThan(1_500)
    // Such prices do show the best choice, where it leaves some down.
    expect(shown).toBeGreaterThan(100)
  },
  60_000 + patienceMs,
)

/** Prices by RAM with some noise, of all that may be in the cluster. */
function drawLevel(
  { vms, hosts }: PlacementProblem,
  of: Pick<TriageLevel, 'priority' | 'down'>,
  next: () => number,
): TriageLevel {
  const noise = next() < 0.5 ? 0 : next()
  const names = hosts.map(({ name }) => name).sort()
  const price: Record<string, number> = {}
  for (const { ramMib: ram, cpuMc: cpu, priority } of vms) {
    const lists = [null, ...names.map((name) => [name]), ...names.map((name) => names.filter((each) => each !== name))]
    for (const on of lists) {
      for (const priorities of [[], [priority]])
        price[describeClass({ ram, cpu, priorities, on })] = Math.floor(ram * 20 * (1 + noise * (next() - 0.5)))
    }
  }
  const scale = 1_024 * 20 * (1 + Math.floor(next() * 4))
  const weights = Object.fromEntries(vms.map(({ priority }) => [priority, 1_000_000]))
  return { ...of, scale, ramUnit: 1_024, cpuUnit: 1_000, weights, price }
}

test(
  'on generated overfull clusters a certificate is found, with which no other plan starts more',
  async () => {
    const drawn = ['ov', 'ovcpu'].flatMap((family) => drawCluster(family, 'small', 1)?.problem ?? [])
    for (const asked of drawn) {
      const found = await triageOf(asked)
      expect(found?.triage?.proof).toBe('certificate')
      const levels = found?.triage?.proof === 'certificate' ? found.triage.levels : []
      const [first, ...others] = levels
      // One price more or less is enough for it to be another.
      const cheap = Object.fromEntries(Object.keys(first!.price).map((key) => [key, 0]))
      expect(findTriageFault(asked, found!.unplaced, [{ ...first!, price: cheap }, ...others])).not.toBeNull()
    }
  },
  60_000 + patienceMs,
)
