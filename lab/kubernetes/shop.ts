import type { ApiObject, ClusterApi } from './api.ts'

/**
 * The program in the shop's containers. It reads its settings, logs their use, and then serves,
 * ships or waits.
 */
export const shopProgram = `#!/bin/sh
say() { echo "$(date -u +%Y-%m-%dT%H:%M:%SZ) $*"; }
port=8080 rates= index_mb= previews_mb= target=
say "info: $APP starts, release $RELEASE"
while IFS='=' read -r key value; do
  case "$key" in
    '') ;;
    port) port=$value ;;
    rates) rates=$value ;;
    index_mb) index_mb=$value ;;
    previews_mb) previews_mb=$value ;;
    target) target=$value ;;
    *) say "fatal: /etc/shop/settings: unknown setting '$key'"; exit 1 ;;
  esac
done </etc/shop/settings
case "$1" in
  ship)
    case "$target" in *:9428) exec sleep 2147483647 ;; esac
    sleep 4; say "error: $target refuses the connection, giving up"; exit 1 ;;
  reindex)
    say "info: waits for the lock of the catalog, held by nobody known"; exec sleep 2147483647 ;;
esac
if [ -n "$rates" ] && [ ! -f "$rates" ]; then
  say "error: cannot read exchange rates from $rates: no such file; prices are not served"; rm -f /www/healthz
fi
if [ -n "$previews_mb" ]; then
  say "info: keeps previews of $previews_mb MB in /cache"
  for n in $(seq 1 $((previews_mb / 8))); do dd if=/dev/zero of=/cache/$n bs=1M count=8 2>/dev/null; sleep 0.3; done
fi
if [ -n "$index_mb" ]; then
  httpd -p "$port" -h /www
  say "info: reads the index of $index_mb MB into memory"
  exec awk -v mb="$index_mb" 'BEGIN { s = "x"; while (length(s) < mb * 1048576) s = s s; while (1) system("sleep 60") }'
fi
say "info: $APP listens on port $port"
exec httpd -f -p "$port" -h /www
`

type Workload = {
  namespace: string
  replicas?: number
  /**
   * The lines of the workload's settings. They are stored in a ConfigMap that the workload's
   * revision names.
   */
  settings?: string
  args?: string[]
  memory?: string
  strategy?: 'Recreate'
  pod?: object
  volumes?: { name: string; at: string; source: object }[]
}

/**
 * The workloads of the shop. All workloads are healthy at first. Most workloads have a fault that
 * was made for them.
 */
export const workloads = {
  storefront: { namespace: 'shop', replicas: 2 },
  cart: { namespace: 'shop' },
  catalog: { namespace: 'shop' },
  checkout: { namespace: 'shop' },
  search: { namespace: 'shop', settings: 'index_mb=32', memory: '160Mi' },
  recommender: { namespace: 'shop' },
  pricing: { namespace: 'shop', settings: 'rates=/etc/passwd' },
  'log-shipper': { namespace: 'shop', settings: 'target=logs.shop:9428', args: ['ship'] },
  ledger: {
    namespace: 'shop',
    volumes: [{ name: 'data', at: '/data', source: { persistentVolumeClaim: { claimName: 'ledger-data' } } }],
  },
  thumbnails: {
    namespace: 'shop',
    settings: 'previews_mb=8',
    // Includes the files that this pod writes, because the node's disk is in memory.
    memory: '256Mi',
    pod: { nodeSelector: { 'shop.example/disk': 'scratch' } },
    volumes: [{ name: 'cache', at: '/cache', source: { emptyDir: {} } }],
  },
  billing: { namespace: 'payments', strategy: 'Recreate' },
  newsletter: { namespace: 'marketing' },
} as const satisfies Record<string, Workload>
export type WorkloadName = keyof typeof workloads

const namespaces = ['shop', 'payments', 'marketing']

export const deploymentPath = (name: WorkloadName): string =>
  `/apis/apps/v1/namespaces/${workloads[name].namespace}/deployments/${name}`
export const podsPath = (name: WorkloadName): string =>
  `/api/v1/namespaces/${workloads[name].namespace}/pods?labelSelector=app%3D${name}`
const isServing = (name: WorkloadName): boolean => name !== 'log-shipper'

/** Stores the settings of one revision of a workload, and returns the name of their ConfigMap. */
export async function writeSettings(api: ClusterApi, name: WorkloadName, n: number, settings: string): Promise<string> {
  const { namespace } = workloads[name]
  const settingsName = `${name}-settings-${n}`
  const path = `/api/v1/namespaces/${namespace}/configmaps`
  await api.remove(`${path}/${settingsName}`)
  await api.create(path, {
    metadata: { name: settingsName, labels: { app: name } },
    data: { settings: `${settings}\n` },
  })
  return settingsName
}

export const volumesOf = (name: WorkloadName, settingsName: string): object[] => [
  { name: 'settings', configMap: { name: settingsName } },
  ...volumesIn(name).map((volume) => ({ name: volume.name, ...volume.source })),
]

