import type { DeviceRow } from '../../db/devices.ts'
import type { Capability } from '../../domain/mesh.ts'
import type { Risk } from '../../domain/tool.ts'
import { heldAt, isInside, plainRoot } from '../../mesh/paths.ts'
import type { Probe as Look } from '../../mesh/specs/spec.ts'
import { type CommandVerdict, judgeArgv, judgeCommand } from '../../safety/command/judge.ts'
import type { ApiDeps } from '../deps.ts'
import { askDevice } from './ask-device.ts'
import { lookKey, type Mapped } from './call.ts'
import type { Executor } from './executor.ts'

export type Asks = { risk: Risk; why: string }

/**
 * Why a device would not do what the judge may take for a look without a person's leave: what its guard would say, from what rows tell of
 * it. Null for what it does unasked, for what it refuses whatever is signed, and for what is a write to the judge as well. The device
 * decides for itself: where this is wrong, it answers `approval_required` and nothing is done.
 */
export function whyAsked(
  { id, mode, terms, health }: Pick<DeviceRow, 'id' | 'mode' | 'terms' | 'health'>,
  { spec, input, capability, args }: Mapped,
): Asks | null {
  if (mode === 'sudo') return { risk: 'critical', why: `${id} does everything as root, so everything is asked` }
  const verdict = verdictOf({ capability, args }, rootReadsOf({ mode, terms }, capability))
  if (verdict?.verdict === 'refuse') return null
  if (verdict?.verdict === 'ask') {
    // Who looked a host up knows it; the device does not. And it sees how a guest is reached.
    const own = verdictOf({ capability: spec.capability, args: spec.toArgs(input) }, undefined, true)
    const isLook = own?.verdict === 'run' || verdict.code === 'EXFILTRATION'
    return isLook ? { risk: 'medium', why: `${id} takes no proven look in it: ${verdict.reason}` } : null
  }
  if (verdict === null && spec.effect !== 'read') return null
  const path = typeof args.path === 'string' ? args.path : null
  if (path !== null && heldAt(path) === 'secret' && terms.roots.some((root) => isInside(path, plainRoot(root.path)))) {
    // A part of it the device refuses to anybody.
    if (Number(args.offset ?? 0) > 0) return null
    return { risk: 'high', why: `${id} holds ${path} for secret; what is not recognised as a secret is read` }
  }
  if (health?.sandbox === 'none') return { risk: 'medium', why: `${id} cannot confine what it reads` }
  // There, another user is all that confines it.
  const obeying = health?.sandbox === 'user' ? verdict?.obeys[0] : undefined
  if (obeying !== undefined)
    return {
      risk: 'medium',
      why: `${obeying} obeys files of the place, and ${id} confines reads as another user alone`,
    }
  const unlisted = verdict?.commands.find((name) => terms.auto_approve.length > 0 && !terms.auto_approve.includes(name))
  return unlisted === undefined
    ? null
    : { risk: 'medium', why: `the manifest of ${id} lets no ${unlisted} run unasked` }
}

/**
 * Why a device would not do just now what rows let it do unasked: a look whose program obeys something there. The device itself is asked,
 * for nothing is known of its files here. Null where nothing is to be asked, and from a device that does not know the question.
 */
export async function whyUnmet(
  deps: ApiDeps,
  { device }: Pick<Executor, 'device'>,
  { capability, args }: Look,
  at: { key: string; incidentId: string; deadlineMs: number },
): Promise<Asks | null> {
  const verdict = verdictOf({ capability, args }, rootReadsOf(device, capability))
  if (verdict?.verdict !== 'run') return null
  if (verdict.conditions.length === 0 && !verdict.sees.includes('mounts') && verdict.rootRead === null) return null
  const heard = await askDevice(deps, device, {
    ...{ ...at, key: lookKey(at.key, 'rests'), capability, args, rehearse: true },
  })
  const result = heard.kind === 'answer' && heard.answer.ok ? heard.answer.result : null
  const unmet = result?.unmet
  // A device that tells what can be seen beforehand takes it for a write: it holds no such manifest yet.
  if (verdict.rootRead && (unmet === undefined || result?.told !== undefined))
    return { risk: 'critical', why: `the manifest that ${device.id} holds does not allow it as root` }
  return typeof unmet === 'string'
    ? { risk: verdict.rootRead ? 'critical' : 'medium', why: `${device.id} does not do it unasked: ${unmet}` }
    : null
}

/** Is it a command that the device proves to look, whatever it may want to be asked for? There is nothing of it to try out. */
export function isProvenLook({ device }: Pick<Executor, 'device'>, look: Look): boolean {
  return verdictOf(look, rootReadsOf(device, look.capability))?.verdict === 'run'
}

/** What may look as root where this runs: on the device itself, and not in a container. */
export function rootReadsOf({ mode, terms }: Pick<DeviceRow, 'mode' | 'terms'>, capability: Capability): RootReads {
  return mode !== 'sudo' && /^shell\./.test(capability) ? terms.root_reads : undefined
}

type RootReads = string[][] | undefined

/** As the device judges it, which knows no hosts and cannot look into containers; null for what is no command. */
function verdictOf(
  { capability, args }: Look,
  rootReads?: RootReads,
  canLook = capability !== 'docker.container.exec',
): CommandVerdict | null {
  const directory = typeof args.cwd === 'string' ? args.cwd : '/'
  const context = { knownHosts: new Set<string>(), directory, canLook, rootReads }
  if (typeof args.text === 'string' && capability === 'shell.eval') return judgeCommand(args.text, context)
  return Array.isArray(args.argv) ? judgeArgv(args.argv.map(String), context) : null
}
