import type { IncidentEvent } from '../../domain/event.ts'
import { manualChangeType } from '../../domain/manual-change.ts'
import type { Trx } from '../connect.ts'
import type { IncidentRow } from '../tables.ts'
import { differs, type Notes } from './findings.ts'

/**
 * Holds a person's own write against who there is and what the audit says: its run acts in the name of the person that its row names. Done
 * alone, it waits for its review until a row reviewed it.
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
  const audited = await trx
    .selectFrom('audit')
    .select(['who', 'detail'])
    .where('what', '=', 'change.requested')
    .where('subject', '=', row.id)
    .execute()
  if (audited.length !== 1 || audited[0]?.who !== name || audited[0].detail.includes(', alone, as ') !== alone)
    notes.differ(row.id, 'no row of the audit says that this person asked for it so')
  const isReviewed = events.some(({ kind }) => kind === 'change_reviewed')
  const isForgotten = !alone || isReviewed || row.status === 'cancelled'
  if (isForgotten !== (row.reviewWantedAt === null))
    notes.differ(
      row.id,
      isForgotten ? 'it waits for a review that nobody owes' : 'it waits for no review, and nobody reviewed it',
    )
}
