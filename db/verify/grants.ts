import { sql } from 'kysely'
import type { Db } from '../connect.ts'
import { type Difference, differs } from './incident.ts'

type Row = {
  id: string
  uses: number
  usesLeft: number
  tool: string
  actionDigest: string
  asked: { tool: string; digest: string } | null
  used: number
}

/** Standing grants against the log: each for the action of an approved approval, and used as often as rows say. */
export async function verifyGrants(db: Db): Promise<Difference[]> {
  const { rows } = await sql<Row>`
    select g.id, g.uses, g.uses_left, g.tool, g.action_digest,
      (select jsonb_build_object('tool', e.metadata->>'tool', 'digest', e.metadata->>'actionDigest')
        from incident_event as e join approval as a on a.incident_id = e.incident_id
        where a.id = g.approval_id and e.kind = 'approval_requested' and e.metadata->>'approvalId' = g.approval_id limit 1) as asked,
      coalesce(used.count, 0)::int as used
    from standing_grant as g
    left join (
      select metadata->>'grantId' as id, count(*) from incident_event where kind = 'grant_used' group by 1
    ) as used on used.id = g.id
    order by g.id`.execute(db)
  return rows.flatMap((row) => flawsOf(row).map((what) => ({ subject: row.id, what })))
}

function flawsOf({ uses, usesLeft, tool, actionDigest, asked, used }: Row): string[] {
  const found: string[] = []
  if (uses - usesLeft !== used) found.push(differs('uses left', usesLeft, uses - used))
  if (!asked) return [...found, 'no row asks for the approval that it came from']
  if (asked.tool !== tool) found.push(differs('tool', tool, asked.tool))
  if (asked.digest !== actionDigest) found.push('it is for another action than the approval that it came from')
  return found
}
