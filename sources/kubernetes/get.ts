import { z } from 'zod'
import { formatCount, formatSpan } from '../../domain/format.ts'
import { toText } from '../../domain/say.ts'
import { cleanse } from '../../safety/redact.ts'
import { defineSourceTool, fitSummary, SourceError } from '../kind.ts'
import type { AskCluster, SeenCluster } from './connect.ts'
import { type Fields, fieldsOf, listOf, wordOf } from './fields.ts'
import { type ClusterKind, clusterKinds, type FollowedKind, followedKinds, isWorkload } from './kinds.ts'
import { unseenOf } from './lacks.ts'
import { isBehind, type KeptObject, type KeptOther, type KeptWorkload, sayRolling } from './objects.ts'
import { showObject } from './show.ts'
import { nameField, namespaceField, sourceField } from './subject.ts'
import { type ClusterView, objectsOf } from './view.ts'

/** Reads objects of a cluster: one by its fields, or a list with unhealthy objects first. */

const shownKinds = (Object.keys(clusterKinds) as ClusterKind[]).filter(
  (kind) => kind !== 'Event' && kind !== 'ControllerRevision',
) as [ClusterKind, ...ClusterKind[]]

const isFollowed = (kind: ClusterKind): kind is FollowedKind => kind in followedKinds
const maxListed = 2_000

export const getKubernetes = defineSourceTool({
  name: 'get_kubernetes',
  isRare: true,
  description:
    'One object of Kubernetes by name, or a list of a kind, unhealthy first. Never Secrets; values of ConfigMaps and environments are not shown.',
  input: z.strictObject({
    source: sourceField,
    kind: z.enum(shownKinds).describe('as Deployment'),
    namespace: namespaceField.optional(),
    name: nameField.optional().describe('of one object'),
  }),
  judge({ kind, namespace, name }) {
    const needsPlace = name !== undefined && namespace === undefined && !clusterKinds[kind].isOfCluster
    return needsPlace
      ? { ok: false as const, reason: `a ${kind} is in a namespace: add namespace`, bounded: null }
      : { ok: true as const }
  },
  labels: ({ kind, namespace = '', name = '', source = '' }) => ({
    ...(namespace && { namespace }),
    ...(kind === 'Node' && name ? { node: name } : name ? { pod: name } : {}),
    ...(source && { cluster: source }),
  }),
  say({ found, ill, state, now, name: named, pods }, { kind, name }) {
    if (name === undefined)
      return `${formatCount(Number(found), toText(kind))}${Number(ill) > 0 ? `, ${toText(ill)} not well` : ''}`
    const counts = Object.entries((now ?? {}) as object).map(([field, count]) => `${field} ${count}`)
    return `${toText(kind)} ${toText(named)}: ${[toText(state), ...counts, toText(pods)].filter(Boolean).join(', ') || 'there'}`
  },
  async read(ask: AskCluster, { kind, namespace = null, name }, { nowMs }) {
    const cluster = await ask({ view: true })
    if (name === undefined) return await readList(ask, cluster, { kind, namespace }, nowMs)
    const shown = cleanse(showObject(kind, await ask({ read: kind, namespace, name }), cluster))
    const head = { kind, name, ...(namespace !== null && { namespace }) }
    // Drops the last fields of a summary that is too long. The complete text has these fields.
    return {
      summary: fitSummary(Object.entries(shown), (kept, omitted) => ({
        ...head,
        ...Object.fromEntries(kept),
        ...(omitted > 0 && { fieldsNotShown: Object.keys(shown).slice(-omitted) }),
      })),
      whole: Object.entries({ ...head, ...shown })
        .map((each) => JSON.stringify(each))
        .join('\n'),
      isEmpty: false,
    }
  },
})

type Listed = { line: string; isIll: boolean }

