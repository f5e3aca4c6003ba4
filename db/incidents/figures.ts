import { sql } from 'kysely'

/**
 * SQL for figures of Home and reports, defined once so that one name always means one figure. Uses
 * columns of `incident`.
 */

/** Closed incidents: resolved, escalated, or cancelled. */
export const isClosed = sql.raw("status in ('resolved', 'escalated', 'cancelled')")
/**
 * Incidents that closed because the alert went quiet without a proof of its end. They do not count
 * as resolved.
 */
export const isUnproven = sql.raw("(status = 'resolved' and outcome is not distinct from 'unproven')")
export const isResolved = sql.raw("(status = 'resolved' and outcome is distinct from 'unproven')")
/**
 * Incidents that the agent or code resolved. Only the log shows whether a person took part.
 * `changed`: a person's own write.
 */
export const isResolvedByItself = sql.raw(
  "(status = 'resolved' and closed_by in ('agent', 'code') and outcome not in ('expected', 'unproven', 'changed'))",
)
