import type { DeviceRow } from '../../db/inventory/devices.ts'
import type { Capability } from '../../domain/mesh.ts'
import { findSandboxLack, sandboxRemedy } from '../../domain/status-words.ts'
import type { Risk } from '../../domain/tool.ts'
import { type DeviceProbe, isInside, kindOfSystemPath, plainRoot } from '../../mesh/specs/spec.ts'
import type { EffectDeps } from '../effect.ts'
import { askDevice } from './ask-device.ts'
import { buildReadKey, type Executor, type MappedCall } from './executor.ts'
import { judgeOnDevice } from './vouch.ts'

/** The reason why a person has to approve a call that the judge takes for a read. */
type ApprovalNeed = { risk: Risk; why: string }

/**
 * Predicts from rows whether a device's guard will demand approval. Null for a call that needs no
 * approval, for a call that the guard refuses under any grant, and for a call that the judge also
 * takes for a write. The device decides: if the prediction is wrong, the device answers
 * `approval_required` and does nothing.
 */
export function findApprovalNeed(
  { id, mode, terms, health }: Pick<DeviceRow, 'id' | 'mode' | 'terms' | 'health'>,
  { spec, input, capability, args }: MappedCall,
  names: readonly string[] = [],
): ApprovalNeed | null {
  if (mode === 'sudo')
    return { risk: 'critical', why: `${id} does everything as root, so everything requires approval` }
  const knownNames = new Set(names)
  const verdict = judgeOnDevice(
    { capability, args },
    { rootReads: getRootReads({ mode, terms }, capability), knownNames },
  )
  if (verdict?.verdict === 'refuse') return null
  if (verdict?.verdict === 'ask') {
    // Takes the call for a read if the device would demand approval only because it knows less. The
    // judge here knows the hosts of the inventory and how a guest is reached; a device does not.
    const own = judgeOnDevice({ capability: spec.capability, args: spec.toArgs(input) }, { canLook: true })
    const isRead =
      own?.verdict === 'run' ||
      verdict.code === 'EXFILTRATION' ||
      (verdict.code === 'UNKNOWN_NAME' && verdict.effect === 'read')
    return isRead ? { risk: 'medium', why: `${id} does not know this call as read-only: ${verdict.reason}` } : null
  }
  if (verdict === null && spec.effect !== 'read') return null
  const path = typeof args.path === 'string' ? args.path : null
  if (
    path !== null &&
    !spec.showsNoContent &&
    kindOfSystemPath(path) === 'secret' &&
    terms.roots.some((root) => isInside(path, plainRoot(root.path)))
  ) {
    // Returns null, because no grant lets the device read a part of a secret file.
    if (Number(args.offset ?? 0) > 0) return null
    return { risk: 'high', why: `${path} counts as secret on ${id}; the read shows secrets that are not recognised` }
  }
  const lack = findSandboxLack(health)
  if (lack !== null)
    return {
      risk: 'medium',
      why: `${id} cannot confine what it reads (${lack}), so each read requires approval: ${sandboxRemedy}`,
    }
  // Demands approval if the sandbox confines a read only by running it as another user.
  const obeying = health?.sandbox === 'user' ? verdict?.obeys[0] : undefined
  if (obeying !== undefined) {
    const why = `${obeying} reads settings from its directory, and ${id} confines reads only by running them as another user`
    return { risk: 'medium', why }
  }
  const unlisted = verdict?.commands.find((name) => terms.auto_approve.length > 0 && !terms.auto_approve.includes(name))
  return unlisted === undefined
    ? null
    : { risk: 'medium', why: `the manifest of ${id} lets no ${unlisted} run without approval` }
}

/**
 * Asks a device whether it demands approval now. The prediction is not enough for a read whose
 * program obeys files on the device, which are unknown here. Null if there is nothing to ask, or if
 * the device does not support the question.
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
  // Treats the call as not allowed if the device made a dry run of it. The device took the call for
  // a write, so its manifest does not allow the call yet.
  if (verdict.rootRead && (unmet === undefined || result?.told !== undefined)) {
    return { risk: 'critical', why: `the manifest that ${device.id} holds does not allow this command as root` }
  }
  return typeof unmet === 'string'
    ? {
        risk: verdict.rootRead ? 'critical' : 'medium',
        why: `${device.id} does not run this call without approval: ${unmet}`,
      }
    : null
}

/**
 * Whether the device proves that the command is a read, even if it demands approval. Such a call
 * has no dry run.
 */
export function isProvenRead(
  { device }: Pick<Executor, 'device'>,
  look: DeviceProbe,
  names: readonly string[],
): boolean {
  const known = { rootReads: getRootReads(device, look.capability), knownNames: new Set(names) }
  return judgeOnDevice(look, known)?.verdict === 'run'
}

/** Lists the commands that may read as root on the device itself, but not in a container. */
export function getRootReads({ mode, terms }: Pick<DeviceRow, 'mode' | 'terms'>, capability: Capability): RootReads {
  return mode !== 'sudo' && /^shell\./.test(capability) ? terms.root_reads : undefined
}

type RootReads = string[][] | undefined
