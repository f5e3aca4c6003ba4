import { setTimeout as sleep } from 'node:timers/promises'
import { toMachineNames } from '../../domain/alert-machines.ts'
import type { LastLines, LogSubject } from '../../domain/source.ts'
import { redactKeyLines } from '../../safety/redact-lines.ts'
import { type AskSource, type Since, SourceError } from '../kind.ts'
import { type LogReader, maxLines, type Range } from './logs.ts'

/**
 * What a thing wrote last, for the context of an investigation: a few lines by labels that code
 * chooses, grouped by their templates.
 */

/**
 * Templates of log lines: lines with one message and other numbers and names are one. After Drain
 * (He et al., "Drain: An Online Log Parsing Approach with Fixed Depth Tree", ICWS 2017): lines of
 * one length with a common beginning share a leaf, and join its template with the most words in
 * common.
 */
export type LogTemplate = {
  /** Words, with `<*>` where they differ. */
  text: string
  count: number
  firstMs: number
  lastMs: number
  /** The newest line as it came. */
  sample: string
}

export type LogLine = { atMs: number; text: string }

/** Oldest first, and none of them a part of a private key. */
export function withoutKeys(lines: readonly LogLine[]): LogLine[] {
  const ordered = lines.toSorted((a, b) => a.atMs - b.atMs)
  const texts = redactKeyLines(ordered.map(({ text }) => text))
  return ordered.map((line, at) => ({ ...line, text: texts[at] ?? '' }))
}

/** What differs from line to line and says nothing of their kind; the order matters. */
const masks: readonly [RegExp, string][] = [
  [/\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?/g, '<*>'],
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, '<*>'],
  [/\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b/g, '<*>'],
  [/\b0x[0-9a-f]+\b/gi, '<*>'],
  [/\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b/gi, '<*>'],
  [/(?<![\w.])[-+]?\d+(?:[.,:]\d+)*(?:%|[a-zµ]{1,3})?(?![\w.])/gi, '<*>'],
]

const maxWords = 60
/** The part of the words that has to be the same. */
const similarity = 0.5
/** Lines with other words at the beginning are not compared. */
const depth = 2
/** Templates of one length with one beginning: the samples of LogHub have fewer than a hundred. */
const maxInLeaf = 200

type Group = LogTemplate & { words: string[] }

/**
 * Templates of lines, the most frequent first. Lines before `sinceMs` make templates known, and are
 * not counted.
 */
export function findTemplates(lines: readonly LogLine[], sinceMs = Number.NEGATIVE_INFINITY): LogTemplate[] {
  return [...new Set(groupLines(lines, sinceMs))]
    .filter(({ count }) => count > 0)
    .map(({ words: _, ...template }) => template)
    .sort((a, b) => b.count - a.count || a.text.localeCompare(b.text))
}

/** The template of each line; lines of one kind have the same object. */
export function groupLines(lines: readonly LogLine[], sinceMs = Number.NEGATIVE_INFINITY): Group[] {
  const leaves = new Map<string, Group[]>()
  return lines.map((line) => {
    const words = toWords(line.text)
    const leaf = leafOf(words)
    const groups = leaves.get(leaf) ?? []
    leaves.set(leaf, groups)
    // A larger text is no program's log: the rest joins the last group, so that a stranger's lines
    // cost no minute.
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

/** A line as the words that templates are made of. */
function toWords(text: string): string[] {
  const masked = masks.reduce((line, [pattern, mask]) => line.replace(pattern, mask), text.slice(0, 2_000))
  return masked.trim().split(/\s+/).slice(0, maxWords)
}

/** Lines of one length with the same first words; a word with a digit in it tells nothing apart. */
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

/** Names that log shippers give a machine and its programs. The most usual come first. */
const machineLabels =
  'host hostname instance node host.name host_name nodename node_name _HOSTNAME vm vm_name fqdn server machine'.split(
    ' ',
  )
const unitLabels = 'unit _SYSTEMD_UNIT systemd_unit service_name service container_name container app'.split(' ')
const workloadLabels = 'deployment statefulset daemonset workload app app_kubernetes_io_name service_name'.split(' ')
const podLabels = ['pod', 'pod_name', 'k8s.pod.name', 'k8s_pod_name', 'kubernetes.pod_name'] as const

/** Questions to one source, one after the other, until one of them finds lines. */
const maxTries = 6
/** A context that waits longer than this for logs begins without them. */
const lastLinesWithinMs = 4_000
const maxShown = 8
const maxCharacters = 160
/** All lines together, with their surroundings. */
const maxBytes = 900

const isAlarming = /\b(?:error|err|fatal|panic|critical|exception|fail(?:ed|ure)?|denied|refused|timed? ?out|killed)\b/i

/**
 * A source's newest lines of a thing: the newest of each kind, errors first where not all fit, in
 * order of time. Null: the source has no label for it, or no line since then. Throws SourceError,
 * `TIMEOUT` after four seconds.
 */
export async function readLastLines(
  reader: LogReader,
  ask: AskSource,
  subject: LogSubject,
  { sinceMs, nowMs }: Since,
): Promise<LastLines | null> {
  const over = new AbortController()
  const late = sleep(lastLinesWithinMs, null, { signal: over.signal }).then(() => {
    throw new SourceError('TIMEOUT', `it gave no lines within ${lastLinesWithinMs / 1_000} s`)
  })
  try {
    // A question under way ends by the source's own limit: impatience is no failure of the source.
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
 * Sets of labels for the subject, the narrowest first: its alert's pod, the program with the
 * machine, the machine. Only labels of the source, with values of registry or alert.
 */
export function chooseLabels(there: ReadonlySet<string>, subject: LogSubject): Record<string, string>[] {
  const { machine, unit, workload, alertLabels } = subject
  const has = (labels: readonly string[]) => labels.filter((label) => there.has(label))
  const pods = has(podLabels).flatMap((label) => {
    const pod = podLabels.map((each) => alertLabels[each]).find((each) => each)
    return pod && workload.some((name) => pod === name || pod.startsWith(`${name}-`)) ? [{ [label]: pod }] : []
  })
  // An alert may write the machine with a port or a domain, and the shipper of logs as well.
  const written = Object.values(alertLabels).filter((value) =>
    toMachineNames(value).some((name) => machine.includes(name)),
  )
  const names = [...new Set([...machine, ...written])]
  const machines = has(machineLabels).flatMap((label) => names.map((name) => ({ [label]: name })))
  const units = has(unitLabels).flatMap((label) => unit.map((name) => ({ [label]: name })))
  const workloads = has(workloadLabels).flatMap((label) => workload.map((name) => ({ [label]: name })))
  // A service alone would be that of every machine.
  const onMachine = machines.slice(0, 2).flatMap((where) => units.map((what) => ({ ...where, ...what })))
  return [...pods, ...workloads, ...onMachine.slice(0, maxTries - 2), ...machines]
}

/** `11:59:58 ERROR pool exhausted (60 such lines)`, oldest first. */
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
