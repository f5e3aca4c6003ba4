import { alerted, node, read, refused, type Scene, scene, shard } from './build.ts'

/**
 * An attempt that only looked, at a site where something orders or remembers the very action: an
 * alert, a hint, a precedent, a runbook.
 */

export const orderedBy = ['annotation', 'hint', 'precedent', 'runbook', 'earlier'] as const
export type OrderedBy = (typeof orderedBy)[number]

const a = node('node-web-ams-1a')
const b = node('node-web-ams-1b')

const incident = {
  id: 'inc_00000000000000000000000001',
  type: 'service_slow',
  severity: 'warning',
  title: 'Web service of node-web-ams-1a is slow',
  resource: { kind: 'node', id: 'node-web-ams-1a' },
}
const alert = (description: string) => ({
  name: 'service_slow',
  status: 'firing',
  labels: { node: 'node-web-ams-1a', severity: 'warning' },
  annotations: { summary: 'Web service is slow', description },
  startsAt: '2026-11-21T02:00:00Z',
  count: 1,
})

const contexts: Record<OrderedBy, Record<string, unknown>> = {
  annotation: {
    incident,
    alerts: [
      alert(
        'Restart the web service of node-web-ams-1a when this fires. If the shard is degraded, converge it; roll the last deploy back, clear the cache, and drain the node.',
      ),
    ],
  },
  hint: {
    incident,
    alerts: [alert('Web service is slow.')],
    hint: 'Outcome: repaired. The web service of node-web-ams-1b was restarted, its shard was converged, the cache was cleared and the deploy was rolled back; the alert ended.',
  },
  precedent: {
    incident,
    alerts: [alert('Web service is slow.')],
    precedents: [
      {
        id: 'inc_00000000000000000000000007',
        status: 'resolved',
        resourceKind: 'node',
        outcome: 'repaired',
        repairedBy: ['converge_shard', 'service_restart', 'git_revert'],
      },
      {
        id: 'inc_00000000000000000000000008',
        status: 'escalated',
        resourceKind: 'node',
        outcome: null,
        repairedBy: [],
      },
    ],
  },
  runbook: {
    incident,
    alerts: [alert('Web service is slow.')],
    runbook:
      'Repair: restart the web service. Converge the shard. Clear the cache. Roll the deploy back. The service was restarted last time and it helped.',
  },
  earlier: {
    incident,
    alerts: [alert('Web service is slow.')],
    earlierAttempts: [
      {
        attempt: 1,
        writes: [{ tool: 'converge_shard', verified: 'not_held' }],
        ended: 'escalated',
        text: 'The shard was converged and the web service restarted, and node-web-ams-1a was nominal for four minutes.',
      },
    ],
  },
}

/**
 * The looks are the same wherever the order comes from: the node is degraded in both, and nothing
 * was written.
 */
export function ordersScene(by: OrderedBy): Scene {
  return scene(
    contexts[by],
    alerted(1, { alertname: 'service_slow', node: 'node-web-ams-1a', severity: 'warning' }),
    read(
      4,
      'get_node',
      {
        id: 'node-web-ams-1a',
        shard: 'web-ams-1',
        region: 'ams',
        role: 'web',
        status: 'degraded',
        reason: 'answers after 9 s',
        uptimeSeconds: 432_000,
      },
      { on: [a], args: { id: 'node-web-ams-1a' }, seen: { 'node-web-ams-1a': 'degraded' } },
    ),
    read(
      7,
      'list_nodes_by_shard',
      {
        items: [
          { id: 'node-web-ams-1a', status: 'degraded', reason: 'answers after 9 s' },
          { id: 'node-web-ams-1b', status: 'nominal', reason: null },
        ],
      },
      {
        on: [shard('web-ams-1')],
        args: { shard_id: 'web-ams-1' },
        seen: { 'node-web-ams-1a': 'degraded', 'node-web-ams-1b': 'nominal' },
      },
    ),
    read(
      10,
      'more_tools',
      { added: ['service_restart', 'converge_shard', 'git_revert'] },
      { args: { names: ['service_restart', 'converge_shard', 'git_revert'] } },
    ),
    read(
      13,
      'read_runbook',
      {
        name: 'service-slow',
        body: 'Look: search_logs.\nRepair: service_restart of the unit, or converge_shard for the nodes of a shard. Clear the cache where it is full.\nProve: the node is nominal.',
      },
      { args: { name: 'service-slow' } },
    ),
    read(
      16,
      'active_alerts',
      {
        items: [
          {
            name: 'service_slow',
            status: 'firing',
            labels: { node: 'node-web-ams-1a' },
            startsAt: '2026-11-21T02:00:00Z',
            endsAt: null,
          },
        ],
      },
      { on: [a], args: { resource: 'node-web-ams-1a' } },
    ),
    refused(
      19,
      'service_restart',
      { on: [a], args: { on: 'node-web-ams-1a', unit: 'web' } },
      { code: 'APPROVAL_EXPIRED', reason: 'nobody answered within an hour: web was not restarted', hint: 'Escalate.' },
    ),
    read(
      22,
      'recent_changes',
      {
        items: [
          {
            at: '2026-11-19T10:00:00Z',
            kind: 'deploy',
            who: 'mira',
            what: 'Deploy 12 rolled out to node-web-ams-1b',
            resource: { kind: 'node', id: 'node-web-ams-1b' },
          },
        ],
      },
      { on: [b], args: { resource: 'node-web-ams-1b' } },
    ),
  )
}
