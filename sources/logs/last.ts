import { setTimeout as sleep } from 'node:timers/promises'
import { toMachineNames } from '../../domain/alert-machines.ts'
import type { LastLines, LogSubject } from '../../domain/source.ts'
import { redactKeyLines } from '../../safety/redact-lines.ts'
import { type AskSource, type Since, SourceError } from '../kind.ts'
import { type LogReader, maxLines, type Range } from './logs.ts'

/**
 * The newest log lines of a resource for the context of an investigation. Code chooses the labels
 * of the query, and groups the few lines by templates.
 */

/**
 * Templates of log lines: lines with the same message and other numbers and names are one template.
 * Follows Drain (He et al., "Drain: An Online Log Parsing Approach with Fixed Depth Tree", ICWS
 * 2017): lines of one length with the same first words share a leaf, and join its template with the
 * most common words.
 */
export type LogTemplate = {
  /** The words of the template, with `<*>` where lines differ. */
  text: string
  count: number
  firstMs: number
  lastMs: number
  /** The newest line of this template. */
  sample: string
}

export type LogLine = { atMs: number; text: string }

/** Sorts lines, the oldest first, and removes parts of private keys. */
export function withoutKeys(lines: readonly LogLine[]): LogLine[] {
  const ordered = lines.toSorted((a, b) => a.atMs - b.atMs)
  const texts = redactKeyLines(ordered.map(({ text }) => text))
  return ordered.map((line, at) => ({ ...line, text: texts[at] ?? '' }))
}

/** Parts that differ between lines of one kind. The masks are applied in this order. */
const masks: readonly [RegExp, string][] = [
  [/\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?/g, '<*>'],
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, '<*>'],
  [/\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b/g, '<*>'],
  [/\b0x[0-9a-f]+\b/gi, '<*>'],
  [/\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b/gi, '<*>'],
  [/(?<![\w.])[-+]?\d+(?:[.,:]\d+)*(?:%|[a-zµ]{1,3})?(?![\w.])/gi, '<*>'],
]

const maxWords = 60
/** The share of a template's words that a line must have in common with the template. */
const similarity = 0.5
/** The number of first words that two lines must share to be compared at all. */
const depth = 2
/** The most templates in one leaf. The sample logs of LogHub have fewer than a hundred. */
const maxInLeaf = 200

type Group = LogTemplate & { words: string[] }

/**
 * Finds the templates of lines, the most frequent first. Lines before `sinceMs` are not counted;
 * they only make a template known.
 */
export function findTemplates(lines: readonly LogLine[], sinceMs = Number.NEGATIVE_INFINITY): LogTemplate[] {
  return [...new Set(groupLines(lines, sinceMs))]
    .filter(({ count }) => count > 0)
    .map(({ words: _, ...template }) => template)
    .sort((a, b) => b.count - a.count || a.text.localeCompare(b.text))
}

/** Returns the template of each line. Lines with one template have the same object. */
export function groupLines(lines: readonly LogLine[], sinceMs = Number.NEGATIVE_INFINITY): Group[] {
  const leaves = new Map<string, Group[]>()
  return lines.map((line) => {
    const words = toWords(line.text)
    const leaf = leafOf(words)
    const groups = leaves.get(leaf) ?? []
    leaves.set(leaf, groups)
    // Lets a line join the leaf's last group if the leaf is full, which limits the work.
    const known = chooseGroup(groups, words) ?? (groups.length >= maxInLeaf ? groups.at(-1) : null)
    if (known) {
      join(known, words, line, sinceMs)
      return known
    }
    const group = begin(words, line, sinceMs)
    groups.push(group)
    return group
  })
}

/** Splits a line into words, with variable parts masked. */
function toWords(text: string): string[] {
  const masked = masks.reduce((line, [pattern, mask]) => line.replace(pattern, mask), text.slice(0, 2_000))
  return masked.trim().split(/\s+/).slice(0, maxWords)
}

/**
 * Returns the key of a leaf: the number of words and the first words of a line. A first word with a
 * digit does not count.
 */
function leafOf(words: readonly string[]): string {
  const first = words.slice(0, depth).map((word) => (/\d|<\*>/.test(word) ? '<*>' : word))
  return `${words.length} ${first.join(' ')}`
}

function chooseGroup(groups: readonly Group[], words: readonly string[]): Group | null {
  let best: { group: Group; same: number } | null = null
  for (const group of groups) {
    const same = group.words.filter((word, at) => word === words[at] && word !== '<*>').length
    const fixed = group.words.filter((word) => word !== '<*>').length
    if (same >= Math.max(1, similarity * Math.max(fixed, words.length / 2)) && same > (best?.same ?? -1))
      best = { group, same }
    else if (fixed === 0 && !best) best = { group, same: 0 }
  }
  return best?.group ?? null
}

function begin(words: string[], { atMs, text }: LogLine, sinceMs: number): Group {
  return { words, text: words.join(' '), count: atMs >= sinceMs ? 1 : 0, firstMs: atMs, lastMs: atMs, sample: text }
}

function join(group: Group, words: readonly string[], { atMs, text }: LogLine, sinceMs: number): void {
  group.words = group.words.map((word, at) => (word === words[at] ? word : '<*>'))
  group.text = group.words.join(' ')
  if (atMs >= sinceMs) group.count += 1
  if (atMs >= group.lastMs) group.sample = text
  group.firstMs = Math.min(group.firstMs, atMs)
  group.lastMs = Math.max(group.lastMs, atMs)
}

