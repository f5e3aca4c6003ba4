import { sql } from 'kysely'
import type { PlatformEffect, PlatformEffectEnding, PlatformEffectRow } from '../../domain/platform.ts'
import { cleanse } from '../../safety/redact.ts'
import type { Db } from '../connect.ts'

/** Records a write before it is sent. True for exactly one caller, which alone may send it. */
export async function beginPlatformEffect(db: Db, effect: PlatformEffect): Promise<boolean> {
  const row = await db
    .insertInto('platformEffect')
    .values({ ...effect, tasksBefore: JSON.stringify(effect.tasksBefore) })
    .onConflict((conflict) => conflict.column('key').doNothing())
    .returning('key')
    .executeTakeFirst()
  return row !== undefined
}

/** Records the task at the platform that carries out a write. */
export async function notePlatformTask(db: Db, key: string, task: string): Promise<void> {
  await db.updateTable('platformEffect').set({ task }).where('key', '=', key).execute()
}

/** Records the ending of a write at the platform. Only the first ending is kept. */
export async function endPlatformEffect(db: Db, key: string, { status, detail }: PlatformEffectEnding): Promise<void> {
  await db
    .updateTable('platformEffect')
    .set({ status, detail: cleanse(detail) })
    .where('key', '=', key)
    .where('status', 'is', null)
    .execute()
}

/** Reads the state of a write at the platform; null if none was begun under this key. */
export async function platformEffectByKey(db: Db, key: string): Promise<PlatformEffectRow | null> {
  const row = await db
    .selectFrom('platformEffect')
    .select(['key', 'action', 'vmId', 'node', 'target', 'tasksBefore', 'task', 'status', 'detail'])
    .select(sql<number>`extract(epoch from nightshift_now() - begun_at)::float8`.as('ageSeconds'))
    .where('key', '=', key)
    .executeTakeFirst()
  if (!row) return null
  const { status, detail, ...rest } = row
  return { ...rest, ending: status === null || detail === null ? null : { status, detail } }
}
