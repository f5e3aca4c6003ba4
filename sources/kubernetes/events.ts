import { cutText } from '../kind.ts'
import { groupLines } from '../logs/last.ts'
import type { AskCluster } from './connect.ts'
import { cutInside, type Fields, fieldsOf, numberOf, sentenceOf, timeOf, toIso, wordOf } from './fields.ts'
import { readPages } from './pages.ts'
import { type ClusterView, workloadByName, workloadOf } from './view.ts'

/**
 * Events of a cluster, grouped. Events of one workload with similar messages are one line, with
 * their number, first time and last time.
 */

type ClusterEvent = {
  isWarning: boolean
  reason: string
  message: string
  count: number
  firstMs: number
  lastMs: number
  object: { kind: string; namespace: string; name: string; uid: string }
}

export type FoldedEvent = {
  reason: string
  about: string
  /** Number of objects of the workload that have this event. */
  objects: number
  count: number
  firstMs: number
  lastMs: number
  isWarning: boolean
  message: string
}

/**
 * Limits of one read of events. The server keeps events for an hour by default, but a storm may
 * have more events than are read.
 */
const bounds = { pageSize: 500, maxPages: 20 }
const maxMessage = 300
/** The longest event message that an API server accepts. */
const maxRead = 1_024

type EventQuestion = { namespace: string | null; about?: { kind?: string; name?: string; uid?: string } }

/** Reads the events of a namespace, or of one object. `isCut`: not all events were read. */
export async function readEvents(
  ask: AskCluster,
  { namespace, about = {} }: EventQuestion,
): Promise<{ events: ClusterEvent[]; isCut: boolean }> {
  const chosen = Object.entries(about).map(([field, value]) => `involvedObject.${field}=${value}`)
  const question = {
    read: 'Event' as const,
    namespace,
    query: { ...(chosen.length > 0 && { fieldSelector: chosen.join(',') }) },
  }
  const { items, isCut } = await readPages(ask, question, bounds, toEvent)
  return { events: items, isCut }
}

/**
 * A name such as `web-0_shop(3f…)`, because the kubelet writes namespace and uid behind a pod's
 * name.
 */
const kubeletName = /\b([a-z0-9][a-z0-9.-]*)_[a-z0-9-]+\([0-9a-f-]{36}\)/g

/** Whether an event is a routine event, which the kubelet repeats for each pod. */
const isChatter = ({ reason }: FoldedEvent): boolean => reason === 'MissingClusterDNS' || reason === 'DNSConfigForming'

function toEvent(event: Fields): ClusterEvent | null {
  const object = fieldsOf(event.involvedObject ?? event.regarding)
  const series = fieldsOf(event.series)
  const firstMs =
    timeOf(event.firstTimestamp) ?? timeOf(event.eventTime) ?? timeOf(fieldsOf(event.metadata).creationTimestamp)
  const reason = wordOf(event.reason)
  if (firstMs === null || reason === '') return null
  return {
    isWarning: event.type === 'Warning',
    reason,
    message: cutInside(sentenceOf(event.message ?? event.note, maxRead).replace(kubeletName, '$1'), maxMessage),
    count: Math.max(1, numberOf(event.count), numberOf(series.count)),
    firstMs,
    lastMs: Math.max(firstMs, timeOf(event.lastTimestamp) ?? 0, timeOf(series.lastObservedTime) ?? 0),
    object: {
      kind: wordOf(object.kind) || 'object',
      namespace: wordOf(object.namespace),
      name: wordOf(object.name),
      uid: wordOf(object.uid),
    },
  }
}

/** Groups events: warnings first, then the newest lines, and the kubelet's routine events last. */
export function foldEvents(view: ClusterView, events: readonly ClusterEvent[]): FoldedEvent[] {
  const groups = new Map<string, ClusterEvent[]>()
  for (const event of events) {
    const key = `${event.reason} ${ownerOf(view, event)}`
    groups.set(key, [...(groups.get(key) ?? []), event])
  }
  const folded = [...groups.values()].flatMap((group) => foldGroup(view, group))
  return folded.sort((a, b) => rank(b) - rank(a) || b.lastMs - a.lastMs)
}

const rank = (each: FoldedEvent): number => (isChatter(each) ? -1 : Number(each.isWarning))

/**
 * Makes one line for each kind of message. Messages of one kind differ only in numbers and names.
 */
function foldGroup(view: ClusterView, group: readonly ClusterEvent[]): FoldedEvent[] {
  const templates = groupLines(group.map(({ lastMs, message }) => ({ atMs: lastMs, text: message })))
  return [...new Set(templates)].map((template) => {
    const members = group.filter((_, at) => templates[at] === template)
    const newest = members.reduce((a, b) => (b.lastMs >= a.lastMs ? b : a))
    const names = new Set(members.map(({ object }) => object.name))
    return {
      reason: newest.reason,
      about: names.size === 1 ? nameOf(newest) : ownerOf(view, newest),
      objects: names.size,
      count: members.reduce((sum, { count }) => sum + count, 0),
      firstMs: Math.min(...members.map(({ firstMs }) => firstMs)),
      lastMs: newest.lastMs,
      isWarning: newest.isWarning,
      message: newest.message,
    }
  })
}

const nameOf = ({ object: { kind, namespace, name } }: ClusterEvent): string =>
  `${kind} ${namespace === '' ? '' : `${namespace}/`}${name}`

/** Finds the workload of the event's object, which may be a deleted object that is remembered. */
function ownerOf(view: ClusterView, event: ClusterEvent): string {
  const { uid, namespace, kind, name } = event.object
  const object = view.objects.get(uid)
  const known = (object && workloadOf(view, object)) ?? view.gone.get(uid)?.workload
  const workload = known ?? (kind === 'Pod' ? workloadByName(view, namespace, name) : null)
  return workload ? `${workload.kind} ${namespace}/${workload.name}` : nameOf(event)
}

/** Formats grouped events for a model. */
export const showEvent = ({ reason, about, objects, count, firstMs, lastMs, message }: FoldedEvent) => ({
  reason,
  about: cutText(about, 120),
  ...(objects > 1 && { objects }),
  count,
  ...(lastMs > firstMs && { first: toIso(firstMs) }),
  last: toIso(lastMs),
  message,
})
