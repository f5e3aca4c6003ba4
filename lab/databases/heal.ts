import { setTimeout as sleep } from 'node:timers/promises'
import type { Fault, Lab } from '../state.ts'
import { clientsOf, type DatabaseDrawer } from './drawer.ts'
import { faultWork } from './fault-work.ts'
import { type DatabaseFault, isDatabaseFault } from './faults.ts'
import { rowsOn } from './waits.ts'

/**
 * Sorts faults that hold locks first, because healing the other faults would wait for the locks.
 */
export const inOrderOfHealing = (faults: readonly Fault[]): Fault[] => {
  const holdsLocks = ({ fault }: Fault) => isDatabaseFault(fault) && faultWork[fault].applications.length > 0
  return [...faults.filter(holdsLocks), ...faults.filter((each) => !holdsLocks(each))]
}

/**
 * Undoes a fault. Ends the fault's programs and also their sessions, because a working session does
 * not notice the end of its program.
 */
export async function healDatabase(lab: Lab, { fault, database }: Fault): Promise<void> {
  const { drawer } = lab
  if (!drawer || !database || !isDatabaseFault(fault)) return
  const work = faultWork[fault]
  await lab.children.kill(clientsOf(fault))
  await withoutPrograms(drawer, work.applications)
  await work.heal?.(drawer, database)
  await untilGone(drawer, fault)
}

/**
 * Waits until the fault is gone. A released replay needs a moment to catch up, and a server needs a
 * moment to remove the files of a sort.
 */
async function untilGone(drawer: DatabaseDrawer, name: DatabaseFault): Promise<void> {
  const until = Date.now() + 10_000
  for (;;) {
    const seen = await faultWork[name].see(drawer)
    if (seen === null) return
    if (Date.now() > until) throw new Error(`${name} was healed, but its fault is still there: ${seen}`)
    await sleep(200)
  }
}

export async function withoutPrograms(drawer: DatabaseDrawer, applications: string[]): Promise<void> {
  if (applications.length === 0) return
  const names = applications.map((each) => `'${each}'`).join(', ')
  for (const server of ['pg-1', 'pg-2'] as const) {
    await rowsOn(
      drawer,
      server,
      `select pg_terminate_backend(pid, 5000) from pg_stat_activity where application_name in (${names})`,
    )
  }
}
