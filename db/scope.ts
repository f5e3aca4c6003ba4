import type { Principal } from '../domain/permissions.ts'
import type { Db, Trx } from './connect.ts'

/**
 * The database as one reader sees it: the first argument of every query for somebody outside (a
 * person, or the agent with its token). A query takes its rows through `scope.db`, so that what a
 * reader may see is decided here and in no route. Today every reader sees every row; a filter by
 * team belongs into these queries.
 */
export type Scope = {
  readonly db: Db | Trx
  readonly reader: Pick<Principal, 'role' | 'operatorId' | 'name'> | 'system'
}

/** What the caller behind a request may read. */
export function scopeOf(db: Db | Trx, reader: Principal): Scope {
  return { db, reader }
}

/** All rows: for code that reads for nobody outside, such as the watchdog. */
export function systemScope(db: Db | Trx): Scope {
  return { db, reader: 'system' }
}
