import { sql } from 'kysely'
import type { Findings } from '../../domain/chain.ts'
import type { Db, Trx } from '../connect.ts'
import { differs, takeNotes } from './findings.ts'
import { inSnapshot } from './incident.ts'

type Row = {
  id: string
  approvalId: string
  uses: number
  usesLeft: number
  tool: string
  actionDigest: string
  stateFingerprint: string
  asked: { tool: string; digest: string } | null
  approval: { status: string; fingerprint: string; isSameTargets: boolean; isGivenByVoter: boolean } | null
  used: number
  isGiven: boolean
  revokedAt: string | null
  isRevoked: boolean
}

/**
 * Compares standing grants with log and audit log. Each grant must be for the action and state of
 * an approved approval, given by one of its approvers, used as often as log rows show, and ended by
 * a row.
 */
export async function verifyGrants(db: Db | Trx): Promise<Findings> {
  return await inSnapshot(db, async (trx) => {
    const notes = takeNotes()
    const { rows } = await sql<Row>`
      select g.id, g.approval_id, g.uses, g.uses_left, g.tool, g.action_digest, g.state_fingerprint, g.revoked_at,
        (select jsonb_build_object('tool', e.metadata->>'tool', 'digest', e.metadata->>'actionDigest')
          from incident_event as e join approval as a on a.incident_id = e.incident_id
          where a.id = g.approval_id and e.kind = 'approval_requested' and e.metadata->>'approvalId' = g.approval_id limit 1) as asked,
        (select jsonb_build_object('status', a.status, 'fingerprint', a.state_fingerprint, 'isSameTargets', a.targets = g.targets,
          'isGivenByVoter', exists (
            select from approval_decision as vote
            where vote.approval_id = a.id and vote.operator_id = g.granted_by and vote.decision = 'approve'))
          from approval as a where a.id = g.approval_id) as approval,
        coalesce(used.count, 0)::int as used,
        given.subject is not null as is_given, revoked.subject is not null as is_revoked
      from standing_grant as g
      left join (select distinct subject from audit where what = 'grant.given') as given on given.subject = g.id
      left join (select distinct subject from audit where what = 'grant.revoked') as revoked on revoked.subject = g.id
      left join (
        select metadata->>'grantId' as id, count(*) from incident_event where kind = 'grant_used' group by 1
      ) as used on used.id = g.id
      order by g.id`.execute(trx)
    for (const row of rows) for (const what of flawsOf(row)) notes.differ(row.id, what)
    const { differences, checked, untold } = notes
    return { differences, checked, untold }
  })
}

function flawsOf(row: Row): string[] {
  const { uses, usesLeft, tool, actionDigest, asked, used, approval } = row
  const found: string[] = []
  if (uses - usesLeft !== used) found.push(differs('uses left', usesLeft, uses - used))
  if (!row.isGiven) found.push('no row of the audit gives this grant')
  if ((row.revokedAt !== null) !== row.isRevoked)
    found.push(row.isRevoked ? 'the grant was ended, and is in force again' : 'no row of the audit ends this grant')
  if (!asked || !approval) return [...found, 'no row requests the approval of this grant']
  if (asked.tool !== tool) found.push(differs('tool', tool, asked.tool))
  if (asked.digest !== actionDigest) found.push('the grant is for another action than its approval')
  if (approval.fingerprint !== row.stateFingerprint) found.push('the grant is for another state than its approval')
  if (!approval.isSameTargets) found.push('the grant is for other targets than its approval')
  if (!approval.isGivenByVoter) found.push('the person of the grant did not approve its approval')
  return found
}
