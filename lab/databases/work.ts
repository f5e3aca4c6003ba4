import type { BrokenDatabase, Lab } from '../state.ts'
import type { DatabaseDrawer } from './drawer.ts'
import type { ShopSession } from './session.ts'

type DatabaseCheck = { name: string; ok: boolean; detail: string }

/**
 * A fault's effect on the servers, and how they show it: each function asks the servers, none
 * remembers.
 */
export type DatabaseFaultWork = {
  /** Programs whose sessions belong to this fault alone. */
  applications: string[]
  /** Breaks it in, and waits for nothing but its own steps. */
  breakIn(lab: Lab, drawer: DatabaseDrawer): Promise<void>
  /** The fault as the servers show it, in one line; null where it is not there. */
  see(drawer: DatabaseDrawer): Promise<string | null>
  /** The session that is its root, where a session is. */
  findRoot?(drawer: DatabaseDrawer): Promise<ShopSession | null>
  /** What must be as it was after a good end. */
  readFacts?(drawer: DatabaseDrawer): Promise<Record<string, string>>
  /** What must hold in addition once the cause is gone. */
  check?(drawer: DatabaseDrawer, facts: BrokenDatabase): Promise<DatabaseCheck[]>
  /** Takes back what ending its programs does not. */
  heal?(drawer: DatabaseDrawer, facts: BrokenDatabase): Promise<void>
}
