import type { ListedCluster, ListedWorkload } from '../../domain/listed-cluster.ts'
import type { AskCluster } from './connect.ts'
import { fieldsOf, wordOf } from './fields.ts'
import { isWorkload } from './kinds.ts'
import type { KeptPod, KeptWorkload } from './objects.ts'
import { type ClusterView, memberOf, objectsOf, workloadOf } from './view.ts'

/** Lists the objects of a cluster for the registry, with their owners by uid. */

export async function listCluster(ask: AskCluster): Promise<{ cluster: ListedCluster }> {
  const version = wordOf(fieldsOf(await ask({ version: true })).gitVersion)
  const { view, namespaces, names } = await ask({ view: true })
  return { cluster: { version, names, ...listView(view, namespaces) } }
}

function listView(view: ClusterView, namespaces: readonly string[] | null): Omit<ListedCluster, 'version' | 'names'> {
  const inside = inNamespaces(view)
  const podsOf = Map.groupBy(objectsOf(view, 'Pod'), (pod) => workloadOf(view, pod)?.uid ?? '')
  const workloads = [...view.objects.values()].filter(
    (each): each is KeptWorkload => isWorkload(each.kind) && workloadOf(view, each)?.uid === each.uid,
  )
  // Leaves out old ReplicaSets and finished Jobs, if they have no controller.
  const listed = workloads.filter((each) => !isOver(each)).sort(byPlace)
  return {
    nodes: objectsOf(view, 'Node')
      .map(({ name, addresses }) => ({ name, addresses }))
      .sort(byName),
    namespaces: [...new Set([...(namespaces ?? []), ...objectsOf(view, 'Namespace').map(({ name }) => name)])].sort(),
    workloads: listed.map((each) => {
      const pods = podsOf.get(each.uid) ?? []
      return {
        ...toListed(each),
        nodes: unique(pods.filter(({ isDone }) => !isDone).map(({ node }) => node)),
        claims: unique(pods.flatMap(({ claims }) => claims)),
      }
    }),
    claims: objectsOf(view, 'PersistentVolumeClaim').map(toPlace).sort(byPlace),
    services: objectsOf(view, 'Service')
      .map(({ namespace, name, selector }) => ({
        namespace: namespace ?? '',
        name,
        workloads: selector === null ? [] : workloadsBehind(view, inside.get(namespace ?? '') ?? [], selector),
      }))
      .sort(byPlace),
    ingresses: objectsOf(view, 'Ingress')
      .map((each) => ({ ...toPlace(each), services: [...each.services].sort() }))
      .sort(byPlace),
    members: listMembers(view),
  }
}

const isOver = (each: KeptWorkload): boolean =>
  (each.kind === 'ReplicaSet' && each.wanted === 0) || (each.kind === 'Job' && each.isDone)

const toListed = ({ kind, namespace, name }: Pick<KeptWorkload, 'kind' | 'namespace' | 'name'>): ListedWorkload => ({
  kind,
  namespace: namespace ?? '',
  name,
})

const toPlace = ({ namespace, name }: { namespace: string | null; name: string }) => ({
  namespace: namespace ?? '',
  name,
})

const unique = (words: readonly string[]): string[] => [...new Set(words.filter((word) => word !== ''))].sort()

const byName = (a: { name: string }, b: { name: string }): number => (a.name < b.name ? -1 : 1)
const byPlace = (
  a: { namespace: string | null; name: string },
  b: { namespace: string | null; name: string },
): number => {
  const [left, right] = [`${a.namespace}/${a.name}`, `${b.namespace}/${b.name}`]
  return left < right ? -1 : left > right ? 1 : 0
}

const inNamespaces = (view: ClusterView): Map<string, KeptPod[]> =>
  Map.groupBy(
    objectsOf(view, 'Pod').filter(({ isDone }) => !isDone),
    ({ namespace }) => namespace ?? '',
  )

/** Finds the workloads behind a service. */
function workloadsBehind(
  view: ClusterView,
  pods: readonly KeptPod[],
  selector: Readonly<Record<string, string>>,
): ListedWorkload[] {
  const wanted = Object.entries(selector)
  const found = new Map<string, KeptWorkload>()
  for (const pod of pods) {
    if (!wanted.every(([name, value]) => pod.labels[name] === value)) continue
    const workload = workloadOf(view, pod)
    if (workload) found.set(workload.uid, workload)
  }
  return [...found.values()].map(toListed).sort(byPlace)
}

function listMembers(view: ClusterView): ListedCluster['members'] {
  const there = [...view.objects.values()].flatMap((object) => {
    const member = memberOf(view, object)
    return member?.workload
      ? [{ ...member, workload: { ...member.workload, namespace: member.namespace }, goneMs: null }]
      : []
  })
  const gone = [...view.gone.values()].flatMap((member) =>
    member.workload && !view.objects.has(member.uid)
      ? [{ ...member, workload: { ...member.workload, namespace: member.namespace } }]
      : [],
  )
  return [...there, ...gone].map(({ uid, namespace, name, workload: { kind, name: of }, goneMs }) => ({
    uid,
    namespace,
    name,
    workload: { kind, namespace, name: of },
    goneMs,
  }))
}
