import type { z } from 'zod'
import type { Capability, Manifest, MeshErrorCode } from '../../domain/mesh.ts'
import type { Preconditions } from './preconditions.ts'

/** The outcome of a capability. A failed call keeps the output that came before it was stopped. */
export type CapabilityOutcome =
  | { ok: true; result: Record<string, unknown>; truncated: boolean }
  | { ok: false; code: MeshErrorCode; message: string; result: Record<string, unknown> | null; truncated: boolean }

/**
 * The effect of a call's arguments on the device, as the device judges it. `refused`: no grant
 * permits the call.
 */
export type CallWeight = {
  effect: 'read' | 'write' | 'refused'
  reason: string
  /** The code of a refusal, if another code is better than `blocked`. */
  code?: MeshErrorCode
  /** The normalised command. Null for capabilities without a command. */
  command: string | null
  /**
   * Base names of all programs that a command starts, to compare with the manifest's
   * `auto_approve`.
   */
  programs?: readonly string[]
  /** The programs of the command that obey configuration which the administrator did not write. */
  obeys?: readonly string[]
  /** Conditions of a read besides its command line, checked right before the read. */
  rests?: Preconditions
}

/**
 * The context of a command besides the manifest: the agent's paths, and the names that were looked
 * up on this device.
 */
type JudgedBy = { hidden: readonly string[]; names: readonly string[] }

export type RunOptions = {
  cwd?: string
  /** The environment of the program, which inherits nothing from the agent's environment. */
  env?: Record<string, string>
  input?: string
  /** Called with each line of standard output and standard error when the line comes. */
  onLine?(line: string): void
  /**
   * `read`: without network and without write access, if the machine supports this. `write`: as the
   * agent's user. `root`: as the agent's user with root's initial environment, and no variables of
   * the agent.
   */
  confine: 'read' | 'write' | 'root'
  /** Parts of the machine that a confined read is about, and must therefore see. Default: none. */
  sees?: readonly AgentSight[]
}

/** `rehearsals`: the agent's temporary copies, for checks that run on them. */
export type AgentSight = 'network' | 'mounts' | 'rehearsals'

export type RunResult = {
  /** The exit code. Null if a signal, the deadline or a limit stopped the program. */
  exitCode: number | null
  signal: string | null
  stdout: string
  stderr: string
  truncated: boolean
  /**
   * `deadline`, `cancelled`, `output` or `memory` if the program was stopped. Null if the program
   * ended by itself.
   */
  stoppedBy: 'deadline' | 'cancelled' | 'output' | 'memory' | null
  /** True if the sandbox shows a wrong owner for every user but the agent's. */
  hidesOwners?: true
}

export type CapabilityContext = JudgedBy & {
  manifest: Manifest
  /** The agent's state directory, with earlier versions of files and temporary copies. */
  state: string
  /** Aborts at the deadline and on cancellation. */
  signal: AbortSignal
  /** True if a person allowed exactly this call. */
  isGranted: boolean
  /** Returns the condition of a read that does not hold now. Null if all conditions hold. */
  whyUnmet(rests: Preconditions): Promise<string | null>
  /**
   * Emits a line of a long operation. Lines are limited and cleaned before they leave the device.
   */
  emit(line: string): void
  /**
   * Runs a program without a shell, in a separate session and with the manifest's limits. The
   * signal of the context kills the program.
   */
  run(argv: readonly string[], options: RunOptions): Promise<RunResult>
}

/** One capability of a device. */
export type DeviceCapability<Args = Record<string, unknown>> = {
  capability: Capability
  args: z.ZodType<Args>
  /**
   * Returns null if this device has the prerequisites, and otherwise the missing prerequisite, in
   * words. Checked when the manifest is read, so that it is known before an incident.
   */
  missingPrerequisite(manifest: Manifest): Promise<string | null>
  /** Returns missing parts of the capability by name. The present parts work. */
  lacks?(): Promise<Record<string, string>>
  weigh(args: Args, manifest: Manifest, own?: JudgedBy): CallWeight
  run(args: Args, context: CapabilityContext): Promise<CapabilityOutcome>
  /** Dry run: reports what the call would do, with a temporary copy or with reads. */
  rehearse?(args: Args, context: CapabilityContext): Promise<CapabilityOutcome>
}

export function failedOutcome(
  code: MeshErrorCode,
  message: string,
  result: Record<string, unknown> | null = null,
): CapabilityOutcome {
  return { ok: false, code, message, result, truncated: false }
}

/** A refusal that nested calls throw; `toOutcome` converts the refusal to the outcome. */
export class CapabilityError extends Error {
  readonly code: MeshErrorCode
  constructor(code: MeshErrorCode, message: string) {
    super(message)
    this.code = code
  }
}

/** Runs `act`. Converts a refusal, the deadline or a system error to an outcome. */
export async function toOutcome(
  signal: AbortSignal,
  act: () => Promise<CapabilityOutcome>,
): Promise<CapabilityOutcome> {
  try {
    signal.throwIfAborted()
    return await act()
  } catch (error) {
    if (error instanceof CapabilityError) return failedOutcome(error.code, error.message)
    if (signal.aborted) return stoppedOutcome(signal)
    const code = errnoOf(error)
    if (code === null) throw error
    return failedOutcome(code === 'ENOENT' ? 'not_found' : 'failed', inWords(code))
  }
}

/**
 * Builds the outcome of a stopped call. `AbortSignal.timeout` has a TimeoutError as its reason; any
 * other reason is a cancellation.
 */
export function stoppedOutcome(signal: AbortSignal, result: Record<string, unknown> | null = null): CapabilityOutcome {
  const late = (signal.reason as { name?: unknown } | undefined)?.name === 'TimeoutError'
  return failedOutcome(late ? 'timeout' : 'cancelled', late ? 'stopped at the deadline' : 'cancelled', result)
}

/** Returns the system's code of an error (`ENOENT`). Null for an error without such a code. */
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

const turns = new Map<string, Promise<unknown>>()

/** Runs calls with equal names one after the other, in the order of the calls. */
export async function runInTurn<T>(name: string, act: () => Promise<T>): Promise<T> {
  const before = turns.get(name) ?? Promise.resolve()
  const mine = before.then(act, act)
  turns.set(name, mine)
  try {
    return await mine
  } finally {
    if (turns.get(name) === mine) turns.delete(name)
  }
}
