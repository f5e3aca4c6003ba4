import { sql } from 'kysely'
import type { IncidentEvent } from '../../domain/event.ts'
import { type JobNote, type JobRun, runJobTool } from '../../domain/job.ts'
import type { VmBefore } from '../../domain/platform.ts'
import { now } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'
import { releaseAfterEffect } from './leases.ts'

export type WriteRecord = {
  key: string
  status: 'running' | 'done' | 'failed' | 'indeterminate'
  detail: string
  result: Record<string, unknown>
  /** Seconds for which the effect has been running; null once the effect has ended. */
  runningSeconds: number | null
}

/**
 * Accepts a write under its idempotency key. True for exactly one caller, and only this caller may
 * start the write. False if the key is known; `effectByKey` then returns the outcome.
 */
export async function acceptEffect(
  db: Db | Trx,
  effect: { key: string; incidentId: string | null; tool: string; actionDigest: string },
): Promise<boolean> {
  const row = await db
    .insertInto('effect')
    .values({ ...effect, status: 'running', result: '{}' })
    .onConflict((conflict) => conflict.column('key').doNothing())
    .returning('key')
    .executeTakeFirst()
  return row !== undefined
}

/**
 * Records the ending of an effect. Only the first ending is kept, so a late response changes
 * nothing. The recorded job also stays.
 */
export async function finishEffect(
  db: Db | Trx,
  key: string,
  ending: { status: 'done' | 'failed' | 'indeterminate'; detail: string; result: Record<string, unknown> },
): Promise<void> {
  await db
    .updateTable('effect')
    .set({
      status: ending.status,
      detail: ending.detail,
      result: sql<string>`case when result ? 'job' then jsonb_build_object('job', result->'job') else '{}' end || ${JSON.stringify(ending.result)}::jsonb`,
      finishedAt: now,
    })
    .where('key', '=', key)
    .where('status', 'in', ['running', 'indeterminate'])
    .execute()
  await releaseAfterEffect(db, key)
}

export async function effectByKey(
  db: Db | Trx,
  key: string,
): Promise<(WriteRecord & { actionDigest: string; tool: string }) | null> {
  const row = await db
    .selectFrom('effect')
    .select(['key', 'status', 'detail', 'result', 'actionDigest', 'tool'])
    .select(
      sql<
        number | null
      >`case when status = 'running' then extract(epoch from nightshift_now() - started_at)::float8 end`.as(
        'runningSeconds',
      ),
    )
    .where('key', '=', key)
    .executeTakeFirst()
  return row ?? null
}

/**
 * Finds the plan of an effect. `result` names the plan while the effect runs. Null for a single
 * write.
 */
export async function planOfEffect(db: Db, key: string): Promise<string | null> {
  const row = await db.selectFrom('effect').select(['result', 'tool']).where('key', '=', key).executeTakeFirst()
  const proposalId = row?.result.proposalId
  return row?.tool === 'execute_migration' && typeof proposalId === 'string' ? proposalId : null
}

async function noteOfEffect(db: Db, key: string, note: Record<string, unknown>): Promise<void> {
  await db
    .updateTable('effect')
    .set({ result: JSON.stringify(note) })
    .where('key', '=', key)
    .where('status', '=', 'running')
    .execute()
}

/**
 * Records the plan of a running effect. A later reconciliation finds the keys of the steps through
 * the plan.
 */
export async function notePlanOfEffect(db: Db, key: string, proposalId: string): Promise<void> {
  await noteOfEffect(db, key, { proposalId })
}

/** Records the job of a running effect and its progress, so that code can query a lost job. */
export async function noteJobOfEffect(db: Db, key: string, job: JobNote): Promise<void> {
  await noteOfEffect(db, key, { job })
}

/** Lists the last runs of a job, newest first. */
export async function runsOfJob(db: Db, name: string, limit: number): Promise<JobRun[]> {
  return await db
    .selectFrom('effect')
    .select(['key', 'status', 'detail', 'incidentId', 'startedAt', 'finishedAt'])
    .select(sql<JobRun['resource']>`result->'job'->'resource'`.as('resource'))
    .where('tool', '=', runJobTool)
    .where(sql<boolean>`result->'job'->>'name' = ${name}`)
    .orderBy('startedAt', 'desc')
    .limit(limit)
    .execute()
}

/** Records the state of the VM before a running effect, for a later comparison. */
export async function noteVmOfEffect(db: Db, key: string, before: VmBefore): Promise<void> {
  await noteOfEffect(db, key, { before })
}

/** Records the values that a write to a database compared, for the read that verifies it. */
export async function noteCompared(db: Db, key: string, compared: Record<string, unknown>): Promise<void> {
  await noteOfEffect(db, key, { compared })
}

/** Finds the running plan that starts or moves this VM; null if there is none. */
export async function planUnderWay(db: Db, vmId: string): Promise<string | null> {
  const { rows } = await sql<{ id: string }>`
    select proposal.id from effect join proposal on proposal.id = effect.result->>'proposalId'
    where effect.status = 'running' and effect.tool = 'execute_migration'
      and proposal.steps @> ${JSON.stringify([{ vm: vmId }])}::jsonb
    order by proposal.id limit 1`.execute(db)
  return rows[0]?.id ?? null
}

/** Whether somebody stopped the run that announced this call, or closed the run's incident. */
export async function cancelAsked(db: Db, { incidentId, attempt }: IncidentEvent<'tool_started'>): Promise<boolean> {
  const closed = await db
    .selectFrom('incident')
    .select('id')
    .where('id', '=', incidentId)
    .where((where) =>
      where.or([where('status', 'in', ['resolved', 'escalated', 'cancelled']), where('attempt', '!=', attempt)]),
    )
    .executeTakeFirst()
  if (closed) return true
  const asked = await db
    .selectFrom('incidentEvent')
    .select('id')
    .where('incidentId', '=', incidentId)
    .where('attempt', '=', attempt)
    .where('kind', '=', 'commented')
    .where(sql<boolean>`metadata->>'action' = 'cancel_requested'`)
    .executeTakeFirst()
  return asked !== undefined
}
