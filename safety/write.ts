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

/** The people who must agree to a write. */
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
      ? ask('REVERSIBLE_FAR', "reversible, but not on the incident's resource or next to it")
      : ask(riskCode[risk], `a ${risk}-risk change requires approval`),
]

/**
 * The rules for a write, in order: writes are allowed at all, its names were looked up, nobody
 * denied it, nothing else writes there; then who must agree, and how far this tool is trusted here.
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

/** Says why it is critical: two people should know whose ground it is. */
function onOwnGround({ policy: { own = [] } }: Judging): RuleAnswer | null {
  const [first] = own
  return first
    ? ask(
        'RISK_CRITICAL',
        `Nightshift itself stands on ${first.target} (${first.why}): a critical-risk change requires approval`,
      )
    : null
}

function paused({ policy }: Judging): RuleAnswer | null {
  if (!policy.paused || policy.manual) return null
  return refuse('PAUSED', 'writes are paused by an operator', 'Look, record what you find, and escalate.')
}

function lastWriteUnverified({ call, state: { open } }: Judging): RuleAnswer | null {
  return open && open.callId !== call.callId ? blockedByVerification(open) : null
}

/** A write names only what this attempt looked up, and one that names nothing names too little. */
function targetNotLookedUp({ call, resolved: { targets }, state, policy, nowMs }: Judging): RuleAnswer | null {
  // What a person named was read when it was prepared for them.
  if (policy.manual) return null
  if (targets.length === 0) {
    return refuse('STRICT_RESOLUTION', `${call.tool} names nothing that could be looked up`)
  }
  for (const target of targets) {
    const entry = state.resolved.entries.get(resourceKey(target))
    if (entry && isFresh(entry.atMs, nowMs)) continue
    return refuse(
      'STRICT_RESOLUTION',
      `${target.kind} ${quote(target.id)} was not looked up in this investigation`,
      `Look it up first (find_resource, or get the ${target.kind}), then call ${call.tool} again.`,
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
    'a person denied this very action for this group of incidents',
    'Propose something else or escalate with the reason of the denial.',
  )
}

/** One thing may go by several names, and each makes another digest of the same action. */
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
    'Look again later, or escalate.',
    { target: busy.target },
  )
}

function notPrepared({ call }: Judging): RuleAnswer | null {
  if (!call.prepared) return refuse('NOT_PREPARED', `what ${call.tool} would do could not be found out`)
  return call.prepared.ok ? null : refuse('NOT_PREPARED', call.prepared.reason)
}

/** An undo is for the state that its write left, and no other: a later change is its author's. */
function undoMovedOn({ call: { prepared }, policy: { manual } }: Judging): RuleAnswer | null {
  const left = prepared?.ok ? prepared.preparation.left : undefined
  if (!manual?.isUndo || left?.isAsLeft) return null
  return refuse('UNDO_MOVED_ON', left?.observed ?? 'what the write left could not be looked at: nothing was undone')
}

/** A person asked for this on the state that they saw: on another one it is another write. */
function manualOnOtherState({ call, policy: { manual } }: Judging): RuleAnswer | null {
  if (!manual || manual.stateFingerprint === fingerprint({ call })) return null
  return refuse('STATE_CHANGED', 'the state changed since a person asked for this: nothing was done')
}

/**
 * People agreed, and a host whose VMs would start elsewhere may be alive: before they agree, the
 * question says so.
 */
function hostMayRun({ call: { prepared }, policy: { approval }, nowMs }: Judging): RuleAnswer | null {
  const deaths = prepared?.ok ? (prepared.preparation.deaths ?? []) : []
  const bar = approval && whyNotDead(deaths, approval.hostIsOff ?? [], nowMs)
  if (!bar) return null
  const hint = 'Look at the host again; nothing of it may be started elsewhere before that is settled.'
  return refuse(bar.code, bar.reason, hint, { hosts: bar.hosts })
}

/** People agreed to exactly this action on exactly this state; on another they are asked again. */
function approved(judging: Judging): RuleAnswer | null {
  const { call, digest, policy } = judging
  const { approval } = policy
  if (!approval) return null
  const isSameAction = approval.callId === call.callId && approval.actionDigest === digest
  if (isSameAction && approval.stateFingerprint === fingerprint({ call })) {
    return siteAsksMore(judging) ?? run('APPROVED', `approved (${approval.id})`)
  }
  return ask('DRIFT', 'the platform changed since this was approved: it is asked again for what is there now')
}

function placeAsks({ call: { prepared }, facts }: Judging): RuleAnswer | null {
  const asks = prepared?.ok ? prepared.preparation.asks : null
  return asks ? ask(riskCode[facts.risk], asks.why) : null
}

/**
 * A look that would wake somebody, and that a tool takes unasked: named once, and a second ask is
 * heard.
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
    `a person would be asked about this command (${resolved.command.reason}), and ${free.tool} looks unasked`,
    `Call ${valid}. Send ${call.tool} again only where that does not tell enough.`,
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
  // Where that alone is not enough, people may have agreed to it beforehand.
  const agreed = policy.trust?.level === 'propose' ? granted(judging) : null
  return agreed ?? run('REVERSIBLE_NEAR', "reversible, and on the incident's own resource or next to it")
}

function granted({ call, facts, digest, policy }: Judging): RuleAnswer | null {
  // A grant was given for what the agent does.
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

/** Code marks the tools, and the floor holds: high and critical ones ask every time. */
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

/** Nothing but looking is allowed until the last write was looked at, however often it is tried. */
export function blockedByVerification(open: OpenWrite): RuleAnswer {
  const targets = open.targets.map(resourceKey)
  return refuse(
    'FSM_BLOCKED',
    `${open.tool} on ${targets.join(', ')} is not verified yet`,
    `Read ${targets.join(', ')} first: that closes the verification.`,
    { targets },
  )
}
