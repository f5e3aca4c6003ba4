import { actionByKeys, keyReader } from '../domain/approval.ts'
import { resourceKey } from '../domain/registry.ts'
import type { ToolFacts } from '../domain/tool.ts'
import { findFreeTool } from './command/free-tools.ts'
import { impactFacts } from './command/impact.ts'
import { whyNotDead } from './death.ts'
import type { OpenWrite } from './fold.ts'
import { isFresh } from './resolved.ts'
import { ask, firstAnswer, type Judging, type PolicyRule, quote, type RuleAnswer, refuse, run } from './ruling.ts'
import { siteAsks, siteAsksMore, siteForbids, siteRuns } from './site/rules.ts'
import { boundByTrust, isGrantTrusted } from './trust.ts'

/** Rules that decide which people must agree to a write. */
const agreement: readonly PolicyRule[] = [
  hostMayRun,
  approved,
  placeAsks,
  answeredUnasked,
  unprovenCommand,
  siteAsks,
  reversibleAndNear,
  granted,
  siteRuns,
  onOwnGround,
  ({ facts: { risk, reversible } }) =>
    risk === 'low' && reversible
      ? ask('REVERSIBLE_FAR', "reversible, but not on the incident's resource or a neighbour")
      : ask(riskCode[risk], `a ${risk}-risk change requires approval`),
]

/**
 * The rules for a write, in order. Writes must be allowed at all; the names in the write must have
 * been looked up; nobody may have denied it; nothing else may write on its targets. Then the rules
 * decide who must agree, and how far this tool is trusted in this type of incident.
 */
export const writeRules: readonly PolicyRule[] = [
  paused,
  lastWriteUnverified,
  targetNotLookedUp,
  deniedBefore,
  targetBusy,
  notPrepared,
  siteForbids,
  undoMovedOn,
  manualOnOtherState,
  (judging) => boundByTrust(judging, firstAnswer(agreement, judging)),
]

/**
 * Asks people about a write to a machine of Nightshift, and says why the write is critical, so that
 * two people know what it touches.
 */
function onOwnGround({ policy: { own = [] } }: Judging): RuleAnswer | null {
  const [first] = own
  return first
    ? ask(
        'RISK_CRITICAL',
        `Nightshift itself runs on ${first.target} (${first.why}): a critical-risk change requires approval`,
      )
    : null
}

function paused({ policy }: Judging): RuleAnswer | null {
  if (!policy.paused || policy.manual) return null
  return refuse('PAUSED', 'writes are paused by an operator', 'Read, record what you find, and escalate.')
}

function lastWriteUnverified({ call, state: { open } }: Judging): RuleAnswer | null {
  return open && open.callId !== call.callId ? blockedByVerification(open) : null
}

/** Requires that a write names resources, and only those that this attempt looked up. */
function targetNotLookedUp({ call, resolved: { targets }, state, policy, nowMs }: Judging): RuleAnswer | null {
  // Accepts the targets of a person's own write, which were read when it was prepared.
  if (policy.manual) return null
  if (targets.length === 0) {
    return refuse('STRICT_RESOLUTION', `${call.tool} names no resource to look up`)
  }
  for (const target of targets) {
    const entry = state.resolved.entries.get(resourceKey(target))
    if (entry && isFresh(entry.atMs, nowMs)) continue
    return refuse(
      'STRICT_RESOLUTION',
      `${target.kind} ${quote(target.id)} was not looked up in this investigation`,
      `Look up the resource first (find_resource, or get the ${target.kind}), then call ${call.tool} again.`,
      { target: resourceKey(target) },
    )
  }
  return null
}

function deniedBefore(judging: Judging): RuleAnswer | null {
  const { digest, state, policy } = judging
  if (!policy.denied.includes(digest) && !state.denied.has(digest) && !isDeniedUnderOtherName(judging)) return null
  return refuse(
    'DENIED_BEFORE',
    'a person denied this action for this group of incidents',
    'Propose something else or escalate with the reason of the denial.',
  )
}

/**
 * Whether the action was denied under another name of the resource. With another name, the same
 * action has another digest.
 */
function isDeniedUnderOtherName({ call: { prepared }, facts, resolved, policy }: Judging): boolean {
  const { deniedActions = [], keys = {} } = policy
  if (deniedActions.length === 0) return false
  const targets = prepared?.ok ? prepared.preparation.targets : resolved.targets
  const container = prepared?.ok ? prepared.preparation.container : null
  const action = { arguments: resolved.arguments, targets, container }
  return deniedActions.includes(actionByKeys(facts, action, keyReader(keys)))
}

function targetBusy({ policy }: Judging): RuleAnswer | null {
  const busy = policy.busy[0]
  if (!busy) return null
  return refuse(
    'TARGET_BUSY',
    `${busy.target} is being written to by ${busy.incidentId}`,
    'Try again later, or escalate.',
    { target: busy.target },
  )
}

function notPrepared({ call }: Judging): RuleAnswer | null {
  if (!call.prepared) return refuse('NOT_PREPARED', `what ${call.tool} would do is unknown`)
  return call.prepared.ok ? null : refuse('NOT_PREPARED', call.prepared.reason)
}

/** Refuses to undo a write if somebody else has changed its targets since the write. */
function undoMovedOn({ call: { prepared }, policy: { manual } }: Judging): RuleAnswer | null {
  const left = prepared?.ok ? prepared.preparation.left : undefined
  if (!manual?.isUndo || left?.isAsLeft) return null
  return refuse('UNDO_MOVED_ON', left?.observed ?? 'the state after the write could not be read, so nothing was undone')
}

