import type { MeshErrorCode } from '../../domain/mesh.ts'
import { failed, type Outcome } from './capability.ts'

/** Why something is not done, thrown from deep inside; `answered` makes it the outcome. */
export class Refused extends Error {
  readonly code: MeshErrorCode
  constructor(code: MeshErrorCode, message: string) {
    super(message)
    this.code = code
  }
}

/** Runs an act, and says in words what stopped it: a refusal, the deadline, or what the system answered. */
export async function answered(signal: AbortSignal, act: () => Promise<Outcome>): Promise<Outcome> {
  try {
    signal.throwIfAborted()
    return await act()
  } catch (error) {
    if (error instanceof Refused) return failed(error.code, error.message)
    if (signal.aborted) return stopped(signal)
    const code = errnoOf(error)
    if (code === null) throw error
    return failed(code === 'ENOENT' ? 'not_found' : 'failed', inWords(code))
  }
}

/** `AbortSignal.timeout` gives a TimeoutError as its reason; everything else is somebody who cancelled. */
export function stopped(signal: AbortSignal, result: Record<string, unknown> | null = null): Outcome {
  const late = (signal.reason as { name?: unknown } | undefined)?.name === 'TimeoutError'
  return failed(late ? 'timeout' : 'cancelled', late ? 'stopped at the deadline' : 'cancelled', result)
}

/** The system's own code of an error (`ENOENT`); null for what is no answer of the system. */
export function errnoOf(error: unknown): string | null {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' && /^E[A-Z0-9]+$/.test(code) ? code : null
}

const words: Record<string, string> = {
  ENOENT: 'there is no such file or directory',
  EACCES: 'the agent may not do that here (EACCES)',
  EPERM: 'the agent may not do that here (EPERM)',
  EROFS: 'the file system is read-only (EROFS)',
  ENOSPC: 'the file system is full (ENOSPC)',
  EDQUOT: 'the quota is used up (EDQUOT)',
  ENAMETOOLONG: 'the name is too long (ENAMETOOLONG)',
}

const inWords = (code: string) => words[code] ?? `the system answered ${code}`
