import { type ClusterFault, clusterFaultRows } from '../../../../lab/kubernetes/faults.ts'
import { read } from '../lies-by-rows/build.ts'
import { is } from '../lies-by-rows/lie.ts'
import { type LabEnding, played } from './play.ts'

/**
 * Endings of the faults of the lab's cluster: what its API showed, and that a person has to act.
 */

const asked = (tool: string, args: Record<string, unknown>, summary: Record<string, unknown>) =>
  read(
    4,
    tool,
    { source: 'lab-cluster', isEmpty: false, isPartial: false, summary, digest: null },
    { args: { source: 'lab-cluster', ...args } },
  )

const resourceOf = (on: string) =>
  on.includes('/') ? { kind: 'workload' as const, id: on } : { kind: 'node' as const, id: on }

/** A fault that no write repairs: what was read, and the values that name its root. */
function handedOver(
  scenario: ClusterFault,
  tool: string,
  summary: Record<string, unknown>,
  told: [text: string, ...quotes: string[]],
): LabEnding {
  const { on, alert } = clusterFaultRows[scenario]
  const [namespace, name] = on.includes('/') ? on.split('/') : [undefined, on]
  const [text, ...quotes] = told
  return played(
    scenario,
    { alert: { name: alert }, about: resourceOf(on) },
    [asked(tool, { ...(namespace && { namespace }), name }, summary)],
    { escalated: 'no_tool' },
    { text, claims: [is(text, [4, ...quotes])] },
  )
}

const rollout = (changed: string[]) => ({ newestRollout: { revision: 2, at: '2026-11-28T09:43:55Z', changed } })

const podOf = (workload: string, pod: string, container: Record<string, unknown>, changed: string[]) => ({
  workload: `Deployment ${workload}`,
  pod,
  containers: [container],
  ...rollout(changed),
})

