/** Connections against a server's limit. Plain words: the page imports this without a parser. */
type ConnectionCount = { used: number; max: number; reserved: number }

/** From this share of what superusers leave to others, a server is nearly full. */
const fullAt = 0.8

export const isNearlyFull = ({ used, max, reserved }: ConnectionCount): boolean => used >= (max - reserved) * fullAt
