import { z } from 'zod'
import type { Changed } from '../../domain/changed.ts'
import type { InventoryKind } from '../../domain/kinds.ts'
import type { Capability } from '../../domain/mesh.ts'
import type { CommandField, Risk } from '../../domain/tool.ts'
import type { LeftBehind, ToolUndo } from '../../domain/undo.ts'
import type { Word } from '../../safety/command/parse.ts'
import { pathFinding } from '../../safety/command/paths.ts'

export type DeviceArgs = Record<string, unknown>
/**
 * A read of a device that answers a question about it. `rehearse`: what the capability would do
 * now, in a throw-away copy.
 */
export type DeviceProbe = { capability: Capability; args: DeviceArgs; rehearse?: true }
/** What a probe found; `result` is null where the device says that there is no such thing. */
type ProbeReading = { result: DeviceArgs | null }
/** Whether the observation confirms the postcondition; null: it shows neither. */
export type Verification = { holds: boolean; observed: string } | null
/**
 * Something that must be true after a write. `result` is what the device answered, null where that
 * is not known.
 */
export type Postcondition = {
  look(result: DeviceArgs | null): DeviceProbe
  holds(seen: ProbeReading, result: DeviceArgs | null): Verification
}

/** How a write is taken back; its call goes to the same device. */
type DeviceUndo<Input> = ToolUndo<Input> & {
  /** What of the device shows whether all is as the write left it. */
  look(input: Input): DeviceProbe
  /** Facts of such a look, under `of`'s names; `files`: those that `of` named. */
  facts(seen: DeviceArgs | null, input: Input, files: readonly string[]): LeftBehind | null
}

/**
 * One tool on a device, as data and pure functions. Control plane and agent read the same
 * description: `args` is what a device accepts, `input` what the model may say, without `on` and
 * `reason`, which every tool has.
 */
export type MeshSpec<Input extends DeviceArgs = DeviceArgs> = {
  name: string
  capability: Capability
  about: string
  /**
   * What a device accepts: the limits of the protocol. They are wide on purpose, so that the
   * control plane can change what it lets through without an update of every agent.
   */
  args: z.ZodObject
  /**
   * What the control plane lets through, by its own limits; the comment beside it says why. Built
   * when first read: an agent never reads it.
   */
  readonly input: z.ZodObject
  effect: 'read' | 'write'
  risk: Risk
  reversible: boolean
  /** A person may let the very same action run again without asking. */
  grantable?: boolean
  /** Only where an admin says so by the mode: `user` devices have none of it. */
  privileged?: boolean
  /** Asked whatever its arguments are. */
  asked?: boolean
  command?: CommandField
  inside?: boolean
  /** Offered once it is asked for: `more_tools`. */
  isRare?: boolean
  /** Where a runbook fits the incident, the first turn offers it only if the runbook names it. */
  isSituational?: boolean
  /**
   * Otherwise: incidents whose first turn offers it, by their resource's kind; absent: all that run
   * on a machine.
   */
  firstFor?: readonly InventoryKind[]
  /**
   * The model's tool for it, which has other ways to such an answer. Its own name is known and not
   * offered.
   */
  calledBy?: string
  /** It tells a thing's kind and nothing of its content: also secrets may be looked at unasked. */
  showsNoContent?: boolean
  /** It answers log lines (`readLines`): the core API makes templates and keeps the whole. */
  readsLog?: boolean
  /** Its output is followed while it comes. */
  streams?: boolean
  /**
   * The device can tell beforehand what it would do: tried in a throw-away copy, or looked at where
   * it would happen.
   */
  rehearses?: boolean
  /**
   * What the agent of its host is asked for a guest without one; why it cannot be, in words, where
   * that is so.
   */
  throughHost?(guest: string, by: 'docker' | 'pct', input: Input): DeviceProbe | string
  toArgs(input: Input): DeviceArgs
  toOutput(result: DeviceArgs): unknown
  /** A bounded answer, which then counts as cut; null where it is short. */
  bound?(result: DeviceArgs, input: Input): DeviceArgs | null
  /**
   * One line for an approval's card. `about`: the device's name for the thing; null where it was
   * not asked. Untrusted.
   */
  summary(input: Input, about: string | null): string
  /**
   * A read's finding, without the device's name, which stands before it; absent for a write: its
   * `summary` says it.
   */
  say?(result: DeviceArgs, input: Input): string
  /** Names of containers and the like in its answer, as by `safety/command/known-names.ts`. */
  lists?(result: DeviceArgs, input: Input): string[]
  /** For a write: its change, by the device's answer; absent, or null for this answer: unknown. */
  changes?(result: DeviceArgs, input: Input): Changed
  /** What of the device the action rests on: looked at for the dry run and again just before. */
  state?(input: Input): DeviceProbe
  /**
   * What shows afterwards that it worked. `promised`: what `promise` looks at, in words; null: it
   * promises nothing. `otherwise`: what a person has to do wherever nothing is promised.
   */
  proof: { promised: string | null; otherwise: string }
  /** What must be true afterwards; absent, or null for these arguments: nothing is promised. */
  promise?(input: Input): Postcondition | null
  /** For a write: its way back. Absent: nothing declared takes it back. */
  undo?: DeviceUndo<Input>
}