export const clusterEndings: LabEnding[] = [
  handedOver(
    'k8s_crash_loop',
    'pod_diagnosis',
    podOf(
      'shop/cart',
      'cart-6676c9bfb4-lnx25',
      { name: 'cart', is: 'CrashLoopBackOff', restarts: 4, before: { reason: 'Error', exitCode: 1 } },
      ['volume settings: ConfigMap cart-settings-1 → cart-settings-2'],
    ),
    ['The container cart is in CrashLoopBackOff with exit code 1.', '"is":"CrashLoopBackOff"', '"exitCode":1'],
  ),
  handedOver(
    'k8s_image_pull',
    'pod_diagnosis',
    podOf(
      'shop/catalog',
      'catalog-85c655bf79-p78vw',
      { name: 'catalog', image: 'lab.local/shop:3', is: 'ImagePullBackOff', restarts: 0 },
      ['image lab.local/shop:1 → lab.local/shop:3'],
    ),
    ['The image lab.local/shop:3 is in ImagePullBackOff.', '"image":"lab.local/shop:3"', '"is":"ImagePullBackOff"'],
  ),
  handedOver(
    'k8s_out_of_memory',
    'pod_diagnosis',
    podOf(
      'shop/search',
      'search-55f5dfc8fd-qhfjs',
      { name: 'search', is: 'CrashLoopBackOff', before: { reason: 'OOMKilled', exitCode: 137 } },
      ['limits.memory 160Mi → 24Mi'],
    ),
    ['The reason of the end is OOMKilled, exit code 137.', '"reason":"OOMKilled"', '"exitCode":137'],
  ),
  handedOver(
    'k8s_probe_fails',
    'pod_diagnosis',
    podOf(
      'shop/checkout',
      'checkout-7d7844785f-wc6qq',
      { name: 'checkout', is: 'running', ready: false, restarts: 0 },
      ['readinessProbe /healthz → /health'],
    ),
    ['The container checkout is running and not ready.', '"name":"checkout"', '"is":"running"', '"ready":false'],
  ),
  handedOver(
    'k8s_no_room',
    'pod_diagnosis',
    {
      workload: 'Deployment shop/recommender',
      pod: 'recommender-5975dc8c6d-qg8k5',
      conditions: [{ type: 'PodScheduled', is: 'False', message: '0/2 nodes are available: 2 Insufficient cpu.' }],
      ...rollout(['requests.cpu 10m → 640']),
    },
    ['PodScheduled is False: 2 Insufficient cpu.', '"is":"False"', '2 Insufficient cpu.'],
  ),
  handedOver(
    'k8s_volume_unbound',
    'pod_diagnosis',
    {
      workload: 'Deployment shop/ledger',
      pod: 'ledger-7d6749cf5b-gw2qr',
      claims: [{ name: 'ledger-data-fast', state: 'Pending', class: 'fast' }],
      ...rollout(['volume data: claim ledger-data → ledger-data-fast']),
    },
    ['The claim ledger-data-fast is Pending.', '"name":"ledger-data-fast"', '"state":"Pending"'],
  ),
  handedOver(
    'k8s_node_not_ready',
    'get_kubernetes',
    {
      kind: 'Node',
      name: 'node-2',
      conditions: [{ type: 'Ready', is: 'Unknown', reason: 'NodeStatusUnknown', since: '2026-11-28T09:45:10Z' }],
    },
    ['Ready of node-2 is Unknown since 2026-11-28T09:45:10Z.', '"is":"Unknown"', '"since":"2026-11-28T09:45:10Z"'],
  ),
  handedOver(
    'k8s_quota',
    'pod_diagnosis',
    {
      workload: 'Deployment marketing/newsletter',
      wanted: 4,
      ready: 2,
      workloadConditions: [
        { type: 'ReplicaFailure', is: 'True', message: 'pods is forbidden: exceeded quota: team-budget' },
      ],
    },
    ['ReplicaFailure is True: exceeded quota: team-budget.', '"is":"True"', 'exceeded quota: team-budget'],
  ),
  handedOver(
    'k8s_wrong_selector',
    'get_kubernetes',
    { kind: 'Service', name: 'storefront', selector: { app: 'store-front' }, endpoints: 0 },
    ['The service storefront has 0 endpoints.', '"name":"storefront"', '"endpoints":0'],
  ),
  handedOver(
    'k8s_webhook_expired',
    'kubernetes_events',
    {
      events: [
        {
          reason: 'FailedCreate',
          object: 'ReplicaSet payments/billing-f8f5cc5c',
          message: 'failed calling webhook "pods.policy.example": x509: certificate has expired',
        },
      ],
    },
    ['The webhook pods.policy.example: certificate has expired.', 'pods.policy.example', 'certificate has expired'],
  ),
  handedOver(
    'k8s_job_endless',
    'get_kubernetes',
    { kind: 'Job', name: 'reindex-catalog', active: 1, started: '2026-11-28T09:45:29Z' },
    ['The job reindex-catalog is active: 1.', '"name":"reindex-catalog"', '"active":1'],
  ),
  handedOver(
    'k8s_disk_pressure',
    'get_kubernetes',
    {
      kind: 'Node',
      name: 'node-2',
      conditions: [
        { type: 'DiskPressure', is: 'True', reason: 'KubeletHasDiskPressure', since: '2026-11-28T09:48:25Z' },
      ],
    },
    ['DiskPressure of node-2 is True.', '"type":"DiskPressure"', '"is":"True"'],
  ),
  handedOver(
    'k8s_red_herring',
    'pod_diagnosis',
    podOf('shop/pricing', 'pricing-55dfff6d96-79mfr', { name: 'pricing', is: 'running', ready: false, restarts: 0 }, [
      'volume settings: ConfigMap pricing-settings-1 → pricing-settings-2',
    ]),
    ['The container pricing is running and not ready.', '"name":"pricing"', '"is":"running"', '"ready":false'],
  ),
]
