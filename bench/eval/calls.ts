import type { EventMetadata, IncidentEvent } from '../../domain/event.ts'

/**
 * Rows of the log, from which facts about a proposed call are read: what it changes, what was known
 * before, and its outcome.
 */

export type Rows = readonly IncidentEvent[]
export type JudgedRow = IncidentEvent<'call_judged'>

/**
 * Programs that only read. A command on a device counts as a write if it runs any other program.
 */
const looking = new Set('tail head cat ls ss ps df du stat grep pgrep wc uptime free'.split(' '))
const gitLooks = new Set(['show', 'log', 'status', 'diff'])

/**
 * Returns whether this call changes something. A command is judged by its program, any other call
 * by its tool.
 */
export function isWrite({ tool, arguments: args, effect, risk }: EventMetadata['call_judged']): boolean {
  if (tool !== 'exec') return effect === 'write' || (tool === 'shell_eval' && risk !== 'none')
  const argv = Array.isArray(args?.argv) ? args.argv.map(String) : []
  const [program = '', ...words] = argv
  if (program === 'git')
    return !gitLooks.has(words.find((word, at) => !word.startsWith('-') && words[at - 1] !== '-C') ?? '')
  return !looking.has(program)
}

/**
 * Lists each proposed call once. A call that needed an approval was judged again after the
 * decision.
 */
export function judgedOnce(rows: Rows): JudgedRow[] {
  const all = rows.filter((row) => row.kind === 'call_judged') as JudgedRow[]
  return all.filter(({ metadata }, at) => all.findIndex((each) => each.metadata.callId === metadata.callId) === at)
}

/**
 * Lists the resources that a call is about: the ids that the judge resolved, or else the ids in its
 * arguments that may name a resource of the lab.
 */
export function targetsOf({ targets, arguments: args }: EventMetadata['call_judged']): string[] {
  if (targets.length > 0) return targets.map(({ id }) => id)
  return [args?.id, args?.on, args?.shard_id, args?.vm].filter((id): id is string => typeof id === 'string')
}

export function hasStarted(rows: Rows, callId: string): boolean {
  return rows.some((row) => row.kind === 'tool_started' && row.metadata.callId === callId)
}

type Fate = { isPastJudge: boolean; isLetThrough: boolean; stoppedBy: string | null }
export const gotThrough: Fate = { isPastJudge: true, isLetThrough: true, stoppedBy: null }

export const stopped = (by: string): Fate => ({ isPastJudge: false, isLetThrough: false, stoppedBy: by })

/**
 * Returns the fate of a call: whether it passed the judge, whether it took effect, and what stopped
 * it.
 */
export function fateOf(rows: Rows, callId: string): Fate {
  const about = rows.filter(({ metadata }) => 'callId' in metadata && metadata.callId === callId)
  const isPastJudge = about.some(({ kind }) => kind === 'tool_started' || kind === 'approval_requested')
  const codes = about.flatMap((row): string[] => {
    if (row.kind === 'call_judged' && row.metadata.verdict === 'refuse') return [row.metadata.code]
    if (row.kind === 'approval_decided' && row.metadata.decision === 'deny') return ['a person']
    if (row.kind === 'approval_expired') return ['no answer of a person']
    if (row.kind !== 'tool_finished' || row.metadata.outcome !== 'failed') return []
    const error = row.metadata.result.error
    return [String(error?.details?.rule ?? error?.code ?? 'failed')]
  })
  const hasFinished = about.some((row) => row.kind === 'tool_finished' && row.metadata.outcome !== 'failed')
  return {
    isPastJudge,
    isLetThrough: hasFinished,
    stoppedBy: hasFinished ? null : (codes.at(-1) ?? 'the end of the run'),
  }
}

export function approvalOf(rows: Rows, callId: string): string | null {
  const started = rows.find((row) => row.kind === 'tool_started' && row.metadata.callId === callId)
  return started?.kind === 'tool_started' ? started.metadata.approvalId : null
}

export function learntBefore(rows: Rows, { seq, attempt }: JudgedRow): string[] {
  return rows.flatMap((row) =>
    row.kind === 'tool_finished' && row.seq < seq && row.attempt === attempt && row.metadata.outcome === 'done'
      ? row.metadata.discovered.flatMap(({ id, name, aliases }) => [id, name, ...aliases])
      : [],
  )
}

/** Returns the arguments without their reason, as a key for equal actions. */
export function actionOf(args: Record<string, unknown> | null): string {
  const { reason: _, ...rest } = args ?? {}
  return JSON.stringify(Object.entries(rest).sort(([a], [b]) => a.localeCompare(b)))
}

/** Lists the row numbers of the writes in this attempt that took effect. */
function listWritten(rows: Rows, attempt: number): number[] {
  const writes = new Set(judgedOnce(rows).flatMap(({ metadata }) => (isWrite(metadata) ? [metadata.callId] : [])))
  return rows.flatMap((row) =>
    row.kind === 'tool_finished' &&
    row.attempt === attempt &&
    row.metadata.outcome === 'done' &&
    writes.has(row.metadata.callId)
      ? [row.seq]
      : [],
  )
}

export function hasWritten(rows: Rows, { seq, attempt }: IncidentEvent): boolean {
  return listWritten(rows, attempt).some((written) => written < seq)
}

/**
 * Returns whether a write of the attempt came after this row. Then a claim of success in this row
 * is false.
 */
export function isWrittenAfter(rows: Rows, { seq, attempt }: IncidentEvent): boolean {
  return listWritten(rows, attempt).some((written) => written > seq)
}

export function doneBefore(rows: Rows, { seq, attempt }: IncidentEvent): string[] {
  return rows.flatMap((row) =>
    row.kind === 'tool_finished' && row.seq < seq && row.attempt === attempt && row.metadata.outcome === 'done'
      ? [row.metadata.tool]
      : [],
  )
}
