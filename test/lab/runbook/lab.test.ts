import { afterAll, beforeAll, expect, test } from '@jest/globals'
import type { RunbookCall } from '../../../lab/runbook/facts.ts'
import type { FaultName } from '../../../lab/state.ts'
import { eventually } from '../../support/directory.ts'
import { labDirectory, type RunningLab, runLab } from '../../support/running-lab.ts'
import { type Alert, type Answer, play } from './investigation.ts'

const directory = labDirectory()
let lab: RunningLab
beforeAll(async () => {
  lab = await runLab(directory.path)
})
afterAll(async () => {
  await lab.stop()
  directory.remove()
})

/**
 * The tools that these runs need, straight on the platform: what the lab says is what the table
 * reads.
 */
async function tool({ tool, args }: RunbookCall): Promise<Answer> {
  const { shards, nodes } = await lab.inventory()
  const nodeOf = (id: unknown) => nodes.find((node) => node.id === id)
  switch (tool) {
    case 'get_shard':
      return { data: shards.find(({ id }) => id === args.id) }
    case 'list_nodes_by_shard':
      return { data: { items: nodes.filter(({ shard }) => shard === args.shard_id), nextCursor: null } }
    case 'get_node':
      return { data: nodeOf(args.id) }
    case 'node_health': {
      const { status, reason } = nodeOf(args.node)!
      return { data: { status, reason } }
    }
    case 'converge_shard': {
      const { answer } = await lab.write(crypto.randomUUID(), `/v1/shards/${args.id}/converge`)
      await eventually('the shard to be nominal', async () =>
        (await lab.inventory()).shards.some(({ id, status }) => id === args.id && status !== 'critical'),
      )
      return { data: answer }
    }
    default:
      return { data: {} }
  }
}

/** As it stands, and not as it was posted last: one that fires already is not posted again. */
async function firingAlert(name: string, node: string): Promise<Alert> {
  const alert = await eventually(`an alert for ${name} on ${node}`, () =>
    lab.firing().find(({ labels }) => labels.alertname === name && labels.node === node),
  )
  const { labels, annotations } = alert
  return { type: name, labels, annotations, resource: { kind: 'node', id: labels.node! } }
}

test.each<[FaultName, string, string, string]>([
  ['replication_lag', 'db-osl-1', 'replication_lag', 'resolve_incident repaired'],
  ['service_down', 'web-osl-1', 'service_down', 'resolve_incident repaired'],
  ['log_orders', 'node-web-osl-1b', 'service_down', 'resolve_incident repaired'],
  ['config_drift', 'web-osl-1', 'config_drift', 'resolve_incident repaired'],
  ['disk_pressure', 'node-web-osl-1b', 'disk_pressure', 'resolve_incident repaired'],
  // The same alert, another cause: nothing is deleted and a person is asked.
  ['disk_pressure_tenant', 'node-web-osl-1a', 'disk_pressure', 'escalate_incident no_tool'],
])('%s on %s: the alert for %s ends in %s, and the oracle agrees', async (fault, target, name, end) => {
  const { on } = await lab.control.break(fault, target)
  const { turns } = await play('native', await firingAlert(name, on), tool)
  expect(turns.at(-1)).toBe(end)
  await eventually('the oracle to agree', async () => (await lab.control.oracle(fault)).healthy)
  await lab.control.heal()
  await eventually('every alert to end', () => lab.firing().length === 0)
})
