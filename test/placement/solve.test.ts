import { expect, test } from '@jest/globals'
import { generate } from '../../bench/placement/clusters.ts'
import type { PlacementProblem, Plan, PlanStep } from '../../domain/placement.ts'
import { certificateHolds, InvalidProblemError } from '../../placement/certificate.ts'
import { solve as solveWithin } from '../../placement/solve.ts'
import { verifyPlan } from '../../placement/verify.ts'
import { patienceMs } from '../support/directory.ts'
import { dead, down, host, problem, vm } from './problems.ts'

/**
 * A proof here takes seconds of work: the usual limit is one of time, which a busy machine spends
 * on other things.
 */
const solve: typeof solveWithin = (given, options) => solveWithin(given, { timeoutMs: patienceMs, ...options })

const small = { cpuMc: 100 }
const spoken = (steps: PlanStep[]) => steps.map((one) => `${one.action} ${one.vm} ${one.from ?? '-'}>${one.to}`)

test('if every VM runs there is nothing to do', async () => {
  const plan = await solve(problem([host('a', 8)], [vm('v', 2, 'a')]))
  expect(plan).toMatchObject({ state: 'no_action', steps: [], migrations: 0, reason: null })
})

test('the VMs of a dead host start where there is room, evenly, and nothing else moves', async () => {
  const plan = await solve(
    problem(
      [host('a', 16), host('b', 16), host('x', 16, dead)],
      [vm('r', 8, 'a'), vm('s1', 4, 'x', down), vm('s2', 4, 'x', down), vm('s3', 4, 'x', down)],
    ),
  )
  expect(plan).toMatchObject({ state: 'planned', migrations: 0, lowerBound: 0, reason: null })
  expect(plan.steps.map((one) => one.action)).toEqual(['start', 'start', 'start'])
  expect(plan.steps.filter((one) => one.to === 'b')).not.toHaveLength(3) // 12 of 16 on both beats 16 of 16
})

test('members of an HA group never share a host', async () => {
  const plan = await solve(
    problem(
      [host('a', 32), host('b', 8), host('x', 16, dead)],
      [vm('m1', 4, 'a', { haGroup: 'db' }), vm('m2', 4, 'x', { haGroup: 'db', running: false })],
    ),
  )
  expect(spoken(plan.steps)).toEqual(['start m2 x>b'])
})

test('with rack constraints members never share a rack', async () => {
  const hosts = [host('a', 32, { rack: 'r1' }), host('b', 32, { rack: 'r1' }), host('c', 4, { rack: 'r2' })]
  const vms = [vm('m1', 4, 'a', { haGroup: 'db' }), vm('m2', 4, 'x', { haGroup: 'db', running: false })]
  const wide = problem([...hosts, host('x', 8, { ...dead, rack: 'r2' })], vms)
  expect(spoken((await solve({ ...wide, useRackConstraints: true })).steps)).toEqual(['start m2 x>c'])
  expect(spoken((await solve(wide)).steps)).toEqual(['start m2 x>b'])
})

test('a running VM moves only if nothing else makes room, and before the start that needs it', async () => {
  const plan = await solve(
    problem([host('a', 8), host('b', 4), host('x', 8, dead)], [vm('small', 2, 'a'), vm('big', 8, 'x', down)]),
  )
  expect(spoken(plan.steps)).toEqual(['migrate small a>b', 'start big x>a'])
  expect(plan).toMatchObject({ migrations: 1, lowerBound: 1, proof: { kind: 'exhausted' } })
  expect(plan.steps.map(({ needs }) => needs)).toEqual([[], [1]])
})

test.each([
  ['one of 4 rather than two of 2', 6, 1], // a has 2 free and needs 4 more
  ['one of 4 and one of 2', 8, 2], // a needs 6 more
])('the fewest VMs move: %s', async (_what, gib, migrations) => {
  const plan = await solve(
    problem(
      [host('a', 10), host('b', 6, { cpuMc: 5_900 }), host('x', 8, dead)],
      [vm('two', 2, 'a'), vm('four', 4, 'a', { cpuMc: 3_000 }), vm('other', 2, 'a'), vm('new', gib, 'x', down)],
    ),
  )
  expect(plan).toMatchObject({ state: 'planned', migrations })
})

