import { InvalidArgumentError } from 'commander'

const unitMs: Record<string, number> = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 7 * 86_400_000 }

/** Parses a flag that takes a moment ahead: a span as `90m`, `8h`, `3d`, `2w`, or a time as `2026-12-01T06:00Z`. */
export function parseFutureTime(text: string): string {
  const span = /^(\d{1,5})([mhdw])$/.exec(text.trim())
  const at = span ? Date.now() + Number(span[1]) * (unitMs[span[2] as string] ?? 0) : parseTime(text.trim())
  if (!Number.isFinite(at)) throw new InvalidArgumentError('Give a span as 8h or 3d, or a time as 2026-12-01T06:00Z.')
  if (at <= Date.now()) throw new InvalidArgumentError('It must lie ahead.')
  return new Date(at).toISOString()
}

/** A date alone is its first moment in UTC; anything that is not ISO 8601 is refused, for browsers and shells read it differently. */
function parseTime(text: string): number {
  return /^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})?)?$/.test(text)
    ? Date.parse(text)
    : Number.NaN
}
