import { setTimeout as sleep } from 'node:timers/promises'
import { type BrokenDatabase, type Lab, WrongTarget } from '../state.ts'
import { clientsOf, type DatabaseDrawer } from './drawer.ts'
import { faultWork } from './fault-work.ts'
import { type DatabaseFault, databaseFaultRows } from './faults.ts'
import { withoutPrograms } from './heal.ts'
import type { ShopSession } from './session.ts'
import { isSameSession } from './session.ts'
import { readMariadbSessions, readSessions } from './sessions.ts'

/** The most milliseconds until a fault shows on the fault's server. */
const visibleMs = 25_000

/**
 * Breaks one fault in, and returns when the fault shows on its server. If the fault is impossible,
 * undoes the partial changes and throws WrongTarget.
 */
export async function breakDatabase(
  lab: Lab,
  name: DatabaseFault,
  target: string,
): Promise<{ on: string; database: BrokenDatabase }> {
  const { on } = databaseFaultRows[name]
  const { drawer } = lab
  if (!drawer) {
    throw new WrongTarget(
      `${name} needs the lab's databases, which do not run: start them with "nightshift lab --databases"`,
    )
  }
  if (target !== on) throw new WrongTarget(`${name} can be broken on ${on} only, not on ${target}`)
  const work = faultWork[name]
  const before = await work.see(drawer)
  if (before !== null) throw new WrongTarget(`the fault is there already: ${before}`)
  try {
    await work.breakIn(lab, drawer)
    await untilSeen(drawer, name)
  } catch (error) {
    await lab.children.kill(clientsOf(name))
    await withoutPrograms(drawer, work.applications)
    // Ignores a failed undo: the obstacle that prevented the fault may prevent the undo too, and
    // then nothing was changed.
    await work.heal?.(drawer, { root: '', rootSession: null, sessions: [], facts: {} }).catch(() => undefined)
    if (isLockTimeout(error))
      throw new WrongTarget(`another fault holds a lock on ${on}, which ${name} would wait for: heal that fault first`)
    throw error
  }
  const rootSession = (await work.findRoot?.(drawer)) ?? null
  return {
    on,
    database: {
      root: describeRoot(name, rootSession),
      rootSession,
      sessions: await livingSessions(drawer, rootSession),
      facts: (await work.readFacts?.(drawer)) ?? {},
    },
  }
}

const isLockTimeout = (error: unknown): boolean => (error as { code?: string }).code === '55P03'

async function untilSeen(drawer: DatabaseDrawer, name: DatabaseFault): Promise<void> {
  const until = Date.now() + visibleMs
  while ((await faultWork[name].see(drawer)) === null) {
    if (Date.now() > until)
      throw new WrongTarget(`${name} cannot be seen on ${databaseFaultRows[name].on} after ${visibleMs / 1_000} s`)
    await sleep(200)
  }
}

const describeRoot = (name: DatabaseFault, session: ShopSession | null): string =>
  session
    ? `process ${session.pid} of ${session.server}, begun ${session.startedAt}: ${databaseFaultRows[name].root}`
    : databaseFaultRows[name].root

/** Lists the sessions that must exist after a good end: all except the root cause. */
async function livingSessions(drawer: DatabaseDrawer, root: ShopSession | null): Promise<ShopSession[]> {
  const all = [...(await readSessions(drawer)), ...(await readMariadbSessions(drawer))]
  return all
    .map(({ server, pid, startedAt, application }) => ({ server, pid, startedAt, application }))
    .filter((each) => root === null || !isSameSession(each, root))
}
