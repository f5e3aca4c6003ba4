import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { PlacementProblem, PlanStep } from '../../domain/placement.ts'
import { InvalidProblemError } from '../../placement/check.ts'
import { solve } from '../../placement/solve.ts'
import { verifyPlan } from '../../placement/verify.ts'
import { fewestMigrations } from './brute-force.ts'
import { dead, down, host, problem, vm } from './problems.ts'

const spoken = (steps: PlanStep[]) => steps.map((one) => `${one.action} ${one.vm} ${one.from ?? '-'}>${one.to}`)

test('when every VM runs there is nothing to do', async () => {
  const plan = await solve(problem([host('a', 8)], [vm('v', 2, 'a')]))
  expect(plan).toEqual({ state: 'no_action', steps: [], migrations: 0, reason: null })
})

test('the VMs of a dead host start where there is room, evenly, and nothing else moves', async () => {
  const plan = await solve(
    problem(
      [host('a', 16), host('b', 16), host('x', 16, dead)],
      [vm('r', 8, 'a'), vm('s1', 4, 'x', down), vm('s2', 4, 'x', down), vm('s3', 4, 'x', down)],
    ),
  )
  expect(plan).toMatchObject({ state: 'planned', migrations: 0, reason: null })
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

test('with rack constraints they never share a rack', async () => {
  const hosts = [host('a', 32, { rack: 'r1' }), host('b', 32, { rack: 'r1' }), host('c', 4, { rack: 'r2' })]
  const vms = [vm('m1', 4, 'a', { haGroup: 'db' }), vm('m2', 4, 'x', { haGroup: 'db', running: false })]
  const wide = problem([...hosts, host('x', 8, { ...dead, rack: 'r2' })], vms)
  expect(spoken((await solve({ ...wide, useRackConstraints: true })).steps)).toEqual(['start m2 x>c'])
  expect(spoken((await solve(wide)).steps)).toEqual(['start m2 x>b'])
})

test('a running VM moves only when nothing else makes room, and before the start that needs it', async () => {
  const plan = await solve(
    problem([host('a', 8), host('b', 4), host('x', 8, dead)], [vm('small', 2, 'a'), vm('big', 8, 'x', down)]),
  )
  expect(spoken(plan.steps)).toEqual(['migrate small a>b', 'start big x>a'])
  expect(plan.migrations).toBe(1)
})

test.each([
  ['one of 4 rather than two of 2', 6, 1], // a has 2 free and needs 4 more
  ['one of 4 and one of 2', 8, 2], // a needs 6 more
])('the least number of VMs moves: %s', async (_what, gib, migrations) => {
  const plan = await solve(
    problem(
      [host('a', 10), host('b', 6, { cpuMc: 5_900 }), host('x', 8, dead)],
      [vm('two', 2, 'a'), vm('four', 4, 'a', { cpuMc: 3_000 }), vm('other', 2, 'a'), vm('new', gib, 'x', down)],
    ),
  )
  expect(plan).toMatchObject({ state: 'planned', migrations })
})

test('a host to be drained is emptied by live migration, its dead neighbour by restarts', async () => {
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

test('rebalancing mends a host that is too full with the fewest moves, and leaves a sound state alone', async () => {
  const vms = [vm('v1', 4, 'a'), vm('v2', 4, 'a'), vm('v3', 4, 'a')]
  const full = problem([host('a', 8), host('b', 8)], vms, { intent: 'rebalance' })
  expect(await solve(full)).toMatchObject({ state: 'planned', migrations: 1 })
  expect((await solve({ ...full, hosts: [host('a', 16), host('b', 8)] })).state).toBe('no_action')
})

test('a state that already breaks a rule does not stop a recovery, and gets no worse', async () => {
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
    'no placement keeps every rule',
  ],
])('%s is infeasible, and the plan says why', async (_what, given, reason) => {
  expect(await solve(given)).toMatchObject({ state: 'infeasible', steps: [], reason: expect.stringContaining(reason) })
})

test('a placement that no order of moves reaches is not called infeasible', async () => {
  // a (8) runs p (6), b (6) runs q (4), s (4) is down: the only placement swaps p and q, and neither can go first.
  const plan = await solve(
    problem(
      [host('a', 8), host('b', 6), host('x', 8, dead)],
      [vm('p', 6, 'a'), vm('q', 4, 'b'), vm('s', 4, 'x', down)],
    ),
  )
  expect(plan).toMatchObject({ state: 'not_found', reason: expect.stringContaining('order') })
})

test('a problem that cannot be one is refused with every reason', async () => {
  const bad = problem([host('a', 8), host('a', 8)], [vm('v', 1, 'a'), vm('v', 1, 'nowhere')], {
    hostIds: ['b'],
    vmIds: ['w'],
  })
  const error = await solve(bad).catch((caught) => caught)
  expect(error).toBeInstanceOf(InvalidProblemError)
  expect(error.reasons).toEqual([
    'host a is listed twice',
    'VM v is listed twice',
    'VM v names the unknown host nowhere',
    'host b is unknown',
    'VM w is unknown',
  ])
  for (const ramMib of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
    const sized = problem([host('a', 8, { ramMib })], [])
    expect(await solve(sized).catch((caught) => caught)).toBeInstanceOf(InvalidProblemError)
  }
})

test('the order in which an inventory lists things changes no plan', async () => {
  const given = problem(
    [host('a', 8), host('b', 8), host('c', 8), host('x', 8, dead)],
    [vm('r1', 3, 'a'), vm('r2', 2, 'b'), vm('s1', 4, 'x', down), vm('s2', 3, 'x', down), vm('s3', 2, 'x', down)],
  )
  const turned = { ...given, hosts: [...given.hosts].reverse(), vms: [...given.vms].reverse() }
  expect(await solve(turned)).toEqual(await solve(given))
})

/** Tight on purpose: 30 full hosts and one to recover, where the full program has no chance in the time it is given. */
function hopeless(): PlacementProblem {
  const hosts = Array.from({ length: 31 }, (_, i) => host(`h${i}`, 66, i === 0 ? dead : {}))
  const vms = hosts.flatMap((one, i) =>
    [17, 13, 11, 7, 5, 3, 2, 2, 2].map((gib, k) =>
      vm(`v${i}-${k}`, gib, one.name, { haGroup: k < 6 ? `g${(i * 7 + k) % 60}` : null, running: i !== 0 }),
    ),
  )
  return problem(hosts, vms)
}

test('at the bound the solver is killed and the answer claims nothing', async () => {
  const begun = performance.now()
  const plan = await solve(hopeless(), { timeoutMs: 300 })
  expect(performance.now() - begun).toBeLessThan(10_000)
  expect(['not_found', 'infeasible']).toContain(plan.state)
  expect(plan.steps).toEqual([])
})

test('a cancelled search ends at once', async () => {
  const given = problem([host('a', 8), host('x', 8, dead)], [vm('s', 4, 'x', down)])
  expect(await solve(given, { signal: AbortSignal.abort() })).toMatchObject({ state: 'not_found' })
})

test('plans for tiny clusters move as few VMs as trying everything finds', async () => {
  const sizes = fc.integer({ min: 1, max: 6 })
  const group = fc.constantFrom(null, null, 'g', 'h')
  const rack = fc.constantFrom(null, 'r1', 'r2')
  const tiny = fc
    .record({
      hosts: fc.array(fc.record({ gib: fc.integer({ min: 2, max: 8 }), rack }), { minLength: 2, maxLength: 4 }),
      vms: fc.array(fc.record({ gib: sizes, group, at: fc.nat() }), { minLength: 1, maxLength: 6 }),
      useRackConstraints: fc.boolean(),
    })
    .map(({ hosts, vms, useRackConstraints }) => {
      const made = hosts.map(({ gib, rack }, i) => host(`h${i}`, gib, { rack, state: i === 0 ? 'dead' : 'live' }))
      const result = problem(made, [], { useRackConstraints })
      // Only states that a sound cluster can be in: what breaks a rule where it runs is left out.
      for (const [i, { gib, group, at }] of vms.entries()) {
        const on = made[at % made.length]!
        const isDown = on.state === 'dead'
        const one = vm(`v${i}`, gib, on.name, { haGroup: group, running: !isDown })
        const grown = { ...result, vms: [...result.vms, one] }
        if (isDown || isSound(grown)) result.vms.push(one)
      }
      return result
    })
  await fc.assert(
    fc.asyncProperty(tiny, async (given) => {
      const [plan, fewest] = [await solve(given), fewestMigrations(given)]
      expect(verifyPlan(given, plan)).toEqual({ ok: true })
      if (plan.state === 'no_action') expect(fewest).toBe(0)
      else if (plan.state === 'planned') expect(plan.migrations).toBe(fewest)
      else expect(fewest).toBeNull()
    }),
    { numRuns: 120 },
  )
}, 300_000)

function isSound(given: PlacementProblem): boolean {
  const idle = { state: 'no_action' as const, steps: [], migrations: 0, reason: null }
  return verifyPlan({ ...given, intent: 'rebalance', hostIds: [] }, idle).ok
}
