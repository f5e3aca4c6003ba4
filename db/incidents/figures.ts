import { sql } from 'kysely'

/**
 * Figures of Home and reports, in one place: two figures of one name are one figure. Columns of
 * `incident`.
 */

/** It ended: resolved, handed to people, or cancelled. */
export const isClosed = sql.raw("status in ('resolved', 'escalated', 'cancelled')")
/** Its alert went quiet and nothing proves that it is over: closed, and not resolved. */
export const isUnproven = sql.raw("(status = 'resolved' and outcome is not distinct from 'unproven')")
export const isResolved = sql.raw("(status = 'resolved' and outcome is distinct from 'unproven')")
/**
 * Resolved by agent or code; the log says whether a person had a hand in it. `changed`: a person's
 * own write.
 */
export const isResolvedByItself = sql.raw(
  "(status = 'resolved' and closed_by in ('agent', 'code') and outcome not in ('expected', 'unproven', 'changed'))",
)