/**
 * Refuses a person's own write if the state is not the one that the person saw when requesting the
 * write.
 */
function manualOnOtherState({ call, policy: { manual } }: Judging): RuleAnswer | null {
  if (!manual || manual.stateFingerprint === fingerprint({ call })) return null
  return refuse('STATE_CHANGED', 'the state changed since a person requested this write, so nothing was done')
}

/**
 * Refuses an approved write that would start a host's VMs elsewhere if the host may be alive.
 * Before the approval, the approval card states the same danger.
 */
function hostMayRun({ call: { prepared }, policy: { approval }, nowMs }: Judging): RuleAnswer | null {
  const deaths = prepared?.ok ? (prepared.preparation.deaths ?? []) : []
  const bar = approval && whyNotDead(deaths, approval.hostIsOff ?? [], nowMs)
  if (!bar) return null
  const hint = 'Read the host again. Until its state is certain, no VM of it may start elsewhere.'
  return refuse(bar.code, bar.reason, hint, { hosts: bar.hosts })
}

/**
 * Runs what people approved: this action on this state. If the state has changed, requests a new
 * approval.
 */
function approved(judging: Judging): RuleAnswer | null {
  const { call, digest, policy } = judging
  const { approval } = policy
  if (!approval) return null
  const isSameAction = approval.callId === call.callId && approval.actionDigest === digest
  if (isSameAction && approval.stateFingerprint === fingerprint({ call })) {
    return siteAsksMore(judging) ?? run('APPROVED', `approved (${approval.id})`)
  }
  return ask('DRIFT', 'the platform changed since the approval, so a new approval is needed')
}

function placeAsks({ call: { prepared }, facts }: Judging): RuleAnswer | null {
  const asks = prepared?.ok ? prepared.preparation.asks : null
  return asks ? ask(riskCode[facts.risk], asks.why) : null
}

/**
 * Refuses a command once if a tool that needs no approval returns the same information; the refusal
 * names the tool. If the same command comes again, people are asked about it.
 */
function answeredUnasked({ call, facts, digest, resolved, state, policy }: Judging): RuleAnswer | null {
  if (!resolved.command || policy.manual || facts.command?.form !== 'argv') return null
  const { on, argv, cwd } = resolved.arguments as { on?: unknown; argv?: unknown; cwd?: unknown }
  const words = Array.isArray(argv) ? argv.map(String) : []
  const free = findFreeTool({ argv: words, cwd: typeof cwd === 'string' ? cwd : null })
  if (!free || (policy.offered !== null && !policy.offered.includes(free.tool))) return null
  const wasTold = state.rows.some(
    ({ kind, metadata }) =>
      kind === 'call_judged' &&
      (metadata as { code?: string }).code === 'FREE_TOOL' &&
      (metadata as { actionDigest?: string }).actionDigest === digest,
  )
  if (wasTold) return null
  const valid = `${free.tool} ${JSON.stringify({ on, ...free.arguments })}`
  return refuse(
    'FREE_TOOL',
    `this command requires approval (${resolved.command.reason}), and ${free.tool} needs no approval`,
    `Call ${valid}. Send ${call.tool} again only if that is not enough.`,
    { suggested: valid },
  )
}

function unprovenCommand({ resolved: { command } }: Judging): RuleAnswer | null {
  return command && ask('UNPROVEN_COMMAND', `${command.reason}; it ${impactFacts[command.impact].words}`)
}

function reversibleAndNear(judging: Judging): RuleAnswer | null {
  const { facts, resolved, policy } = judging
  const vicinity = policy.vicinity.map(resourceKey)
  const isNear = resolved.targets.every((target) => vicinity.includes(resourceKey(target)))
  if (facts.risk !== 'low' || !facts.reversible || !isNear) return null
  // Looks for a grant at the level `propose`, where a reversible write on a near resource does not
  // run without one.
  const agreed = policy.trust?.level === 'propose' ? granted(judging) : null
  return agreed ?? run('REVERSIBLE_NEAR', "reversible, and on the incident's own resource or a neighbour")
}

function granted({ call, facts, digest, policy }: Judging): RuleAnswer | null {
  // Applies a grant only to the agent's writes.
  if (policy.manual || !isGrantable(facts)) return null
  const grant = policy.grants.find(
    (each) =>
      each.actionDigest === digest && each.stateFingerprint === fingerprint({ call }) && isGrantTrusted(each, policy),
  )
  return grant
    ? { ...run('GRANTED', `a standing grant for this action (${grant.id})`), details: { grant: grant.id } }
    : null
}

function fingerprint({ call: { prepared } }: Pick<Judging, 'call'>): string | null {
  return prepared?.ok ? prepared.preparation.stateFingerprint : null
}

/**
 * Whether people can grant a tool: its code says so, it is no command, and its risk is at most
 * medium. People are always asked about a higher risk.
 */
export function isGrantable({ grantable, risk, command }: ToolFacts): boolean {
  return grantable === true && command === undefined && (risk === 'low' || risk === 'medium')
}

const riskCode = {
  none: 'RISK_LOW',
  low: 'RISK_LOW',
  medium: 'RISK_MEDIUM',
  high: 'RISK_HIGH',
  critical: 'RISK_CRITICAL',
} as const

/** Allows nothing but reads until the last write is verified. */
export function blockedByVerification(open: OpenWrite): RuleAnswer {
  const targets = open.targets.map(resourceKey)
  return refuse(
    'FSM_BLOCKED',
    `${open.tool} on ${targets.join(', ')} is not verified yet`,
    `Read ${targets.join(', ')} first, which closes the verification.`,
    { targets },
  )
}
