import { sql } from 'kysely'
import { closedStatuses } from '../../domain/incident.ts'
import {
  type CauseGrade,
  type Grade,
  type IncidentTrust,
  type ShadowCard,
  type ShadowGrade,
  ungradedTypes,
} from '../../domain/trust.ts'
import type { Db, Trx } from '../connect.ts'
import type { Person } from '../incidents/close-incident.ts'
import { lockIncident } from '../incidents/incidents.ts'
import { append } from '../log/append.ts'
import type { Scope } from '../scope.ts'
import { loseTrust } from './lose.ts'

type Grading =
  | { callId: null; attempt?: number | null; verdict: CauseGrade; text: string | null }
  | { callId: string; attempt: number; verdict: ShadowGrade; text: string | null }

type GradeOutcome = { outcome: 'graded' } | { outcome: 'not_found' | 'conflict'; message: string }

/**
 * Stores a person's grade of a cause that the agent found, or of a write in shadow. Only the newest
 * grade counts. A cause that is graded as wrong removes the trust in its writes, in this
 * transaction.
 */
export async function gradeIncident(db: Db, person: Person, id: string, given: Grading): Promise<GradeOutcome> {
  return await db.transaction().execute(async (trx) => {
    const row = await lockIncident(trx, id)
    if (!row) return { outcome: 'not_found', message: `there is no incident ${id}` }
    if (ungradedTypes.includes(row.type) || row.attempt === 0)
      return { outcome: 'conflict', message: 'no agent named its cause' }
    if (given.callId === null && !closedStatuses.includes(row.status))
      return { outcome: 'conflict', message: 'it is not closed yet, so its cause may change' }
    // Refuses a grade for an earlier attempt. The grade is about the cause that the person saw, but
    // would affect the current attempt.
    if (given.callId === null && (given.attempt ?? row.attempt) !== row.attempt)
      return {
        outcome: 'conflict',
        message: `this was the cause of attempt ${given.attempt}: read the cause of the newest attempt`,
      }
    const card = given.callId === null ? null : await shadowCall(trx, id, given)
    if (given.callId !== null && !card)
      return { outcome: 'conflict', message: `nothing was recorded in shadow as ${given.callId}` }
    const { operatorId, name, actor } = person
    const { verdict, text } = given
    const about = card ? `${card.tool}, if it had run` : 'the cause'
    await append(trx, id, null, {
      kind: 'graded',
      actor,
      detail: `${name} on ${about}: ${verdict}${text ? `. ${text}` : ''}`,
      metadata: {
        ...(card && { callId: card.callId, tool: card.tool }),
        attempt: card?.attempt ?? row.attempt,
        verdict,
        text,
        operatorId,
        name,
      },
    })
    if (given.callId === null && verdict === 'wrong')
      await loseTrust(trx, id, { callIds: 'all', why: `${name} graded the cause as wrong`, isSaid: true })
    return { outcome: 'graded' }
  })
}

async function shadowCall(
  trx: Trx,
  id: string,
  { callId, attempt }: { callId: string; attempt: number },
): Promise<{ callId: string; attempt: number; tool: string } | null> {
  const row = await trx
    .selectFrom('incidentEvent')
    .select(sql<string>`metadata->>'tool'`.as('tool'))
    .where('incidentId', '=', id)
    .where('kind', '=', 'call_judged')
    .where('attempt', '=', attempt)
    .where(sql<boolean>`metadata->>'callId' = ${callId} and metadata->>'code' = 'SHADOW'`)
    .executeTakeFirst()
  return row ? { callId, attempt, tool: row.tool } : null
}

/** Lists grades of an incident's cause, and its writes in shadow, newest attempt first. */
export async function incidentTrust({ db }: Scope, id: string): Promise<IncidentTrust> {
  const { rows } = await sql<ShadowCard>`
    select event.attempt, event.seq, event.at, event.metadata->>'callId' as "callId", event.metadata->>'tool' as tool,
      event.metadata->'arguments' as arguments, event.metadata->'targets' as targets, event.metadata->>'risk' as risk,
      event.metadata #>> '{details,would}' as would, event.metadata->>'shadow' as summary, graded.metadata->>'verdict' as grade,
      graded.metadata->>'name' as "gradedBy"
    from incident_event as event
    left join lateral (
      select metadata from incident_event as grade
      where grade.incident_id = event.incident_id and grade.kind = 'graded' and grade.metadata->>'callId' = event.metadata->>'callId'
        and (grade.metadata->>'attempt')::int = event.attempt
      order by grade.seq desc limit 1) as graded on true
    where event.incident_id = ${id} and event.kind = 'call_judged' and event.metadata->>'effect' = 'write'
      and event.metadata->>'code' = 'SHADOW'
    order by event.seq desc limit 50`.execute(db)
  return { cause: await causeGradeOf(db, id), shadow: rows }
}

/** Finds the newest grade of the current attempt's cause; null if nobody graded the cause. */
async function causeGradeOf(db: Db | Trx, id: string): Promise<IncidentTrust['cause']> {
  const { rows } = await sql<{ verdict: CauseGrade; by: string; at: string }>`
    select metadata->>'verdict' as verdict, metadata->>'name' as by, at from incident_event
    where incident_id = ${id} and kind = 'graded' and not metadata ? 'callId'
      and (metadata->>'attempt')::int = (select attempt from incident where id = ${id})
    order by seq desc limit 1`.execute(db)
  return rows[0] ?? null
}

/**
 * Returns SQL for the newest grade of an incident's cause. `id`: the column with the id of the
 * incident.
 */
export const causeGrade = (id: string) =>
  sql<Grade | null>`(select metadata->>'verdict' from incident_event as grade
    where grade.incident_id = ${sql.ref(id)} and grade.kind = 'graded' and not grade.metadata ? 'callId' order by grade.seq desc limit 1)`
