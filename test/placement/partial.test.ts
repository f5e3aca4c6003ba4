import { afterAll, expect, test } from '@jest/globals'
import type { PlacementProblem, Plan } from '../../domain/placement.ts'
import { startEngine } from '../../placement/bound/assignment.ts'
import { buildInstance, buildModel } from '../../placement/cluster/instance.ts'
import { findShortage, random } from '../../placement/cluster/size-classes.ts'
import { toPlan } from '../../placement/plan.ts'
import { compareUnplaced } from '../../placement/search/exhaust.ts'
import { improve } from '../../placement/search/improve.ts'
import { askWhoStarts, startsAlone } from '../../placement/search/who-starts.ts'
import { solve } from '../../placement/solve.ts'
import { verifyPlan } from '../../placement/verify.ts'
import { patienceMs } from '../support/directory.ts'
import { bruteForce, dead, down, host, odd, problem, vm } from './problems.ts'

const engine = startEngine('highs')
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

test('a VM that rack rules keep down says so, names VMs of lower priority that start, and is offered the plan without racks', async () => {
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
  expect(ledger?.reason).toContain('the VM can start with use_rack_constraints: false')
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

test('each reason names its rule: the room on which host, the region, the pin, the affinity, the spread', async () => {
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

test('a small plan leaves down the VMs with the least harm of an exhaustive search, and uses the fewest migrations', async () => {
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

test.each([3])('a plan for an overfull cluster (%i) starts at least as much as starts alone would', async (seed) => {
  const given = overfull(seed)
  const { instance, names } = buildInstance(given, buildModel(given))
  const question = { instance, mip: engine, limitMs: patienceMs, maxNodes: 10_000 }
  const alone = await askWhoStarts(question, startsAlone(instance))
  expect(alone?.isProved).toBe(true)
  const left = instance.evacuees.filter((vm) => !alone?.started.includes(vm))
  // It searches for as long as it may.
  const plan = await solve(given, { timeoutMs: 5_000 })
  expect(plan.state).toBe('partial')
  expect(verifyPlan(given, plan)).toEqual({ ok: true })
  const numbers = new Map(names.placementGroups.map(({ vms: [first] }, index) => [first?.vm, index]))
  const stays = plan.unplaced.map((each) => numbers.get(each.vm) as number)
  expect(compareUnplaced(instance, stays, left)).toBeLessThanOrEqual(0)
})
