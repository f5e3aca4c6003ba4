import { setTimeout as sleep } from 'node:timers/promises'
import { toMachineNames } from '../../domain/alert-machines.ts'
import type { LastLines, LogSubject } from '../../domain/source.ts'
import { type Ask, SourceError } from '../kind.ts'
import { groupLines, type LogLine } from './drain.ts'
import type { LogReader, Range } from './logs.ts'

/** What a thing wrote last, for the context of an investigation: a few lines by labels that code chooses. */

/** Names under which shippers of logs write a machine, and what runs there. The most usual come first. */
const machineLabels =
  'host hostname instance node host.name host_name nodename node_name _HOSTNAME vm vm_name fqdn server machine'.split(
    ' ',
  )
const unitLabels = 'unit _SYSTEMD_UNIT systemd_unit service_name service container_name container app'.split(' ')
const workloadLabels = 'deployment statefulset daemonset workload app app_kubernetes_io_name service_name'.split(' ')
const podLabels = ['pod', 'pod_name', 'k8s.pod.name', 'k8s_pod_name', 'kubernetes.pod_name'] as const

const windowMs = 3_600_000
/** Questions to one source, one after the other, until one of them finds lines. */
const mostTries = 6
/** A context that waits longer than this for logs begins without them. */
export const lastLinesWithinMs = 4_000
const mostShown = 8
const mostCharacters = 160
/** Of all lines together, with what stands around them. */
const mostBytes = 900

const isAlarming = /\b(?:error|err|fatal|panic|critical|exception|fail(?:ed|ure)?|denied|refused|timed? ?out|killed)\b/i

/**
 * The newest lines that a source holds of a thing: of each kind of line the newest one, those that tell of an error first where not all fit, in
 * the order of time. Null: the source has no label that names it, or no line of the last hour. Throws SourceError, `TIMEOUT` after four seconds.
 */
export async function readLastLines(
  reader: LogReader,
  ask: Ask,
  subject: LogSubject,
  nowMs: number,
): Promise<LastLines | null> {
  const over = new AbortController()
  const late = sleep(lastLinesWithinMs, null, { signal: over.signal }).then(() => {
    throw new SourceError('TIMEOUT', `it gave no lines within ${lastLinesWithinMs / 1_000} s`)
  })
  try {
    // What is on its way ends by the source's own limit: impatience is no failure of the source.
    return await Promise.race([searchLast(reader, ask, subject, { fromMs: nowMs - windowMs, untilMs: nowMs }), late])
  } finally {
    late.catch(() => {})
    over.abort()
  }
}

async function searchLast(reader: LogReader, ask: Ask, subject: LogSubject, range: Range): Promise<LastLines | null> {
  const there = new Set(await reader.listLabels(ask, range))
  const beganMs = performance.now()
  for (const labels of chooseLabels(there, subject).slice(0, mostTries)) {
    if (performance.now() - beganMs > lastLinesWithinMs) return null
    const query = { labels, contains: [], excludes: [], window: '1h' }
    const { lines } = await reader.readLines(ask, query, range)
    const shown = fitLast(lines)
    if (shown.length > 0) return { labels, lines: shown }
  }
  return null
}

/**
 * Sets of labels that mean the subject, the narrowest first: a pod of its alert, what runs on the machine with the machine, the machine. Only
 * labels that the source has, with values that the registry or the alert gives.
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
  return [...pods, ...workloads, ...onMachine.slice(0, mostTries - 2), ...machines]
}

/** `11:59:58 ERROR pool exhausted (60 such lines)`, oldest first. */
function fitLast(lines: readonly LogLine[]): string[] {
  const groups = [...new Set(groupLines(lines.filter(({ atMs }) => Number.isFinite(atMs))))]
  const ranked = groups
    .filter(({ sample }) => sample.trim() !== '')
    .sort((a, b) => Number(isAlarming.test(b.sample)) - Number(isAlarming.test(a.sample)) || b.lastMs - a.lastMs)
  const kept: { atMs: number; text: string }[] = []
  let left = mostBytes
  for (const { sample, lastMs, count } of ranked.slice(0, mostShown)) {
    const words = sample.replace(/\s+/g, ' ').trim()
    const cut = words.length > mostCharacters ? `${words.slice(0, mostCharacters - 1).toWellFormed()}…` : words
    const text = `${new Date(lastMs).toISOString().slice(11, 19)} ${cut}${count > 1 ? ` (${count} such lines)` : ''}`
    left -= Buffer.byteLength(JSON.stringify(text)) + 1
    if (left < 0) break
    kept.push({ atMs: lastMs, text })
  }
  return kept.sort((a, b) => a.atMs - b.atMs).map(({ text }) => text)
}
