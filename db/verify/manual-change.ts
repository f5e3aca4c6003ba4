import { isDeepStrictEqual } from 'node:util'
import type { IncidentEvent } from '../../domain/event.ts'
import type { EventMetadata } from '../../domain/event-metadata.ts'
import { manualChangeType } from '../../domain/manual-change.ts'
import type { Trx } from '../connect.ts'
import type { IncidentRow } from '../tables.ts'
import { writeByKey } from '../writes/undo.ts'
import { differs, type Notes } from './findings.ts'

/**
 * Compares a person's own write with people and audit log: its run acts in the name of the person
 * in its row. A write that an admin did alone waits for a review until a row reviews it.
 */
export async function verifyManualChange(
  trx: Trx,
  row: IncidentRow,
  events: readonly IncidentEvent[],
  notes: Notes,
): Promise<void> {
  if (row.type !== manualChangeType) return
  const [asked, ...others] = events.filter((event) => event.kind === 'change_requested')
  if (!asked || others.length > 0) {
    notes.differ(row.id, asked ? 'more than one row requests this write' : 'no row requests this write')
    return
  }
  notes.check("people's own writes")
  const { operatorId, name, alone } = asked.metadata
  const person = await trx.selectFrom('operator').select('name').where('id', '=', operatorId).executeTakeFirst()
  if (person?.name !== name) notes.differ(row.id, differs('who requested it', person?.name ?? null, name))
  if (asked.actor !== `user:${name}`) notes.differ(row.id, differs('who wrote its row', asked.actor, `user:${name}`))
  const audited = await auditOf(trx, 'change.requested', row.id)
  const end = `, as ${row.id}: ${asked.metadata.reason}`
  const [{ who, detail } = { who: '', detail: '' }] = audited
  const isSaid = who === name && detail.endsWith(end) && detail.slice(0, -end.length).endsWith(', alone') === alone
  if (audited.length !== 1 || !isSaid)
    notes.differ(row.id, 'no row of the audit shows that this person requested exactly this write')
  holdWrites(row.id, asked.metadata, events, notes)
  await holdUndo(trx, row.id, asked.metadata, notes)
  const isReviewed = await holdReviews(trx, row.id, operatorId, events, notes)
  const isForgotten = !alone || isReviewed || row.status === 'cancelled'
  if (isForgotten !== (row.reviewWantedAt === null))
    notes.differ(
      row.id,
      isForgotten
        ? 'it waits for a review that is not needed'
        : 'nobody reviewed it, and it does not wait for a review',
    )
}

async function auditOf(trx: Trx, what: string, subject: string) {
  return await trx
    .selectFrom('audit')
    .select(['who', 'detail'])
    .where('what', '=', what)
    .where('subject', '=', subject)
    .execute()
}

/** Checks that the executed write is the requested write, whatever its reason. */
function holdWrites(
  id: string,
  asked: EventMetadata['change_requested'],
  events: readonly IncidentEvent[],
  notes: Notes,
): void {
  for (const event of events) {
    if (event.kind !== 'tool_started' || event.metadata.effect !== 'write') continue
    const [done, wanted] = [event.metadata, asked].map(({ tool, arguments: { reason: _, ...args } }) => [tool, args])
    if (!isDeepStrictEqual(done, wanted)) notes.differ(id, differs('what was carried out', done, wanted))
  }
}

/**
 * Checks that an undo requests the call that the row of the undone write recorded as its undo. To
 * undo a plan, another plan is made for the current state.
 */
async function holdUndo(trx: Trx, id: string, asked: EventMetadata['change_requested'], notes: Notes): Promise<void> {
  const write = asked.undoes && (await writeByKey(trx, asked.undoes.key))
  const recorded = write?.finished?.metadata.undo
  // Accepts a missing undo: retention removed the write, or an erasure removed its undo.
  if (!recorded || 'none' in recorded) return
  notes.check('undos')
  const isPlan = 'moves' in recorded.arguments
  const [wanted, declared] = [asked, recorded].map(({ tool, arguments: { reason: _, ...args } }) =>
    isPlan ? [tool] : [tool, args],
  )
  if (!isDeepStrictEqual(wanted, declared)) notes.differ(id, differs('what undoes the write', wanted, declared))
}

/** Checks that a review is by a second person who exists and who also has an audit entry. */
async function holdReviews(
  trx: Trx,
  id: string,
  askedBy: string,
  events: readonly IncidentEvent[],
  notes: Notes,
): Promise<boolean> {
  const reviews = events.filter((event) => event.kind === 'change_reviewed')
  const audited = await auditOf(trx, 'change.reviewed', id)
  for (const { actor, metadata } of reviews) {
    const { operatorId, name, verdict, text } = metadata
    const person = await trx.selectFrom('operator').select('name').where('id', '=', operatorId).executeTakeFirst()
    const isTheirs = person?.name === name && actor === `user:${name}` && operatorId !== askedBy
    const isSaid = audited.some(({ who, detail }) => who === name && detail === `${verdict}: ${text}`)
    if (!isTheirs || !isSaid) notes.differ(id, `the review by ${name} is not confirmed by another person and the audit`)
  }
  return reviews.length > 0
}
