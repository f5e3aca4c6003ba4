const firstMs = Date.UTC(1971, 0, 1)
const lastMs = Date.UTC(9000, 0, 1)

/** A time as RFC 3339 in UTC, or null. Go's zero time (year 1) and whatever no calendar holds are null. */
export function momentOf(value: unknown): string | null {
  if (typeof value !== 'string' || value.length > 64) return null
  const ms = Date.parse(value)
  return ms >= firstMs && ms <= lastMs ? new Date(ms).toISOString() : null
}
