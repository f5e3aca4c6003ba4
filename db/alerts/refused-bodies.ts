import { sql } from 'kysely'
import type { RefusedBody } from '../../domain/alert-body.ts'
import { cleanse } from '../../safety/redact.ts'
import { onceNow } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'

const maxReasonChars = 300
const keptDays = 30

/**
 * Records a request body or an alert that can never be stored. Each sender and hour has one row,
 * with the newest reason.
 */
export async function noteRefusedBody(db: Db | Trx, { sender, ...body }: Omit<RefusedBody, 'count' | 'lastAt'>) {
  const { dialect, code, reason } = cleanse(body)
  await sql`
    insert into refused_body (sender, hour, dialect, code, reason)
    values (${sender}, date_trunc('hour', nightshift_now()), ${dialect}, ${code}, ${reason.slice(0, maxReasonChars)})
    on conflict (sender, hour) do update set count = refused_body.count + 1, dialect = excluded.dialect,
      code = excluded.code, reason = excluded.reason, last_at = excluded.last_at`.execute(db)
}

/** Lists refusals of the last day by sender, with the newest reason of each sender. */
export async function refusedLately(db: Db): Promise<RefusedBody[]> {
  const { rows } = await sql<RefusedBody>`
    select distinct on (sender) sender, sum(count) over (partition by sender)::int as count, dialect, code, reason, last_at
    from refused_body where last_at > ${onceNow} - interval '1 day'
    order by sender, last_at desc`.execute(db)
  return rows
}

export async function dropOldRefusals(db: Db): Promise<void> {
  await sql`delete from refused_body where hour < ${onceNow} - make_interval(days => ${keptDays})`.execute(db)
}
