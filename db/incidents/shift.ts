import { type RawBuilder, sql } from 'kysely'
import type { FollowUp, Shift, ShiftIncident, ShiftQuestion } from '../../domain/shift.ts'
import { onceNow } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'
import { type Scope, systemScope } from '../scope.ts'

/** Maximum number of items of one kind that are listed. All further items are only counted. */
const listed = 20

type Several<Each> = { count: number; first: Each[] }
type Counted<Each> = Each & { all: number }

/**
 * Reads what happened from `since` until `until`, and the current state, for the morning card and
 * the hand-over. `heldSince`: the time of the first question that woke nobody and that no card has
 * shown.
 */
export async function readShift(
  db: Db | Trx,
  { since, until, heldSince = since }: { since: string; until: string; heldSince?: string },
): Promise<Shift> {
  const within = (column: string) =>
    sql`${sql.ref(column)} >= ${since}::timestamptz and ${sql.ref(column)} < ${until}::timestamptz`
  const closed = sql`closed_at as at`
  const [repaired, escalated, spared, questions, followUps, open, watched, lost] = await Promise.all([
    incidents(db, closed, sql`status = 'resolved' and outcome = 'repaired' and ${within('closed_at')}`),
    incidents<ShiftIncident & { isMitigated: boolean }>(
      db,
      sql`closed_at as at, coalesce(category, '') = 'mitigated' as "isMitigated"`,
      sql`status = 'escalated' and ${within('closed_at')}`,
    ),
    sparedPages(db, since, until),
    questionsOf(db, heldSince, until),
    listFollowUps(systemScope(db), { isOverdue: true }),
    incidents(db, sql`created_at as at`, sql`(status in ('open', 'investigating', 'awaiting_approval', 'escalated'))`),
    incidents(db, closed, sql`status = 'resolved' and watch_until is not null`),
    db
      .selectFrom('lostDuty')
      .select('name')
      .where('seenAt', '>', sql<string>`${onceNow} - interval '150 seconds'`)
      .orderBy('since')
      .execute(),
  ])
  const lostDuties = lost.map(({ name }) => name)
  return { since, until, repaired, escalated, spared, questions, followUps, open, watched, lostDuties }
}

function toSeveral<Each>(rows: Counted<Each>[]): Several<Each> {
  return { count: rows[0]?.all ?? 0, first: rows.map(({ all: _, ...each }) => each as unknown as Each) }
}

async function incidents<Each = ShiftIncident>(
  db: Db | Trx,
  also: RawBuilder<unknown>,
  where: RawBuilder<unknown>,
): Promise<Several<Each>> {
  const { rows } = await sql<Counted<Each>>`
    select id, title, severity, ${also}, count(*) over ()::int as "all" from incident where ${where}
    order by array_position(array['critical', 'warning', 'info'], severity), created_at limit ${listed}`.execute(db)
  return toSeveral(rows)
}

/** Lists pages of this time that were not needed, and earlier ones that no card has shown. */
async function sparedPages(db: Db | Trx, since: string, until: string): Promise<Shift['spared']> {
  const { rows } = await sql<Counted<Shift['spared']['first'][number]>>`
    select incident.id, title, severity, max(released_at) as at, coalesce(max(response), 'No page') as text, count(*) over ()::int as "all"
    from delivery join incident on incident.id = delivery.incident_id
    where released_why = 'repaired' and (told_elsewhere_at is null or released_at >= ${since}::timestamptz) and released_at < ${until}::timestamptz
    group by incident.id order by max(released_at) limit ${listed}`.execute(db)
  return toSeveral(rows)
}

/**
 * Lists questions that are open now and were asked before `until`, and questions that woke nobody
 * from `since` until `until`, whatever their outcome.
 */
async function questionsOf(db: Db | Trx, since: string, until: string): Promise<Shift['questions']> {
  const { rows } = await sql<Counted<ShiftQuestion>>`
    select approval.id, approval.incident_id as "incidentId", title, dry_run->>'summary' as summary,
      case when approval.status = 'pending' and expires_at <= ${onceNow} then 'expired' else approval.status end as status,
      expires_at as "expiresAt", coalesce(not wakes, false) as "isHeld",
      (select name from approval_asked as asked join operator on operator.id = asked.operator_id
        where asked.approval_id = approval.id order by step desc limit 1) as of,
      count(*) over ()::int as "all"
    from approval join incident on incident.id = approval.incident_id
    left join question_wake on question_wake.approval_id = approval.id
    where announced and requested_at < ${until}::timestamptz
      and (approval.status = 'pending' and expires_at > ${onceNow} or not wakes and question_wake.at >= ${since}::timestamptz)
    order by approval.status <> 'pending', wakes nulls last, expires_at limit ${listed}`.execute(db)
  return toSeveral(rows)
}

/** Lists open follow-ups by their day. `isOverdue`: only follow-ups whose day has passed. */
export async function listFollowUps(
  { db }: Scope,
  { isOverdue = false, incidentId = null }: { isOverdue?: boolean; incidentId?: string | null } = {},
): Promise<Several<FollowUp>> {
  const isLate = sql`(follow_up.closed_at is null and due_on < (${onceNow} at time zone 'UTC')::date)`
  const { rows } = await sql<Counted<FollowUp>>`
    select incident_id as "incidentId", title, owner.name as owner, owner_group as "group", to_char(due_on, 'YYYY-MM-DD') as "dueOn",
      ${isLate} as "isOverdue", follow_up.created_at as "createdAt", follow_up.closed_at as "closedAt", closer.name as "closedBy",
      count(*) over ()::int as "all"
    from follow_up join incident on incident.id = follow_up.incident_id
    left join operator as owner on owner.id = follow_up.owner_id
    left join operator as closer on closer.id = follow_up.closed_by
    where ${incidentId === null ? sql`follow_up.closed_at is null` : sql`incident_id = ${incidentId}`} and (${!isOverdue} or ${isLate})
    order by due_on, follow_up.created_at limit ${incidentId === null ? 100 : 1}`.execute(db)
  return toSeveral(rows)
}
