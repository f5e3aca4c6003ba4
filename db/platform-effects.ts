import { sql } from 'kysely'
import { cleanse } from '../safety/cleanse.ts'
import type { Db } from './connect.ts'

type Entry = {
  key: string
  action: 'start' | 'migrate' | 'await'
  vmId: string
  node: string
  target: string
  tasksBefore: string[]
}
type Ending = { status: 'done' | 'failed'; detail: string }

/** Journals a write before it is sent. True for exactly one caller: that one, and nobody else, may send it. */
export async function beginPlatformEffect(db: Db, entry: Entry): Promise<boolean> {
  const row = await db
    .insertInto('platformEffect')
    .values({ ...entry, tasksBefore: JSON.stringify(entry.tasksBefore) })
    .onConflict((conflict) => conflict.column('key').doNothing())
    .returning('key')
    .executeTakeFirst()
  return row !== undefined
}

/** Which task of the platform does it. */
export async function notePlatformTask(db: Db, key: string, task: string): Promise<void> {
  await db.updateTable('platformEffect').set({ task }).where('key', '=', key).execute()
}

/** Writes how it ended. The first ending stays. */
export async function endPlatformEffect(db: Db, key: string, { status, detail }: Ending): Promise<void> {
  await db
    .updateTable('platformEffect')
    .set({ status, detail: cleanse(detail) })
    .where('key', '=', key)
    .where('status', 'is', null)
    .execute()
}

export async function platformEffectByKey(
  db: Db,
  key: string,
): Promise<(Entry & { task: string | null; ageSeconds: number; ending: Ending | null }) | null> {
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
