import { sql } from 'kysely'
import type { Approval, Evidence } from '../../domain/approval.ts'
import { foldHypotheses, formatCause } from '../../domain/hypothesis.ts'
import { type ResourceRef, resourceKey } from '../../domain/registry.ts'
import { eventsOf } from '../log/events.ts'
import type { Scope } from '../scope.ts'

/** How many characters of a result are shown: enough to decide whether to open the row. */
const shownLetters = 200

type Look = {
  seq: number
  at: string
  tool: string
  found: string
  isSaid: boolean
  named: ResourceRef[] | null
  told: ResourceRef[] | null
}

/**
 * Lists the rows on which an approval rests, oldest first: the newest alert; for each target and
 * for the incident's resource, the newest read that named it and the newest read that reported on
 * it; and the turn in which the model proposed the call. They are read from the log each time, so
 * that old approvals have them too.
 */
export async function evidenceOf(
  { db }: Scope,
  { id, incidentId, attempt, callId, targets }: Pick<Approval, 'id' | 'incidentId' | 'attempt' | 'callId' | 'targets'>,
): Promise<Evidence[]> {
  const { resourceKind, resourceId } = await db
    .selectFrom('incident')
    .select(['resourceKind', 'resourceId'])
    .where('id', '=', incidentId)
    .executeTakeFirstOrThrow()
  // Includes the resource of the incident. A dead host, for example, is no target, but rows about
  // it belong to the evidence.
  const things = resourceId === null ? targets : [...targets, { kind: resourceKind, id: resourceId }]
  const before = sql`incident_id = ${incidentId} and seq < coalesce((
    select min(seq) from incident_event
    where incident_id = ${incidentId} and kind = 'approval_requested' and metadata->>'approvalId' = ${id}), 2147483647)`
  const among = (field: 'targets' | 'discovered') => sql`(
    select jsonb_agg(thing) from jsonb_array_elements(${JSON.stringify(things)}::jsonb) as thing
    where metadata->${sql.lit(field)} @> jsonb_build_array(thing))`
  const looks = sql<Look>`
    select seq, at, metadata->>'tool' as tool, ${among('targets')} as named, ${among('discovered')} as told,
      metadata ? 'said' as "isSaid",
      left(coalesce(metadata->>'said', metadata->'result'->>'data', metadata->'body'->>'head', ''), ${shownLetters + 1}) as found
    from incident_event
    where ${before} and attempt = ${attempt} and kind = 'tool_finished'
      and metadata->>'effect' in ('read', 'resolve') and metadata->'result'->>'ok' = 'true'
    order by seq`.execute(db)
  const ends = sql<{ seq: number; at: string; kind: 'alert_received' | 'model_answered'; detail: string }>`
    select distinct on (kind) seq, at, kind, left(detail, ${shownLetters + 1}) as detail from incident_event
    where ${before} and (kind = 'alert_received' or (kind = 'model_answered' and attempt = ${attempt}
      and metadata->'calls' @> ${JSON.stringify([{ id: callId }])}::jsonb))
    order by kind, seq desc`.execute(db)
  const found: Evidence[] = (await ends).rows.map(({ seq, at, kind, detail }) => {
    const none = { seq, at, tool: null, about: [], isSaid: false }
    return kind === 'alert_received'
      ? { ...none, what: 'alert', found: brief(detail) }
      : { ...none, what: 'proposed', found: '' }
  })
  return [...found, ...newest((await looks).rows)].sort((a, b) => a.seq - b.seq)
}

/** Keeps each read that is the newest for at least one resource. */
function newest(looks: Look[]): Evidence[] {
  const last = new Map<string, Look>()
  for (const look of looks) {
    for (const target of look.told ?? []) last.set(`told ${resourceKey(target)}`, look)
    for (const target of look.named ?? []) last.set(`named ${resourceKey(target)}`, look)
  }
  return [...new Set(last.values())].map(({ seq, at, tool, found, isSaid, named, told }) => {
    const about = new Map([...(named ?? []), ...(told ?? [])].map((thing) => [resourceKey(thing), thing]))
    return { seq, at, what: 'look', tool, about: [...about.values()], found: brief(found), isSaid }
  })
}

function brief(text: string): string {
  return text.length > shownLetters ? `${text.slice(0, shownLetters - 1)}…` : text
}

/**
 * Returns the sentence about the cause that the run of an approval currently assumes; null if the
 * run assumes none.
 */
export async function causeOf(
  { db }: Scope,
  { incidentId, attempt }: { incidentId: string; attempt: number },
): Promise<string | null> {
  return formatCause(foldHypotheses(await eventsOf(db, incidentId, { attempt }), attempt))
}
