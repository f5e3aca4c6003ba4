import { sql } from 'kysely'

/**
 * SQL for figures of Home and reports, defined once so that the same name always means the same
 * figure. Uses columns of `incident`.
 */

/** Resolved, escalated, or cancelled. */
export const isClosed = sql.raw("status in ('resolved', 'escalated', 'cancelled')")
/**
 * Closed because the alert went quiet without a proof of its end. This does not count as resolved.
 */
export const isUnproven = sql.raw("(status = 'resolved' and outcome is not distinct from 'unproven')")
export const isResolved = sql.raw("(status = 'resolved' and outcome is distinct from 'unproven')")
/**
 * Resolved by the agent or by code. Only the log shows whether a person took part. `changed`: a
 * person's own write.
 */
export const isResolvedByItself = sql.raw(
  "(status = 'resolved' and closed_by in ('agent', 'code') and outcome not in ('expected', 'unproven', 'changed'))",
)
