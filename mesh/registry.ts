import { z } from 'zod'
import type { DeviceTerms, Guests } from '../domain/device.ts'
import { type Capability, knownFields, type MeshHealth, type MeshMode } from '../domain/mesh.ts'
import { dockerSpecs } from './specs/docker.ts'
import { diskSpecs, fsSpecs } from './specs/fs.ts'
import { gitHistorySpecs, gitSpecs } from './specs/git.ts'
import { logSpecs, pkgSpecs, procSpecs } from './specs/host.ts'
import { shellSpecs } from './specs/shell.ts'
import type { MeshSpec } from './specs/spec.ts'
import { serviceSpecs } from './specs/unit.ts'

export type { MeshSpec } from './specs/spec.ts'

/** The tools on devices, in the order in which the model gets them. */
export const meshSpecs: readonly MeshSpec[] = [
  ...shellSpecs,
  ...fsSpecs,
  ...diskSpecs,
  ...gitSpecs,
  ...gitHistorySpecs,
  ...pkgSpecs,
  ...procSpecs,
  ...dockerSpecs,
  ...serviceSpecs,
  ...logSpecs,
]

/** The capabilities that have a tool. */
export const knownCapability = z.enum(meshSpecs.map((spec) => spec.capability))

/** The capabilities of older agents, which do not list their capabilities. */
const firstCapabilities =
  'shell.exec shell.eval fs.read fs.write fs.list fs.stat git.clone git.commit git.push pkg.install pkg.search proc.list proc.kill docker.container.list docker.container.exec docker.container.logs'.split(
    ' ',
  )

const byName = new Map(meshSpecs.map((spec) => [spec.name, spec]))

/**
 * Finds a tool by the model's name, its dotted spelling, or the name of its capability. Null if
 * there is none.
 */
export function specNamed(name: string): MeshSpec | null {
  return (
    specOfTool(name) ?? byName.get(name.replace('.', '_')) ?? meshSpecs.find((spec) => spec.capability === name) ?? null
  )
}

/**
 * Finds what a tool requests from devices, by the tool's exact name. Null if the tool requests
 * nothing.
 */
export function specOfTool(name: string): MeshSpec | null {
  return byName.get(name) ?? meshSpecs.find((spec) => spec.calledBy === name) ?? null
}

/**
 * Builds the request to a device from a call's arguments, without arguments that the device does
 * not know. Null if the tool requests nothing from devices.
 */
export function toDeviceCall(
  tool: string,
  { on, reason: _, ...args }: Record<string, unknown>,
): { spec: MeshSpec; args: Record<string, unknown> } | null {
  const spec = specOfTool(tool)
  if (!spec || typeof on !== 'string') return null
  if (spec.name === tool) return { spec, args }
  const known = Object.entries(args).filter(([field]) => field in spec.input.shape)
  return { spec, args: Object.fromEntries(known) }
}

export function specOf(capability: Capability): MeshSpec {
  const spec = meshSpecs.find((each) => each.capability === capability)
  if (!spec) throw new Error(`no tool has the capability ${capability}`)
  return spec
}

/**
 * Adds `[device_mesh: pkg.install] (approval required)` to a tool's description, which marks a
 * remote tool for the model.
 */
export function descriptionOf(spec: MeshSpec, mode: MeshMode = 'all'): string {
  const marked = `${spec.about} [device_mesh: ${spec.capability}]`
  return needsApproval(spec, mode) ? `${marked} (approval required)` : marked
}

/**
 * Whether a tool needs approval for all arguments: every tool on `sudo` devices, and tools such as
 * `shell_eval` on every device.
 */
function needsApproval(spec: MeshSpec, mode: MeshMode): boolean {
  return spec.asked === true || mode === 'sudo'
}

/**
 * Whether devices of a mode have a tool. `user` devices have no privileged tools; `sudo` and `all`
 * devices have all tools.
 */
export function inMode(spec: MeshSpec, mode: MeshMode): boolean {
  return mode !== 'user' || !spec.privileged
}

/** Lists unknown names in `tools_allowed`. They are logged and ignored, and cause no failure. */
export function unknownTools(toolsAllowed: readonly string[]): string[] {
  return toolsAllowed.filter((name) => specNamed(name) === null)
}

/** Whether the device accepts names that the control plane has looked up. */
export function knowsNames(health: Offering['health']): boolean {
  return health?.knows?.includes(knownFields[0]) ?? false
}

/** Whether the agent compares a state at the moment of a change (`if_head`, `if_run`). */
export function comparesState(health: Offering['health']): boolean {
  return health?.knows?.includes(knownFields[1]) ?? false
}

/** The properties of a device that decide which tools it has. */
export type Offering = {
  mode: MeshMode
  toolsAllowed: readonly string[]
  terms: Pick<DeviceTerms, 'capabilities'>
  health: Pick<MeshHealth, 'unavailable' | 'knows'> | null
}

/** Returns why a device does not have a tool. Null if it has the tool. */
export function missingPrerequisite(spec: MeshSpec, device: Offering): string | null {
  if (!inMode(spec, device.mode)) return `${spec.name} is not for devices of mode ${device.mode}`
  // Allows no tool if the list has only unknown names, because the list was meant to restrict.
  if (device.toolsAllowed.length > 0 && !device.toolsAllowed.some((name) => specNamed(name)?.name === spec.name)) {
    return `${spec.name} is not among the tools allowed on this device`
  }
  const { capabilities } = device.terms
  if (capabilities.length > 0 && !capabilities.includes(spec.capability))
    return 'the manifest of the device does not name the capability of the tool'
  const { health } = device
  if (health && !(health.knows ?? firstCapabilities).includes(spec.capability))
    return 'the agent is older than this tool: update the agent'
  return health?.unavailable[spec.capability] ?? null
}

/** Lists the tools of a device. */
export function toolsOf(device: Offering): MeshSpec[] {
  return meshSpecs.filter((spec) => missingPrerequisite(spec, device) === null)
}

/** The capability through which a host's device runs a command in a guest. */
const reachedBy: Record<Guests, Capability> = { docker: 'docker.container.exec', pct: 'shell.exec' }

/** Lists the tools for a guest without an agent. The device of the guest's host runs them. */
export function toolsThrough(device: Offering, guests: Guests): MeshSpec[] {
  if (missingPrerequisite(specOf(reachedBy[guests]), device) !== null) return []
  return toolsOf(device).filter((spec) => spec.throughHost !== undefined)
}
