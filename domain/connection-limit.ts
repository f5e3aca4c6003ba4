/**
 * Connections of a server: how many are used, the limit, and how many are reserved for superusers.
 * The file has no zod schema, so that the web page can import it.
 */
type ConnectionCount = { used: number; max: number; reserved: number }

/** The share of connections for ordinary users from which a server counts as nearly full. */
const fullAt = 0.8

export const isNearlyFull = ({ used, max, reserved }: ConnectionCount): boolean => used >= (max - reserved) * fullAt
