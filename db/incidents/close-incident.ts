import { type EscalationReport, escalationReport, reportText } from '../../domain/escalation.ts'
import { agentActor, type NewEvent, systemActor } from '../../domain/event.ts'
import type { EventMetadata } from '../../domain/event-metadata.ts'
import { type Certainty, formatLowered, type UnshownSentence, withMarks } from '../../domain/hypothesis.ts'
import {
  type ClosedBy,
  type EscalationCategory,
  type Incident,
  type IncidentStatus,
  incidentActions,
  type ResolveOutcome,
  type Severity,
} from '../../domain/incident.ts'
import { cancelledSeconds } from '../../domain/lifecycle.ts'
import { manualChangeType } from '../../domain/manual-change.ts'
import { trustLostType } from '../../domain/trust.ts'
import { describeDoubt } from '../../domain/unproven-end.ts'
import { believeEnds } from '../alerts/mass-resolve.ts'
import { withdrawPending } from '../approvals/settle.ts'
import type { Trx } from '../connect.ts'
import { alertCounts } from '../lifecycle/read-lifecycle.ts'
import { append } from '../log/append.ts'
import { eventsOf } from '../log/events.ts'
import { enqueueNotification } from '../outbox/deliveries.ts'
import { readSettings } from '../settings.ts'
import type { IncidentRow } from '../tables.ts'
import { releaseLeases } from '../writes/leases.ts'
import { openFollowUp } from './follow-ups.ts'
import { lockIncident, NotAllowedError, toIncident } from './incidents.ts'
import { takeoverRequest } from './stop-requests.ts'

export type Closing =
  | ({ status: 'resolved' } & EventMetadata['resolved'])
  | {
      status: 'escalated'
      reason: string
      code: string
      category?: EscalationCategory
      unshown?: UnshownSentence[]
      certainty?: Certainty
      /** The certainty that the agent stated, if code lowered the certainty. */
      claimed?: Certainty
      /** The first step for the person who takes over. If absent, the code determines it. */
      nextStep?: string | null
      /** The person who takes the incident. */
      ownerId?: string
    }
  | { status: 'cancelled'; reason: string; untilSeconds?: number }

type ClosedAs = {
  actor: string
  stepKey: string | null
  /**
   * True for the watchdog, which also increments the attempt. The run of the closed incident can
   * then no longer write.
   */
  nextAttempt?: boolean
  turn?: number | null
}

/** Records who took the incident, and notifies destinations that may still page for it. */
export async function noteTaken(trx: Trx, id: string, { actor, name }: Person): Promise<void> {
  const text = `${name} has this incident`
  await append(trx, id, null, { kind: 'noted', actor, detail: text, metadata: { code: 'taken', text } })
  const row = await lockIncident(trx, id)
  if (row) await enqueueNotification(trx, row, 'taken', text)
}

/**
 * Returns who closed an incident, from the actor of the closing row: the agent's run, a person, or
 * code.
 */
function closedByActor(actor: string): ClosedBy {
  if (actor === agentActor) return 'agent'
  return actor === systemActor ? 'code' : 'person'
}

/**
 * Computes how long alerts of the closed incident still matter: after a repair until a read, after
 * a cancellation until it expires.
 */
async function followUpOf(trx: Trx, row: IncidentRow, closing: Closing, at: string) {
  const inSeconds = (seconds: number) => new Date(Date.parse(at) + seconds * 1000).toISOString()
  if (closing.status === 'escalated') return { ownerId: closing.ownerId ?? null, ownedAt: closing.ownerId ? at : null }
  // Removes the owner, because a closed incident has no owner. Later alerts cause reminders or
  // investigations as usual.
  const given = { ownerId: null, ownedAt: null }
  if (closing.status === 'cancelled') {
    // Sets no time for a person's own write, which has no alert to wait for.
    if (row.type === manualChangeType) return given
    return { ...given, cancelledUntil: inSeconds(closing.untilSeconds ?? cancelledSeconds) }
  }
  if (closing.outcome !== 'repaired') return given
  const settings = await readSettings(trx)
  const firing = await trx
    .selectFrom('alert')
    .select('source')
    .distinct()
    .where('incidentId', '=', row.id)
    .where('status', '=', 'firing')
    .execute()
  // Ignores alerts of senders that never report ends: only a repeat shows that such an alert still
  // fires.
  const firesOn = firing.some(({ source }) => settings.value<boolean | null>('alert.ends', source) ?? true)
  return { ...given, watchUntil: firesOn ? inSeconds(settings.value<number>('alert.settle', row.type)) : null }
}

