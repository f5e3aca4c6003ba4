import { sql } from 'kysely'
import type { EventMetadata, IncidentEvent } from '../../domain/event.ts'
import type { IncidentStatus } from '../../domain/incident.ts'
import { resourceKey } from '../../domain/registry.ts'
import { parseStepKey, siblingKey } from '../../domain/step-key.ts'
import type { Undoes } from '../../domain/undo.ts'
import type { Db, Trx } from '../connect.ts'
import { append } from '../log/append.ts'
import { eventByStepKey, eventsOf } from '../log/events.ts'
import { loseTrust } from '../trust/lose.ts'

/** A write of an incident, with its outcome according to the log. */
export type LoggedWrite = {
  started: IncidentEvent<'tool_started'>
  finished: IncidentEvent<'tool_finished'> | null
}

/** Finds the write that this step key began; null if there is none. */
export async function writeByKey(db: Db | Trx, key: string): Promise<LoggedWrite | null> {
  const started = await eventByStepKey(db, key, 'tool_started')
  if (started?.metadata.effect !== 'write') return null
  return { started, finished: await eventByStepKey(db, siblingKey(key, 'tool_finished'), 'tool_finished') }
}

/** Lists all writes of an incident, the oldest first. */
export async function writesOf(db: Db | Trx, incidentId: string): Promise<LoggedWrite[]> {
  const events = await eventsOf(db, incidentId)
  return events.flatMap((event) => {
    if (event.kind !== 'tool_started' || event.metadata.effect !== 'write') return []
    const started = event as IncidentEvent<'tool_started'>
    const finishedKey = siblingKey(started.stepKey, 'tool_finished')
    const finished = events.find(({ kind, stepKey }) => kind === 'tool_finished' && stepKey === finishedKey)
    return [{ started, finished: (finished as IncidentEvent<'tool_finished'> | undefined) ?? null }]
  })
}

/** A requested undo and its progress. `unclear`: its outcome is unknown. */
export type UndoStanding = { incidentId: string; standing: 'under_way' | 'undone' | 'not_done' | 'unclear' }

/**
 * Lists every requested undo of a write, from the rows of the write's incident, the oldest first.
 */
export async function undosOf(db: Db | Trx, key: string): Promise<UndoStanding[]> {
  const { incidentId = '' } = parseStepKey(key) ?? {}
  const { rows } = await sql<{ by: string; isUndone: boolean; status: IncidentStatus | null; outcome: string | null }>`
    select noted.metadata->>'by' as by, incident.status,
      exists (select 1 from incident_event as ended where ended.incident_id = ${incidentId} and ended.kind = 'noted'
        and ended.metadata->>'code' = 'undone' and ended.metadata->>'by' = noted.metadata->>'by') as is_undone,
      (select coalesce(finished.metadata->>'outcome', 'unknown') from incident_event as started
        left join incident_event as finished on finished.incident_id = started.incident_id and finished.kind = 'tool_finished'
          and finished.metadata->>'callId' = started.metadata->>'callId'
        where started.incident_id = incident.id and started.kind = 'tool_started' limit 1) as outcome
    from incident_event as noted left join incident on incident.id = noted.metadata->>'by'
    where noted.incident_id = ${incidentId} and noted.kind = 'noted' and noted.metadata->>'code' = 'undo_asked'
      and noted.metadata->>'write' = ${key}
    order by noted.seq`.execute(db)
  return rows.map(({ by, isUndone, status, outcome }) => ({
    incidentId: by,
    standing: standingOf(isUndone, status, outcome),
  }))
}

function standingOf(
  isUndone: boolean,
  status: IncidentStatus | null,
  outcome: string | null,
): UndoStanding['standing'] {
  if (isUndone) return 'undone'
  if (status === 'open' || status === 'investigating' || status === 'awaiting_approval') return 'under_way'
  // Treats a missing incident or outcome as not done: the undo was refused, denied or not begun.
  // Retention removes only incidents that have ended.
  if (status === null || outcome === null) return 'not_done'
  // Uses the outcome of the write, because people may end an incident while its write runs.
  if (outcome === 'done' && status !== 'escalated') return 'undone'
  return outcome === 'failed' && status === 'cancelled' ? 'not_done' : 'unclear'
}

/** Finds the write that the run of a person's own write undoes; null if the run undoes nothing. */
export async function undoOfRun(db: Db | Trx, incidentId: string): Promise<Undoes | null> {
  const row = await db
    .selectFrom('incidentEvent')
    .select(sql<Undoes | null>`metadata->'undoes'`.as('undoes'))
    .where('incidentId', '=', incidentId)
    .where('kind', '=', 'change_requested')
    .executeTakeFirst()
  return row?.undoes ?? null
}

type UndoNote = {
  code: 'undo_asked' | 'undone' | 'undo_refused'
  actor: string
  text: string
  write: string
  /** The incident that undoes the write; absent if no incident was opened for it. */
  by?: string
}

/** Adds a row about an undo to the log of the incident in which the write was made. */
export async function noteUndo(trx: Trx, { code, actor, text, write, by }: UndoNote): Promise<void> {
  const { incidentId } = parseStepKey(write) ?? {}
  if (incidentId === undefined) return
  await append(trx, incidentId, null, {
    kind: 'noted',
    actor,
    detail: text,
    metadata: { code, text, write, ...(by !== undefined && { by }) },
  })
}

type Ended = {
  undoes: Undoes
  by: string
  actor: string
  name: string
  operatorId: string
  said: string
  isDone: boolean
}

/**
 * Records the outcome of an undo in the log of the write's incident. If the person graded the write
 * as wrong, the tool's record shows the grade, and the tool loses its trust.
 */
export async function endUndo(trx: Trx, ended: Ended): Promise<void> {
  const { undoes, by, actor, name, said, isDone } = ended
  // Stops if retention has removed the incident and its log since.
  const there = await trx.selectFrom('incident').select('id').where('id', '=', undoes.incidentId).executeTakeFirst()
  if (!there) return
  const text = isDone
    ? `${name} undid ${undoes.tool} (${by}): ${said}`
    : `The undo of ${undoes.tool} (${by}) did not run: ${said}`
  await noteUndo(trx, { code: isDone ? 'undone' : 'undo_refused', actor, text, write: undoes.key, by })
  if (isDone && undoes.isWrong) await gradeWrong(trx, ended)
}

async function gradeWrong(trx: Trx, { undoes, actor, name, operatorId }: Ended): Promise<void> {
  const { incidentId, attempt, callId, tool } = undoes
  const text = 'undone'
  const graded: EventMetadata['graded'] = { callId, tool, attempt, verdict: 'wrong', text, operatorId, name }
  const detail = `${name} on ${tool}, which was undone: wrong`
  await append(trx, incidentId, null, { kind: 'graded', actor, detail, metadata: graded })
  await loseTrust(trx, incidentId, { callIds: [callId], why: `${name} undid it and said that it was wrong` })
}

/** Describes a write, for use within a sentence. */
export function describeWrite({ started, finished }: LoggedWrite): string {
  const { tool, targets } = started.metadata
  return finished?.metadata.said ?? `${tool} on ${targets.map(resourceKey).join(', ')}`
}
