import { setTimeout as sleep } from 'node:timers/promises'
import type { BrokenDatabase, Fault, Lab } from '../state.ts'
import type { DatabaseDrawer } from './drawer.ts'
import { faultWork } from './fault-work.ts'
import { type DatabaseFault, databaseFaultRows, databaseFaults } from './faults.ts'
import { replicaSlot } from './postgresql.ts'
import { replicaStatus } from './replication.ts'
import { isSameSession, type ShopSession } from './session.ts'
import { drawerOf, readMariadbSessions, readSessions } from './sessions.ts'
import { rowsOn } from './waits.ts'

type Check = { name: string; ok: boolean; detail: string }

/** Milliseconds within which a started replica, or a released replay, has to catch up. */
const patienceMs = 8_000

/**
 * Checks for a good end by reading the servers. If a tool can repair the fault, the cause must be
 * gone; otherwise the fault must be unchanged, so that a person can repair it. No session of the
 * shop may have ended except the root cause.
 */
export async function checkDatabase(lab: Lab, fault: Fault & { fault: DatabaseFault }): Promise<Check[]> {
  const drawer = drawerOf(lab)
  const facts = fault.database
  if (!facts)
    return [{ name: 'the fault was caused completely', ok: false, detail: 'its first state was not recorded' }]
  const work = faultWork[fault.fault]
  const isRepairable = databaseFaultRows[fault.fault].repairedBy.length > 0
  const own = isRepairable ? [await isGone(drawer, fault.fault)] : await standsAsItWas(drawer, fault.fault, facts)
  const further = own.every(({ ok }) => ok) ? ((await work.check?.(drawer, facts)) ?? []) : []
  return [...own, ...further, await sessionsLive(lab, drawer, facts)]
}

async function isGone(drawer: DatabaseDrawer, name: DatabaseFault): Promise<Check> {
  const until = Date.now() + patienceMs
  let seen = await faultWork[name].see(drawer)
  while (seen !== null && isPassing(name) && Date.now() < until) {
    await sleep(300)
    seen = await faultWork[name].see(drawer)
  }
  return {
    name: `the cause is gone from ${databaseFaultRows[name].on}`,
    ok: seen === null,
    detail: seen ?? 'gone',
  }
}

/** Whether the repair of the fault takes a moment to show. */
const isPassing = (name: DatabaseFault): boolean => name === 'db_replica_stopped' || name === 'db_replay_held'

async function standsAsItWas(drawer: DatabaseDrawer, name: DatabaseFault, { facts }: BrokenDatabase): Promise<Check[]> {
  const work = faultWork[name]
  const seen = await work.see(drawer)
  const now = (await work.readFacts?.(drawer)) ?? {}
  return [
    {
      name: `${databaseFaultRows[name].on} still has the fault, which only a person may repair`,
      ok: seen !== null,
      detail: seen ?? 'the fault is gone: somebody changed it',
    },
    ...Object.entries(facts).map(([what, before]) => ({
      name: `nobody changed: ${what}`,
      ok: now[what] === before,
      detail: now[what] === before ? before : `${now[what]}, was ${before}`,
    })),
  ]
}

/**
 * Requires that the recorded sessions still exist, except sessions of healed faults and root
 * sessions of faults.
 */
async function sessionsLive(lab: Lab, drawer: DatabaseDrawer, { sessions }: BrokenDatabase): Promise<Check> {
  const standing = lab.faults.map(({ fault }) => fault as string)
  const healed = databaseFaults
    .filter((name) => !standing.includes(name))
    .flatMap((name) => faultWork[name].applications)
  const roots = lab.faults.flatMap(({ database }) => database?.rootSession ?? [])
  const now: ShopSession[] = [...(await readSessions(drawer)), ...(await readMariadbSessions(drawer))]
  const mustLive = sessions.filter(
    (each) => !healed.includes(each.application) && !roots.some((root) => isSameSession(root, each)),
  )
  const gone = mustLive.filter((each) => !now.some((other) => isSameSession(other, each)))
  return {
    name: 'every other session of the shop is still connected',
    ok: gone.length === 0,
    detail:
      gone
        .slice(0, 5)
        .map(({ application, server, pid }) => `${application} (${pid} on ${server}) is gone`)
        .join(', ') || `all ${mustLive.length} do`,
  }
}

/**
 * Checks that the lab's databases have no fault that the lab did not break in. Empty if they do not
 * run.
 */
export async function checkDrawer(lab: Lab): Promise<Check[]> {
  const { drawer } = lab
  if (!drawer) return []
  const standing = lab.faults.map(({ fault }) => fault as string)
  const others: string[] = []
  // Checks one fault after the other, because a server may have only few free connections.
  for (const name of databaseFaults) {
    const seen = standing.includes(name) ? null : await faultWork[name].see(drawer)
    if (seen !== null) others.push(seen)
  }
  const isStopped = standing.some((name) => name.startsWith('db_replica_'))
  return [
    { name: 'the databases have no other fault', ok: others.length === 0, detail: others.join('; ') || 'none' },
    await streams(drawer),
    ...(isStopped ? [] : [await mariadbReplicates(drawer)]),
  ]
}

async function streams(drawer: DatabaseDrawer): Promise<Check> {
  const [row] = await rowsOn<{ active: boolean; state: string | null }>(
    drawer,
    'pg-1',
    `select s.active, r.state from pg_replication_slots s left join pg_stat_replication r on r.pid = s.active_pid
     where s.slot_name = '${replicaSlot}'`,
  )
  return {
    name: `pg-2 streams from pg-1 through the slot ${replicaSlot}`,
    ok: row?.active === true && row.state === 'streaming',
    detail: row ? `${row.active ? 'active' : 'inactive'}, ${row.state}` : 'there is no such slot',
  }
}

async function mariadbReplicates(drawer: DatabaseDrawer): Promise<Check> {
  const { io, sql } = await replicaStatus(drawer)
  return { name: 'maria-2 replicates from maria-1', ok: io === 'Yes' && sql === 'Yes', detail: `IO ${io}, SQL ${sql}` }
}
