import { sql } from 'kysely'
import type { StandingGrant } from '../domain/approval.ts'
import { newId } from '../domain/id.ts'
import type { Policy } from '../domain/policy.ts'
import type { ResourceRef } from '../domain/resource.ts'
import { append } from './append.ts'
import type { Db, Trx } from './connect.ts'
import type { ApprovalRow } from './tables.ts'

/** Lets an approved action run again without asking: the same action on the same state, `uses` times within `hours`. */
export async function grant(
  trx: Trx,
  approval: ApprovalRow,
  operatorId: string,
  { uses, hours }: { uses: number; hours: number },
): Promise<string> {
  const id = newId('grt')
  await trx
    .insertInto('standingGrant')
    .values({
      id,
      approvalId: approval.id,
      tool: approval.tool,
      actionDigest: approval.actionDigest,
      stateFingerprint: approval.stateFingerprint,
      targets: JSON.stringify(approval.targets),
      uses,
      usesLeft: uses,
      grantedBy: operatorId,
      expiresAt: sql`nightshift_now() + make_interval(secs => ${Math.round(hours * 3600)})` as never,
    })
    .execute()
  return id
}

/** Grants of a tool that may still be used: the judge says whether one is for this very action. */
export async function usableGrants(trx: Trx, tool: string): Promise<Policy['grants']> {
  return await trx
    .selectFrom('standingGrant')
    .select(['id', 'actionDigest', 'stateFingerprint'])
    .where('tool', '=', tool)
    .where('usesLeft', '>', 0)
    .where('revokedAt', 'is', null)
    .where('expiresAt', '>', sql<string>`nightshift_now()`)
    .orderBy('expiresAt')
    .execute()
}

/** Takes one use, in the transaction that writes `tool_started`. False when a rival took the last, or it ended since. */
export async function takeUse(
  trx: Trx,
  run: { incidentId: string; attempt: number; turn: number },
  grantId: string,
  stepKey: string,
): Promise<boolean> {
  const taken = await trx
    .updateTable('standingGrant')
    .set((update) => ({ usesLeft: update('usesLeft', '-', 1) }))
    .where('id', '=', grantId)
    .where('usesLeft', '>', 0)
    .where('revokedAt', 'is', null)
    .where('expiresAt', '>', sql<string>`nightshift_now()`)
    .returning(['approvalId', 'usesLeft'])
    .executeTakeFirst()
  if (!taken) return false
  await append(trx, run.incidentId, run.attempt, {
    kind: 'grant_used',
    actor: 'system:nightshift',
    turn: run.turn,
    stepKey,
    detail: `Runs on the standing grant ${grantId}: ${taken.usesLeft} uses left`,
    metadata: { approvalId: taken.approvalId, grantId, usesLeft: taken.usesLeft },
  })
  return true
}

export async function listGrants(db: Db): Promise<StandingGrant[]> {
  const rows = await db
    .selectFrom('standingGrant')
    .innerJoin('operator', 'operator.id', 'standingGrant.grantedBy')
    .selectAll('standingGrant')
    .select('operator.name as by')
    .orderBy('grantedAt', 'desc')
    .limit(200)
    .execute()
  return rows.map((row) => ({
    id: row.id,
    approvalId: row.approvalId,
    tool: row.tool,
    targets: row.targets as ResourceRef[],
    uses: row.uses,
    usesLeft: row.usesLeft,
    grantedBy: row.by,
    grantedAt: row.grantedAt as string,
    expiresAt: row.expiresAt as string,
    revokedAt: row.revokedAt,
  }))
}

/** Ends a grant at once. False when there is none, or it ended before. */
export async function revokeGrant(db: Db, id: string): Promise<boolean> {
  const revoked = await db
    .updateTable('standingGrant')
    .set({ revokedAt: sql`nightshift_now()` as never })
    .where('id', '=', id)
    .where('revokedAt', 'is', null)
    .returning('id')
    .executeTakeFirst()
  return revoked !== undefined
}
