import type { BodyRef, IncidentEvent } from '../../domain/event.ts'
import type { ResourceRef } from '../../domain/registry.ts'
import { saysShort } from '../../domain/short-answer.ts'
import type { SafetyState } from '../fold.ts'
import { type Document, documentOf, foldText } from './quote.ts'

/** The kind of a part of a row. Only a read or a verification shows a state. */
type PartSource = 'read' | 'write' | 'verification' | 'alert' | 'record' | 'context' | 'refusal'

/**
 * A piece of a row that can be quoted. A verification is joined with its write: both row numbers
 * lead to the joined part.
 */
export type Part = {
  seqs: readonly number[]
  /** Number of the part's row; a newer row has a higher number. */
  seq: number
  source: PartSource
  at: string
  tool: string
  callId: string
  /** Folded names of the row's subject: its targets, and its arguments without the reason. */
  head: string
  arguments: Record<string, unknown>
  data: unknown
  /**
   * Whether the result is complete: it was not cut when read, and its server reports nothing
   * missing.
   */
  isWhole: boolean
  document: () => Document
}

export type Bodies = ReadonlyMap<string, string>

type Row = IncidentEvent<'alert_received' | 'tool_finished' | 'verification' | 'context_assembled' | 'call_judged'>

const maxBytes = 16_000_000

/**
 * Lists the digests of the stored results (bodies) that a check of this ending reads: the newest
 * first, as many as fit into the limit.
 */
export function bodiesToCheck(events: readonly IncidentEvent[], attempt: number): string[] {
  const chosen = new Set<string>()
  let left = maxBytes
  for (const event of events.toReversed()) {
    if (event.attempt !== attempt) continue
    const body = bodyOf(event)
    if (!body || body.bytes > left || chosen.has(body.digest)) continue
    left -= body.bytes
    chosen.add(body.digest)
  }
  return [...chosen]
}

function bodyOf(event: IncidentEvent): BodyRef | null {
  if (event.kind === 'tool_finished') return event.metadata.body
  return event.kind === 'context_assembled' ? event.metadata.context : null
}

/**
 * Lists everything of an attempt that can be quoted, in order. Folds a text only when it is needed.
 */
function partsOf(rows: readonly IncidentEvent[], bodies: Bodies): Part[] {
  const seqOfCall = new Map<string, number>()
  const parts: Part[] = []
  for (const row of rows) {
    if (row.kind === 'tool_finished') {
      seqOfCall.set(row.metadata.callId, row.seq)
      parts.push(finishedPart(row, bodies))
    } else if (row.kind === 'verification') {
      const written = seqOfCall.get(row.metadata.callId)
      const { outcome, postcondition, observed, steps, targets, tool, callId } = row.metadata
      const seqs = written === undefined ? [row.seq] : [row.seq, written]
      parts.push({
        ...bare(row, 'verification', { outcome, postcondition, observed, ...(steps && { steps }) }),
        seqs,
        tool,
        callId,
        head: names(targets),
      })
    } else if (row.kind === 'alert_received') {
      const { labels, status, count, source, endReason } = row.metadata
      // Records an alert's end as unknown if it proves nothing, so that no claim may quote it as a
      // state.
      parts.push(bare(row, 'alert', { labels, status: endReason === undefined ? status : 'unknown', count, source }))
    } else if (row.kind === 'call_judged') {
      const { code, reason, hint, tool, targets } = row.metadata
      parts.push({ ...bare(row, 'refusal', { code, reason, hint }), tool, head: names(targets) })
    } else if (row.kind === 'context_assembled') {
      const whole = bodies.get(row.metadata.context.digest)
      const { head, tail } = row.metadata.context
      parts.push(bare(row, 'context', whole === undefined ? [head, tail] : parsed(whole)))
    }
  }
  return parts
}

function finishedPart(row: IncidentEvent<'tool_finished'>, bodies: Bodies): Part {
  const { tool, callId, effect, targets, result, body, arguments: args } = row.metadata
  const whole = body ? bodies.get(body.digest) : undefined
  const data = body ? (whole === undefined ? [body.head, body.tail] : parsed(whole)) : (result.data ?? result.error)
  const isRead = effect === 'read' || effect === 'resolve'
  // Records a failed read as a refusal, because its row shows the failure and none of the requested
  // data.
  const source = effect === 'write' ? 'write' : !isRead ? 'record' : result.ok ? 'read' : 'refusal'
  const { reason: _, ...named } = args
  return {
    ...bare(row, source, data),
    tool,
    callId,
    arguments: named,
    head: `${names(targets)} ${foldText(JSON.stringify(named))} ${foldText(tool)}`,
    // Does not count an error in place of a read as a whole answer.
    isWhole: result.ok && (!body || whole !== undefined) && !saysCut(data),
  }
}

function bare(row: Row, source: PartSource, data: unknown): Part {
  let document: Document | null = null
  return {
    seqs: [row.seq],
    seq: row.seq,
    source,
    at: row.at,
    tool: '',
    callId: '',
    head: '',
    arguments: {},
    data,
    isWhole: true,
    document: () => {
      document ??= documentOf(data)
      return document
    },
  }
}

