import { z } from 'zod'
import type { Capability } from '../../domain/mesh.ts'
import type { CommandField, Risk } from '../../domain/tool.ts'

export type DeviceArgs = Record<string, unknown>
/** A look at a device that settles a question about it. `rehearse`: what the capability would do now, in a throw-away copy. */
export type Look = { capability: Capability; args: DeviceArgs; rehearse?: true }
/** What a look came to; `result` null where the device says that there is no such thing. */
export type Seen = { result: DeviceArgs | null }
/** What that tells about a promise; null: nothing. */
export type Told = { holds: boolean; observed: string } | null
/** Something that must be true after a write. `result` is what the device answered, null where that is not known. */
export type Promised = { look(result: DeviceArgs | null): Look; holds(seen: Seen, result: DeviceArgs | null): Told }

/**
 * One tool on a device, as data and pure functions (seed 003): what the model may say, what the device is asked, what the model
 * reads. The input is without `on` and `reason`, which every tool has.
 */
export type MeshSpec<Input extends DeviceArgs = DeviceArgs> = {
  name: string
  capability: Capability
  about: string
  input: z.ZodObject
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
  /** Its output is followed while it comes. */
  streams?: boolean
  /** The device can tell beforehand what it would do: tried in a throw-away copy, or looked at where it would happen. */
  rehearses?: boolean
  /** What the agent of its host is asked for a guest without one; why it cannot be, in words, where that is so. */
  throughHost?(guest: string, by: 'docker' | 'pct', input: Input): Look | string
  toArgs(input: Input): DeviceArgs
  toOutput(result: DeviceArgs): unknown
  /** One line for the card of an approval. */
  summary(input: Input): string
  /** What of the device the action rests on: looked at for the dry run and again just before. */
  state?(input: Input): Look
  /**
   * What shows afterwards that it worked. `promised`: what `promise` looks at, in words; null: it promises nothing. `otherwise`: what a
   * person has to do wherever nothing is promised.
   */
  proof: { promised: string | null; otherwise: string }
  /** What must be true afterwards; absent, or null for these arguments: nothing is promised. */
  promise?(input: Input): Promised | null
}

/** Of a command: an exit code other than 0 shows that it failed, and 0 shows nothing. */
export const ofCommand = {
  promised: null,
  otherwise:
    'it is a command, and an exit code of 0 promises nothing; look at what it was to change yourself afterwards',
} as const

/** Of what only looks: its answer is all there is to it, though a person may have to allow it. */
export const onlyLooks = { promised: null, otherwise: 'it only looks, and its answer is all there is to it' } as const

export function defineSpec<Input extends DeviceArgs>(spec: MeshSpec<Input>): MeshSpec {
  return spec as unknown as MeshSpec
}

/** An absolute path; the device walks it itself and believes none of it. */
export const path = z
  .string()
  .min(1)
  .max(1_000)
  .regex(/^\//, 'is not an absolute path')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: what no path on a card should hold
  .regex(/^[^\u0000-\u001f\u007f]*$/, 'holds a control character')
export const word = z.string().min(1).max(200).regex(/^[^-]/, 'begins with a dash')

/** Without what is undefined: a grant binds the arguments as they are sent. */
export function present(args: DeviceArgs): DeviceArgs {
  return Object.fromEntries(Object.entries(args).filter(([, value]) => value !== undefined))
}

export const same = (value: DeviceArgs): DeviceArgs => value
