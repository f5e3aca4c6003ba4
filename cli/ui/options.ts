import { InvalidArgumentError } from 'commander'
import { parseTime } from '../../domain/format.ts'
import { CommandFailed } from '../errors.ts'

/** A parser for a flag that takes one of these words. */
export function parseOneOf(words: readonly string[]) {
  return (text: string) => {
    if (!words.includes(text)) throw new InvalidArgumentError(`It is one of ${words.join(', ')}.`)
    return text
  }
}

/** Parses a whole number from 1. */
export function parseWholeNumber(text: string): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 1) throw new InvalidArgumentError('It takes a whole number from 1.')
  return value
}

/** Collects the values of a flag that may be repeated. */
export function collectValues(value: string, before: string[]): string[] {
  return [...before, value]
}

/** A parser for the name of a fault or scenario. Accepts dashes for underscores. */
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

/** Runs work that stops on a signal. Throws CommandFailed 'timeout' after `limit` seconds. */
export async function withTimeout<T>(
  limit: number | undefined,
  work: (signal?: AbortSignal) => Promise<T>,
): Promise<T> {
  if (limit === undefined) return work()
  const signal = AbortSignal.timeout(limit * 1000)
  const failed = () =>
    new CommandFailed('timeout', `Not finished after ${limit} s. The work continues; only this command stops.`)
  try {
    const result = await work(signal)
    if (signal.aborted) throw failed()
    return result
  } catch (error) {
    throw signal.aborted ? failed() : error
  }
}

const unitMs: Record<string, number> = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 7 * 86_400_000 }

/**
 * Parses a future time to ISO 8601: a span (`90m`, `8h`, `3d`, `2w`) or a time
 * (`2026-12-01T06:00Z`).
 */
export function parseFutureTime(text: string): string {
  const span = /^(\d{1,5})([mhdw])$/.exec(text.trim())
  const at = span ? Date.now() + Number(span[1]) * (unitMs[span[2] as string] ?? 0) : parseUntil(text.trim())
  if (!Number.isFinite(at))
    throw new InvalidArgumentError('Give a span as 8h or 3d, or a time on a day that exists, as 2026-12-01T06:00Z.')
  if (at <= Date.now()) throw new InvalidArgumentError('It must be in the future.')
  return new Date(at).toISOString()
}

/** Milliseconds of an ISO 8601 time, else NaN. A date without a time is its midnight in UTC. */
function parseUntil(text: string): number {
  return /^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})?)?$/.test(text)
    ? parseTime(text)
    : Number.NaN
}