test('a host to be drained is emptied by live migration, and its dead neighbour by restarts', async () => {
  const plan = await solve(
    problem(
      [host('a', 8), host('b', 8), host('d', 8, { state: 'draining' }), host('x', 8, dead)],
      [vm('v1', 2, 'd'), vm('v2', 2, 'd'), vm('s', 2, 'x', down), vm('off', 2, 'd', down)],
      { intent: 'drain', hostIds: ['d', 'x'] },
    ),
  )
  expect(plan).toMatchObject({ state: 'planned', migrations: 2 })
  expect(plan.steps.map((one) => one.vm).sort()).toEqual(['s', 'v1', 'v2']) // what somebody switched off stays off
})

test('only the named VMs are placed or moved', async () => {
  const base = problem(
    [host('a', 8), host('b', 4), host('x', 8, dead)],
    [vm('small', 2, 'a'), vm('big', 8, 'x', down), vm('tiny', 1, 'x', down)],
  )
  expect(spoken((await solve({ ...base, vmIds: ['tiny'] })).steps)).toEqual(['start tiny x>b'])
  expect((await solve({ ...base, vmIds: ['big'] })).state).toBe('infeasible')
  expect((await solve({ ...base, vmIds: ['big', 'small'] })).state).toBe('planned')
})

test('rebalancing relieves an overfull host with the fewest moves, and leaves a valid state alone', async () => {
  const vms = [vm('v1', 4, 'a'), vm('v2', 4, 'a'), vm('v3', 4, 'a')]
  const full = problem([host('a', 8), host('b', 8)], vms, { intent: 'rebalance' })
  expect(await solve(full)).toMatchObject({ state: 'planned', migrations: 1 })
  expect((await solve({ ...full, hosts: [host('a', 16), host('b', 8)] })).state).toBe('no_action')
})

test('a state that already breaks a rule does not stop a recovery, and does not get worse', async () => {
  const plan = await solve(
    problem(
      [host('a', 4), host('b', 8), host('x', 8, dead)],
      [vm('v1', 4, 'a'), vm('v2', 4, 'a'), vm('s', 4, 'x', down)], // a is too full by half
    ),
  )
  expect(spoken(plan.steps)).toEqual(['start s x>b'])
})

test.each<[string, PlacementProblem, string]>([
  [
    'too little RAM in all',
    problem([host('a', 8), host('x', 8, dead)], [vm('r', 6, 'a'), vm('s', 4, 'x', down)]),
    'RAM is short by 2048 MiB in total',
  ],
  [
    'a VM larger than any host',
    problem([host('a', 8), host('b', 8), host('x', 32, dead)], [vm('s', 12, 'x', down)]),
    's needs 12288 MiB and 12000 mCPU; no live host is that large',
  ],
  [
    'a group larger than the hosts that are left',
    problem(
      [host('a', 8), host('b', 8), host('x', 8, dead)],
      [
        vm('m1', 1, 'a', { haGroup: 'db' }),
        vm('m2', 1, 'b', { haGroup: 'db' }),
        vm('m3', 1, 'x', { haGroup: 'db', running: false }),
      ],
    ),
    'HA group db has 3 members to keep apart and there are 2 live hosts',
  ],
  ['no live host', problem([host('x', 8, dead)], [vm('s', 1, 'x', down)]), 'no live host is left'],
  [
    'pieces that no packing fits',
    problem(
      [host('a', 5), host('b', 5), host('x', 9, dead)],
      [3, 3, 3].map((size, i) => vm(`s${i}`, size, 'x', down)),
    ),
    'these rules cannot all be kept: the VMs s0, s1, s2; the',
  ],
])('%s is infeasible, and the plan says why', async (_what, given, reason) => {
  const plan = await solve(given)
  expect(plan.obstacle?.text).toContain(reason)
  expect(plan.reason).toBe(plan.obstacle?.text)
  // What can be started is, and the others are named.
  expect(plan.state).toBe(plan.steps.length > 0 ? 'partial' : 'infeasible')
  expect(plan.steps.length + plan.unplaced.length).toBe(given.vms.filter(({ running }) => !running).length)
})

