/**
 * Faults of the cluster: each fault, its root cause, and its end. No tool repairs these faults, so
 * each needs a person.
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

/** The cluster's name as a source of Nightshift, and its label in alerts. */
export const clusterSource = 'lab-cluster'

type ClusterFaultRow = {
  /** The broken object: a workload, job or service as `namespace/name`, or a node. */
  on: string
  does: string
  root: string
  /** The object that the alert names. Absent if the alert names `on`. */
  alertOn?: string
  /** The command with which a person ends the fault. */
  endedBy: string
  /** The name of the fault's alert in `rules.ts`. */
  alert: string
}

export const clusterFaultRows: Record<ClusterFault, ClusterFaultRow> = {
  k8s_crash_loop: {
    on: 'shop/cart',
    does: 'rolls out settings with a key that the program does not know',
    root: 'the ConfigMap cart-settings-2 of the newest revision of cart has a key that the program does not know: the program ends',
    endedBy: 'kubectl -n shop rollout undo deployment/cart',
    alert: 'KubePodCrashLooping',
  },
  k8s_image_pull: {
    on: 'shop/catalog',
    does: 'rolls out an image that nobody can pull',
    root: 'the image lab.local/shop:3 of the newest revision of catalog does not exist',
    endedBy: 'kubectl -n shop rollout undo deployment/catalog',
    alert: 'KubeContainerWaiting',
  },
  k8s_out_of_memory: {
    on: 'shop/search',
    does: 'rolls out a memory limit that is too small for the index',
    root: 'the memory limit of the newest revision of search is smaller than its index: the kernel kills the container',
    endedBy: 'kubectl -n shop rollout undo deployment/search',
    alert: 'KubernetesContainerOomKiller',
  },
  k8s_probe_fails: {
    on: 'shop/checkout',
    does: 'rolls out a readiness probe of a path that does not exist',
    root: 'the readiness probe in the newest revision of checkout asks the path /health, which answers 404',
    endedBy: 'kubectl -n shop rollout undo deployment/checkout',
    alert: 'KubeDeploymentRolloutStuck',
  },
  k8s_no_room: {
    on: 'shop/recommender',
    does: 'rolls out a CPU request without its unit; no node has so many cores',
    root: 'the newest revision of recommender requests 640 cores where 640m were meant',
    endedBy: 'kubectl -n shop set resources deployment/recommender --requests=cpu=640m',
    alert: 'KubePodNotReady',
  },
  k8s_volume_unbound: {
    on: 'shop/ledger',
    alertOn: 'shop/ledger-data-fast',
    does: 'rolls out a volume claim of a storage class that does not exist',
    root: 'the claim ledger-data-fast stays unbound: its storage class fast does not exist',
    endedBy: 'kubectl -n shop rollout undo deployment/ledger',
    alert: 'KubernetesPersistentvolumeclaimPending',
  },
  k8s_node_not_ready: {
    on: 'node-2',
    does: 'stops the kubelet of a node (SIGSTOP)',
    root: 'the kubelet of node-2 reports no status any more',
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
    does: 'starts a job without a deadline that waits for a lock forever',
    root: 'the job reindex-catalog waits for the lock of the catalog, and has no activeDeadlineSeconds',
    endedBy: 'kubectl -n shop delete job reindex-catalog',
    alert: 'KubeJobNotCompleted',
  },
  k8s_disk_pressure: {
    on: 'node-2',
    does: 'rolls out a cache that fills the disk of its node; the node evicts it',
    root: 'previews_mb in thumbnails-settings-2 of the newest revision of thumbnails is too large: its cache fills the disk of node-2',
    endedBy: 'kubectl -n shop rollout undo deployment/thumbnails',
    alert: 'KubeNodePressure',
  },
  k8s_red_herring: {
    on: 'shop/pricing',
    does: 'rolls out settings that name a missing file; another workload restarts for another reason',
    root: 'the ConfigMap pricing-settings-2 of the newest revision of pricing names a file of exchange rates that does not exist. log-shipper restarts for another reason',
    endedBy: 'kubectl -n shop rollout undo deployment/pricing',
    alert: 'KubeDeploymentRolloutStuck',
  },
}

/**
 * Lists the names in a fault's alert, outermost first: a namespace and an object, or only a node.
 */
export function listAlerted(fault: ClusterFault): string[] {
  const { on, alertOn = on } = clusterFaultRows[fault]
  return alertOn.split('/')
}

/**
 * Returns whether a resource is the subject of this fault's alert. The id of a cluster's resource
 * has the form `lab-cluster:shop:deployment:cart`.
 */
export function isAboutClusterFault(resourceId: string, fault: ClusterFault): boolean {
  const parts = resourceId.split(':')
  return listAlerted(fault).every((name, n, names) =>
    n === names.length - 1 ? parts.at(-1) === name : parts.includes(name),
  )
}
