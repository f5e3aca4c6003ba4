import { sql } from 'kysely'
import type { IncidentEvent } from '../../domain/event.ts'
import type { Trx } from '../connect.ts'
import { differs, type Notes } from './findings.ts'

/** Compares the follow-up of an incident with the newest row of its log about it. */
export async function verifyFollowUp(
  trx: Trx,
  incidentId: string,
  events: readonly IncidentEvent[],
  notes: Notes,
): Promise<void> {
  const stored = await trx
    .selectFrom('followUp')
    .select(['ownerId', 'ownerGroup as group'])
    .select(sql<string>`to_char(due_on, 'YYYY-MM-DD')`.as('dueOn'))
    .select(['closedAt', 'closedBy'])
    .where('incidentId', '=', incidentId)
    .executeTakeFirst()
  const told = events.findLast((event) => event.kind === 'noted' && event.metadata.followUp)
  if (!stored && !told) return
  notes.check('follow-ups')
  const said = told?.kind === 'noted' ? told.metadata.followUp : undefined
  if (!stored || !told || !said) {
    notes.differ(incidentId, stored ? 'no row records its follow-up' : 'its follow-up is missing')
    return
  }
  const { closedAt, closedBy, ...state } = stored
  const now = { ...state, isClosed: closedAt !== null }
  for (const part of ['ownerId', 'group', 'dueOn', 'isClosed'] as const)
    if (now[part] !== said[part]) notes.differ(incidentId, differs(`${part} of its follow-up`, now[part], said[part]))
  if (closedAt === null || !said.isClosed) return
  const person = await trx.selectFrom('operator').select('name').where('id', '=', closedBy).executeTakeFirst()
  if (told.actor !== `user:${person?.name}`)
    notes.differ(incidentId, differs('who closed its follow-up', person?.name ?? null, told.actor))
  if (closedAt !== told.at) notes.differ(incidentId, differs('when its follow-up was closed', closedAt, told.at))
}