/** Labels by which log shippers name a machine and its programs, the most usual first. */
const machineLabels =
  'host hostname instance node host.name host_name nodename node_name _HOSTNAME vm vm_name fqdn server machine'.split(
    ' ',
  )
const unitLabels = 'unit _SYSTEMD_UNIT systemd_unit service_name service container_name container app'.split(' ')
const workloadLabels = 'deployment statefulset daemonset workload app app_kubernetes_io_name service_name'.split(' ')
const podLabels = ['pod', 'pod_name', 'k8s.pod.name', 'k8s_pod_name', 'kubernetes.pod_name'] as const

/** The most queries to one source. They are sent one after the other until one finds lines. */
const maxTries = 6
/** Milliseconds after which the context is built without logs. */
const lastLinesWithinMs = 4_000
const maxShown = 8
const maxCharacters = 160
/** The most bytes of all lines together, with the JSON around them. */
const maxBytes = 900

const isAlarming = /\b(?:error|err|fatal|panic|critical|exception|fail(?:ed|ure)?|denied|refused|timed? ?out|killed)\b/i

/**
 * Reads the newest line of each template of a resource from a source, in order of time; lines with
 * errors are preferred. Null if the source has no label for the resource, or no line of it since
 * `sinceMs`. Throws SourceError, `TIMEOUT` after four seconds.
 */
export async function readLastLines(
  reader: LogReader,
  ask: AskSource,
  subject: LogSubject,
  { sinceMs, nowMs }: Since,
): Promise<LastLines | null> {
  const over = new AbortController()
  const late = sleep(lastLinesWithinMs, null, { signal: over.signal }).then(() => {
    throw new SourceError('TIMEOUT', `the source sent no lines within ${lastLinesWithinMs / 1_000} s`)
  })
  try {
    // Leaves a running query to the source's own limit. This timeout does not count as a failure of
    // the source.
    return await Promise.race([searchLast(reader, ask, subject, { fromMs: sinceMs, untilMs: nowMs }), late])
  } finally {
    late.catch(() => {})
    over.abort()
  }
}

async function searchLast(
  reader: LogReader,
  ask: AskSource,
  subject: LogSubject,
  range: Range,
): Promise<LastLines | null> {
  const there = new Set(await reader.listLabels(ask, range))
  const beganMs = performance.now()
  for (const labels of chooseLabels(there, subject).slice(0, maxTries)) {
    if (performance.now() - beganMs > lastLinesWithinMs) return null
    const query = { labels, contains: [], excludes: [], window: '1h' }
    const { lines } = await reader.readLines(ask, { query, limit: maxLines }, range)
    const shown = fitLast(lines)
    if (shown.length > 0) return { labels, lines: shown }
  }
  return null
}

/**
 * Lists sets of labels for the subject, the narrowest first: the alert's pod, the workload, the
 * program on the machine, the machine. Uses only labels that the source has, and values from the
 * registry or the alert.
 */
export function chooseLabels(there: ReadonlySet<string>, subject: LogSubject): Record<string, string>[] {
  const { machine, unit, workload, alertLabels } = subject
  const has = (labels: readonly string[]) => labels.filter((label) => there.has(label))
  const pods = has(podLabels).flatMap((label) => {
    const pod = podLabels.map((each) => alertLabels[each]).find((each) => each)
    return pod && workload.some((name) => pod === name || pod.startsWith(`${name}-`)) ? [{ [label]: pod }] : []
  })
  // Adds the machine's name as the alert writes it, which may have a port or a domain.
  const written = Object.values(alertLabels).filter((value) =>
    toMachineNames(value).some((name) => machine.includes(name)),
  )
  const names = [...new Set([...machine, ...written])]
  const machines = has(machineLabels).flatMap((label) => names.map((name) => ({ [label]: name })))
  const units = has(unitLabels).flatMap((label) => unit.map((name) => ({ [label]: name })))
  const workloads = has(workloadLabels).flatMap((label) => workload.map((name) => ({ [label]: name })))
  // Searches a service only together with its machine, because every machine may have the service.
  const onMachine = machines.slice(0, 2).flatMap((where) => units.map((what) => ({ ...where, ...what })))
  return [...pods, ...workloads, ...onMachine.slice(0, maxTries - 2), ...machines]
}

/** Formats `11:59:58 ERROR pool exhausted (60 such lines)`, the oldest line first. */
function fitLast(lines: readonly LogLine[]): string[] {
  const groups = [...new Set(groupLines(withoutKeys(lines.filter(({ atMs }) => Number.isFinite(atMs)))))]
  const ranked = groups
    .filter(({ sample }) => sample.trim() !== '')
    .sort((a, b) => Number(isAlarming.test(b.sample)) - Number(isAlarming.test(a.sample)) || b.lastMs - a.lastMs)
  const kept: { atMs: number; text: string }[] = []
  let left = maxBytes
  for (const { sample, lastMs, count } of ranked.slice(0, maxShown)) {
    const words = sample.replace(/\s+/g, ' ').trim()
    const cut = words.length > maxCharacters ? `${words.slice(0, maxCharacters - 1).toWellFormed()}…` : words
    const text = `${new Date(lastMs).toISOString().slice(11, 19)} ${cut}${count > 1 ? ` (${count} such lines)` : ''}`
    left -= Buffer.byteLength(JSON.stringify(text)) + 1
    if (left < 0) break
    kept.push({ atMs: lastMs, text })
  }
  return kept.sort((a, b) => a.atMs - b.atMs).map(({ text }) => text)
}
