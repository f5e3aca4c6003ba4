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

/** The tools on devices, in the order the model reads them. */
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

/** The names that may be asked for: each is that of a tool. */
export const knownCapability = z.enum(meshSpecs.map((spec) => spec.capability))

/** What agents know that do not say what they know. */
const firstCapabilities =
  'shell.exec shell.eval fs.read fs.write fs.list fs.stat git.clone git.commit git.push pkg.install pkg.search proc.list proc.kill docker.container.list docker.container.exec docker.container.logs'.split(
    ' ',
  )

const byName = new Map(meshSpecs.map((spec) => [spec.name, spec]))

/**
 * By the name the model uses, the dotted spelling of it, or the capability's own name; null for
 * other names.
 */
export function specNamed(name: string): MeshSpec | null {
  return (
    specOfTool(name) ?? byName.get(name.replace('.', '_')) ?? meshSpecs.find((spec) => spec.capability === name) ?? null
  )
}

/** A tool's question to devices, by the model's exact name; null where it has none. */
export function specOfTool(name: string): MeshSpec | null {
  return byName.get(name) ?? meshSpecs.find((spec) => spec.calledBy === name) ?? null
}

/** A call's question to a device: the arguments with a meaning there. Null where it has none. */
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
  if (!spec) throw new Error(`no tool for ${capability}`)
  return spec
}

/**
 * `…[device_mesh: pkg.install] (approval required)`: the marker by which a model knows a remote
 * tool.
 */
export function descriptionOf(spec: MeshSpec, mode: MeshMode = 'all'): string {
  const marked = `${spec.about} [device_mesh: ${spec.capability}]`
  return needsApproval(spec, mode) ? `${marked} (approval required)` : marked
}

/**
 * Is it asked whatever its arguments are? On a `sudo` device everything is, and `shell_eval` too.
 */
function needsApproval(spec: MeshSpec, mode: MeshMode): boolean {
  return spec.asked === true || mode === 'sudo'
}

/** Whether a mode has a tool: `user` devices have no privileged ones; `sudo` and `all` have all. */
export function inMode(spec: MeshSpec, mode: MeshMode): boolean {
  return mode !== 'user' || !spec.privileged
}

/** Names of `tools_allowed` that no tool has: logged and ignored, never a failure. */
export function unknownTools(toolsAllowed: readonly string[]): string[] {
  return toolsAllowed.filter((name) => specNamed(name) === null)
}

/** Does the device take names that the control plane looked up? */
export function knowsNames(health: Offering['health']): boolean {
  return health?.knows?.includes(knownFields[0]) ?? false
}

/** Does the agent compare a state in the moment that it acts (`if_head`, `if_run`)? */
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

/** Why a device does not have a tool, in words; null when it has. */
export function missingPrerequisite(spec: MeshSpec, device: Offering): string | null {
  if (!inMode(spec, device.mode)) return `${spec.name} is not for devices of mode ${device.mode}`
  // A list of nothing but unknown names allows nothing: it was meant to narrow.
  if (device.toolsAllowed.length > 0 && !device.toolsAllowed.some((name) => specNamed(name)?.name === spec.name)) {
    return `${spec.name} is not among the tools allowed on this device`
  }
  const { capabilities } = device.terms
  if (capabilities.length > 0 && !capabilities.includes(spec.capability)) return 'its manifest does not name it'
  const { health } = device
  if (health && !(health.knows ?? firstCapabilities).includes(spec.capability))
    return 'its agent is older than this tool: update the agent'
  return health?.unavailable[spec.capability] ?? null
}

/** The tools that a device has. */
export function toolsOf(device: Offering): MeshSpec[] {
  return meshSpecs.filter((spec) => missingPrerequisite(spec, device) === null)
}

/** What the device of a host is asked where something is asked of a guest on it. */
const reachedBy: Record<Guests, Capability> = { docker: 'docker.container.exec', pct: 'shell.exec' }

/** The tools that work on a guest without an agent, through the device of its host. */
export function toolsThrough(device: Offering, guests: Guests): MeshSpec[] {
  if (missingPrerequisite(specOf(reachedBy[guests]), device) !== null) return []
  return toolsOf(device).filter((spec) => spec.throughHost !== undefined)
}
