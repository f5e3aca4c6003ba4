import { sql } from 'kysely'
import { type EffectiveSetting, effectiveSetting } from '../domain/setting.ts'
import type { EnvironmentVariable } from '../domain/setting-row.ts'
import { onceNow } from './clock.ts'
import { type Db, inTransaction, type Trx } from './connect.ts'
import { recordAudit } from './log/audit.ts'
import type { Scope } from './scope.ts'

/** Values of settings in the environment, by the name of the variable. */
export type EnvironmentDefaults = Record<string, string | undefined>

export async function storedSettings(db: Db | Trx): Promise<Map<string, string>> {
  const rows = await db.selectFrom('platformConfig').select(['key', 'value']).execute()
  return new Map(rows.map((row) => [row.key, row.value]))
}

export type SettingsReader = {
  effective(name: string, type?: string | null): EffectiveSetting
  value<T>(name: string, type?: string | null): T
}

/**
 * Reads all settings at one moment. A cycle of work reads them at its beginning and then uses the
 * result as often as needed.
 */
export async function readSettings(db: Db | Trx, environment: EnvironmentDefaults = {}): Promise<SettingsReader> {
  const stored = await storedSettings(db)
  const effective = (name: string, type: string | null = null) => effectiveSetting(name, type, stored, environment)
  return { effective, value: <T>(name: string, type: string | null = null) => effective(name, type).value as T }
}

export type ConfigRow = {
  key: string
  value: string
  version: number
  updatedAt: string
  updatedBy: string
  reason: string | null
}

export async function configRows({ db }: Scope): Promise<ConfigRow[]> {
  return await db.selectFrom('platformConfig').selectAll().orderBy('key').execute()
}

export async function configRow({ db }: Scope, key: string): Promise<ConfigRow | null> {
  return (await db.selectFrom('platformConfig').selectAll().where('key', '=', key).executeTakeFirst()) ?? null
}

/**
 * Writes the value of a setting. A database trigger writes the revision. With `ifVersion`, writes
 * only over exactly this version (0: no value yet). If two people change one version, the first
 * wins, and the second gets null and must read the setting again.
 */
export async function putConfig(
  db: Db,
  change: { key: string; value: string; actor: string; reason: string | null; ifVersion: number | null },
): Promise<ConfigRow | null> {
  return await inTransaction(db, async (trx) => {
    const row = await writeConfig(trx, change)
    // Names the person in the audit log. The revision contains the values.
    const entry = { who: change.actor.replace(/^user:/, ''), what: 'config.put' as const, subject: change.key }
    if (row) await recordAudit(trx, { ...entry, detail: `Version ${row.version}` })
    return row
  })
}

async function writeConfig(
  db: Trx,
  change: { key: string; value: string; actor: string; reason: string | null; ifVersion: number | null },
): Promise<ConfigRow | null> {
  const { key, value, actor: updatedBy, reason, ifVersion } = change
  if (ifVersion === null || ifVersion === 0) {
    const inserted = await db
      .insertInto('platformConfig')
      .values({ key, value, updatedBy, reason })
      .onConflict((conflict) => conflict.column('key').doNothing())
      .returningAll()
      .executeTakeFirst()
    if (inserted || ifVersion === 0) return inserted ?? null
  }
  let update = db.updateTable('platformConfig').set({ value, updatedBy, reason }).where('key', '=', key)
  if (ifVersion !== null) update = update.where('version', '=', ifVersion)
  return (await update.returningAll().executeTakeFirst()) ?? null
}

/** Lists every change of a setting, the newest first. */
export async function configRevisions({ db }: Scope, key: string, page: { before: number | null; limit: number }) {
  let query = db
    .selectFrom('platformConfigRevision')
    .select(['version', 'oldValue', 'newValue', 'actor', 'reason', 'at'])
    .where('key', '=', key)
    .orderBy('version', 'desc')
    .orderBy(sql`id`, 'desc')
    .limit(page.limit)
  if (page.before !== null) query = query.where('version', '<', page.before)
  return await query.execute()
}

/**
 * Stores the environment of this worker, which people see beside the environment of the API. Only
 * the environment of the last worker is kept.
 */
export async function noteWorkerEnvironment(db: Db, variables: readonly EnvironmentVariable[]): Promise<void> {
  const row = { variables: JSON.stringify(variables) }
  await db
    .insertInto('workerEnvironment')
    .values(row)
    .onConflict((conflict) => conflict.column('singleton').doUpdateSet({ ...row, startedAt: onceNow }))
    .execute()
}

/** Returns the environment of the last worker. Null if no worker has stored an environment yet. */
export async function workerEnvironment({
  db,
}: Scope): Promise<{ variables: EnvironmentVariable[]; startedAt: string } | null> {
  return (await db.selectFrom('workerEnvironment').select(['variables', 'startedAt']).executeTakeFirst()) ?? null
}
