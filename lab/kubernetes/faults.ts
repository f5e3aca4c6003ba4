/**
 * Faults of the cluster: what is broken, its root, and its end. No tool repairs one: each is for a
 * person.
 */
export const clusterFaults = [
  'k8s_crash_loop',
  'k8s_image_pull',
  'k8s_out_of_memory',
  'k8s_probe_fails',
  'k8s_no_room',
  'k8s_volume_unbound',
  'k8s_node_not_ready',
  'k8s_quota',
  'k8s_wrong_selector',
  'k8s_webhook_expired',
  'k8s_job_endless',
  'k8s_disk_pressure',
  'k8s_red_herring',
] as const
export type ClusterFault = (typeof clusterFaults)[number]

export const isClusterFault = (name: string): name is ClusterFault => clusterFaults.some((each) => each === name)

/** What the cluster is called as a source, and in the labels of its alerts. */
export const clusterSource = 'lab-cluster'

type ClusterFaultRow = {
  /** What it is broken on: a workload, job or service as `namespace/name`, or a node. */
  on: string
  does: string
  root: string
  /** What its alert names, where that is something else. */
  alertOn?: string
  /** What a person runs that ends it. */
  endedBy: string
  /** The alert that it raises, of `rules.ts`. */
  alert: string
}

export const clusterFaultRows: Record<ClusterFault, ClusterFaultRow> = {
  k8s_crash_loop: {
    on: 'shop/cart',
    does: 'rolls out settings with a key that the program does not know',
    root: 'the ConfigMap cart-settings-2, which the newest revision of cart names: the program ends at its unknown key',
    endedBy: 'kubectl -n shop rollout undo deployment/cart',
    alert: 'KubePodCrashLooping',
  },
  k8s_image_pull: {
    on: 'shop/catalog',
    does: 'rolls out an image that nobody can pull',
    root: 'the image lab.local/shop:3 of the newest revision of catalog, which is nowhere',
    endedBy: 'kubectl -n shop rollout undo deployment/catalog',
    alert: 'KubeContainerWaiting',
  },
  k8s_out_of_memory: {
    on: 'shop/search',
    does: 'rolls out a memory limit below what the index needs',
    root: 'the memory limit of the newest revision of search, below its index: the kernel kills the container',
    endedBy: 'kubectl -n shop rollout undo deployment/search',
    alert: 'KubernetesContainerOomKiller',
  },
  k8s_probe_fails: {
    on: 'shop/checkout',
    does: 'rolls out a readiness probe that asks another path',
    root: 'the path /health of the readiness probe in the newest revision of checkout, which answers 404',
    endedBy: 'kubectl -n shop rollout undo deployment/checkout',
    alert: 'KubeDeploymentRolloutStuck',
  },
  k8s_no_room: {
    on: 'shop/recommender',
    does: 'rolls out a CPU request without its unit, which no node has',
    root: 'the CPU request of the newest revision of recommender: 640 cores where 640m were meant',
    endedBy: 'kubectl -n shop set resources deployment/recommender --requests=cpu=640m',
    alert: 'KubePodNotReady',
  },
  k8s_volume_unbound: {
    on: 'shop/ledger',
    alertOn: 'shop/ledger-data-fast',
    does: 'rolls out a volume claim of a storage class that is not there',
    root: 'the claim ledger-data-fast: its storage class fast does not exist, so that nothing binds it',
    endedBy: 'kubectl -n shop rollout undo deployment/ledger',
    alert: 'KubernetesPersistentvolumeclaimPending',
  },
  k8s_node_not_ready: {
    on: 'node-2',
    does: 'stops the kubelet of a node (SIGSTOP)',
    root: 'the kubelet of node-2 tells nothing any more',
    endedBy: 'starting the kubelet on node-2 again',
    alert: 'KubeNodeNotReady',
  },
  k8s_quota: {
    on: 'marketing/newsletter',
    does: 'scales a workload above the quota of its namespace',
    root: 'newsletter was scaled to 4, and the quota team-budget allows 2 pods',
    endedBy: 'kubectl -n marketing scale deployment/newsletter --replicas=1',
    alert: 'KubeDeploymentReplicasMismatch',
  },
  k8s_wrong_selector: {
    on: 'shop/storefront',
    does: 'changes the selector of a service to a label that no pod has',
    root: 'the selector app=store-front of the service storefront: its pods have app=storefront',
    endedBy: `kubectl -n shop patch service storefront -p '{"spec":{"selector":{"app":"storefront"}}}'`,
    alert: 'KubeServiceWithoutEndpoints',
  },
  k8s_webhook_expired: {
    on: 'payments/billing',
    does: 'restarts a workload while the certificate of an admission webhook has expired',
    root: 'the certificate of the webhook pods.policy.example (configuration pod-policy) has expired: no pod is admitted',
    endedBy: 'renewing the certificate of pod-policy',
    alert: 'KubeDeploymentReplicasMismatch',
  },
  k8s_job_endless: {
    on: 'shop/reindex-catalog',
    does: 'starts a job that waits for a lock for ever, and has no deadline',
    root: 'the job reindex-catalog waits for the lock of the catalog, and has no activeDeadlineSeconds',
    endedBy: 'kubectl -n shop delete job reindex-catalog',
    alert: 'KubeJobNotCompleted',
  },
  k8s_disk_pressure: {
    on: 'node-2',
    does: 'rolls out a cache that fills the disk of its node, which evicts it',
    root: 'previews_mb in thumbnails-settings-2, which the newest revision of thumbnails names: its cache fills the disk of node-2',
    endedBy: 'kubectl -n shop rollout undo deployment/thumbnails',
    alert: 'KubeNodePressure',
  },
  k8s_red_herring: {
    on: 'shop/pricing',
    does: 'rolls out settings that name a missing file, beside another workload that restarts noisily',
    root: 'the ConfigMap pricing-settings-2, which the newest revision of pricing names: it points at a file of rates that does not exist. log-shipper restarts for another reason',
    endedBy: 'kubectl -n shop rollout undo deployment/pricing',
    alert: 'KubeDeploymentRolloutStuck',
  },
}

/** Names in a fault's alert, outermost first: `shop`, `ledger-data-fast`, or a node alone. */
export function listAlerted(fault: ClusterFault): string[] {
  const { on, alertOn = on } = clusterFaultRows[fault]
  return alertOn.split('/')
}

/**
 * Whether a resource is this fault's alert's. A cluster's things have ids as
 * `lab-cluster:shop:deployment:cart`.
 */
export function isAboutClusterFault(resourceId: string, fault: ClusterFault): boolean {
  const parts = resourceId.split(':')
  return listAlerted(fault).every((name, n, names) =>
    n === names.length - 1 ? parts.at(-1) === name : parts.includes(name),
  )
}
