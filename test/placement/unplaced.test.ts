import { expect, test } from '@jest/globals'
import type { PlacementProblem } from '../../domain/placement.ts'
import { describeReason, listBarred, listReasons } from '../../placement/unplaced.ts'
import { dead, down, host, problem, vm } from './problems.ts'

const told = (given: PlacementProblem, name: string, steps: Parameters<typeof listReasons>[1] = []) =>
  listReasons(given, steps, name).map(({ host, reasons }) => `${host}: ${reasons.map(describeReason).join('; ')}`)

test('each host lists all obstacles, the host that lacks least first', () => {
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
    'd: it is draining; the VM must not run there',
  ])
})

test('in a picture each live host shows briefly why it takes none of the VMs that stay down, a rule before the room', () => {
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

test('the steps of a plan count: their room is taken, and given back', () => {
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

test('racks, regions, pins, affinity and reserves are reasons too', () => {
  const racked = problem(
    [host('a', 8, { rack: 'r1' }), host('b', 8, { rack: 'r1' }), host('x', 8, { ...dead, region: 'osl' })],
    [vm('m', 1, 'a', { haGroup: 'g' }), vm('w', 1, 'x', { ...down, haGroup: 'g', pinnedTo: ['b'] })],
    { useRackConstraints: true },
  )
  expect(told(racked, 'w')[0]).toBe('b: m of HA group g is on a')
  const far = { ...racked, hosts: [host('a', 8, { region: 'ams' }), ...racked.hosts.slice(1)] }
  expect(told(far, 'w').find((line) => line.startsWith('a'))).toBe(
    'a: the disks of the VM are in region osl; pinned to b; m of HA group g is on a',
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
