import type { BrokenDatabase, Lab } from '../state.ts'
import type { DatabaseDrawer } from './drawer.ts'
import type { ShopSession } from './session.ts'

type DatabaseCheck = { name: string; ok: boolean; detail: string }

/**
 * The effect of one fault on the servers, and its symptoms. Each function queries the servers and
 * caches nothing.
 */
export type DatabaseFaultWork = {
  /** Programs whose sessions belong only to this fault. */
  applications: string[]
  /** Breaks the fault in, and waits only for the steps of the fault. */
  breakIn(lab: Lab, drawer: DatabaseDrawer): Promise<void>
  /** Describes the visible fault in one line; null if the fault is absent. */
  see(drawer: DatabaseDrawer): Promise<string | null>
  /** Finds the session that is the root cause, if a session is. */
  findRoot?(drawer: DatabaseDrawer): Promise<ShopSession | null>
  /** Reads facts that must be unchanged after a good end. */
  readFacts?(drawer: DatabaseDrawer): Promise<Record<string, string>>
  /** Checks further conditions after the cause is gone. */
  check?(drawer: DatabaseDrawer, facts: BrokenDatabase): Promise<DatabaseCheck[]>
  /** Undoes changes that remain after the fault's programs end. */
  heal?(drawer: DatabaseDrawer, facts: BrokenDatabase): Promise<void>
}
