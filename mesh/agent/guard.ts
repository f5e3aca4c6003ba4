import { fileURLToPath } from 'node:url'
import {
  type Capability,
  type CapabilityRequest,
  clockSkewSeconds,
  type Grant,
  grantSeconds,
  type Manifest,
} from '../../domain/mesh.ts'
import { nameFaults } from '../../domain/schema-faults.ts'
import { type CommandContext, type CommandVerdict, judgeArgv, judgeCommand } from '../../safety/command/judge.ts'
import { settingsDirectory } from '../../safety/command/settings-directory.ts'
import { loadSql } from '../../safety/sql/inspect.ts'
import { argsDigest, isSigned } from '../sign.ts'
import type { CallWeight, CapabilityContext, DeviceCapability, RunOptions } from './capability.ts'
import { keyOf, type TrustedKeys } from './manifest.ts'
import type { Preconditions } from './preconditions.ts'
import type { Rejection } from './verify-request.ts'

export type Sandbox = 'bwrap' | 'unshare' | 'user' | 'none'

export type GuardRuling =
  | (Rejection & { approval: 'required' | 'refused'; command: string | null })
  | {
      ok: true
      approval: 'auto_approved' | 'granted'
      effect: 'read' | 'write'
      command: string | null
      args: Record<string, unknown>
      capability: DeviceCapability
      /** What has to be checked right before it, where no person was asked. */
      rests: Preconditions | null
    }

export type GuardContext = {
  manifest: Manifest
  keys: TrustedKeys
  /** What this device has. */
  available: ReadonlyMap<Capability, DeviceCapability>
  /** What it lacks, with the reason. */
  unavailable: Partial<Record<string, string>>
  sandbox: Sandbox
  /** Why it is no better one. */
  lack?: string | null
  hidden: readonly string[]
  /** What the control plane has looked up here, for this request. */
  names: readonly string[]
  nowMs: number
  isUsedGrant(id: string): boolean
}

/**
 * May a verified request be done? The device decides by itself, whatever the control plane thinks:
 * what is forbidden stays so with any grant, a proven read may run unasked, and everything else
 * needs a grant for exactly this.
 */
export function rule(request: CapabilityRequest, at: GuardContext): GuardRuling {
  const { manifest } = at
  const isListed = manifest.capabilities.length === 0 || manifest.capabilities.includes(request.capability)
  if (!isListed) return no('capability_unavailable', `The manifest does not list ${request.capability}.`)
  const capability = at.available.get(request.capability)
  if (!capability) {
    const reason = at.unavailable[request.capability] ?? 'this agent does not know it'
    return no('capability_unavailable', `${request.capability} is not available here: ${reason}`)
  }
  const parsed = capability.args.safeParse(request.args)
  if (!parsed.success) {
    return no('invalid_arguments', nameFaults(parsed.error, { whole: 'The arguments', max: 1 }))
  }
  const args = parsed.data
  if (request.rehearse && !capability.rehearse)
    return no('capability_unavailable', `${request.capability} cannot be rehearsed.`)

  const weight = capability.weigh(args, manifest, at)
  const { command } = weight
  if (weight.effect === 'refused') return no(weight.code ?? 'blocked', weight.reason, command)
  // A rehearsal happens in a copy that is thrown away: there is nothing yet that a person could
  // approve.
  const effect = request.rehearse ? 'read' : weight.effect
  // Nor does it start the programs of a write: what it starts instead is held against the manifest
  // where it does.
  const needed = whyGrant(
    request.rehearse && weight.effect === 'write' ? { ...weight, programs: [] } : weight,
    effect,
    at,
  )
  if (request.grant === null) {
    if (needed) return { ...no('approval_required', needed, command), approval: 'required' }

    return { ok: true, approval: 'auto_approved', effect, command, args, capability, rests: weight.rests ?? null }
  }
  const refusal = refuseGrant(request.grant, request, { ...at, device: manifest.device, isUsed: at.isUsedGrant })
  if (refusal) return { ...refusal, approval: 'refused', command }
  return { ok: true, approval: 'granted', effect, command, args, capability, rests: null }
}

/** Why a person must be asked; null when that is not necessary. */
function whyGrant(
  { reason, programs = [], obeys = [] }: CallWeight,
  effect: 'read' | 'write',
  at: GuardContext,
): string | null {
  const { mode, auto_approve } = at.manifest
  if (mode === 'sudo') return 'This device runs as root: everything needs a grant.'
  if (effect === 'write') return `It needs a grant: ${reason}`
  if (at.sandbox === 'none')
    return `Reads cannot be confined on this device, so each needs a grant${at.lack ? `: ${at.lack}` : '.'}`
  if (at.sandbox === 'user' && obeys.length > 0)
    return `${obeys[0]} obeys files of the place, and reads are only confined as another user here.`
  const unlisted = auto_approve.length > 0 ? programs.find((program) => !auto_approve.includes(program)) : undefined
  return unlisted === undefined ? null : `The manifest does not let ${unlisted} run unasked.`
}

function no(code: Rejection['code'], message: string, command: string | null = null) {
  return { ok: false as const, code, message: message.slice(0, 2_000), approval: 'refused' as const, command }
}

