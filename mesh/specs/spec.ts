import { z } from 'zod'
import type { Changed } from '../../domain/changed.ts'
import type { InventoryKind } from '../../domain/kinds.ts'
import type { Capability } from '../../domain/mesh.ts'
import type { CommandField, Risk } from '../../domain/tool.ts'
import type { LeftBehind, ToolUndo } from '../../domain/undo.ts'
import type { Word } from '../../safety/command/parse.ts'
import { pathFinding } from '../../safety/command/paths.ts'

export type DeviceArgs = Record<string, unknown>
/** A read from a device. `rehearse` requests a dry run: a report of what the call would do now. */
export type DeviceProbe = { capability: Capability; args: DeviceArgs; rehearse?: true }
/** The result of a probe. `result` is null if the device reports that the target does not exist. */
type ProbeReading = { result: DeviceArgs | null }
/** Whether the observation confirms the postcondition. Null if it proves nothing. */
export type Verification = { holds: boolean; observed: string } | null
/** A condition after a write. `result` is the device's response, or null if unknown. */
export type Postcondition = {
  look(result: DeviceArgs | null): DeviceProbe
  holds(seen: ProbeReading, result: DeviceArgs | null): Verification
}

/** The undo of a write, which is a call to the device of the write. */
type DeviceUndo<Input> = ToolUndo<Input> & {
  /** Builds the read that shows whether the target is still as the write left it. */
  look(input: Input): DeviceProbe
  /** Returns facts of this read under the names that `of` uses. `of` named the `files`. */
  facts(seen: DeviceArgs | null, input: Input, files: readonly string[]): LeftBehind | null
}

/**
 * One tool on a device, as data and pure functions, for both control plane and agent. `args` is
 * what a device accepts. `input` is what the model may send, without `on` and `reason`, which every
 * tool has.
 */
export type MeshSpec<Input extends DeviceArgs = DeviceArgs> = {
  name: string
  capability: Capability
  about: string
  /**
   * Arguments that a device accepts, with the limits of the protocol. These limits are deliberately
   * wide, so that the control plane can change its own limits without an update of every agent.
   */
  args: z.ZodObject
  /**
   * Arguments that the control plane accepts, with its own limits. Each tool's comment gives the
   * reason for a limit. Built at the first read, because an agent never reads it.
   */
  readonly input: z.ZodObject
  effect: 'read' | 'write'
  risk: Risk
  reversible: boolean
  /** True if a person may give a grant for the action, so that it runs again without approval. */
  grantable?: boolean
  /**
   * True if devices of mode `user` do not have this tool, so an admin has to choose another mode.
   */
  privileged?: boolean
  /** True if the tool needs approval with all arguments. */
  asked?: boolean
  command?: CommandField
  inside?: boolean
  /** True if the model gets the tool only through `more_tools`. */
  isRare?: boolean
  /**
   * True if the first turn leaves the tool out when a runbook fits the incident but does not name
   * the tool.
   */
  isSituational?: boolean
  /**
   * The kinds of resources for whose incidents the first turn offers the tool if no runbook
   * decides. Absent for all kinds that run on a machine.
   */
  firstFor?: readonly InventoryKind[]
  /**
   * The model's tool that uses this tool and may get its result in other ways. This tool is known
   * by its name, but not offered to the model.
   */
  calledBy?: string
  /**
   * True if the tool shows only the kind of a file and no content, so that even secret files may be
   * read with it.
   */
  showsNoContent?: boolean
  /**
   * True if the tool returns log lines (`readLines`). The core API makes templates from the lines
   * and stores the complete text.
   */
  readsLog?: boolean
  /** True if the tool's output is shown while the tool runs. */
  streams?: boolean
  /**
   * True if the device can report beforehand what the call would do, by trying it in a temporary
   * copy or by a read.
   */
  rehearses?: boolean
  /**
   * Builds the request to the host's agent for a guest without an agent, or returns why no request
   * is possible.
   */
  throughHost?(guest: string, by: 'docker' | 'pct', input: Input): DeviceProbe | string
  toArgs(input: Input): DeviceArgs
  toOutput(result: DeviceArgs): unknown
  /** Returns a shortened result, which counts as cut. Null if the result is short already. */
  bound?(result: DeviceArgs, input: Input): DeviceArgs | null
  /**
   * Describes a call in one line for an approval card. `about` is the device's name for the target,
   * or null if that name was not requested. The name is untrusted.
   */
  summary(input: Input, about: string | null): string
  /**
   * Describes what a read found, without the device's name, which precedes it. Absent for a write,
   * which `summary` describes.
   */
  say?(result: DeviceArgs, input: Input): string
  /**
   * Returns the names of containers and similar resources in the result, as in
   * `safety/command/known-names.ts`.
   */
  lists?(result: DeviceArgs, input: Input): string[]
  /**
   * Returns what a write changed, by the device's response. Absent or null if the changes are
   * unknown.
   */
  changes?(result: DeviceArgs, input: Input): Changed
  /**
   * Builds the read of the state on which the action depends. It runs for the dry run and again
   * just before the action.
   */
  state?(input: Input): DeviceProbe
  /**
   * How success is proved. `promised`: what `promise` reads, in words, or null for nothing.
   * `otherwise`: what a person has to check if there is no proof.
   */
  proof: { promised: string | null; otherwise: string }
  /** Builds the condition after the write. Absent or null if there is none. */
  promise?(input: Input): Postcondition | null
  /** The undo of a write. Absent if none is declared. */
  undo?: DeviceUndo<Input>
}

