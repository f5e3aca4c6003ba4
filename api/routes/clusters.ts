import { z } from '@hono/zod-openapi'
import { clusterSourcesOf, nodesOfCluster } from '../../db/inventory/cluster-sources.ts'
import { listSources } from '../../db/inventory/sources.ts'
import { recordAudit } from '../../db/log/audit.ts'
import { type ClusterNow, clusterNow, podLog } from '../../domain/cluster-now.ts'
import { type ResourceRef, ref, resourceKey, resourceKind } from '../../domain/registry.ts'
import type { Source } from '../../domain/source.ts'
import { SourceError } from '../../sources/kind.ts'
import { readClusterNow, readPodLog } from '../../sources/kinds.ts'
import type { ApiDeps } from '../deps.ts'
import { endpoint } from '../http/endpoint.ts'
import { notFound, Problem } from '../http/problem.ts'

/**
 * Routes for the pages of clusters, nodes and workloads, with facts that are read from the
 * cluster's source for each request.
 */

const tag = 'clusters'
const params = z.object({ kind: resourceKind, id: z.string().min(1).max(128) })

type Read<T> = (source: Source, resource: ResourceRef & { name: string }) => Promise<T | null>

/**
 * Queries the cluster of a resource. 404 if no cluster has the resource, 424 with a code if the
 * cluster does not respond.
 */
async function askCluster<T>({ db }: ApiDeps, { kind, id }: ResourceRef, read: Read<T>): Promise<T> {
  const [known] = await clusterSourcesOf(db, { kind, id })
  const source = known && (await listSources(db)).find(({ name }) => name === known.source)
  try {
    const found = source && known && (await read(source, { kind, id, name: known.name }))
    if (!found) throw notFound(`${kind} ${id} in a cluster among the sources`)
    return found
  } catch (error) {
    if (!(error instanceof SourceError)) throw error
    throw new Problem(424, error.code, error.message)
  }
}

/** Replaces the id of a node that is also a machine of the registry with the machine's id. */
async function withKnownNodes({ db }: ApiDeps, now: ClusterNow): Promise<ClusterNow> {
  const own = resourceKey(ref('node', `${now.source}:`))
  const names = now.unwell.flatMap(({ kind, resource }) =>
    kind === 'node' && resource ? [resource.slice(own.length)] : [],
  )
  if (names.length === 0) return now
  const ids = await nodesOfCluster(db, now.source, names)
  const unwell = now.unwell.map((each) => {
    const id = each.kind === 'node' && each.resource ? ids.get(each.resource.slice(own.length)) : undefined
    return id === undefined ? each : { ...each, resource: resourceKey(ref('node', id)) }
  })
  return { ...now, unwell }
}

const nowEndpoint = endpoint({
  method: 'get',
  path: '/resources/{kind}/{id}/cluster',
  permission: 'read',
  tag,
  summary: "The current state of a cluster, a node of a cluster or a workload, read from the cluster's source",
  description:
    'Conditions, pods by state, container terminations, rollouts with their changes, grouped events, and faults. 424 with a code if the cluster did not answer.',
  params,
  answer: clusterNow,
  example: {
    source: 'prod',
    kind: 'workload',
    readAt: '2026-11-21T12:00:00Z',
    heardAt: '2026-11-21T11:59:58Z',
    facts: [{ name: 'Ready', text: '0 of 1', isIll: true }],
    conditions: [],
    pods: [
      {
        state: 'CrashLoopBackOff',
        isWell: false,
        count: 1,
        pods: [{ name: 'web-7fd8966c8d-8cjqz', node: 'node-1', restarts: 9 }],
      },
    ],
    worst: null,
    rollouts: [],
    changes: [],
    unwell: [],
    unwellMore: 0,
    events: [],
    eventsMore: 0,
    partial: [],
  },
  problems: [404, 424],
  run: async ({ params: { kind, id } }, deps) =>
    await withKnownNodes(
      deps,
      await askCluster(deps, { kind, id }, (source, resource) => readClusterNow(source, resource, deps.sources)),
    ),
})

const logEndpoint = endpoint({
  method: 'get',
  path: '/resources/{kind}/{id}/cluster/log',
  permission: 'read',
  tag,
  summary: 'The newest lines of a pod of a workload',
  description:
    'Up to 500 lines, without secrets. Without `pod` the least healthy pod, without `container` its least healthy container. `previous`: the container before its restart. The audit has a row for each read.',
  params,
  query: z.object({
    pod: z.string().min(1).max(253).optional(),
    container: z.string().min(1).max(253).optional(),
    previous: z.enum(['true', 'false']).default('false'),
  }),
  answer: podLog,
  example: {
    pod: 'web-7fd8966c8d-8cjqz',
    container: 'app',
    containers: ['app'],
    isPrevious: true,
    lines: [{ at: '2026-11-21T11:55:02Z', text: 'unknown setting' }],
    isCut: false,
  },
  problems: [404, 424],
  async run({ params: { kind, id }, query, principal }, deps) {
    const { pod = null, container = null, previous } = query
    const question = { pod, container, previous: previous === 'true' }
    return await askCluster(deps, { kind, id }, async (source, resource) => {
      const detail = `log of ${resourceKey({ kind, id })} ${JSON.stringify(question)}`
      await recordAudit(deps.db, { who: principal.name, what: 'source.read', subject: source.name, detail })
      return await readPodLog(source, resource, question, deps.sources)
    })
  },
})

export const clusterRoutes = [nowEndpoint, logEndpoint]