/** Puts the notification about a closed incident into the outbox. */
async function announceClosing(trx: Trx, closed: IncidentRow, closing: Closing, text: string): Promise<void> {
  // Skips the notification for a person who takes the incident and therefore knows.
  if (closing.status === 'escalated' && !closing.ownerId) {
    const isPage = closing.category !== 'mitigated' && closed.type !== trustLostType
    await enqueueNotification(trx, closed, 'escalated', text, { page: isPage })
  }
  if (closing.status === 'escalated') return
  const isNews = closing.status === 'resolved' && closing.outcome !== 'expected' && closing.outcome !== 'unproven'
  await enqueueNotification(trx, closed, isNews ? 'resolved' : 'closed', text)
}

/** Builds the report for the person who takes over from the current log rows. */
async function reportOf(
  trx: Trx,
  incident: Incident,
  closing: Extract<Closing, { status: 'escalated' }>,
): Promise<EscalationReport> {
  const first = await trx
    .selectFrom('alert')
    .select('startsAt')
    .where('incidentId', '=', incident.id)
    .orderBy('startsAt')
    .limit(1)
    .executeTakeFirst()
  return escalationReport(incident, await eventsOf(trx, incident.id, { attempt: incident.attempt }), {
    code: closing.code,
    said: closing.reason,
    nextStep: closing.nextStep ?? null,
    certainty: closing.certainty ?? null,
    since: first?.startsAt ?? null,
  })
}

/** Builds the row that closes an incident, which is the last row of its log so far. */
function closingEvent(closing: Closing, severity: Severity, by: ClosedAs, report: EscalationReport | null): NewEvent {
  const common = { actor: by.actor, stepKey: by.stepKey, turn: by.turn ?? null }
  if (closing.status === 'resolved') {
    const { resolution, outcome, claims, confidence, unshown = [] } = closing
    const more = { ...cappedCertainty(closing), ...(unshown.length > 0 && { unshown }) }
    const metadata = { resolution, outcome, claims, confidence, ...more }
    return {
      ...common,
      kind: 'resolved',
      detail: withLowered(withMarks(resolution, claims, unshown), closing),
      metadata,
    }
  }
  if (closing.status === 'escalated') {
    const { reason, code, category, unshown = [] } = closing
    const more = { ...(category && { category }), ...(report && { report }), ...(unshown.length > 0 && { unshown }) }
    const metadata = { reason, code, severity, ...more, ...cappedCertainty(closing) }
    return { ...common, kind: 'escalated', detail: withLowered(withMarks(reason, [], unshown), closing), metadata }
  }
  return { ...common, kind: 'cancelled', detail: closing.reason, metadata: { reason: closing.reason } }
}

type StatedCertainty = { certainty?: Certainty; claimed?: Certainty }

function cappedCertainty({ certainty, claimed }: StatedCertainty): StatedCertainty {
  return { ...(certainty && { certainty }), ...(claimed && { claimed }) }
}

/** Adds a lowered certainty to the text, so that every reader sees it. */
function withLowered(text: string, { certainty, claimed }: StatedCertainty): string {
  return certainty && claimed ? `${text}\n\n${formatLowered(certainty, claimed)}` : text
}

/** Whether the last read in this attempt found the incident's own resource healthy. */
async function isSeenNominal(trx: Trx, row: IncidentRow): Promise<boolean> {
  const looks = (await eventsOf(trx, row.id, { attempt: row.attempt })).flatMap((event) =>
    event.kind === 'tool_finished' ? event.metadata.discovered : [],
  )
  const own = looks.findLast(
    ({ kind, id, seen, health }) => seen && health && kind === row.resourceKind && id === row.resourceId,
  )
  return own?.health === 'nominal'
}

/** Whether a person, or an ending with a read, closes the incident as over while alerts fire. */
function isSaidOver(closing: Closing, actor: string): boolean {
  if (closing.status !== 'resolved') return false
  return ['no_fault', 'self_resolved'].includes(closing.outcome) || closedByActor(actor) === 'person'
}

