import { isDeepStrictEqual } from 'node:util'
import { sql } from 'kysely'
import type { Findings } from '../../domain/chain.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import type { OpenedIncident } from '../../domain/event-metadata.ts'
import { runningStatuses } from '../../domain/incident.ts'
import { type Db, inTransaction, type Trx } from '../connect.ts'
import { verifyChain } from '../log/chain.ts'
import { eventsOf } from '../log/events.ts'
import { findTombstone } from '../retention/tombstones.ts'
import type { IncidentRow } from '../tables.ts'
import { foldApprovals, verifyApprovals } from './approvals.ts'
import { verifyEffects } from './effects.ts'
import { differs, type Notes, takeNotes } from './findings.ts'
import { verifyFollowUp } from './follow-up.ts'
import { verifyManualChange } from './manual-change.ts'

type FoldedIncident = {
  /** `running`: the run works, or waits for a person. */
  status: 'open' | 'running' | 'resolved' | 'escalated' | 'cancelled'
  attempt: number
  /** The text of the row that closed the incident; null if the incident is open. */
  resolution: string | null
  /** The outcome of the incident. Undefined if rows of an older version do not contain it. */
  outcome: string | null | undefined
  category: string | null | undefined
  /** The subject of the incident in its first row; null in rows of 0.2 and before. */
  about: OpenedIncident | null
}

/** Computes the row of an incident from its log. */
function foldIncident(events: readonly IncidentEvent[]): FoldedIncident {
  let folded: FoldedIncident = { ...opened, attempt: 0, about: null }
  for (const event of events) folded = { ...folded, ...changeBy(event, folded), attempt: event.attempt }
  return folded
}

const opened = { status: 'open', resolution: null, outcome: null, category: null } as const

function changeBy(event: IncidentEvent, folded: FoldedIncident): Partial<FoldedIncident> {
  switch (event.kind) {
    case 'alert_received':
    case 'change_requested':
      return event.metadata.opened && !folded.about ? { about: event.metadata.opened } : {}
    case 'claimed':
      return { status: 'running' }
    case 'resolved':
      return { status: 'resolved', resolution: event.detail, outcome: event.metadata.outcome, category: null }
    case 'escalated':
      return { status: 'escalated', resolution: event.detail, outcome: null, category: event.metadata.category ?? null }
    case 'cancelled':
      return { status: 'cancelled', resolution: event.detail, outcome: null, category: null }
    case 'commented':
      if (event.metadata.opened && !folded.about) return { about: event.metadata.opened }
      return event.metadata.action === 'investigate_requested' ? opened : {}
    case 'noted':
      if (event.metadata.code === 'reopened' || event.metadata.code === 'run_lost') return opened
      // Changes the outcome: an incident that was resolved in another way is expected from this row
      // on.
      return event.metadata.code === 'expected_marked' && folded.status === 'resolved' ? { outcome: 'expected' } : {}
    default:
      return {}
  }
}

/**
 * Compares an incident with its log: first the chain of the log, then its row, approvals, alerts
 * and effects with facts that are computed from the log. Reads one snapshot, so that concurrent
 * writes cause no differences.
 */
export async function verifyIncident(db: Db | Trx, id: string): Promise<Findings & { events: number }> {
  return await inSnapshot(db, async (trx) => {
    const notes = takeNotes()
    const row = await trx.selectFrom('incident').selectAll().where('id', '=', id).executeTakeFirst()
    const chain = await verifyChain(trx, id)
    notes.check('incidents')
    if (!row || !chain) await holdMissing(trx, id, notes)
    else {
      notes.check('rows of the log', chain.events)
      if (chain.problem) notes.differ(id, `row ${chain.problem.seq}: ${chain.problem.what}`)
      const events = await eventsOf(trx, id)
      const approvals = foldApprovals(events)
      holdIncident(row, foldIncident(events), { hasAsked: approvals.size > 0, events }, notes)
      await verifyApprovals(trx, id, approvals, notes)
      await verifyAlerts(trx, id, events, notes)
      await verifyEffects(trx, id, events, notes)
      await verifyManualChange(trx, row, events, notes)
      await verifyFollowUp(trx, id, events, notes)
    }
    const { differences, checked, untold } = notes
    return { events: chain?.events ?? 0, differences, checked, untold }
  })
}

