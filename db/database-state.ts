import { sql } from 'kysely'
import { type Db, lastDiskFaultMs } from './connect.ts'

/**
 * Seconds by which the clocks of database and machine may differ. Approvals, leases and log rows
 * use the clock of the database, and an operator reads the clock of the machine.
 */
const maxClockDifferenceSeconds = 10
/** The share of connections in use above which the next process may get no connection. */
const maxShareOfConnections = 0.9

/** Milliseconds for which a full disk is reported after a failed write. Reads do not detect it. */
const diskFaultMs = 300_000

/** A problem of the database. `remedy`: what to do, often with the SQL statement. */
export type Trouble = { what: string; remedy: string }

/** Finds the problem that keeps a responding database from working; null if there is no problem. */
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
      what: 'The database is a replica, so it accepts no writes.',
      remedy: 'set DATABASE_URL to the primary, or run "select pg_promote()"',
    }
  if (readOnly === 'on')
    return {
      what: 'The database accepts no writes.',
      remedy: `"ALTER DATABASE ${name} SET default_transaction_read_only = off", and the same for its login and server`,
    }
  const failedMs = lastDiskFaultMs(db)
  if (failedMs !== null && Date.now() - failedMs < diskFaultMs)
    return {
      what: `The database's disk is full or fails: a write was refused at ${new Date(failedMs).toISOString().slice(11, 19)} UTC.`,
      remedy: 'free space in the directory that "SHOW data_directory" names; the log of PostgreSQL has details',
    }
  const ahead = Math.round(seconds - Date.now() / 1_000)
  if (Math.abs(ahead) > maxClockDifferenceSeconds)
    return {
      what: `The database's clock is ${Math.abs(ahead)} s ${ahead > 0 ? 'ahead of' : 'behind'} the clock of this machine.`,
      remedy: 'set both clocks by NTP: "timedatectl set-ntp true"',
    }
  if (used > most * maxShareOfConnections)
    return {
      what: `${used} of ${most} connections of the database are used.`,
      remedy: `"ALTER SYSTEM SET max_connections = ${most * 2}" and a restart, or fewer clients`,
    }
  return null
}

/** Whether this database contains incidents; false if it has no schema. */
export async function holdsIncidents(db: Db): Promise<boolean> {
  const { rows } = await sql<{ there: boolean }>`select to_regclass('incident') is not null as there`.execute(db)
  if (!rows[0]?.there) return false
  return (await db.selectFrom('incident').select('id').limit(1).executeTakeFirst()) !== undefined
}
