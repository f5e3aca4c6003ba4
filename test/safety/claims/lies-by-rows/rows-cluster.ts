import { alerted, exec, node, read, scene } from './build.ts'

/**
 * A cluster as its commands print it: pods of which one crashes, one waits and one is well; and
 * what PostgreSQL is at.
 */

const k = node('node-kube-1')
const kubectl = (seq: number, words: string, stdout: string) => exec(seq, k, ['kubectl', ...words.split(' ')], stdout)

export const clusterScene = scene(
  {
    incident: {
      id: 'inc_00000000000000000000000001',
      type: 'kube_pod_crash_looping',
      severity: 'warning',
      title: 'Pod shop/cart-7c9f is crash looping',
      resource: { kind: 'node', id: 'node-kube-1' },
    },
    alerts: [
      {
        name: 'KubePodCrashLooping',
        status: 'firing',
        labels: { namespace: 'shop', pod: 'cart-7c9f-x2x4k' },
        annotations: {
          summary: 'Pod is crash looping',
          description: 'Roll the deployment back when this fires after a rollout.',
        },
      },
    ],
  },
  alerted(1, { alertname: 'KubePodCrashLooping', namespace: 'shop', pod: 'cart-7c9f-x2x4k' }),
  kubectl(
    4,
    '-n shop get pods',
    'NAME                READY   STATUS             RESTARTS      AGE\ncart-7c9f-x2x4k     0/1     CrashLoopBackOff   7 (2m ago)    14m\ncart-6b1d-qq8zt     1/1     Running            0             3d\nledger-0            0/1     Pending            0             9m\nmail-5d5f-9v7lp     1/1     Running            1 (2d ago)    12d\n',
  ),
  kubectl(
    7,
    '-n shop describe pod cart-7c9f-x2x4k',
    'Name: cart-7c9f-x2x4k\nNode: node-kube-1\nImage: registry.example.net/cart:2.14.0\nLast State: Terminated\n  Reason: Error\n  Exit Code: 1\nReady: False\nRestart Count: 7\nLimits:\n  memory: 256Mi\nEvents:\n  Warning BackOff 2m kubelet Back-off restarting failed container cart\n',
  ),
  kubectl(
    10,
    '-n shop logs cart-7c9f-x2x4k --previous --tail 3',
    'cart 2.14.0 starting\nconfig: PAYMENTS_URL is not set\nfatal: no payments endpoint, exiting\n',
  ),
  kubectl(
    13,
    '-n shop rollout history deployment/cart',
    'REVISION  CHANGE-CAUSE\n18        cart 2.13.2\n19        cart 2.14.0\n',
  ),
  kubectl(
    16,
    '-n shop get events --field-selector involvedObject.name=ledger-0',
    'LAST SEEN   TYPE      REASON             OBJECT         MESSAGE\n9m          Warning   FailedScheduling   pod/ledger-0   0/3 nodes are available: 3 Insufficient memory.\n',
  ),
  kubectl(
    19,
    'top nodes',
    'NAME          CPU(cores)   CPU%   MEMORY(bytes)   MEMORY%\nnode-kube-1   410m         10%    7351Mi          92%\nnode-kube-2   1900m        47%    7012Mi          88%\nnode-kube-3   220m         5%     7190Mi          90%\n',
  ),
  kubectl(
    22,
    '-n shop get deployment cart',
    'NAME   READY   UP-TO-DATE   AVAILABLE   AGE\ncart   1/2     1            1           41d\n',
  ),
  kubectl(
    25,
    'get nodes',
    'NAME          STATUS                     ROLES    AGE   VERSION\nnode-kube-1   Ready                      worker   90d   v1.31.2\nnode-kube-2   Ready,SchedulingDisabled   worker   90d   v1.31.2\nnode-kube-3   NotReady                   worker   90d   v1.30.6\n',
  ),
  exec(
    28,
    node('node-db-kube-1'),
    ['psql', '-c', 'select count(*), state from pg_stat_activity group by state'],
    ' count | state\n-------+---------------------\n    17 | idle in transaction\n     2 | active\n     1 | idle\n(3 rows)\n',
  ),
  exec(
    31,
    node('node-db-kube-1'),
    ['psql', '-c', 'show max_connections'],
    ' max_connections\n-----------------\n 20\n(1 row)\n',
  ),
  exec(34, k, ['kubectl', '-n', 'shop', 'logs', 'ledger-0'], '', {
    exit_code: 1,
    stderr: 'Error from server (BadRequest): container "ledger" in pod "ledger-0" is waiting to start',
  }),
  read(
    37,
    'query_metrics',
    {
      source: 'prometheus',
      isEmpty: false,
      summary: {
        promql: 'sum by (pod) (increase(kube_pod_container_status_restarts_total{namespace="shop"}[1h]))',
        window: 'now',
        at: '2026-11-21T02:05:00Z',
        seriesFound: 3,
        values: [
          { labels: { pod: 'cart-7c9f-x2x4k' }, value: 7 },
          { labels: { pod: 'cart-6b1d-qq8zt' }, value: 0 },
          { labels: { pod: 'mail-5d5f-9v7lp' }, value: 0 },
        ],
      },
      isPartial: false,
    },
    {
      args: {
        promql: 'sum by (pod) (increase(kube_pod_container_status_restarts_total{namespace="shop"}[1h]))',
        window: 'now',
      },
    },
  ),
)