/** Accepts a missing incident that has a tombstone, which `verifyRemovals` compares. */
async function holdMissing(trx: Trx, id: string, notes: Notes): Promise<void> {
  if (await findTombstone(trx, id)) notes.check('tombstones')
  else notes.differ(id, 'the incident is missing')
}

/** Runs all reads of `act` at one moment, with the formats of values that this process uses. */
export async function inSnapshot<T>(db: Db | Trx, act: (trx: Trx) => Promise<T>): Promise<T> {
  const inPlainStyle = async (trx: Trx) => {
    await sql`
      select set_config('timezone', 'UTC', true), set_config('datestyle', 'ISO', true), set_config('extra_float_digits', '1', true),
        set_config('bytea_output', 'hex', true)`.execute(trx)
    return await act(trx)
  }
  if (db.isTransaction) return await inTransaction(db, inPlainStyle)
  return await db.transaction().setIsolationLevel('repeatable read').execute(inPlainStyle)
}

function holdIncident(
  row: IncidentRow,
  folded: FoldedIncident,
  { hasAsked, events }: { hasAsked: boolean; events: readonly IncidentEvent[] },
  notes: Notes,
): void {
  const differ = (field: string, stored: unknown, said: unknown) => notes.differ(row.id, differs(field, stored, said))
  if (events.length === 0) notes.differ(row.id, 'no row opened it')
  const fits =
    folded.status === 'running' ? (runningStatuses as string[]).includes(row.status) : row.status === folded.status
  if (!fits) differ('status', row.status, folded.status === 'running' ? 'investigating' : folded.status)
  if (row.status === 'awaiting_approval' && !hasAsked && !events.some(({ kind }) => kind === 'call_judged'))
    notes.differ(row.id, 'status is awaiting_approval, but no row asks for an approval')
  const last = events.at(-1)
  if (last && row.lastEventAt !== last.at) differ('lastEventAt', row.lastEventAt, last.at)
  if (row.attempt !== folded.attempt) differ('attempt', row.attempt, folded.attempt)
  for (const field of ['resolution', 'outcome', 'category'] as const) {
    const said = folded[field]
    // Skips fields that version 0.1.0 did not store: the outcome, and who closed the incident.
    if (field !== 'resolution' && row[field] === null && row.closedBy === null) continue
    if (fits && said !== undefined && row[field] !== said) differ(field, row[field], said)
  }
  if (!folded.about) {
    notes.leave('incidents')
    return
  }
  const { type, severity, title, resource } = folded.about
  const said = { type, severity, title, resourceKind: resource?.kind ?? null, resourceId: resource?.id ?? null }
  for (const field of ['type', 'severity', 'title', 'resourceKind', 'resourceId'] as const)
    if (row[field] !== said[field]) differ(field, row[field], said[field])
}

/**
 * Compares the alerts of an incident: each was received by a log row with its labels. The newest
 * row with its sender and fingerprint shows whether it fires.
 */
async function verifyAlerts(trx: Trx, id: string, events: readonly IncidentEvent[], notes: Notes): Promise<void> {
  const stored = await trx
    .selectFrom('alert')
    .select(['id', 'source', 'fingerprint', 'labels', 'status'])
    // Accepts an alert that ended without a log row, because another occurrence followed it.
    .select(
      sql<boolean>`exists (select from alert as later where later.source = alert.source
        and later.fingerprint = alert.fingerprint and later.id > alert.id)`.as('isFollowed'),
    )
    .where('incidentId', '=', id)
    .execute()
  const received = new Map<string, IncidentEvent<'alert_received'>['metadata'][]>()
  for (const event of events) {
    if (event.kind !== 'alert_received') continue
    const key = `${event.metadata.source} ${event.metadata.fingerprint}`
    received.set(key, [...(received.get(key) ?? []), event.metadata])
  }
  for (const alert of stored) {
    notes.check('alerts')
    const told = received.get(`${alert.source} ${alert.fingerprint}`)
    const last = told?.at(-1)?.status
    if (!told) notes.differ(alert.id, 'no row received this alert')
    else if (!told.some(({ labels }) => isDeepStrictEqual(labels, alert.labels)))
      notes.differ(alert.id, 'its labels differ from the received ones')
    else if (alert.status !== 'unknown' && alert.status !== last && !alert.isFollowed)
      notes.differ(alert.id, differs('status', alert.status, last))
  }
}