const volumesIn = (name: WorkloadName): NonNullable<Workload['volumes']> => (workloads[name] as Workload).volumes ?? []

function deployment(name: WorkloadName): object {
  const { replicas = 1, args = ['serve'], memory = '64Mi', strategy, pod }: Workload = workloads[name]
  const mounts = volumesIn(name).map((volume) => ({ name: volume.name, mountPath: volume.at }))
  const probe = { httpGet: { path: '/healthz', port: 8080 }, periodSeconds: 2, failureThreshold: 2 }
  const container = {
    name,
    image: 'lab.local/shop:1',
    args,
    env: [{ name: 'APP', value: name }],
    resources: { requests: { cpu: '10m', memory: '16Mi' }, limits: { memory } },
    ...(isServing(name) && { ports: [{ name: 'http', containerPort: 8080 }], readinessProbe: probe }),
    volumeMounts: [{ name: 'settings', mountPath: '/etc/shop' }, ...mounts],
  }
  return {
    metadata: { name, labels: { app: name } },
    spec: {
      replicas,
      // Waits only seconds, where real clusters usually wait ten minutes.
      progressDeadlineSeconds: 12,
      selector: { matchLabels: { app: name } },
      ...(strategy && { strategy: { type: strategy } }),
      template: {
        metadata: { labels: { app: name } },
        spec: {
          terminationGracePeriodSeconds: 1,
          automountServiceAccountToken: false,
          ...pod,
          containers: [container],
          volumes: volumesOf(name, `${name}-settings-1`),
        },
      },
    },
  }
}

/** Creates a workload in its first revision. The workload's settings must already exist. */
export const createWorkload = (api: ClusterApi, name: WorkloadName): Promise<ApiObject> =>
  api.create(`/apis/apps/v1/namespaces/${workloads[name].namespace}/deployments`, deployment(name))

/** Fills the cluster with the shop, and waits until every workload is healthy. */
export async function openShop(
  api: ClusterApi,
  until: (what: string, check: () => Promise<boolean>) => Promise<void>,
): Promise<void> {
  for (const name of namespaces) await api.create('/api/v1/namespaces', { metadata: { name } })
  await api.patch('/api/v1/nodes/node-2', { metadata: { labels: { 'shop.example/disk': 'scratch' } } })
  // Makes workloads without a fixed node prefer the other node.
  const taints = [{ key: 'shop.example/disk', value: 'scratch', effect: 'PreferNoSchedule' }]
  await api.patch('/api/v1/nodes/node-2', { spec: { taints } })
  await openLedgerDisk(api)
  await api.create('/api/v1/namespaces/marketing/resourcequotas', {
    metadata: { name: 'team-budget' },
    spec: { hard: { pods: '2' } },
  })
  await until('the accounts of the namespaces', async () => {
    const paths = namespaces.map((name) => `/api/v1/namespaces/${name}/serviceaccounts/default`)
    return (await Promise.all(paths.map(api.find))).every((each) => each !== null)
  })
  const names = Object.keys(workloads) as WorkloadName[]
  for (const name of names) {
    const { namespace, settings = '' }: Workload = workloads[name]
    await writeSettings(api, name, 1, settings)
    await createWorkload(api, name)
    if (!isServing(name)) continue
    await api.create(`/api/v1/namespaces/${namespace}/services`, {
      metadata: { name },
      spec: { selector: { app: name }, ports: [{ name: 'http', port: 80, targetPort: 8080 }] },
    })
  }
  await until('the shop to be healthy', async () => (await unwellIn(api)).length === 0)
}

/** Lists the workloads that are not in their wanted state, with the present state of each. */
export async function unwellIn(api: ClusterApi): Promise<string[]> {
  const all = (
    await Promise.all(namespaces.map((name) => api.list(`/apis/apps/v1/namespaces/${name}/deployments`)))
  ).flat()
  return all
    .filter((each) => !isWell(each))
    .map(({ metadata, status }) => {
      return `${metadata.namespace}/${metadata.name} has ${status.readyReplicas ?? 0} ready of ${status.replicas ?? 0}`
    })
}

/** Returns whether the newest revision is complete and no pod of an older revision remains. */
export function isWell({ metadata, spec, status }: ApiObject): boolean {
  const wanted = spec.replicas
  return (
    status.observedGeneration >= metadata.generation &&
    (status.replicas ?? 0) === wanted &&
    (status.updatedReplicas ?? 0) === wanted &&
    (status.availableReplicas ?? 0) === wanted
  )
}

async function openLedgerDisk(api: ClusterApi): Promise<void> {
  await api.create('/api/v1/persistentvolumes', {
    metadata: { name: 'ledger-data' },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      hostPath: { path: '/run/cluster/ledger', type: 'DirectoryOrCreate' },
      claimRef: { namespace: 'shop', name: 'ledger-data' },
    },
  })
  await api.create('/api/v1/namespaces/shop/persistentvolumeclaims', {
    metadata: { name: 'ledger-data' },
    spec: { accessModes: ['ReadWriteOnce'], storageClassName: '', resources: { requests: { storage: '1Gi' } } },
  })
}
