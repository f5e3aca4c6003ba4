import { z } from 'zod'
import type { PodLog, PodLogQuestion } from '../../domain/cluster-now.ts'
import { parseTime } from '../../domain/format.ts'
import type { ResourceRef } from '../../domain/registry.ts'
import { parseDuration } from '../../domain/source.ts'
import { cleanse } from '../../safety/redact.ts'
import { redactKeyLines } from '../../safety/redact-lines.ts'
import { defineSourceTool, SourceError } from '../kind.ts'
import { sayLogs, summarizeLogs } from '../logs/summary.ts'
import type { AskCluster, SeenCluster } from './connect.ts'
import { toIso } from './fields.ts'
import { isWorkload } from './kinds.ts'
import type { KeptPod, KeptWorkload } from './objects.ts'
import { showPod } from './pod.ts'
import { findByResource } from './state.ts'
import { findSubject, nameField, namespaceField, ofWorkload, sourceField } from './subject.ts'

/**
 * Reads a container's last log lines from its node, grouped in templates like the logs of any
 * source.
 */

const maxLines = 2_000
const maxBytes = 2_000_000
const maxSeconds = 86_400
const maxLineCharacters = 4_000

export const kubernetesLogs = defineSourceTool({
  name: 'kubernetes_logs',
  isRare: true,
  description: 'What a container of a pod of Kubernetes wrote: templates, errors first; previous: before it restarted.',
  input: z.strictObject({
    source: sourceField,
    namespace: namespaceField,
    name: nameField.describe('of the pod, or of a workload: its worst pod'),
    container: nameField.optional().describe('default the worst'),
    previous: z.boolean().default(false).describe('of the container before'),
    contains: z.string().min(1).max(200).optional().describe('lines hold this'),
    window: z.string().max(20).default('1h').describe('as 30m'),
  }),
  judge({ window }) {
    const seconds = parseDuration(window) ?? 0
    if (seconds > 0 && seconds <= maxSeconds) return { ok: true as const }
    const reason =
      seconds > 0
        ? `a window of ${window} is more than 24h`
        : `the window ${JSON.stringify(window)} cannot be read: write 30m or 6h`
    return { ok: false as const, reason, bounded: { window: seconds > 0 ? '24h' : '1h' } }
  },
  labels: ({ namespace, name, source }) => ({ namespace, pod: name, ...(source && { cluster: source }) }),
  say: (summary, { namespace, name, container, window }) =>
    sayLogs(summary, { labels: { namespace, name, ...(container && { container }) }, window }),
  async read(ask: AskCluster, { namespace, name, container, previous, contains, window }, { nowMs }) {
    const cluster = await ask({ view: true })
    const { pod } = findSubject(cluster, namespace, name, nowMs)
    if (!pod) throw new SourceError('REJECTED', `${cluster.name}: ${name} has no pod now, so there is no log`)
    const seconds = parseDuration(window) ?? 0
    const query = { container, previous, tailLines: maxLines, maxBytes, ...(!previous && { sinceSeconds: seconds }) }
    const { chosen, text, isCut } = await readContainerLog(ask, cluster, pod, query)
    const fromMs = nowMs - seconds * 1_000
    const all = readLines(text, nowMs)
    const lines = cleanse(all.filter((each) => contains === undefined || each.text.includes(contains)))
    const logQuery = {
      labels: { namespace, pod: pod.name, container: chosen, ...(previous && { previous: 'true' }) },
      contains: contains === undefined ? [] : [contains],
      excludes: [],
      window: previous ? 'all that is kept' : window,
    }
    const isPart = isCut || all.length >= maxLines
    const found = { lines, total: isPart ? null : lines.length, isCut: isPart, before: null, newSinceMs: null }
    return summarizeLogs(logQuery, found, { fromMs: previous ? 0 : fromMs, untilMs: nowMs })
  },
})

type LogOfContainer = {
  container?: string | undefined
  previous: boolean
  tailLines: number
  maxBytes: number
  sinceSeconds?: number
}

/**
 * Reads the log of one container, by default of the worst container. Throws SourceError, which
 * names the existing containers.
 */
async function readContainerLog(
  ask: AskCluster,
  { name: cluster }: SeenCluster,
  { namespace, name }: KeptPod,
  { container, previous, tailLines, maxBytes, sinceSeconds }: LogOfContainer,
): Promise<{ chosen: string; names: string[]; text: string; isCut: boolean }> {
  const { containers } = showPod(await ask({ read: 'Pod', namespace, name }))
  const names = containers.map((each) => each.name)
  const chosen = container ?? names[0] ?? ''
  if (!names.includes(chosen))
    throw new SourceError('REJECTED', `${cluster}: ${name} has no container ${chosen}: ${names.join(', ')}`)
  const { text, isCut } = await ask({
    logOf: name,
    namespace: namespace ?? '',
    query: {
      container: chosen,
      timestamps: 'true',
      tailLines: String(tailLines),
      limitBytes: String(maxBytes),
      ...(previous && { previous: 'true' }),
      ...(sinceSeconds !== undefined && { sinceSeconds: String(sinceSeconds) }),
    },
    maxBytes,
  })
  return { chosen, names, text, isCut }
}

const maxShownLines = 500
const maxShownBytes = 256_000
const maxShownCharacters = 1_000

/**
 * Reads the newest log lines of a workload's pod for its page. Null if the cluster has no such
 * workload. Throws SourceError.
 */
export async function readPodLog(
  ask: AskCluster,
  resource: ResourceRef & { name: string },
  { pod: named, container, previous }: PodLogQuestion,
  nowMs: number,
): Promise<PodLog | null> {
  const cluster = await ask({ view: true })
  const workload = findByResource(cluster, resource)
  if (!workload || !isWorkload(workload.kind)) return null
  const { pod: worst, pods } = ofWorkload(cluster.view, workload as KeptWorkload, null)
  const pod = named === null ? worst : pods.find(({ name }) => name === named)
  if (!pod)
    throw new SourceError(
      'REJECTED',
      `${cluster.name}: ${named ?? workload.name} is not a pod of the workload now, so it has no log`,
    )
  const query = { container: container ?? undefined, previous, tailLines: maxShownLines, maxBytes: maxShownBytes }
  const { chosen, names, text, isCut } = await readContainerLog(ask, cluster, pod, query)
  const lines = readLines(text, nowMs).slice(-maxShownLines)
  return cleanse({
    pod: pod.name,
    container: chosen,
    containers: names,
    isPrevious: previous,
    lines: lines.map((each) => ({ at: toIso(each.atMs), text: each.text.slice(0, maxShownCharacters).toWellFormed() })),
    isCut: isCut || lines.length >= maxShownLines,
  })
}

/**
 * Splits a log into lines with times. A line without a time has the time of the line before. Bytes
 * that are not text are replaced by visible signs. Private keys are hidden before lines are chosen.
 */
function readLines(text: string, nowMs: number): { atMs: number; text: string }[] {
  let atMs = nowMs
  const lines = text
    .split('\n')
    .filter((line) => line !== '')
    .slice(-maxLines)
    .map((line) => {
      const [, time = '', rest] = /^(\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)) ?(.*)$/s.exec(line) ?? []
      const ms = parseTime(time)
      if (!Number.isNaN(ms)) atMs = ms
      return { atMs, text: (rest ?? line).replaceAll('\0', '\u{fffd}').slice(0, maxLineCharacters) }
    })
  const texts = redactKeyLines(lines.map((each) => each.text))
  return lines.map((each, at) => ({ ...each, text: texts[at] ?? '' }))
}
