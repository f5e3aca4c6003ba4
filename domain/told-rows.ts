import { z } from 'zod'

/** A row of an incident's log, with the fields that a model reads. */
export const storedRow = z.looseObject({
  seq: z.number(),
  at: z.string(),
  attempt: z.number().nullable(),
  kind: z.string(),
  actor: z.string(),
  detail: z.string(),
  metadata: z.looseObject({}),
})
type StoredRow = z.infer<typeof storedRow>

/** A log row in short form: time, attempt, actor, and the finding or action. */
type ToldRow = {
  seq: number
  at: string
  attempt?: number
  actor: string
  kind: string
  tool?: string
  arguments?: unknown
  said: string
}

const ofCall = z.looseObject({
  callId: z.string(),
  tool: z.string(),
  arguments: z.unknown(),
  said: z.string().optional(),
  verdict: z.string().optional(),
  result: z
    .looseObject({ ok: z.boolean(), error: z.looseObject({ message: z.string() }).optional() })
    .optional()
    .catch(undefined),
})
const maxSaid = 600

/**
 * Shortens the log rows of an incident for a model: one row for each call, with its finding. A call
 * that has not ended keeps its first rows.
 */
export function tellRows(rows: readonly StoredRow[]): ToldRow[] {
  const calls = rows.map(({ metadata }) => ofCall.safeParse(metadata).data)
  const key = (at: number) => `${rows[at]?.attempt} ${calls[at]?.callId}`
  const ended = new Set(rows.flatMap(({ kind }, at) => (kind === 'tool_finished' ? [key(at)] : [])))
  const begun = new Set(rows.flatMap(({ kind }, at) => (kind === 'tool_started' ? [key(at)] : [])))
  return rows.flatMap((row, at) => {
    const call = calls[at]
    if (row.kind === 'tool_started' && ended.has(key(at))) return []
    if (row.kind === 'call_judged' && call?.verdict === 'run' && (ended.has(key(at)) || begun.has(key(at)))) return []
    return [tellRow(row, call)]
  })
}

function tellRow(
  { seq, at, attempt, actor, kind, detail }: StoredRow,
  call: z.infer<typeof ofCall> | undefined,
): ToldRow {
  const found = kind === 'tool_finished' ? (call?.said ?? call?.result?.error?.message) : undefined
  const isFailed = kind === 'tool_finished' && call?.result?.ok === false
  const said = `${isFailed ? 'failed: ' : ''}${found ?? detail}`
  return {
    seq,
    at,
    ...(attempt !== null && { attempt }),
    actor,
    kind,
    ...(call && { tool: call.tool }),
    ...(kind === 'tool_finished' && call && { arguments: call.arguments }),
    said: said.length > maxSaid ? `${said.slice(0, maxSaid - 1).toWellFormed()}…` : said,
  }
}
