import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from '@jest/globals'
import { checkMetric, excessOf, restartInPlace } from '../../lab/metric-faults.ts'
import { clockFile } from '../../lab/node/program.ts'
import { type Fault, type Lab, nodeDirectory } from '../../lab/state.ts'
import type { NodePlan } from '../../lab/topology.ts'
import { temporaryDirectory } from '../support/directory.ts'

const node = 'node-web-osl-1a'
const plan = { id: node, shard: 'web-osl-1', role: 'web' }

/** A lab of one service, whose processes are numbers. */
function labWith(dir: string, faults: Fault[]): Lab {
  let pid = 100
  const start = async () => {
    pid += 1
  }
  const children = { get: () => ({ pid }), kill: async () => undefined, start }
  const topology = { nodes: [plan], shards: [{ id: plan.shard, tenants: [] }] }
  const kept = { placement: {}, linksDown: [], draining: [], ports: {} }
  return { dir, children, topology, faults, ...kept } as unknown as Lab
}

test('a service that a convergence restarted for another fault counts as untouched, and one that was ended does not', async () => {
  const place = temporaryDirectory()
  const fault = { fault: 'missing_data', target: node, on: node, pids: { [node]: 100 } } as unknown as Fault
  const lab = labWith(place.path, [fault])
  const isWell = async () =>
    (await checkMetric(lab, fault as Parameters<typeof checkMetric>[1])).every((check) => check.ok)
  await restartInPlace(lab, node)
  expect([lab.children.get(node)?.pid, await isWell()]).toEqual([101, true])
  await lab.children.start(node, 'web.ts', place.path, {})
  expect(await isWell()).toBe(false)
  // A process that nobody vouched for stays another one, whatever restarts it later.
  await restartInPlace(lab, node)
  expect(await isWell()).toBe(false)
  place.remove()
})

test('the preview of a convergence is marked as a preview, and its result as done', async () => {
  const place = temporaryDirectory()
  const lab = { ...labWith(place.path, []), monitoring: {}, database: null } as unknown as Lab
  const file = join(nodeDirectory(lab, node), clockFile)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, JSON.stringify({ offsetSeconds: 95 }))
  const [clock] = await excessOf(lab, plan as NodePlan)
  expect([clock?.would, clock?.did]).toEqual([
    'step its clock, which is 95 s off',
    'stepped its clock, which was 95 s off',
  ])
  await clock?.run()
  // Nobody issued it a certificate.
  expect((await excessOf(lab, plan as NodePlan)).map(({ did }) => did)).toEqual(['renewed its certificate'])
  place.remove()
})