/** Most values of an answer that are searched for a sign of missing parts. The sign comes early. */
const maxValues = 20_000

/**
 * Whether the answer marks itself as partial: cut, sampled, stale, without some of the servers, or
 * without parts that may not be read. The tools define these marks;
 * `test/safety/claims/short-answers.test.ts` has a row for each mark.
 */
function saysCut(data: unknown): boolean {
  if (data === null || typeof data !== 'object' || Array.isArray(data)) return false
  const { summary } = data as { summary?: unknown }
  let left = maxValues
  const isShort = (value: unknown, isSummary: boolean): boolean => {
    left -= 1
    // Finds `…`, at which a summary cuts its list of texts. The number of omitted texts follows.
    if (typeof value === 'string') return isSummary && value.includes('…')
    if (value === null || typeof value !== 'object' || left < 0) return false
    if (Array.isArray(value)) return value.some((each) => isShort(each, isSummary))
    return Object.entries(value).some(
      ([key, each]) =>
        saysShort(key, each) || (isSummary && key.includes('…')) || isShort(each, isSummary || each === summary),
    )
  }
  return isShort(data, false) || countsMore(data as Record<string, unknown>)
}

/** Whether a total exceeds the list beside it. */
function countsMore(data: Record<string, unknown>): boolean {
  const lists = Object.values(data).filter(Array.isArray)
  const longest = Math.max(0, ...lists.map(({ length }) => length))
  if (typeof data.matching === 'number') return data.matching > longest
  return Object.entries(data).some(([key, value]) => {
    if (typeof value !== 'number') return false
    if ((key === 'total' || key === 'found') && lists.length > 0) return value > longest
    const listed = data[key.replace(/_total$/, '')]
    return key.endsWith('_total') && Array.isArray(listed) && value > listed.length
  })
}

/**
 * Whether the answer shows logs as templates. A log line may then contain a text that no template
 * or sample shows, and names may be left out of the list.
 */
export function isInTemplates(data: unknown): boolean {
  const { summary } = Object(data) as { summary?: unknown }
  const { templates, labelsMore, namesMore } = Object(summary) as Record<string, unknown>
  return (Array.isArray(templates) && templates.length > 0) || Number(labelsMore) > 0 || Number(namesMore) > 0
}

function names(targets: readonly ResourceRef[]): string {
  return foldText(targets.map(({ id }) => id).join(' '))
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/**
 * A write of this attempt that claims may cite. `held`: nothing shows a failure. `isProven`: a
 * verification held.
 */
export type CitableWrite = {
  callId: string
  startedSeq: number
  held: boolean
  isProven: boolean
  failed: boolean
  parts: Part[]
}

/** Everything that the rows of an attempt can show. */
export type ClaimEvidence = {
  parts: Part[]
  writes: CitableWrite[]
  /** The row that began the last write; 0 without a write. A claim about now needs a later read. */
  lastWrite: number
  incidentId: string
  /** Names of resources that contain no number, such as the name of a tenant. */
  known: string[]
}

export function evidenceOf(state: SafetyState, incidentId: string, bodies: Bodies): ClaimEvidence {
  const parts = partsOf(state.rows, bodies).map((part) =>
    repeatsItself(part, incidentId) ? { ...part, source: 'record' as const } : part,
  )
  const writes = state.writes.map((write) => {
    const own = parts.filter(
      ({ callId, source }) => callId === write.callId && (source === 'write' || source === 'verification'),
    )
    const row = state.rows.find((each) => each.kind === 'tool_finished' && each.metadata.callId === write.callId)
    const isFailed =
      row?.kind === 'tool_finished' && (!row.metadata.result.ok || exitCode(row.metadata.result.data) !== 0)
    const verified: string = write.verified
    return {
      callId: write.callId,
      startedSeq: write.startedSeq,
      parts: own,
      held: verified === 'held' || verified === 'unproven',
      isProven: verified === 'held',
      failed: isFailed || verified === 'not_held',
    }
  })
  const known = [...state.resolved.entries.values()].flatMap(({ ref, names }) => [ref.id, ...names])
  return {
    parts,
    writes,
    incidentId,
    lastWrite: state.writes.at(-1)?.startedSeq ?? 0,
    known: [...new Set(known)].filter((name) => name.length >= 4 && !/^[a-z]+$/.test(name) && !/\d/.test(name)),
  }
}

function exitCode(data: unknown): number {
  const code = data !== null && typeof data === 'object' ? (data as { exit_code?: unknown }).exit_code : 0
  return typeof code === 'number' ? code : 0
}

/** Whether a command only prints its arguments, which are the model's own words. */
function repeatsItself(part: Part, _incidentId: string): boolean {
  if (part.source !== 'read') return false
  const { argv, command, text } = part.arguments
  const words = Array.isArray(argv)
    ? argv.map(String)
    : String(command ?? text ?? '')
        .trim()
        .split(/\s+/)
  return ['echo', 'printf', 'yes'].includes((words[0] ?? '').split('/').at(-1) as string)
}
