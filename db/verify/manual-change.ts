import { isDeepStrictEqual } from 'node:util'
import type { IncidentEvent } from '../../domain/event.ts'
import type { EventMetadata } from '../../domain/event-metadata.ts'
import { manualChangeType } from '../../domain/manual-change.ts'
import type { Trx } from '../connect.ts'
import type { IncidentRow } from '../tables.ts'
import { writeByKey } from '../writes/undo.ts'
import { differs, type Notes } from './findings.ts'

/**
 * Holds a person's own write against people and audit: its run acts in the name of the person on
 * its row. One done alone waits for its review until a row reviews it.
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
    notes.differ(row.id, asked ? 'more than one row asks for it' : 'no row asks for it')
    return
  }
  notes.check("people's own writes")
  const { operatorId, name, alone } = asked.metadata
  const person = await trx.selectFrom('operator').select('name').where('id', '=', operatorId).executeTakeFirst()
  if (person?.name !== name) notes.differ(row.id, differs('who asked for it', person?.name ?? null, name))
  if (asked.actor !== `user:${name}`) notes.differ(row.id, differs('who wrote its row', asked.actor, `user:${name}`))
  const audited = await auditOf(trx, 'change.requested', row.id)
  const end = `, as ${row.id}: ${asked.metadata.reason}`
  const [{ who, detail } = { who: '', detail: '' }] = audited
  const isSaid = who === name && detail.endsWith(end) && detail.slice(0, -end.length).endsWith(', alone') === alone
  if (audited.length !== 1 || !isSaid) notes.differ(row.id, 'no row of the audit says that this person asked for it so')
  holdWrites(row.id, asked.metadata, events, notes)
  await holdUndo(trx, row.id, asked.metadata, notes)
  const isReviewed = await holdReviews(trx, row.id, operatorId, events, notes)
  const isForgotten = !alone || isReviewed || row.status === 'cancelled'
  if (isForgotten !== (row.reviewWantedAt === null))
    notes.differ(
      row.id,
      isForgotten ? 'it waits for a review that nobody owes' : 'it waits for no review, and nobody reviewed it',
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

/** The carried-out write is the one that the person asked for, whatever its reason. */
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
 * An undo asks for the call on its write's row as the way back; a plan that goes back is another
 * one, for the present state.
 */
async function holdUndo(trx: Trx, id: string, asked: EventMetadata['change_requested'], notes: Notes): Promise<void> {
  const write = asked.undoes && (await writeByKey(trx, asked.undoes.key))
  const recorded = write?.finished?.metadata.undo
  // Retention removed the write, or an erasure its way back.
  if (!recorded || 'none' in recorded) return
  notes.check('undos')
  const isPlan = 'moves' in recorded.arguments
  const [wanted, declared] = [asked, recorded].map(({ tool, arguments: { reason: _, ...args } }) =>
    isPlan ? [tool] : [tool, args],
  )
  if (!isDeepStrictEqual(wanted, declared)) notes.differ(id, differs('what takes the write back', wanted, declared))
}

/** A review is another person's, who is there, and who says it in the audit as well. */
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
    if (!isTheirs || !isSaid) notes.differ(id, `no other person reviewed it, as its row of ${name} says`)
  }
  return reviews.length > 0
}