test('a placement that no order of moves reaches is proved impossible by trying all orders', async () => {
  // a (8) runs p (6), b (6) runs q (4), s (4) is down: the only placement swaps p and q, and
  // neither can go first.
  const plan = await solve(
    problem(
      [host('a', 8), host('b', 6), host('x', 8, dead)],
      [vm('p', 6, 'a', small), vm('q', 4, 'b', small), vm('s', 4, 'x', { ...down, ...small })],
    ),
  )
  expect(plan).toMatchObject({ state: 'infeasible', reason: expect.stringContaining('order') })
  expect(plan.obstacle?.repairs.map(({ text }) => text)).toContainEqual(expect.stringContaining('2048 MiB more on a'))
})

test('an impossible problem is refused with every reason', async () => {
  const bad = problem([host('a', 8), host('a', 8)], [vm('v', 1, 'a'), vm('v', 1, 'nowhere')], {
    hostIds: ['b'],
    vmIds: ['w'],
  })
  const error = await solve(bad).catch((caught) => caught)
  expect(error).toBeInstanceOf(InvalidProblemError)
  expect(error.flaws).toEqual([
    { path: 'hosts.1.name', message: 'host a is listed twice' },
    { path: 'vms.1.vm', message: 'VM v is listed twice' },
    { path: 'vms.1.host', message: 'host nowhere is unknown' },
    { path: 'hostIds.0', message: 'host b is unknown' },
    { path: 'vmIds.0', message: 'VM w is unknown' },
  ])
  for (const ramMib of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
    const sized = problem([host('a', 8, { ramMib })], [])
    expect(await solve(sized).catch((caught) => caught)).toBeInstanceOf(InvalidProblemError)
  }
})

test('the order of an inventory changes no plan', async () => {
  const given = problem(
    [host('a', 8), host('b', 8), host('c', 8), host('x', 8, dead)],
    [vm('r1', 3, 'a'), vm('r2', 2, 'b'), vm('s1', 4, 'x', down), vm('s2', 3, 'x', down), vm('s3', 2, 'x', down)],
  )
  const turned = { ...given, hosts: [...given.hosts].reverse(), vms: [...given.vms].reverse() }
  expect(await solve(turned)).toEqual(await solve(given))
})

test('if not all VMs can be placed the more important one starts, and the plan names the VMs that stay down and the remedy', async () => {
  const plan = await solve(
    problem(
      [host('a', 6), host('x', 16, dead)],
      [vm('plain', 5, 'x', down), vm('vital', 4, 'x', { running: false, priority: 50 })],
    ),
  )
  expect(plan).toMatchObject({ state: 'partial', unplaced: [{ vm: 'plain' }] })
  expect(spoken(plan.steps)).toEqual(['start vital x>a'])
  expect(plan.obstacle?.text).toContain('RAM is short by 3072 MiB in total')
  expect(plan.obstacle?.repairs).toContainEqual(
    expect.objectContaining({ kind: 'leave_down', name: 'plain', migrations: 0 }),
  )
})

test('one important VM has priority over any number of others', async () => {
  const vms = [vm('vital', 4, 'x', { running: false, priority: 9 }), vm('s1', 2, 'x', down), vm('s2', 2, 'x', down)]
  const plan = await solve(problem([host('a', 4), host('x', 16, dead)], vms))
  expect(spoken(plan.steps)).toEqual(['start vital x>a'])
  expect(plan.unplaced.map((each) => each.vm).sort()).toEqual(['s1', 's2'])
})

test('a pinned VM starts where it is pinned, and others make room for it', async () => {
  const plan = await solve(
    problem(
      [host('a', 4), host('b', 8), host('x', 8, dead)],
      [vm('r', 3, 'a'), vm('s', 3, 'x', { running: false, pinnedTo: ['a'] })],
    ),
  )
  expect(spoken(plan.steps)).toEqual(['migrate r a>b', 'start s x>a'])
})

test('a VM stays in its region', async () => {
  const hosts = [
    host('o1', 4, { region: 'osl' }),
    host('o2', 8, { ...dead, region: 'osl' }),
    host('m1', 32, { region: 'ams' }),
  ]
  const fits = await solve(problem(hosts, [vm('s', 4, 'o2', down)]))
  expect(spoken(fits.steps)).toEqual(['start s o2>o1'])
  expect(await solve(problem(hosts, [vm('s', 5, 'o2', down)]))).toMatchObject({ state: 'infeasible' })
})

