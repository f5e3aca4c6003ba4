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
      /** Conditions to check right before the call. Null if a person approved the call. */
      rests: Preconditions | null
    }

export type GuardContext = {
  manifest: Manifest
  keys: TrustedKeys
  /** The capabilities of this device. */
  available: ReadonlyMap<Capability, DeviceCapability>
  /** The missing capabilities of this device, each with the reason. */
  unavailable: Partial<Record<string, string>>
  sandbox: Sandbox
  /** Why this device has no stronger confinement. */
  lack?: string | null
  hidden: readonly string[]
  /** Names that the control plane has looked up on this device for this request. */
  names: readonly string[]
  nowMs: number
  isUsedGrant(id: string): boolean
}

/**
 * Decides whether a verified request may run, independently of the control plane. Refuses a
 * forbidden request even with a grant. A proven read may run without approval, and every other
 * request needs a grant for exactly this request.
 */
export function rule(request: CapabilityRequest, at: GuardContext): GuardRuling {
  const { manifest } = at
  const isListed = manifest.capabilities.length === 0 || manifest.capabilities.includes(request.capability)
  if (!isListed) return no('capability_unavailable', `The manifest does not list ${request.capability}.`)
  const capability = at.available.get(request.capability)
  if (!capability) {
    const reason = at.unavailable[request.capability] ?? 'this agent does not know this capability'
    return no('capability_unavailable', `${request.capability} is not available here: ${reason}`)
  }
  const parsed = capability.args.safeParse(request.args)
  if (!parsed.success) {
    return no('invalid_arguments', nameFaults(parsed.error, { whole: 'The arguments', max: 1 }))
  }
  const args = parsed.data
  if (request.rehearse && !capability.rehearse)
    return no('capability_unavailable', `${request.capability} has no dry run.`)

  const weight = capability.weigh(args, manifest, at)
  const { command } = weight
  if (weight.effect === 'refused') return no(weight.code ?? 'blocked', weight.reason, command)
  // A dry run only reads or uses a temporary copy, so it needs no approval as a write.
  const effect = request.rehearse ? 'read' : weight.effect
  // Checks no programs of a write in a dry run, because the dry run does not start them. The dry
  // run compares the programs that it starts instead with the manifest.
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

/** Returns why the call needs an approval. Null if no approval is needed. */
function whyGrant(
  { reason, programs = [], obeys = [] }: CallWeight,
  effect: 'read' | 'write',
  at: GuardContext,
): string | null {
  const { mode, auto_approve } = at.manifest
  if (mode === 'sudo') return 'The agent of this device runs as root: everything needs a grant.'
  if (effect === 'write') return `The call needs a grant: ${reason}`
  if (at.sandbox === 'none')
    return `Reads cannot be confined on this device, so each read needs a grant${at.lack ? `: ${at.lack}` : '.'}`
  if (at.sandbox === 'user' && obeys.length > 0)
    return `${obeys[0]} reads settings from its directory, and this device confines reads only by running them as another user.`
  const unlisted = auto_approve.length > 0 ? programs.find((program) => !auto_approve.includes(program)) : undefined
  return unlisted === undefined ? null : `The manifest does not let ${unlisted} run without approval.`
}

function no(code: Rejection['code'], message: string, command: string | null = null) {
  return { ok: false as const, code, message: message.slice(0, 2_000), approval: 'refused' as const, command }
}

/**
 * Checks that this grant allows exactly this request, on this device, now and for the first time.
 * Null for a valid grant. A grant is valid for at most two minutes from its issue, whatever end it
 * names.
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
  if (grant.capability !== request.capability)
    return noGrant('grant_altered', `The grant is for ${grant.capability}, not ${request.capability}.`)
  if (grant.args_digest !== argsDigest(request.args))
    return noGrant('grant_altered', 'The grant is for other arguments.')
  const issuedMs = Date.parse(grant.issued_at)
  if (at.nowMs >= grantEndMs(grant)) return noGrant('grant_expired', 'The grant has expired.')
  if (issuedMs > at.nowMs + clockSkewSeconds * 1000) return noGrant('grant_expired', 'The grant is not valid yet.')
  if (at.isUsed(grant.id)) return noGrant('grant_replayed', 'The grant was used before.')
  return null
}

/** Returns the end of a grant, after which the device need not remember the grant's id. */
export function grantEndMs(grant: Grant): number {
  return Math.min(Date.parse(grant.expires_at), Date.parse(grant.issued_at) + grantSeconds * 1000)
}

function noGrant(code: Rejection['code'], message: string): Rejection {
  return { ok: false, code, message }
}

/**
 * The known names of a device: no hosts and no containers. The control plane looks up names. It
 * vouches for hosts with a grant, and for containers with its signature on the request.
 */
const nothingKnown = { knownHosts: new Set<string>() }

/** The directory in which a command runs by default. */
export const defaultDirectory = '/'

/**
 * `secrets`: the agent's paths. `canLook`: false in a container, whose files are not checked
 * beforehand. `rootReads`: commands that the manifest lets root run to read.
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

/** Replaces the placeholder for the directory of files that limit clients' queries. */
function withSettings(environment: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(environment).map(([name, value]) => [name, value.replaceAll(settingsDirectory, settings)]),
  )
}

let isSqlLoaded = false

/**
 * Loads PostgreSQL's parser when a command first names `psql`, because most devices never need the
 * parser in memory.
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
 * Converts the judge's verdict to the effect of a call. `cwd`: the directory on this device in
 * which the command runs, if it runs on the device itself.
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
  // Refuses an endless read. Approval does not help, because the deadline would kill the read
  // without a result.
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

/** Returns the options with which a proven read runs. */
export function asRead({ environment, sees }: CommandVerdict): Pick<RunOptions, 'confine' | 'env' | 'sees'> {
  return { confine: 'read', env: withSettings(environment), sees }
}
