import { sql } from 'kysely'
import { digestOf } from '../../domain/digest.ts'
import type { VerificationOutcome } from '../../domain/envelope.ts'
import type { EventAction, EventKind, IncidentEvent, NewEvent } from '../../domain/event.ts'
import type { EffectKind } from '../../domain/tool.ts'
import { cleanse } from '../../safety/redact.ts'
import type { Trx } from '../connect.ts'
import { notifyDestinations } from '../outbox/destinations.ts'
import { followPage } from '../outbox/page-hold.ts'
import type { IncidentEventRow } from '../tables.ts'

/**
 * Thrown if the caller's run is no longer current, because a newer attempt has the incident. A
 * retry cannot help.
 */
export class StaleRunError extends Error {
  override name = 'StaleRunError' as const
  readonly code = 'STALE_RUN'
  constructor(incidentId: string, attempt: number, current: number) {
    super(`${incidentId} is at attempt ${current}: a row of attempt ${attempt} is refused`)
  }
}

export class IncidentNotFoundError extends Error {
  override name = 'IncidentNotFoundError' as const
  constructor(incidentId: string) {
    super(`there is no incident ${incidentId}`)
  }
}

type Appended<K extends EventKind = EventKind> = { event: IncidentEvent<K>; inserted: boolean }

/**
 * Adds one row to the log of an incident. Nothing else adds rows. Takes the next number while it
 * holds the lock on the incident's row, so that numbers have no gaps when several processes write.
 * Chains the hash to the hash of the previous row. If the step key already exists, nothing is
 * written and the stored row is returned (`inserted: false`), so that a retry finds the row.
 *
 * `attempt` excludes older runs: a run that is no longer the current one of the incident gets
 * StaleRunError. People, ingest and the watchdog pass null; their rows have the number of the
 * current attempt.
 *
 * Removes terminal controls, hidden text and secrets from texts of alerts, tools and models before
 * it stores the texts, so that readers need not remove them.
 *
 * Needs a transaction that does no network I/O. Lock order: incident, approval, append.
 */
export async function append<K extends EventKind>(
  trx: Trx,
  incidentId: string,
  attempt: number | null,
  event: NewEvent<K>,
): Promise<Appended<K>> {
  const head = await lockHead(trx, incidentId)
  if (attempt !== null && attempt !== head.attempt) {
    throw new StaleRunError(incidentId, attempt, head.attempt)
  }
  if (event.stepKey) {
    const stored = await trx
      .selectFrom('incidentEvent')
      .selectAll()
      .where('stepKey', '=', event.stepKey)
      .executeTakeFirst()
    if (stored) return { event: fromRow(stored) as IncidentEvent<K>, inserted: false }
  }

  const row = rowAfter(incidentId, head, event as NewEvent)
  const [id] = await insertRows(trx, [row])
  await trx
    .updateTable('incident')
    .set({ nextSeq: row.seq + 1, headHash: row.hash, lastEventAt: row.at, updatedAt: row.at })
    .where('id', '=', incidentId)
    .execute()
  await notifyDestinations(trx, incidentId, event as NewEvent)
  const note = await followPage(trx, incidentId, event as NewEvent)
  if (note) await append(trx, incidentId, null, note)
  return { event: { id, ...row } as unknown as IncidentEvent<K>, inserted: true }
}

type NewRow = Hashed & { metadata: Record<string, unknown>; hash: string }

function rowAfter(incidentId: string, head: Head, event: NewEvent): NewRow {
  const row = {
    incidentId,
    attempt: head.attempt,
    seq: head.nextSeq,
    stepKey: event.stepKey ?? null,
    turn: event.turn ?? null,
    kind: event.kind as string,
    action: event.action ?? actionOf(event.kind),
    actor: event.actor,
    detail: cleanse(event.detail),
    metadata: cleanse(event.metadata) as Record<string, unknown>,
    at: head.now,
    prevHash: head.headHash,
  }
  return { ...row, hash: hashEvent(row) }
}

/**
 * Builds the first rows of an incident that is opened in this transaction, numbered and chained.
 * Nobody else can add to the incident's log yet. The caller stores the incident with the next
 * number and hash, and then the rows with `insertRows`.
 */
export function firstRows(incidentId: string, now: string, events: readonly NewEvent[]): NewRow[] {
  const rows: NewRow[] = []
  for (const event of events) {
    const before = rows.at(-1)
    rows.push(rowAfter(incidentId, { attempt: 0, nextSeq: rows.length + 1, headHash: before?.hash ?? '', now }, event))
  }
  return rows
}

