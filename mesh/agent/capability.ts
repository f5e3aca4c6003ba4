import type { z } from 'zod'
import type { Capability, Manifest, MeshErrorCode } from '../../domain/mesh.ts'
import type { Preconditions } from './preconditions.ts'

/**
 * What a capability came to. A failure keeps what there was of a result: output up to the moment it
 * was stopped.
 */
export type CapabilityOutcome =
  | { ok: true; result: Record<string, unknown>; truncated: boolean }
  | { ok: false; code: MeshErrorCode; message: string; result: Record<string, unknown> | null; truncated: boolean }

/**
 * What these arguments would do to the device, as the device itself sees it. `refused`: no grant
 * lifts that.
 */
export type CallWeight = {
  effect: 'read' | 'write' | 'refused'
  reason: string
  /** For what is refused: the code where there is a better one than `blocked`. */
  code?: MeshErrorCode
  /** What would be executed, after normalisation; null for other capabilities. */
  command: string | null
  /**
   * Base names of everything a command starts; the manifest's `auto_approve` is held against them.
   */
  programs?: readonly string[]
  /** Those of them that obey more than the administrator. */
  obeys?: readonly string[]
  /** What a read rests on besides its words, to be looked at right before it. */
  rests?: Preconditions
}

/**
 * A command's context besides the manifest: the agent's own paths, and names that the control plane
 * looked up.
 */
type JudgedBy = { hidden: readonly string[]; names: readonly string[] }

export type RunOptions = {
  cwd?: string
  /** The agent's own environment is not inherited. */
  env?: Record<string, string>
  input?: string
  /** Called with each line of both outputs as it comes. */
  onLine?(line: string): void
  /**
   * `read`: without network and without write access where the machine allows it. `write`: as the
   * agent's own user. `root`: the same with an environment that root finds at its own start, and
   * nothing of the agent's.
   */
  confine: 'read' | 'write' | 'root'
  /**
   * What a confined read must see as the machine has it, because it is what the command looks at.
   * Default: nothing.
   */
  sees?: readonly AgentSight[]
}

/** `rehearsals`: the throw-away copies of the agent, for checks that are run on them. */
export type AgentSight = 'network' | 'mounts' | 'rehearsals'

export type RunResult = {
  /** Null when it was stopped by a signal, the deadline or a limit. */
  exitCode: number | null
  signal: string | null
  stdout: string
  stderr: string
  truncated: boolean
  /**
   * `deadline`, `cancelled`, `output` or `memory` when it was stopped; null when it ended by
   * itself.
   */
  stoppedBy: 'deadline' | 'cancelled' | 'output' | 'memory' | null
  /** Its sandbox showed every user but the agent's own as another one. */
  hidesOwners?: true
}

export type CapabilityContext = JudgedBy & {
  manifest: Manifest
  /** The agent's own directory: former versions and throw-away copies lie below it. */
  state: string
  /** Aborts at the deadline and on cancel. */
  signal: AbortSignal
  /** A person allowed exactly this. */
  isGranted: boolean
  /** Why what a read rests on is not so just now; null when it is. */
  whyUnmet(rests: Preconditions): Promise<string | null>
  /**
   * Lines of a long operation, as they come; capped and made plain before they leave the device.
   */
  emit(line: string): void
  /**
   * Runs a program without a shell: its own process group, the manifest's limits, killed with the
   * signal.
   */
  run(argv: readonly string[], options: RunOptions): Promise<RunResult>
}

/** One of the things that a device can be asked to do. */
export type DeviceCapability<Args = Record<string, unknown>> = {
  capability: Capability
  args: z.ZodType<Args>
  /**
   * Null when this device has it; else what is missing, in words. Checked at the start, so that it
   * does not first show in an incident.
   */
  missingPrerequisite(manifest: Manifest): Promise<string | null>
  /** What a part of it is missing, by its name, checked at the start as well: the rest works. */
  lacks?(): Promise<Record<string, string>>
  weigh(args: Args, manifest: Manifest, own?: JudgedBy): CallWeight
  run(args: Args, context: CapabilityContext): Promise<CapabilityOutcome>
  /** The same in a throw-away copy: what would change, and what the manifest's checks say. */
  rehearse?(args: Args, context: CapabilityContext): Promise<CapabilityOutcome>
}

export function failedOutcome(
  code: MeshErrorCode,
  message: string,
  result: Record<string, unknown> | null = null,
): CapabilityOutcome {
  return { ok: false, code, message, result, truncated: false }
}

/** Why something is not done, thrown from deep inside; `answered` makes it the outcome. */
export class CapabilityError extends Error {
  readonly code: MeshErrorCode
  constructor(code: MeshErrorCode, message: string) {
    super(message)
    this.code = code
  }
}

/**
 * Runs an act, and says in words what stopped it: a refusal, the deadline, or what the system
 * answered.
 */
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
 * `AbortSignal.timeout` gives a TimeoutError as its reason; every other reason is a cancellation.
 */
export function stoppedOutcome(signal: AbortSignal, result: Record<string, unknown> | null = null): CapabilityOutcome {
  const late = (signal.reason as { name?: unknown } | undefined)?.name === 'TimeoutError'
  return failedOutcome(late ? 'timeout' : 'cancelled', late ? 'stopped at the deadline' : 'cancelled', result)
}

/** The system's own code of an error (`ENOENT`); null for other errors. */
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

/**
 * One after the other for the same name, in the order they were asked for: for acts of this process
 * that must not mix.
 */
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
