const longestMs = 24 * 60 * 60 * 1_000

/**
 * How long a server asks us to wait, from `retry-after-ms` or `Retry-After` (seconds or a date); null when it says nothing
 * that makes sense. At most a day: a server does not decide when a run ends.
 */
export function retryAfterMs(headers: Record<string, string>, nowMs: number): number | null {
  const exact = numberOf(headers['retry-after-ms'])
  if (exact !== null) return bounded(exact)
  const text = headers['retry-after']
  if (!text) return null
  const seconds = numberOf(text)
  if (seconds !== null) return bounded(seconds * 1_000)
  const date = Date.parse(text)
  return Number.isNaN(date) ? null : bounded(date - nowMs)
}

function numberOf(text: string | undefined): number | null {
  return text !== undefined && /^\s*\d+(\.\d+)?\s*$/.test(text) ? Number(text) : null
}

function bounded(ms: number): number {
  return Math.min(Math.max(0, Math.ceil(ms)), longestMs)
}