/**
 * Does this grant allow exactly this request, here, now and for the first time? Null when it does.
 * It lives two minutes from its issue, whatever it claims.
 */
function refuseGrant(
  grant: Grant,
  request: CapabilityRequest,
  at: { device: string; keys: TrustedKeys; nowMs: number; isUsed(grantId: string): boolean },
): Rejection | null {
  const key = keyOf(at.keys, grant.key_id, at.nowMs)
  if (!key || !isSigned(grant, key))
    return noGrant('grant_forged', 'The grant is not signed by a key of this manifest.')
  if (grant.device !== at.device)
    return noGrant('grant_wrong_device', `The grant is for ${grant.device}, not ${at.device}.`)
  if (grant.request_id !== request.request_id) return noGrant('grant_altered', 'The grant is for another request.')
  if (grant.capability !== request.capability) return noGrant('grant_altered', `The grant is for ${grant.capability}.`)
  if (grant.args_digest !== argsDigest(request.args))
    return noGrant('grant_altered', 'The grant is for other arguments.')
  const issuedMs = Date.parse(grant.issued_at)
  if (at.nowMs >= grantEndMs(grant)) return noGrant('grant_expired', 'The grant has expired.')
  if (issuedMs > at.nowMs + clockSkewSeconds * 1000) return noGrant('grant_expired', 'The grant is not valid yet.')
  if (at.isUsed(grant.id)) return noGrant('grant_replayed', 'The grant was used before.')
  return null
}

/** After this moment the grant is expired, so its id need not be remembered. */
export function grantEndMs(grant: Grant): number {
  return Math.min(Date.parse(grant.expires_at), Date.parse(grant.issued_at) + grantSeconds * 1000)
}

function noGrant(code: Rejection['code'], message: string): Rejection {
  return { ok: false, code, message }
}

/**
 * A device knows no other hosts and no containers by name; the control plane looks them up and
 * vouches for hosts with a grant, and for containers with its signature under the request.
 */
const nothingKnown = { knownHosts: new Set<string>() }

/** Where a command runs by default. */
export const defaultDirectory = '/'

/**
 * `secrets`: the agent's own. `canLook`: false in a container, whose files are not checked before.
 * `rootReads`: what the manifest lets root look with.
 */
type JudgeContext = Pick<CommandContext, 'secrets' | 'canLook' | 'rootReads' | 'knownNames'>

export function judgeContextOf({
  hidden,
  names,
  manifest,
}: Pick<CapabilityContext, 'hidden' | 'names' | 'manifest'>): JudgeContext {
  return { secrets: hidden, rootReads: manifest.root_reads, knownNames: new Set(names) }
}

export function argvVerdict(argv: readonly string[], cwd: string, here: JudgeContext = {}): CommandVerdict {
  return judgeArgv(argv, { ...nothingKnown, ...here, directory: cwd })
}

export function textVerdict(text: string, cwd: string, here: JudgeContext = {}): CommandVerdict {
  return judgeCommand(text, { ...nothingKnown, ...here, directory: cwd })
}

const settings = fileURLToPath(new URL('./settings', import.meta.url))

/** The settings that bound what clients ask a server lie beside this code. */
function withSettings(environment: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(environment).map(([name, value]) => [name, value.replaceAll(settingsDirectory, settings)]),
  )
}

let isSqlLoaded = false

/**
 * PostgreSQL's parser takes memory that most devices never need: it is loaded when a command first
 * names its client.
 */
export async function loadParsers(args: Record<string, unknown>): Promise<void> {
  if (
    isSqlLoaded ||
    !JSON.stringify(args)
      .replace(/['"\\]/g, '')
      .includes('psql')
  )
    return
  await loadSql()
  isSqlLoaded = true
}

/**
 * The kernel's verdict as the guard weighs it. `cwd`: where it runs on this device, when it does.
 */
export function weightOf(verdict: CommandVerdict, command: string, cwd: string | null = null): CallWeight {
  const { code, reason, rewrite, commands: programs, obeys } = verdict
  const said = `${code}: ${reason}`
  if (verdict.verdict === 'run')
    return {
      effect: 'read',
      reason: said,
      command,
      programs,
      obeys,
      ...(cwd !== null && { rests: toPreconditions(verdict, cwd) }),
    }
  if (verdict.verdict === 'refuse') return { effect: 'refused', reason: said, command, programs }
  // No approval helps an endless read: the deadline would kill it without an answer.
  if (code === 'UNBOUNDED')
    return { effect: 'refused', reason: rewrite ? `${said}. Instead: ${rewrite}` : said, command, programs }
  return { effect: 'write', reason: said, command, programs }
}

export function toPreconditions(
  { conditions, sees, environment, rootRead }: CommandVerdict,
  cwd: string,
): Preconditions {
  return { conditions, sees, environment, rootRead, cwd }
}

/** How a proven read is run. */
export function asRead({ environment, sees }: CommandVerdict): Pick<RunOptions, 'confine' | 'env' | 'sees'> {
  return { confine: 'read', env: withSettings(environment), sees }
}
