import type { BrokenDatabase, Lab } from '../state.ts'
import type { DatabaseDrawer } from './drawer.ts'
import type { ShopSession } from './session.ts'

type DatabaseCheck = { name: string; ok: boolean; detail: string }

/**
 * The code of one fault on the servers: how it breaks, shows and heals. Each function queries the
 * servers and caches nothing.
 */
export type DatabaseFaultWork = {
  /** Programs whose sessions on the servers belong only to this fault. */
  applications: string[]
  /** Breaks the fault in. Waits only for its own steps, not until the fault shows. */
  breakIn(lab: Lab, drawer: DatabaseDrawer): Promise<void>
  /** Describes the visible fault in one line; null if the fault is absent. */
  see(drawer: DatabaseDrawer): Promise<string | null>
  /** Finds the session that is the root cause. Absent if the root cause is not a session. */
  findRoot?(drawer: DatabaseDrawer): Promise<ShopSession | null>
  /** Reads facts about the servers that must be unchanged after a good end. */
  readFacts?(drawer: DatabaseDrawer): Promise<Record<string, string>>
  /** Checks further conditions after the cause is gone. */
  check?(drawer: DatabaseDrawer, facts: BrokenDatabase): Promise<DatabaseCheck[]>
  /** Undoes the changes that remain when the fault's programs have ended. */
  heal?(drawer: DatabaseDrawer, facts: BrokenDatabase): Promise<void>
}