/** For a command: an exit code other than 0 shows failure, and 0 shows nothing. */
export const ofCommand = {
  promised: null,
  otherwise:
    'it is a command, and an exit code of 0 promises nothing; look at what it was to change yourself afterwards',
} as const

/** For a look: its answer is all, though a person may have to allow it. */
export const onlyLooks = { promised: null, otherwise: 'it only looks, and its answer is all there is to it' } as const

/** Without what is undefined: a grant binds the arguments as they are sent. */
export function withoutUndefined(args: DeviceArgs): DeviceArgs {
  return Object.fromEntries(Object.entries(args).filter(([, value]) => value !== undefined))
}

export const same = (value: DeviceArgs): DeviceArgs => value

/** What most reads of the machine itself have in common. */
export const plainRead = {
  effect: 'read',
  risk: 'none',
  reversible: true,
  proof: onlyLooks,
  inside: true,
  toArgs: withoutUndefined,
  toOutput: same,
} as const

/** A write whose state before is kept: a person may let the same again run unasked. */
export const undoableWrite = {
  effect: 'write',
  risk: 'medium',
  reversible: true,
  inside: true,
  grantable: true,
  asked: true,
  rehearses: true,
  toArgs: withoutUndefined,
  toOutput: same,
} as const

/** A write that nothing takes back: only where an admin allows it. */
export const lastingWrite = {
  effect: 'write',
  risk: 'high',
  reversible: false,
  inside: true,
  privileged: true,
  asked: true,
  rehearses: true,
  toArgs: withoutUndefined,
  toOutput: same,
} as const

type Description<Input extends DeviceArgs> = Omit<MeshSpec<Input>, 'input'> & { input(): z.ZodObject }

export function defineSpec<Input extends DeviceArgs>({ input, ...spec }: Description<Input>): MeshSpec {
  let built: z.ZodObject | undefined
  const described = {
    ...spec,
    get input() {
      built ??= input()
      return built
    },
  }
  return described as unknown as MeshSpec
}

/** A path for a device: Linux allows 4,096 bytes. `mesh/agent/manifest.ts` has its bounds. */
export const devicePath = z.string().min(1).max(4_096)

/**
 * A path as the model writes it: one that a card can show on one line. The device walks it itself
 * and trusts none of it.
 */
export const path = devicePath
  .max(1_000)
  .regex(/^\//, 'is not an absolute path')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: what no path on a card should hold
  .regex(/^[^\u0000-\u001f\u007f]*$/, 'holds a control character')
  .meta({ description: 'absolute', examples: ['/var/log/web/app.log'] })
/** The words of a command that a person may have to read on a card. */
export const wordsOnCard = z
  .array(z.string().min(1).max(8_000))
  .min(1)
  .max(200)
  .meta({ description: 'as ["df","-h"]', examples: [['df', '-h']] })

export const word = z
  .string()
  .min(1)
  .max(200)
  .regex(/^[^-]/, 'begins with a dash')
  .meta({ examples: ['web'] })

const wordOf = (text: string): Word => ({ text, literal: true, quoting: 'bare', pattern: null })

/**
 * May this path be read without approval? By the rules that commands are judged by: null: yes;
 * `secret`: only with approval; `endless`: never. Device and control plane use the same rules.
 */
export function kindOfSystemPath(path: string): 'secret' | 'endless' | null {
  const finding = pathFinding(wordOf(path), [], 'prints')
  return finding === null || finding === 'endless' ? finding : 'secret'
}

/** A root as a manifest names it, without redundant slashes. */
export function plainRoot(root: string): string {
  return `/${root.split('/').filter(Boolean).join('/')}`
}

/** Is this path the directory itself or below it? Both are plain and absolute. */
export function isInside(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory === '/' ? '/' : `${directory}/`)
}
