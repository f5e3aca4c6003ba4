import type { Principal } from '../domain/permissions.ts'
import type { Db, Trx } from './connect.ts'

/**
 * The database as one reader sees it: the first argument of every query for an external reader (a
 * person, or the agent with its token). A query uses `scope.db` for its rows, so that this file,
 * and not a route, determines what a reader may see. Currently every reader sees every row.
 */
export type Scope = {
  readonly db: Db | Trx
  readonly reader: Pick<Principal, 'role' | 'operatorId' | 'name'> | 'system'
}

/** Returns the scope of the caller of an API request. */
export function scopeOf(db: Db | Trx, reader: Principal): Scope {
  return { db, reader }
}

/** Returns the scope with all rows, for code without an external reader, such as the watchdog. */
export function systemScope(db: Db | Trx): Scope {
  return { db, reader: 'system' }
}
