import { failed, type Outcome, type RunResult } from '../capability.ts'

/**
 * What became of a command: one that ended by itself is an answer whatever its exit code, and so is one with more output than is kept.
 * One that was stopped failed, with what it had said until then.
 */
export function outcomeOf(ended: RunResult, command: string): Outcome {
  const { stdout, stderr, exitCode, signal, truncated, stoppedBy } = ended
  const result = { stdout, stderr, exit_code: exitCode, cmd_executed: command, ...(signal && { signal }) }
  if (stoppedBy === 'deadline') return { ...failed('timeout', 'It was stopped at the deadline.', result), truncated }
  if (stoppedBy === 'cancelled') return { ...failed('cancelled', 'It was cancelled.', result), truncated }
  if (stoppedBy === 'memory')
    return { ...failed('failed', 'It needed more memory than the manifest allows.', result), truncated }
  return { ok: true, result, truncated }
}