/**
 * Stores rows unchanged, and returns their ids. Used only by `append()` and for rows of
 * `firstRows`.
 */
export async function insertRows(trx: Trx, rows: readonly NewRow[]): Promise<string[]> {
  const stored = await trx
    .insertInto('incidentEvent')
    .values(
      rows.map((row) => ({
        ...row,
        at: sql<string>`${row.at}::timestamptz`,
        metadata: JSON.stringify(row.metadata),
      })),
    )
    .returning('id')
    .execute()
  return stored.map(({ id }) => String(id))
}

type Head = { attempt: number; nextSeq: number; headHash: string; now: string }

/**
 * Locks the incident's row until the transaction ends. Reads the time only once the lock is held.
 */
async function lockHead(trx: Trx, incidentId: string): Promise<Head> {
  const { rows } = await sql<Head>`
    with locked as materialized (
      select attempt, next_seq, head_hash from incident where id = ${incidentId} for update
    )
    select attempt, next_seq, head_hash, nightshift_now() as now from locked`.execute(trx)
  const head = rows[0]
  if (!head) throw new IncidentNotFoundError(incidentId)
  return head
}

type Hashed = Omit<IncidentEvent, 'id' | 'hash' | 'metadata' | 'kind' | 'action'> & {
  kind: string
  action: string
  metadata: unknown
}

/**
 * Returns the fields that the hash of a row covers: all exported fields, without the hash itself
 * and without the id, which only orders the stream.
 */
function hashedFields(row: Hashed): Hashed {
  return {
    incidentId: row.incidentId,
    attempt: row.attempt,
    seq: row.seq,
    stepKey: row.stepKey,
    turn: row.turn,
    kind: row.kind,
    action: row.action,
    actor: row.actor,
    detail: row.detail,
    metadata: row.metadata,
    at: row.at,
    prevHash: row.prevHash,
  }
}

/** Returns the SHA-256 of a row in the form of RFC 8785. */
export function hashEvent(row: Hashed): string {
  return digestOf(hashedFields(row))
}

/** Converts a stored row. Trusts the row's shape, because only `append()` writes the log. */
export function fromRow(row: IncidentEventRow): IncidentEvent {
  return { id: String(row.id), ...hashedFields(row), hash: row.hash } as unknown as IncidentEvent
}

/** The action of each kind of row. `actionOf` refines the action for a write and a verification. */
const actionOfKind: Record<EventKind, EventAction> = {
  alert_received: 'commented',
  looked: 'investigated',
  noted: 'commented',
  claimed: 'investigated',
  context_assembled: 'investigated',
  model_answered: 'commented',
  model_failed: 'commented',
  correction_sent: 'commented',
  call_judged: 'investigated',
  tool_started: 'investigated',
  tool_output: 'commented',
  tool_finished: 'investigated',
  step_started: 'attempted_fix',
  step_finished: 'attempted_fix',
  verification: 'investigated',
  approval_requested: 'investigated',
  approval_decided: 'commented',
  approval_expired: 'commented',
  approval_withdrawn: 'commented',
  grant_used: 'investigated',
  hint_confirmed: 'investigated',
  hint_diverged: 'investigated',
  budget_ended: 'commented',
  security_event: 'commented',
  resolved: 'resolved',
  escalated: 'escalated',
  cancelled: 'cancelled',
  capability_gap: 'capability_gap',
  commented: 'commented',
  notified: 'commented',
  change_requested: 'commented',
  change_reviewed: 'commented',
  graded: 'commented',
}

export function actionOf(
  kind: EventKind,
  options: { effect?: EffectKind; verified?: VerificationOutcome } = {},
): EventAction {
  if (options.effect === 'write' && (kind === 'tool_started' || kind === 'tool_finished')) return 'attempted_fix'
  if (kind === 'verification' && options.verified !== undefined) return actionOfOutcome[options.verified]
  return actionOfKind[kind]
}

/** The action of each outcome of a verification. An unproven write neither succeeded nor failed. */
const actionOfOutcome: Record<VerificationOutcome, EventAction> = {
  held: 'fix_succeeded',
  not_held: 'fix_failed',
  open: 'attempted_fix',
  unproven: 'attempted_fix',
}
