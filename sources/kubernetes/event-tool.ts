import { z } from 'zod'
import { formatCount } from '../../domain/format.ts'
import { toList, toText } from '../../domain/say.ts'
import { parseDuration } from '../../domain/source.ts'
import { cleanse } from '../../safety/redact.ts'
import { defineSourceTool, fitSummary } from '../kind.ts'
import type { AskCluster } from './connect.ts'
import { foldEvents, readEvents, showEvent } from './events.ts'
import { toIso } from './fields.ts'
import { type ClusterKind, clusterKinds } from './kinds.ts'
import { nameField, namespaceField, sourceField } from './subject.ts'

/** The tool that reads events of a cluster, grouped like the templates of logs. */

const kindWords = (Object.keys(clusterKinds) as ClusterKind[]).filter((kind) => kind !== 'Event') as [
  ClusterKind,
  ...ClusterKind[],
]

/** Seconds for which an API server keeps an event by default. */
const keptSeconds = 3_600
const maxSeconds = 86_400

const secondsOf = (window: string): number => parseDuration(window) ?? 0

export const kubernetesEvents = defineSourceTool({
  name: 'kubernetes_events',
  isRare: true,
  description: 'Events of Kubernetes, folded: of one object, a namespace or the cluster; warnings first.',
  input: z.strictObject({
    source: sourceField,
    namespace: namespaceField.optional(),
    kind: z.enum(kindWords).optional().describe('as Pod'),
    name: nameField.optional().describe('of one object'),
    window: z.string().max(20).default('1h').describe('as 30m'),
  }),
  judge({ window, name, kind }) {
    const seconds = secondsOf(window)
    const refuse = (reason: string, bounded: Record<string, string> | null = null) => ({
      ok: false as const,
      reason,
      bounded,
    })
    if (seconds <= 0)
      return refuse(`the window ${JSON.stringify(window)} cannot be read: write 30m or 1h`, { window: '1h' })
    if (seconds > maxSeconds) return refuse(`a window of ${window} is more than 24h`, { window: '24h' })
    if (name !== undefined && kind === undefined)
      return refuse('the call names an object and no kind: add kind, as Pod')
    return { ok: true as const }
  },
  labels: ({ namespace = '', name = '', kind = '', source = '' }) => ({
    ...(namespace && { namespace }),
    ...(kind === 'Node' && name ? { node: name } : name ? { pod: name } : {}),
    ...(source && { cluster: source }),
  }),
  say({ events, window, found }) {
    const [first] = toList(events)
    if (!first) return `no event in ${toText(window)}`
    const count = formatCount(Number(first.count), 'time')
    return `${formatCount(Number(found), 'kind')} of events in ${toText(window)}; ${toText(first.reason)} ${toText(first.about)} ${count}: ${toText(first.message)}`
  },
  async read(ask: AskCluster, { namespace = null, kind, name, window }, { nowMs }) {
    const { view } = await ask({ view: true })
    const about = { ...(kind && { kind }), ...(name && { name }) }
    const { events, isCut } = await readEvents(ask, { namespace: kind === 'Node' ? null : namespace, about })
    const sinceMs = nowMs - secondsOf(window) * 1_000
    // Keeps events from the future and counts them as events of now, because clocks differ.
    const folded = cleanse(
      foldEvents(
        view,
        events.filter(({ lastMs }) => lastMs >= sinceMs),
      ),
    )
    const partial = [
      ...(isCut
        ? [
            `${events.length} event objects were read, in the order of names, and there are more: newer ones may be missing`,
          ]
        : []),
      ...(secondsOf(window) > keptSeconds ? ['an API server keeps events for an hour by default'] : []),
    ]
    return {
      summary: fitSummary(folded.map(showEvent), (kept, omitted) => ({
        ...(partial.length > 0 && { partial }),
        window,
        until: toIso(nowMs),
        found: folded.length,
        events: kept,
        ...(omitted > 0 && { notShown: omitted }),
      })),
      whole: folded.map((each) => JSON.stringify(showEvent(each))).join('\n'),
      isEmpty: folded.length === 0 && !isCut,
      isPartial: partial.length > 0,
      ...(isCut && { isCut }),
    }
  },
})
