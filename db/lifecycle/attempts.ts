import { sql } from 'kysely'
import type { EventMetadata } from '../../domain/event.ts'
import { truncate } from '../../domain/format.ts'
import type { Db, Trx } from '../connect.ts'
import type { IncidentEventRow } from '../tables.ts'

/**
 * Counts the attempts of the last 24 hours for the incident's alerts, over every incident with
 * these alerts.
 */
export async function attemptsToday(db: Db | Trx, incidentId: string): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from incident_event
    where kind = 'claimed' and at > nightshift_now() - interval '1 day'
      and incident_id in (select id from (${incidentsOfSameAlerts(incidentId)}) same)`.execute(db)
  return rows[0]?.count ?? 0
}

/**
 * An attempt in short: its writes and verifications, denials, the reason of its end, its advice.
 */
export type AttemptStory = {
  writes: { tool: string; arguments: Record<string, unknown>; verified: string | null }[]
  denied: { tool: string; reason: string }[]
  ending: string | null
  endedAt: string | null
  text: string | null
  next: string | null
}

/** An earlier attempt at the incident's problem. */
type EarlierAttempt = AttemptStory & { incidentId: string; attempt: number; beganAt: string }

const textCharacters = 500
const adviceCharacters = 300
const argumentCharacters = 200

const limit = 10

/**
 * Lists the newest attempts for the incident's alerts, over linked incidents, oldest first.
 * `before`: the current attempt, which is left out.
 */
export async function earlierAttempts(
  db: Db | Trx,
  incidentId: string,
  before: number | null = null,
): Promise<EarlierAttempt[]> {
  const { rows: began } = await sql<{ incidentId: string; attempt: number; at: string }>`
    select incident_id as "incidentId", attempt, at from incident_event
    where kind = 'claimed' and incident_id in (select id from (${incidentsOfSameAlerts(incidentId)}) same)
      and (incident_id <> ${incidentId} or attempt < coalesce(${before}::int, 2147483647))
    order by at desc limit ${limit}`.execute(db)
  const stories: EarlierAttempt[] = []
  for (const { at, ...each } of began.reverse())
    stories.push({ ...each, beganAt: at, ...(await readAttempt(db, each)) })
  return stories
}

/**
 * Reads one attempt from its rows. Texts are cut: the ending to 500 characters, the advice and each
 * text of a person to 300.
 */
export async function readAttempt(db: Db | Trx, began: { incidentId: string; attempt: number }): Promise<AttemptStory> {
  const rows = await db
    .selectFrom('incidentEvent')
    .select(['kind', 'detail', 'metadata', 'at'])
    .where('incidentId', '=', began.incidentId)
    .where('attempt', '=', began.attempt)
    .where('kind', 'in', [
      'call_judged',
      'tool_started',
      'verification',
      'approval_decided',
      'resolved',
      'escalated',
      'cancelled',
    ])
    .orderBy('seq')
    .execute()
  const started = rows.flatMap(({ kind, metadata }) => {
    const call = metadata as EventMetadata['tool_started']
    return kind === 'tool_started' && call.effect === 'write' ? [call] : []
  })
  const verified = new Map<string, string>()
  for (const { kind, metadata } of rows) {
    if (kind !== 'verification') continue
    const { callId, outcome } = metadata as EventMetadata['verification']
    verified.set(callId, outcome)
  }
  const ended = rows.findLast(({ kind }) => kind === 'resolved' || kind === 'escalated' || kind === 'cancelled')
  return {
    denied: deniedAmong(rows),
    writes: started.map((call) => ({
      tool: call.tool,
      arguments: shorten(call.arguments),
      verified: verified.get(call.callId) ?? null,
    })),
    ending: ended ? endingOf(ended.kind, ended.metadata as Record<string, unknown>) : null,
    endedAt: ended?.at ?? null,
    text: ended ? cutTo(textCharacters, ended.detail) : null,
    next: ended?.kind === 'escalated' ? adviceOf(ended.metadata as EventMetadata['escalated']) : null,
  }
}

/** Shortens the arguments of a call, so that a long text does not hide the other arguments. */
function shorten(args: Record<string, unknown>): Record<string, unknown> {
  const short = Object.fromEntries(
    Object.entries(args).map(([name, value]) => [
      name,
      typeof value === 'string' ? truncate(value, argumentCharacters) : value,
    ]),
  )
  const isLong = JSON.stringify(short).length > textCharacters
  return isLong ? { cut: truncate(JSON.stringify(short), textCharacters) } : short
}

const cutTo = (characters: number, text: string): string => text.slice(0, characters).toWellFormed()

const adviceOf = ({ report }: EventMetadata['escalated']): string | null =>
  report ? cutTo(adviceCharacters, report.nextStep) : null

type StoryRow = Pick<IncidentEventRow, 'kind' | 'metadata'>

/** Lists denials with the person's words, each with the tool of its call. */
function deniedAmong(rows: readonly StoryRow[]): AttemptStory['denied'] {
  const toolOf = new Map<string, string>()
  return rows.flatMap(({ kind, metadata }) => {
    if (kind === 'call_judged') {
      const { callId, tool } = metadata as EventMetadata['call_judged']
      toolOf.set(callId, tool)
      return []
    }
    const said = metadata as EventMetadata['approval_decided']
    if (kind !== 'approval_decided' || said.decision !== 'deny') return []
    return [
      { tool: toolOf.get(said.callId) ?? 'a call', reason: cutTo(adviceCharacters, said.reason ?? 'no reason given') },
    ]
  })
}

function endingOf(kind: string, metadata: Record<string, unknown>): string {
  const word = metadata.outcome ?? metadata.category ?? metadata.code
  return typeof word === 'string' ? `${kind}, ${word}` : kind
}

/** Returns the attempts of `earlierAttempts` as sentences for people, one per line. */
export async function attemptStories(db: Db | Trx, incidentId: string): Promise<string[]> {
  return (await earlierAttempts(db, incidentId)).map(({ incidentId: id, attempt, writes, ending, text }) => {
    const done = writes.map(({ tool, verified }) => `${tool} (${(verified ?? 'not verified').replace('_', ' ')})`)
    const wrote = done.length > 0 ? done.join(', ') : 'nothing was written'
    const end =
      ending === null ? 'the attempt has not ended' : `${ending.replaceAll('_', ' ')}: ${(text ?? '').slice(0, 300)}`
    return `Attempt ${attempt} of ${id}: ${wrote}; ${end}`
  })
}

/** Selects incidents whose alerts have the same sender and fingerprint, including this incident. */
function incidentsOfSameAlerts(incidentId: string) {
  return sql<{ id: string }>`
    select other.incident_id as id from alert own
    join alert other on other.source = own.source and other.fingerprint = own.fingerprint
    where own.incident_id = ${incidentId} and other.incident_id is not null
    union select ${incidentId}::text`
}
