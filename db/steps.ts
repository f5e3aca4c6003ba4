import type { PlanStep } from '../domain/placement.ts'
import type { Db } from './connect.ts'

/**
 * The plan behind an effect, as `result` names it while it runs: the steps have keys of their own. Null for an effect that is
 * one write.
 */
export async function stepsOfEffect(db: Db, key: string): Promise<{ step: number; vm: string; to: string }[] | null> {
  const row = await db.selectFrom('effect').select(['result', 'tool']).where('key', '=', key).executeTakeFirst()
  const proposalId = row?.result.proposalId
  if (row?.tool !== 'execute_migration' || typeof proposalId !== 'string') return null
  const proposal = await db.selectFrom('proposal').select('steps').where('id', '=', proposalId).executeTakeFirst()
  return ((proposal?.steps ?? []) as PlanStep[]).map(({ step, vm, to }) => ({ step, vm, to }))
}

/** Notes, while an effect runs, which plan it carries out. */
export async function notePlanOfEffect(db: Db, key: string, proposalId: string): Promise<void> {
  await db
    .updateTable('effect')
    .set({ result: JSON.stringify({ proposalId }) })
    .where('key', '=', key)
    .where('status', '=', 'running')
    .execute()
}