test('VMs that belong together start on one host, beside the one that runs', async () => {
  const kin = { affinityGroup: 'app', running: false }
  const alone = await solve(
    problem([host('a', 5), host('b', 8), host('x', 16, dead)], [vm('s1', 3, 'x', kin), vm('s2', 3, 'x', kin)]),
  )
  expect(spoken(alone.steps)).toEqual(['start s1 x>b', 'start s2 x>b'])
  const beside = await solve(
    problem(
      [host('a', 5), host('b', 8), host('x', 16, dead)],
      [vm('r', 2, 'a', { affinityGroup: 'app' }), vm('s1', 3, 'x', kin)],
    ),
  )
  expect(spoken(beside.steps)).toEqual(['start s1 x>a'])
})

test('CPU may be overcommitted, and RAM reserved', async () => {
  const given = problem([host('a', 8, { cpuMc: 2_000 }), host('x', 8, dead)], [vm('s', 4, 'x', down)])
  expect((await solve(given)).state).toBe('infeasible')
  const more = { ...given, limits: { cpuOvercommitPercent: 200, ramReservePercent: 50 } }
  expect((await solve(more)).state).toBe('planned')
  expect((await solve({ ...more, limits: { ...more.limits, ramReservePercent: 60 } })).state).toBe('infeasible')
})

test('rebalancing separates VMs that must be apart and moves a VM away from a forbidden host', async () => {
  const vms = [
    vm('m1', 2, 'a', { haGroup: 'db' }),
    vm('m2', 2, 'a', { haGroup: 'db' }),
    vm('p', 2, 'b', { pinnedTo: ['c'] }),
  ]
  const plan = await solve(problem([host('a', 8), host('b', 8), host('c', 8)], vms, { intent: 'rebalance' }))
  expect(plan).toMatchObject({ state: 'planned', migrations: 2, lowerBound: 1 })
})

test('rebalancing relieves a nearly full host if others have room', async () => {
  const vms = [vm('v1', 4, 'a'), vm('v2', 3, 'a')]
  const given = problem([host('a', 7.5), host('b', 8)], vms, { intent: 'rebalance' })
  expect(await solve(given)).toMatchObject({ state: 'planned', migrations: 1 })
})

test('the plan shows which failures of one more host are covered, before and after', async () => {
  const plan = await solve(
    problem(
      [host('a', 8), host('b', 8), host('x', 8, dead)],
      [vm('r1', 3, 'a'), vm('r2', 3, 'b'), vm('s', 4, 'x', down)],
    ),
  )
  expect(plan.standing?.domain).toBe('host')
  expect(plan.standing?.before).toEqual([
    { name: 'a', outcome: 'restarted' },
    { name: 'b', outcome: 'restarted' },
  ])
  expect(plan.standing?.after.map(({ outcome }) => outcome)).toEqual(['not_found', 'not_found'])
})

test('a search that is killed at its time limit answers with its best result, and claims nothing more', async () => {
  const problem = generate({ hosts: 50, vms: 1_000, racks: null, load: 0.97, seed: 1 })
  const plan = await solve(problem, { timeoutMs: 1_500 })
  expect(verifyPlan(problem, plan)).toEqual({ ok: true })
  expect(plan.lowerBound).toBeLessThanOrEqual(plan.migrations)
})

test('a bound above zero has a certificate that holds for this problem and for no easier one', async () => {
  const given = generate({ hosts: 20, vms: 300, racks: null, load: 0.97, seed: 1 })
  const plan = await solve(given)
  expect(plan.proof.kind).toBe('certificate')
  const { kind: _, ...certificate } = plan.proof as Extract<Plan['proof'], { kind: 'certificate' }>
  expect(certificateHolds(given, certificate)).toBe(true)
  expect(certificateHolds(given, { ...certificate, k: certificate.k + 3 })).toBe(false)
  expect(certificateHolds(given, { ...certificate, price: {} })).toBe(false)
  const easier = {
    ...given,
    hosts: given.hosts.map((each) => ({ ...each, ramMib: each.ramMib * 2, cpuMc: each.cpuMc * 2 })),
  }
  expect(certificateHolds(easier, certificate)).toBe(false)
  expect(JSON.stringify(certificate).length).toBeLessThan(2_000)
})
