import { InvalidArgumentError } from 'commander'
import { CommandFailed } from '../errors.ts'

/** Parses a flag that takes one of a few words. */
export function parseOneOf(words: readonly string[]) {
  return (text: string) => {
    if (!words.includes(text)) throw new InvalidArgumentError(`It is one of ${words.join(', ')}.`)
    return text
  }
}

/** Parses a flag that counts something. */
export function parseWholeNumber(text: string): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 1) throw new InvalidArgumentError('It takes a whole number from 1.')
  return value
}

/** Gathers the values of a flag that may be given several times. */
export function collectValues(value: string, before: string[]): string[] {
  return [...before, value]
}

/** Parses the name of a fault or scenario; dashes are as good as underscores. */
export function parseLabName(words: readonly string[]) {
  const parse = parseOneOf(words)
  return (text: string) => parse(text.replaceAll('-', '_'))
}

/** Parses a flag that takes seconds. */
export function parseSeconds(text: string): number {
  const value = Number(text)
  if (!Number.isFinite(value) || value <= 0) throw new InvalidArgumentError('It takes a number of seconds.')
  return value
}

/** Runs something that heeds a signal; when the time is up, the command ends with its own exit code. */
export async function withTimeout<T>(
  limit: number | undefined,
  work: (signal?: AbortSignal) => Promise<T>,
): Promise<T> {
  if (limit === undefined) return work()
  const signal = AbortSignal.timeout(limit * 1000)
  const failed = () => new CommandFailed('timeout', `Not finished after ${limit} s; it goes on without us.`)
  try {
    const result = await work(signal)
    if (signal.aborted) throw failed()
    return result
  } catch (error) {
    throw signal.aborted ? failed() : error
  }
}

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