/** The proof of a command: an exit code other than 0 shows failure, and 0 shows nothing. */
export const ofCommand = {
  promised: null,
  otherwise: 'an exit code of 0 of a command proves nothing; check its target yourself afterwards',
} as const

/**
 * The proof of a read, even one that a person has to allow: its response is the complete result.
 */
export const onlyLooks = {
  promised: null,
  otherwise: 'the call only reads, and its response is the whole result',
} as const

/** Drops undefined fields, because a grant is valid only for the arguments as they were sent. */
export function withoutUndefined(args: DeviceArgs): DeviceArgs {
  return Object.fromEntries(Object.entries(args).filter(([, value]) => value !== undefined))
}

export const same = (value: DeviceArgs): DeviceArgs => value

/** Common properties of most reads from the machine itself. */
export const plainRead = {
  effect: 'read',
  risk: 'none',
  reversible: true,
  proof: onlyLooks,
  inside: true,
  toArgs: withoutUndefined,
  toOutput: same,
} as const

/** Common properties of a write whose former state is kept. A person may give a grant for it. */
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

/** Common properties of a write without undo. Devices of mode `user` do not have its tool. */
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

/**
 * A path for a device. Linux allows 4,096 bytes, and `mesh/agent/manifest.ts` has further limits.
 */
export const devicePath = z.string().min(1).max(4_096)

/**
 * A path from the model, which fits on one line of a card. The device checks every part of the path
 * itself.
 */
export const path = devicePath
  .max(1_000)
  .regex(/^\//, 'is not an absolute path')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: what no path on a card should hold
  .regex(/^[^\u0000-\u001f\u007f]*$/, 'holds a control character')
  .meta({ description: 'absolute', examples: ['/var/log/web/app.log'] })
/** The words of a command, which fit on a card for the person who may have to approve it. */
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
 * Whether this path may be read by the rules for commands: null without approval, `secret` only
 * with approval, `endless` never. Device and control plane use these rules.
 */
export function kindOfSystemPath(path: string): 'secret' | 'endless' | null {
  const finding = pathFinding(wordOf(path), [], 'prints')
  return finding === null || finding === 'endless' ? finding : 'secret'
}

/** Formats a root as in a manifest, without redundant slashes. */
export function plainRoot(root: string): string {
  return `/${root.split('/').filter(Boolean).join('/')}`
}

/** Whether this path is the directory or below it. Both paths are plain and absolute. */
export function isInside(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory === '/' ? '/' : `${directory}/`)
}