/**
 * Explains why an incident cannot close as quiet; null if it can. Reasons: an alert fires or may
 * still fire, or there is no alert that could have ended.
 */
export async function firingAgainst(trx: Trx, id: string, outcome: ResolveOutcome): Promise<string | null> {
  if (outcome !== 'no_fault' && outcome !== 'self_resolved') return null
  const row = await lockIncident(trx, id)
  if (!row) return null
  const counts = await alertCounts(trx, row, await readSettings(trx))
  const { firing, endless, total } = counts
  if (outcome === 'self_resolved' && total === 0) return 'the incident has no alert, so no alert ended'
  if (outcome === 'no_fault' && firing === endless && endless > 0) {
    const never = "its alert's sender never reports an end, and"
    if (row.severity === 'critical') return `${never} the incident is critical: a person decides whether it is a fault`
    if (!(await isSeenNominal(trx, row))) return `${never} no check of this attempt shows its resource nominal`
  }
  if (firing === 0 && counts.unknown + counts.unproven > 0 && !(await isSeenNominal(trx, row)))
    return `${describeDoubt(counts.unknownWhy, counts.endReason)}, and no check of this attempt shows its resource nominal`
  const counted = outcome === 'no_fault' ? firing - endless : firing
  return counted === 0 ? null : counted === 1 ? 'its alert fires' : `${counted} of its alerts fire`
}

/**
 * Closes an incident once. In one transaction: changes row and status, withdraws approvals,
 * releases leases, sets how long its alerts still matter, and queues the notification. `attempt`
 * excludes older runs as in `append()`; people and the watchdog pass null. Returns false if the
 * incident was already closed.
 */
export async function closeIncident(
  trx: Trx,
  id: string,
  attempt: number | null,
  asked: Closing,
  by: ClosedAs,
): Promise<boolean> {
  const row = await lockIncident(trx, id)
  if (!row) return false
  const taker = asked.status === 'escalated' && !asked.ownerId ? await takeoverRequest(trx, id, row.attempt) : null
  const closing = taker ? { ...asked, ownerId: taker.operatorId } : asked
  const action = ({ resolved: 'resolve', escalated: 'escalate', cancelled: 'cancel' } as const)[closing.status]
  if (!(incidentActions[action] as IncidentStatus[]).includes(row.status)) {
    if (row.status === closing.status) return false
    throw new NotAllowedError(id, action, row.status)
  }
  if (by.nextAttempt) {
    await trx
      .updateTable('incident')
      .set({ attempt: row.attempt + 1 })
      .where('id', '=', id)
      .execute()
  }
  if (isSaidOver(closing, by.actor)) await believeEnds(trx, id)
  await withdrawPending(trx, id, `the incident was ${closing.status}`)
  const report = closing.status === 'escalated' ? await reportOf(trx, toIncident(row), closing) : null
  const { event } = await append(trx, id, attempt, closingEvent(closing, row.severity, by, report))
  await releaseLeases(trx, id)
  const closed = await trx
    .updateTable('incident')
    .set({
      status: closing.status,
      assignedTo: null,
      // Stores the text without secrets, as the log row has it.
      resolution: event.detail,
      closedAt: event.at,
      updatedAt: event.at,
      closedBy: closedByActor(by.actor),
      outcome: closing.status === 'resolved' ? closing.outcome : null,
      category: closing.status === 'escalated' ? (closing.category ?? null) : null,
      lookWanted: null,
      lookWantedAt: null,
      keptReason: null,
      // Lets the watchdog decide what the alerts of the incident mean now.
      checkAt: event.at,
      ...(await followUpOf(trx, row, closing, event.at)),
    })
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()
  await announceClosing(trx, closed, closing, report ? reportText(report) : event.detail)
  if (closed.category === 'mitigated') await openFollowUp(trx, closed)
  if (taker) await noteTaken(trx, id, taker)
  return true
}

/** Values that an incident that is not closed has in the columns for closed incidents. */
export const stillOpen = {
  outcome: null,
  category: null,
  closedBy: null,
  watchUntil: null,
  repairConfirmedAt: null,
  cancelledUntil: null,
  remindedAt: null,
  ownerId: null,
  ownedAt: null,
  keptReason: null,
  expectationId: null,
  lookWanted: null,
  lookWantedAt: null,
  checkAt: null,
}

export type Person = { operatorId: string; actor: string; name: string }
