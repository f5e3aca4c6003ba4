import { sql } from 'kysely'
import { formerTypes, isType } from '../../domain/incident-type.ts'
import type { PairTrust, TrustCause, TrustLevel, TrustPair, TrustStep } from '../../domain/trust.ts'
import type { Db, Trx } from '../connect.ts'
import type { Scope } from '../scope.ts'
import type { SettingsReader } from '../settings.ts'

/**
 * Finds the level of a pair that was set last, under any spelling of its type; null if no level was
 * set.
 */
export async function setTrustOf(
  db: Db | Trx,
  { type, tool }: TrustPair,
): Promise<{ id: number; level: TrustLevel; cause: TrustCause; at: string } | null> {
  const rows = await db
    .selectFrom('trustChange')
    .distinctOn('incidentType')
    .select(['incidentType', 'id', 'level', 'cause', 'at'])
    .where('tool', '=', tool)
    .where(sql<boolean>`replace(incident_type, '_', '') = replace(${type}, '_', '')`)
    .orderBy('incidentType')
    .orderBy('id', 'desc')
    .execute()
  const [newest] = rows.filter((row) => isSameType(row.incidentType, type)).toSorted((a, b) => b.id - a.id)
  if (!newest) return null
  const { incidentType: _, ...set } = newest
  return set
}

/**
 * Whether two spellings mean one incident type, so that the old spelling restores nothing that was
 * lost under the new spelling.
 */
const isSameType = (a: string, b: string): boolean => isType(a, b) || isType(b, a)

/**
 * Returns the current level of trust of a pair: the level that was set last, otherwise the level of
 * new pairs.
 */
export async function trustOf(db: Db | Trx, pair: TrustPair, settings: SettingsReader): Promise<PairTrust> {
  const set = await setTrustOf(db, pair)
  if (set) return { level: set.level, since: set.at }
  return { level: settings.value<TrustLevel>('agent.trust'), since: null }
}

/**
 * Locks a pair until the transaction ends. Of two transactions that set its level, the second then
 * sees the result of the first.
 */
export async function lockPair(trx: Trx, { type, tool }: TrustPair): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`trust ${type.replaceAll('_', '')} ${tool}`}, 0))`.execute(
    trx,
  )
}

/** Lists every pair whose level was set, with the newest level under any spelling of its type. */
export async function setPairs({
  db,
}: Scope): Promise<(TrustPair & { level: TrustLevel; cause: TrustCause; at: string })[]> {
  const rows = await db
    .selectFrom('trustChange')
    .distinctOn(['incidentType', 'tool'])
    .select(['id', 'incidentType as type', 'tool', 'level', 'cause', 'at'])
    .orderBy('incidentType')
    .orderBy('tool')
    .orderBy('id', 'desc')
    .execute()
  return rows.map((row) => {
    const same = rows.filter(({ tool, type }) => tool === row.tool && isSameType(type, row.type))
    const { level, cause, at } = same.reduce((a, b) => (b.id > a.id ? b : a), row)
    return { type: row.type, tool: row.tool, level, cause, at }
  })
}

/** Lists pairs that an older version ran automatically and that no person has confirmed since. */
export async function unconfirmedPairs(scope: Scope): Promise<TrustPair[]> {
  const pairs = await setPairs(scope)
  return pairs.filter(({ cause }) => cause === 'upgrade').map(({ type, tool }) => ({ type, tool }))
}

/** Lists every level that a pair had, newest first. */
export async function stepsOf({ db }: Scope, { type, tool }: TrustPair, limit: number): Promise<TrustStep[]> {
  const { rows } = await sql<TrustStep>`
    select change.level, change.cause, change.at, change.incident_id as "incidentId", said.who as by, said.detail as reason
    from trust_change as change
    left join lateral (
      select who, detail from audit
      where audit.tx = change.tx and audit.what in ('trust.set', 'trust.lost') and audit.subject = change.incident_type || ' ' || change.tool
      limit 1) as said on true
    where change.incident_type = any(${[type, ...formerTypes(type)]}) and change.tool = ${tool}
    order by change.id desc limit ${limit}`.execute(db)
  return rows
}
