import { InvalidArgumentError } from 'commander'
import { CommandFailed } from './exit-code.ts'

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
