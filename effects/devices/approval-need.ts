import type { DeviceRow } from '../../db/inventory/devices.ts'
import type { Capability } from '../../domain/mesh.ts'
import { findSandboxLack, sandboxRemedy } from '../../domain/status-words.ts'
import type { Risk } from '../../domain/tool.ts'
import { type DeviceProbe, isInside, kindOfSystemPath, plainRoot } from '../../mesh/specs/spec.ts'
import type { EffectDeps } from '../effect.ts'
import { askDevice } from './ask-device.ts'
import { buildReadKey, type Executor, type MappedCall } from './executor.ts'
import { judgeOnDevice } from './vouch.ts'

/** Why a person has to approve a call that the judge takes for a read. */
type ApprovalNeed = { risk: Risk; why: string }

/**
 * A device guard's wish for approval, predicted from rows. Null for a call without approval, for
 * one it refuses under any grant, and for one that the judge takes for a write too. The device
 * decides: where the prediction is wrong, it answers `approval_required` and does nothing.
 */
export function findApprovalNeed(
  { id, mode, terms, health }: Pick<DeviceRow, 'id' | 'mode' | 'terms' | 'health'>,
  { spec, input, capability, args }: MappedCall,
  names: readonly string[] = [],
): ApprovalNeed | null {
  if (mode === 'sudo') return { risk: 'critical', why: `${id} does everything as root, so everything is asked` }
  const knownNames = new Set(names)
  const verdict = judgeOnDevice(
    { capability, args },
    { rootReads: getRootReads({ mode, terms }, capability), knownNames },
  )
  if (verdict?.verdict === 'refuse') return null
  if (verdict?.verdict === 'ask') {
    // The judge knows the hosts of the inventory and how a guest is reached; the device does not.
    const own = judgeOnDevice({ capability: spec.capability, args: spec.toArgs(input) }, { canLook: true })
    const isRead =
      own?.verdict === 'run' ||
      verdict.code === 'EXFILTRATION' ||
      (verdict.code === 'UNKNOWN_NAME' && verdict.effect === 'read')
    return isRead ? { risk: 'medium', why: `${id} takes no proven look in it: ${verdict.reason}` } : null
  }
  if (verdict === null && spec.effect !== 'read') return null
  const path = typeof args.path === 'string' ? args.path : null
  if (
    path !== null &&
    !spec.showsNoContent &&
    kindOfSystemPath(path) === 'secret' &&
    terms.roots.some((root) => isInside(path, plainRoot(root.path)))
  ) {
    // The device refuses a part of a secret file under any grant.
    if (Number(args.offset ?? 0) > 0) return null
    return { risk: 'high', why: `${id} holds ${path} for secret; what is not recognised as a secret is read` }
  }
  const lack = findSandboxLack(health)
  if (lack !== null)
    return { risk: 'medium', why: `${id} cannot confine what it reads (${lack}), so each look asks: ${sandboxRemedy}` }
  // With this sandbox, another user is the only confinement.
  const obeying = health?.sandbox === 'user' ? verdict?.obeys[0] : undefined
  if (obeying !== undefined) {
    const why = `${obeying} obeys files of the place, and ${id} confines reads as another user alone`
    return { risk: 'medium', why }
  }
  const unlisted = verdict?.commands.find((name) => terms.auto_approve.length > 0 && !terms.auto_approve.includes(name))
  return unlisted === undefined
    ? null
    : { risk: 'medium', why: `the manifest of ${id} lets no ${unlisted} run unasked` }
}

/**
 * A device's wish for approval now, against the rows' prediction: a read whose program obeys files
 * there. The device is asked, since its files are unknown here. Null where there is nothing to ask,
 * and from a device that does not know the question.
 */
export async function askApprovalNeed(
  deps: EffectDeps,
  { device }: Pick<Executor, 'device'>,
  { capability, args }: DeviceProbe,
  at: { key: string; incidentId: string; deadlineMs: number; names: string[] },
): Promise<ApprovalNeed | null> {
  const verdict = judgeOnDevice(
    { capability, args },
    { rootReads: getRootReads(device, capability), knownNames: new Set(at.names) },
  )
  if (verdict?.verdict !== 'run') return null
  if (verdict.conditions.length === 0 && !verdict.sees.includes('mounts') && verdict.rootRead === null) return null
  const key = buildReadKey(at.key, 'rests')
  const reply = await askDevice(deps, device, { ...at, key, capability, args, rehearse: true })
  const result = reply.kind === 'answer' && reply.answer.ok ? reply.answer.result : null
  const unmet = result?.unmet
  // A device that rehearses it takes it for a write: it holds no such manifest yet.
  if (verdict.rootRead && (unmet === undefined || result?.told !== undefined)) {
    return { risk: 'critical', why: `the manifest that ${device.id} holds does not allow it as root` }
  }
  return typeof unmet === 'string'
    ? { risk: verdict.rootRead ? 'critical' : 'medium', why: `${device.id} does not do it unasked: ${unmet}` }
    : null
}

/**
 * Whether the device proves the command a read, also where it wants approval: such a call has no
 * rehearsal.
 */
export function isProvenRead(
  { device }: Pick<Executor, 'device'>,
  look: DeviceProbe,
  names: readonly string[],
): boolean {
  const known = { rootReads: getRootReads(device, look.capability), knownNames: new Set(names) }
  return judgeOnDevice(look, known)?.verdict === 'run'
}

/** The commands that may read as root here: on the device itself, and not in a container. */
export function getRootReads({ mode, terms }: Pick<DeviceRow, 'mode' | 'terms'>, capability: Capability): RootReads {
  return mode !== 'sudo' && /^shell\./.test(capability) ? terms.root_reads : undefined
}

type RootReads = string[][] | undefined
