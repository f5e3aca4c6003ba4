import { sql } from 'kysely'
import type { Db, Trx } from './connect.ts'
import { type StreamedEvent, type StreamPosition, streamAfter, streamEnd } from './log/stream.ts'
import { systemScope } from './scope.ts'

/**
 * Maximum number of values of a label from outside that get separate series. Later values are
 * counted as `other`.
 */
const namedValues = 50

type Increment = { counter: string; labels: Record<string, string> }

type Folded<M> = { increments: Increment[]; memory: M }

/**
 * Counts the next rows of the logs, each exactly once over all processes: position, memory and
 * counts change in one transaction behind one lock. Returns the number of counted rows. A number
 * below `limit` means that no rows are left.
 */
export async function foldCounters<M>(
  db: Db,
  limit: number,
  fold: (rows: StreamedEvent[], memory: unknown, provider: string) => Folded<M>,
): Promise<number> {
  return await db.transaction().execute(async (trx) => {
    const stored = await trx
      .selectFrom('metricPosition')
      .select(['memory', 'provider', 'rowId as id'])
      .select(sql<string>`tx::text`.as('tx'))
      .select(sql<boolean>`tx > pg_snapshot_xmax(pg_current_snapshot())`.as('isAhead'))
      .forUpdate()
      .executeTakeFirstOrThrow()
    // Continues to count at the end of the log, because transaction ids begin again if a backup is
    // restored in a new server.
    if (stored.isAhead) return await moveTo(trx, await streamEnd(systemScope(trx)), stored.memory)
    const rows = await streamAfter(systemScope(trx), { tx: stored.tx, id: stored.id }, { limit })
    const newest = rows.at(-1)?.position
    if (!newest) return 0
    const { increments, memory } = fold(rows, stored.memory, stored.provider)
    await add(trx, increments)
    await moveTo(trx, newest, memory)
    return rows.length
  })
}

async function moveTo(trx: Trx, { tx, id }: StreamPosition, memory: unknown): Promise<number> {
  await trx
    .updateTable('metricPosition')
    .set({
      tx: sql<string>`${tx}::xid8`,
      rowId: Math.min(id, Number.MAX_SAFE_INTEGER),
      memory: JSON.stringify(memory),
    })
    .execute()
  return 0
}

async function add(trx: Trx, increments: readonly Increment[]): Promise<void> {
  const summed = new Map<string, { name: string; labels: string; value: number }>()
  for (const { counter, labels } of increments) {
    const text = JSON.stringify(labels)
    const key = `${counter} ${text}`
    const entry = summed.get(key) ?? { name: counter, labels: text, value: 0 }
    summed.set(key, { ...entry, value: entry.value + 1 })
  }
  if (summed.size === 0) return
  await trx
    .insertInto('metricCounter')
    .values([...summed.values()])
    .onConflict((conflict) =>
      conflict.columns(['name', 'labels']).doUpdateSet({ value: sql`metric_counter.value + excluded.value` }),
    )
    .execute()
}

export type CounterValue = { name: string; labels: Record<string, string>; value: number }

export async function readCounters(db: Db): Promise<CounterValue[]> {
  return await db.selectFrom('metricCounter').select(['name', 'labels', 'value']).execute()
}

/**
 * Lists the values of a label that get separate series: the first fifty values ever. All processes
 * share the list, and a restart keeps it, so that values from outside cannot create an unlimited
 * number of series.
 */
export async function namedOf(db: Db, label: string, values: readonly string[]): Promise<ReadonlySet<string>> {
  const read = async () =>
    new Set(
      (await db.selectFrom('metricLabel').select('value').where('label', '=', label).execute()).map(
        ({ value }) => value,
      ),
    )
  const known = await read()
  const fresh = [...new Set(values)].filter((value) => !known.has(value))
  if (fresh.length === 0 || known.size >= namedValues) return known
  await db.transaction().execute(async (trx) => {
    await sql`select pg_advisory_xact_lock(hashtextextended('metric_label', 0))`.execute(trx)
    const { count } = await trx
      .selectFrom('metricLabel')
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .where('label', '=', label)
      .executeTakeFirstOrThrow()
    const added = fresh.slice(0, Math.max(0, namedValues - count)).map((value) => ({ label, value }))
    if (added.length > 0) {
      await trx
        .insertInto('metricLabel')
        .values(added)
        .onConflict((conflict) => conflict.doNothing())
        .execute()
    }
  })
  return await read()
}

/**
 * Stores the address of the model server, which a worker knows. Log rows contain only the name of
 * the model.
 */
export async function noteProvider(db: Db, provider: string): Promise<void> {
  await db.updateTable('metricPosition').set({ provider }).where('provider', '!=', provider).execute()
}
