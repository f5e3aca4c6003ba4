/** Connections of a server against its limit. This file holds plain words: the page imports it without a parser. */
type ConnectionCount = { used: number; max: number; reserved: number }

/** Of what superusers leave to others: from here on a server is nearly full. */
const fullAt = 0.8

export const isNearlyFull = ({ used, max, reserved }: ConnectionCount): boolean => used >= (max - reserved) * fullAt
