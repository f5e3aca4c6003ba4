/** The kinds of objects that are read. Neither Secrets nor custom resources are among them. */

type ClusterKindFacts = { api: string; group: string; plural: string; isOfCluster?: true }

/** Kinds whose objects a watch follows and keeps in a short form. */
export const followedKinds = {
  Pod: { api: '/api/v1', group: '', plural: 'pods' },
  Node: { api: '/api/v1', group: '', plural: 'nodes', isOfCluster: true },
  Namespace: { api: '/api/v1', group: '', plural: 'namespaces', isOfCluster: true },
  Deployment: { api: '/apis/apps/v1', group: 'apps', plural: 'deployments' },
  ReplicaSet: { api: '/apis/apps/v1', group: 'apps', plural: 'replicasets' },
  StatefulSet: { api: '/apis/apps/v1', group: 'apps', plural: 'statefulsets' },
  DaemonSet: { api: '/apis/apps/v1', group: 'apps', plural: 'daemonsets' },
  Job: { api: '/apis/batch/v1', group: 'batch', plural: 'jobs' },
  CronJob: { api: '/apis/batch/v1', group: 'batch', plural: 'cronjobs' },
  PersistentVolumeClaim: { api: '/api/v1', group: '', plural: 'persistentvolumeclaims' },
  Service: { api: '/api/v1', group: '', plural: 'services' },
  Ingress: { api: '/apis/networking.k8s.io/v1', group: 'networking.k8s.io', plural: 'ingresses' },
} as const satisfies Record<string, ClusterKindFacts>
export type FollowedKind = keyof typeof followedKinds

/** Kinds of objects that are read only on request. */
const askedKinds = {
  ConfigMap: { api: '/api/v1', group: '', plural: 'configmaps' },
  ResourceQuota: { api: '/api/v1', group: '', plural: 'resourcequotas' },
  Event: { api: '/api/v1', group: '', plural: 'events' },
  PersistentVolume: { api: '/api/v1', group: '', plural: 'persistentvolumes', isOfCluster: true },
  PodDisruptionBudget: { api: '/apis/policy/v1', group: 'policy', plural: 'poddisruptionbudgets' },
  ControllerRevision: { api: '/apis/apps/v1', group: 'apps', plural: 'controllerrevisions' },
} as const satisfies Record<string, ClusterKindFacts>

export const clusterKinds: Readonly<Record<FollowedKind | keyof typeof askedKinds, ClusterKindFacts>> = {
  ...followedKinds,
  ...askedKinds,
}
export type ClusterKind = keyof typeof clusterKinds

/** Kinds of workloads. An owner is listed before the kinds that it creates. */
export const workloadKinds = [
  'Deployment',
  'StatefulSet',
  'DaemonSet',
  'CronJob',
  'Job',
  'ReplicaSet',
] as const satisfies readonly FollowedKind[]
type WorkloadKind = (typeof workloadKinds)[number]

export const isWorkload = (kind: string): kind is WorkloadKind => (workloadKinds as readonly string[]).includes(kind)

/** Returns the API path of a list or object. Names come from the API server, or were checked. */
export function pathOf(kind: ClusterKind, namespace: string | null, name?: string): string {
  const { api, plural, isOfCluster } = clusterKinds[kind]
  const place = namespace === null || isOfCluster ? '' : `/namespaces/${encodeURIComponent(namespace)}`
  return `${api}${place}/${plural}${name === undefined ? '' : `/${encodeURIComponent(name)}`}`
}