async function readList(
  ask: AskCluster,
  cluster: SeenCluster,
  { kind, namespace }: { kind: ClusterKind; namespace: string | null },
  nowMs: number,
) {
  const { view, name } = cluster
  const states = view.states.filter((each) => each.kind === kind)
  const unseen = isFollowed(kind) ? unseenOf(cluster, [kind], namespace, nowMs) : []
  const isElsewhere = namespace !== null && cluster.namespaces?.includes(namespace) === false
  if (isFollowed(kind) && isElsewhere) throw new SourceError('REJECTED', unseen.join('; '))
  if (isFollowed(kind) && states.every(({ listedMs }) => listedMs === null))
    throw new SourceError(
      'FORBIDDEN',
      `${name} does not list ${clusterKinds[kind].plural}: nightshift sources test ${name} shows why`,
    )
  const { lines, isCut } = isFollowed(kind)
    ? { lines: listFollowed(view, kind, namespace, nowMs), isCut: false }
    : await listAsked(ask, kind, namespace)
  const clean = cleanse(lines.toSorted((a, b) => Number(b.isIll) - Number(a.isIll)))
  const ill = clean.filter(({ isIll }) => isIll).length
  const partial = [...unseen, ...(isCut ? [`there are more than ${maxListed}`] : [])]
  return {
    summary: fitSummary(
      clean.map(({ line }) => line),
      (kept, omitted) => ({
        kind,
        ...(namespace !== null && { namespace }),
        found: lines.length,
        ...(ill > 0 && { ill }),
        ...(partial.length > 0 && { partial }),
        items: kept,
        ...(omitted > 0 && { notShown: omitted }),
      }),
    ),
    whole: clean.map(({ line }) => line).join('\n'),
    isEmpty: lines.length === 0 && partial.length === 0,
    isPartial: partial.length > 0,
  }
}

function listFollowed(view: ClusterView, kind: FollowedKind, namespace: string | null, nowMs: number): Listed[] {
  return objectsOf(view, kind)
    .filter((each) => namespace === null || each.namespace === namespace)
    .map((object) => {
      const { words, isIll } = describe(object)
      const place = object.namespace === null ? '' : `${object.namespace}/`
      const age = object.createdMs > 0 ? `, age ${formatSpan(nowMs - object.createdMs)}` : ''
      return {
        line: `${place}${object.name}: ${words}${object.isEnding ? ', ending' : ''}${age}`,
        isIll: isIll || object.isEnding,
      }
    })
}

function describe(object: KeptObject): { words: string; isIll: boolean } {
  if (object.kind === 'Pod') {
    const { state, restarts, node, isReady, isDone } = object
    return {
      words: `${state}${isReady || isDone ? '' : ', not ready'}, ${formatCount(restarts, 'restart')}, on ${node || 'no node'}`,
      isIll: !isReady && !isDone,
    }
  }
  if (object.kind === 'Node') {
    const ill = object.ill.map(({ type, reason }) => `${type} (${reason})`)
    const words = [
      object.isReady ? 'ready' : 'not ready',
      ...(object.isCordoned ? ['cordoned'] : []),
      ...ill,
      object.version,
    ]
    return { words: words.join(', '), isIll: !object.isReady || ill.length > 0 }
  }
  if (isWorkload(object.kind)) return describeWorkload(object as KeptWorkload)
  const { state, className, services } = object as KeptOther
  const words = [state, className, ...(services.length > 0 ? [`to ${services.join(', ')}`] : [])].filter(
    (each) => each !== '',
  )
  return { words: words.join(', ') || 'there', isIll: state !== '' && !/^(?:Active|Bound)$/.test(state) }
}

function describeWorkload(workload: KeptWorkload) {
  const { kind, wanted, ready, ill, isPaused } = workload
  const counts = kind === 'CronJob' ? [] : [`${ready} of ${wanted} ${kind === 'Job' ? 'done' : 'ready'}`]
  const reasons = ill.map(({ type, reason }) => `${type} (${reason})`)
  const words = [...counts, ...sayRolling(workload), ...reasons, ...(isPaused ? ['paused'] : [])]
  return {
    words: words.join(', ') || 'there',
    isIll: ill.length > 0 || isBehind(workload),
  }
}

async function listAsked(
  ask: AskCluster,
  kind: ClusterKind,
  namespace: string | null,
): Promise<{ lines: Listed[]; isCut: boolean }> {
  const { items, metadata } = fieldsOf(await ask({ read: kind, namespace, query: { limit: String(maxListed) } }))
  const rest = fieldsOf(metadata).continue
  const nameOf = (each: Fields) => {
    const of = fieldsOf(each.metadata)
    return `${wordOf(of.namespace)}/${wordOf(of.name)}`
  }
  const lines = listOf(items).map((each) => ({ line: nameOf(each), isIll: false }))
  return { lines, isCut: typeof rest === 'string' && rest !== '' }
}
