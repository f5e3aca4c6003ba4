/**
 * Counts connections against the limit of a server. Has no zod schema, so that the web page can
 * import it.
 */
type ConnectionCount = { used: number; max: number; reserved: number }

/** The share of connections for ordinary users from which a server counts as nearly full. */
const fullAt = 0.8

export const isNearlyFull = ({ used, max, reserved }: ConnectionCount): boolean => used >= (max - reserved) * fullAt
