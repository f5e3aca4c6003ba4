import { sql } from 'kysely'
import { describeGrant } from '../../domain/authority-words.ts'
import { newId } from '../../domain/digest.ts'
import type { StandingGrant } from '../../domain/grant.ts'
import type { Policy } from '../../domain/refusal.ts'
import type { ResourceRef } from '../../domain/registry.ts'
import { refusalToDecide } from '../access/operators.ts'
import { databaseTime, now } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'
import { append } from '../log/append.ts'
import { recordAudit } from '../log/audit.ts'
import type { Scope } from '../scope.ts'
import type { ApprovalRow } from '../tables.ts'

/**
 * Allows an approved action to run again without approval on an unchanged state, `uses` times
 * within `hours`.
 */
export async function storeGrant(
  trx: Trx,
  approval: ApprovalRow,
  operatorId: string,
  { uses, hours }: { uses: number; hours: number },
): Promise<string> {
  const id = newId('grt')
  // Uses one reading of the clock for both ends of the grant, because the table refuses a span that
  // is a microsecond too long.
  const grantedAt = await databaseTime(trx)
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
      grantedAt,
      expiresAt: sql<string>`${grantedAt}::timestamptz + make_interval(secs => ${Math.round(hours * 3600)})`,
    })
    .execute()
  await recordAudit(trx, {
    who: await nameOfOperator(trx, operatorId),
    what: 'grant.given',
    subject: id,
    detail: `${approval.tool} as in ${approval.id} ${describeGrant({ uses, hours })}`,
  })
  return id
}

async function nameOfOperator(trx: Trx, id: string): Promise<string> {
  const row = await trx.selectFrom('operator').select('name').where('id', '=', id).executeTakeFirstOrThrow()
  return row.name
}

/**
 * Lists the usable grants of a tool in this incident. The policy check compares the action. Leaves
 * out grants of a person who may no longer approve the action in this incident.
 */
export async function usableGrants(trx: Trx, tool: string, incidentId: string): Promise<Policy['grants']> {
  const grants = await trx
    .selectFrom('standingGrant')
    .innerJoin('approval', 'approval.id', 'standingGrant.approvalId')
    .select(['standingGrant.id', 'standingGrant.actionDigest', 'standingGrant.stateFingerprint', 'grantedBy', 'risk'])
    .select(['standingGrant.targets', 'standingGrant.grantedAt', 'dryRun'])
    .where('standingGrant.tool', '=', tool)
    .where('usesLeft', '>', 0)
    .where('revokedAt', 'is', null)
    .where('standingGrant.expiresAt', '>', now)
    .orderBy('standingGrant.expiresAt')
    .execute()
  const usable: Policy['grants'][number][] = []
  for (const { id, actionDigest, stateFingerprint, grantedAt, grantedBy, risk, targets, dryRun } of grants) {
    if (await refusalToDecide(trx, grantedBy, { incidentId, risk, targets, dryRun })) continue
    usable.push({ id, actionDigest, stateFingerprint, grantedAt })
  }
  return usable
}

/**
 * Takes one use of a grant, in the transaction of `tool_started`. False if another call took the
 * last use, if the grant ended, or if the person who gave the grant lost the right to approve.
 */
export async function useGrant(
  trx: Trx,
  run: { incidentId: string; attempt: number; turn: number },
  grantId: string,
  stepKey: string,
): Promise<boolean> {
  const given = await trx
    .selectFrom('standingGrant')
    .innerJoin('approval', 'approval.id', 'standingGrant.approvalId')
    .select(['grantedBy', 'risk', 'standingGrant.targets', 'dryRun'])
    .where('standingGrant.id', '=', grantId)
    .executeTakeFirst()
  if (!given) return false
  const { grantedBy, ...asked } = given
  if (await refusalToDecide(trx, grantedBy, { ...asked, incidentId: run.incidentId })) return false
  const taken = await trx
    .updateTable('standingGrant')
    .set((update) => ({ usesLeft: update('usesLeft', '-', 1) }))
    .where('id', '=', grantId)
    .where('usesLeft', '>', 0)
    .where('revokedAt', 'is', null)
    .where('expiresAt', '>', now)
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

export async function listGrants({ db }: Scope): Promise<StandingGrant[]> {
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

/** Ends a grant at once. False if no such grant exists, or if it ended before. */
export async function revokeGrant(db: Db, id: string): Promise<boolean> {
  const revoked = await db
    .updateTable('standingGrant')
    .set({ revokedAt: now })
    .where('id', '=', id)
    .where('revokedAt', 'is', null)
    .returning('id')
    .executeTakeFirst()
  return revoked !== undefined
}
