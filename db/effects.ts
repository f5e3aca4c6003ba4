import { sql } from 'kysely'
import type { Db, Trx } from './connect.ts'
import { releaseAfterEffect } from './leases.ts'
import { now } from './time.ts'

export type Effect = {
  key: string
  status: 'running' | 'done' | 'failed' | 'indeterminate'
  detail: string
  result: Record<string, unknown>
  /** How long it has been running; null once it has ended. */
  runningSeconds: number | null
}

/**
 * Accepts a write under its idempotency key. True for exactly one caller: that one, and nobody else, may start it. False: it
 * is known already, and `effectByKey` tells what became of it.
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

/** Writes how it ended. The first ending stays: a late answer changes nothing. */
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
      result: JSON.stringify(ending.result),
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
): Promise<(Effect & { actionDigest: string; tool: string }) | null> {
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
 * Was this very action announced by a run and judged? True only when the log holds a `tool_started` row with this step key
 * and digest for the incident's current attempt. The core API does no agent's write without it.
 */
export async function wasJudged(db: Db | Trx, stepKey: string, actionDigest: string): Promise<boolean> {
  const row = await db
    .selectFrom('incidentEvent')
    .innerJoin('incident', 'incident.id', 'incidentEvent.incidentId')
    .select('incidentEvent.id')
    .where('stepKey', '=', stepKey)
    .where('kind', '=', 'tool_started')
    .where(sql<boolean>`metadata->>'actionDigest' = ${actionDigest}`)
    .whereRef('incidentEvent.attempt', '=', 'incident.attempt')
    .executeTakeFirst()
  return row !== undefined
}
