import { setTimeout as sleep } from 'node:timers/promises'
import { type BrokenDatabase, type Lab, WrongTarget } from '../state.ts'
import { clientsOf, type DatabaseDrawer } from './drawer.ts'
import { faultWork } from './fault-work.ts'
import { type DatabaseFault, databaseFaultRows } from './faults.ts'
import { withoutPrograms } from './heal.ts'
import type { ShopSession } from './session.ts'
import { isSameSession } from './session.ts'
import { readMariadbSessions, readSessions } from './sessions.ts'

/** How long a fault may take to show on its server. */
const visibleMs = 25_000

/**
 * Breaks one in and answers when its server shows it. Throws WrongTarget where that is impossible,
 * and takes back what it began.
 */
export async function breakDatabase(
  lab: Lab,
  name: DatabaseFault,
  target: string,
): Promise<{ on: string; database: BrokenDatabase }> {
  const { on } = databaseFaultRows[name]
  const { drawer } = lab
  if (!drawer) {
    throw new WrongTarget(`there is no database to break ${name} in: "nightshift lab --databases" starts them`)
  }
  if (target !== on) throw new WrongTarget(`${name} is broken on ${on}, not on ${target}`)
  const work = faultWork[name]
  const before = await work.see(drawer)
  if (before !== null) throw new WrongTarget(`it is so already: ${before}`)
  try {
    await work.breakIn(lab, drawer)
    await untilSeen(drawer, name)
  } catch (error) {
    await lab.children.kill(clientsOf(name))
    await withoutPrograms(drawer, work.applications)
    // What kept it out may keep this out as well; then nothing was done that is to be undone.
    await work.heal?.(drawer, { root: '', rootSession: null, sessions: [], facts: {} }).catch(() => undefined)
    if (isLockTimeout(error)) throw new WrongTarget(`what holds a lock on ${on} keeps ${name} out: heal it first`)
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
      throw new WrongTarget(`${name} does not show on ${databaseFaultRows[name].on} after ${visibleMs / 1_000} s`)
    await sleep(200)
  }
}

const describeRoot = (name: DatabaseFault, session: ShopSession | null): string =>
  session
    ? `process ${session.pid} of ${session.server}, begun ${session.startedAt}: ${databaseFaultRows[name].root}`
    : databaseFaultRows[name].root

/** All that must live through a good end, but the root. */
async function livingSessions(drawer: DatabaseDrawer, root: ShopSession | null): Promise<ShopSession[]> {
  const all = [...(await readSessions(drawer)), ...(await readMariadbSessions(drawer))]
  return all
    .map(({ server, pid, startedAt, application }) => ({ server, pid, startedAt, application }))
    .filter((each) => root === null || !isSameSession(each, root))
}
