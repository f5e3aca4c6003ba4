import { describe, expect, test } from '@jest/globals'
import { incidentTypeOf } from '../../../../domain/incident-type.ts'
import { clusterFaultRows, clusterFaults, isAboutClusterFault } from '../../../../lab/kubernetes/faults.ts'
import type { RunbookCall } from '../../../../lab/runbook/facts.ts'
import { clusterTypes } from '../../../../lab/runbook/playbooks/cluster.ts'
import { type Alert, type Answer, play } from '../investigation.ts'

const diagnosis = {
  workload: 'Deployment shop/cart',
  pod: 'cart-6676c9bfb4-x4hdb',
  containers: [{ name: 'cart', is: 'CrashLoopBackOff' }],
  conditions: [{ type: 'Ready', is: 'False', since: '2026-11-28T10:42:27Z' }],
  newestRollout: { revision: '2', at: '2026-11-28T10:42:27Z', changed: ['image shop:1 → shop:2'] },
  events: [{ reason: 'BackOff', message: 'Back-off restarting failed container' }],
}
const world =
  (summary: Record<string, unknown>) =>
  ({ tool }: RunbookCall): Answer => ({
    data: tool === 'kubernetes_events' ? { summary: { events: [] } } : { summary },
  })

const endOf = (calls: RunbookCall[]): Record<string, unknown> => calls.at(-1)?.args ?? {}

describe('an alert about a cluster', () => {
  test('is one of the types that a fault of the lab raises', () => {
    const raised = clusterFaults.map((name) => incidentTypeOf({}, clusterFaultRows[name].alert))
    expect(raised.filter((type) => !clusterTypes.includes(type))).toEqual([])
    expect(clusterTypes.filter((type) => !raised.includes(type))).toEqual([])
  })

  test('about a pod is diagnosed and escalated with the change of the newest rollout, and its undo', async () => {
    const labels = { namespace: 'shop', pod: 'cart-6676c9bfb4-x4hdb', container: 'cart' }
    const alert: Alert = { type: 'kube_pod_crash_looping', labels }
    const { calls } = await play('native', alert, world(diagnosis))
    expect(calls.map(({ tool }) => tool)).toEqual(['pod_diagnosis', 'escalate_incident'])
    expect(calls[0]?.args).toEqual({ namespace: 'shop', name: 'cart-6676c9bfb4-x4hdb' })
    expect(endOf(calls)).toMatchObject({
      category: 'no_tool',
      reason: expect.stringContaining('changed image shop:1 → shop:2'),
      next_step: 'kubectl -n shop rollout undo deployment/cart',
    })
  })

  test('about a workload without a changing rollout is escalated with the command that describes the workload', async () => {
    const labels = { namespace: 'marketing', deployment: 'newsletter' }
    const alert: Alert = { type: 'kube_deployment_replicas_mismatch', labels }
    const { newestRollout: _, ...rest } = { ...diagnosis, workload: 'Deployment marketing/newsletter' }
    const { calls } = await play('json', alert, world(rest))
    expect(endOf(calls).next_step).toBe('kubectl -n marketing describe deployment newsletter')
  })

  test.each<[string, Record<string, string>, Record<string, unknown>, string]>([
    ['kube_node_not_ready', { node: 'node-2' }, { kind: 'Node', name: 'node-2' }, 'systemctl status kubelet'],
    [
      'kube_job_not_completed',
      { namespace: 'shop', job_name: 'reindex' },
      { kind: 'Job', namespace: 'shop', name: 'reindex' },
      'kubectl -n shop delete job reindex',
    ],
    [
      'kube_service_without_endpoints',
      { namespace: 'shop', exported_service: 'storefront' },
      { kind: 'Service', namespace: 'shop', name: 'storefront' },
      'kubectl -n shop describe service storefront',
    ],
    [
      'kubernetes_persistentvolumeclaim_pending',
      { namespace: 'shop', persistentvolumeclaim: 'data' },
      { kind: 'PersistentVolumeClaim', namespace: 'shop', name: 'data' },
      'kubectl -n shop describe persistentvolumeclaim data',
    ],
  ])('%s is read with its events, and escalated', async (type, labels, args, step) => {
    const { calls } = await play('native', { type, labels }, world({ ...args, conditions: [] }))
    expect(calls.map(({ tool }) => tool)).toEqual(['get_kubernetes', 'kubernetes_events', 'escalate_incident'])
    expect(calls[0]?.args).toEqual(args)
    expect(endOf(calls).next_step).toContain(step)
  })

  test('that cannot be read, or names nothing, is also for a person', async () => {
    const unread = await play(
      'native',
      { type: 'kube_pod_not_ready', labels: { namespace: 'shop', pod: 'gone' } },
      () => ({ code: 'UNREACHABLE' }),
    )
    expect(unread.calls.at(-1)?.tool).toBe('escalate_incident')
    const nameless = await play('native', { type: 'kube_pod_not_ready', labels: {} }, world({}))
    expect(nameless.calls.map(({ tool }) => tool)).toEqual(['escalate_incident'])
  })
})

test('an incident belongs to a fault if its resource is exactly what the alert names', () => {
  expect(isAboutClusterFault('lab-cluster:shop:deployment:cart', 'k8s_crash_loop')).toBe(true)
  expect(isAboutClusterFault('lab-cluster:shop:deployment:cart-2', 'k8s_crash_loop')).toBe(false)
  expect(isAboutClusterFault('lab-cluster:payments:deployment:cart', 'k8s_crash_loop')).toBe(false)
  expect(isAboutClusterFault('lab-cluster:shop:ledger-data-fast', 'k8s_volume_unbound')).toBe(true)
  expect(isAboutClusterFault('lab-cluster:node-2', 'k8s_node_not_ready')).toBe(true)
})
