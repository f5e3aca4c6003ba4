import { sql } from 'kysely'
import { type Db, lastDiskFaultMs } from './connect.ts'

/**
 * Approvals, leases and times of rows go by the database's clock: an operator reads them by this
 * machine's.
 */
const maxClockDifferenceSeconds = 10
/** Beyond this share of its connections the next process to start gets none. */
const maxShareOfConnections = 0.9

/** Nothing but a write finds out: what met a full disk so lately tells of it. */
const diskFaultMs = 300_000

/** `remedy` holds the statement that helps. */
export type Trouble = { what: string; remedy: string }

/** What keeps a database that answers from its duty; null where nothing does. */
export async function databaseTrouble(db: Db): Promise<Trouble | null> {
  const { rows } = await sql<{
    isReplica: boolean
    readOnly: string
    name: string
    seconds: number
    used: number
    most: number
  }>`
    select pg_is_in_recovery() as is_replica, current_setting('transaction_read_only') as read_only, current_database() as name,
      extract(epoch from clock_timestamp())::float8 as seconds,
      (select count(*)::int from pg_stat_activity where backend_type = 'client backend') as used,
      current_setting('max_connections')::int as most`.execute(db)
  const { isReplica, readOnly, name, seconds, used, most } = rows[0]!
  if (isReplica)
    return {
      what: 'It is a replica and takes no writes.',
      remedy: 'let DATABASE_URL lead to the primary, or "select pg_promote()"',
    }
  if (readOnly === 'on')
    return {
      what: 'It takes no writes.',
      remedy: `"ALTER DATABASE ${name} SET default_transaction_read_only = off", and the same of its login and server`,
    }
  const failedMs = lastDiskFaultMs(db)
  if (failedMs !== null && Date.now() - failedMs < diskFaultMs)
    return {
      what: `Its disk is full or fails: a write was refused at ${new Date(failedMs).toISOString().slice(11, 19)} UTC.`,
      remedy: '"SHOW data_directory" says where: make room there; its log says more',
    }
  const ahead = Math.round(seconds - Date.now() / 1_000)
  if (Math.abs(ahead) > maxClockDifferenceSeconds)
    return {
      what: `Its clock is ${Math.abs(ahead)} s ${ahead > 0 ? 'ahead of' : 'behind'} this machine's.`,
      remedy: 'set both by NTP: "timedatectl set-ntp true"',
    }
  if (used > most * maxShareOfConnections)
    return {
      what: `${used} of its ${most} connections are taken.`,
      remedy: `"ALTER SYSTEM SET max_connections = ${most * 2}" and a restart, or fewer clients`,
    }
  return null
}

/** Tells whether this database holds incidents; false without a schema. */
export async function holdsIncidents(db: Db): Promise<boolean> {
  const { rows } = await sql<{ there: boolean }>`select to_regclass('incident') is not null as there`.execute(db)
  if (!rows[0]?.there) return false
  return (await db.selectFrom('incident').select('id').limit(1).executeTakeFirst()) !== undefined
}
