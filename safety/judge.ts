import type { z } from 'zod'
import { actionDigest } from '../domain/digest.ts'
import type { Verdict } from '../domain/event.ts'
import { type ResourceRef, resourceKey } from '../domain/resource.ts'
import type { Effect, Preparation, Risk, ToolFacts } from '../domain/tool.ts'
import { resolvedForMs, type State } from './fold.ts'

/** Named on each `call_judged` row: which rules decided. */
export const policyVersion = '1'

export type Call = {
  callId: string
  tool: string
  arguments: Record<string, unknown> | null
  /** Why the arguments could not be read, where they could not. */
  problem: string | null
  /** Writes: what the world says now about what the call would do, or why it could not be asked. */
  prepared: { ok: true; preparation: Preparation } | { ok: false; reason: string } | null
}

export type Policy = {
  incidentId: string
  resource: ResourceRef | null
  role: 'leader' | 'follower'
  paused: boolean
  /** Names offered for this type of incident; null means all. */
  offered: readonly string[] | null
  /** The incident's resource and its direct neighbours. */
  vicinity: readonly ResourceRef[]
  /** Digests a person denied anywhere in the group. */
  denied: readonly string[]
  /** Targets another incident is writing to now. */
  busy: readonly { target: string; incidentId: string }[]
  /** An approval that a person gave for this call and that is still in time; binding is checked here. */
  approval: { id: string; callId: string; actionDigest: string; stateFingerprint: string } | null
}

export type Ruling = {
  verdict: Verdict
  /** A closed word: tests, metrics and the workflow read this, never the text. */
  code: string
  reason: string
  /** What the model may do instead; null when nothing helps. */
  hint: string | null
  effect: Effect
  risk: Risk
  targets: ResourceRef[]
  actionDigest: string
  /** The arguments as the schema reads them; null when it cannot. */
  arguments: Record<string, unknown> | null
}

type Rule = Pick<Ruling, 'verdict' | 'code' | 'reason'> & { hint?: string }

/**
 * Decides what becomes of one proposed call. Pure and total: same call, state, policy and time, same ruling; it never throws
 * and never guesses. A rule that refuses comes before one that asks, and one that asks before one that runs.
 */
export function judge(
  call: Call,
  tools: ReadonlyMap<string, ToolFacts>,
  state: State,
  policy: Policy,
  nowMs: number,
): Ruling {
  const facts = tools.get(call.tool)
  if (!facts) {
    // What is unknown is a write of the worst kind: it is not run, and the record says why.
    return {
      ...refuse('UNKNOWN_TOOL', `there is no tool ${quote(call.tool)}`),
      hint: `Use one of: ${offeredNames(tools, policy).join(', ')}`,
      effect: 'write',
      risk: 'critical',
      targets: [],
      actionDigest: actionDigest(call.tool, call.arguments ?? {}),
      arguments: null,
    }
  }
  const parsed = call.arguments === null ? null : facts.input.safeParse(call.arguments)
  if (!parsed?.success) {
    const why = parsed ? issues(parsed.error) : (call.problem ?? 'the arguments are not a JSON object')
    return {
      ...refuse(call.arguments === null ? 'MALFORMED_ARGUMENTS' : 'INVALID_ARGUMENTS', `${call.tool}: ${why}`),
      hint: 'Send the call again with arguments that fit its schema.',
      effect: facts.effect,
      risk: facts.risk,
      targets: [],
      actionDigest: actionDigest(call.tool, call.arguments ?? {}),
      arguments: null,
    }
  }
  const args = parsed.data as Record<string, unknown>
  const preparation = call.prepared?.ok ? call.prepared.preparation : null
  const named = facts.targets(args, policy.incidentId)
  const digest = actionDigest(call.tool, preparation?.identity ?? args)
  const { hint = null, ...rule } = firstRule(call, facts, args, named, digest, state, policy, nowMs)
  return {
    ...rule,
    hint,
    effect: facts.effect,
    risk: facts.risk,
    targets: preparation?.targets ?? named,
    actionDigest: digest,
    arguments: args,
  }
}

function firstRule(
  call: Call,
  facts: ToolFacts,
  args: Record<string, unknown>,
  named: ResourceRef[],
  digest: string,
  state: State,
  policy: Policy,
  nowMs: number,
): Rule {
  if (policy.offered !== null && !policy.offered.includes(call.tool) && facts.effect !== 'terminal') {
    return refuse('NOT_OFFERED', `${call.tool} is not offered for this type of incident`)
  }
  if (facts.effect === 'record' || facts.effect === 'terminal') {
    const foreign = named.find((target) => target.id !== policy.incidentId)
    if (foreign) {
      return refuse(
        'FOREIGN_INCIDENT',
        `${call.tool} may only name this incident`,
        `This incident is ${policy.incidentId}.`,
      )
    }
  }
  const repeats =
    state.lastCall !== null &&
    state.lastCall.callId !== call.callId &&
    state.lastCall.digest === actionDigest(call.tool, call.arguments ?? {})
  if (repeats) {
    return refuse(
      'REPEATED_CALL',
      `${call.tool} was called with these arguments just before`,
      'Use the result you have, look at something else, or escalate.',
    )
  }
  switch (facts.effect) {
    case 'resolve':
    case 'read':
      return run('READ', 'it only looks')
    case 'record':
      return run('RECORD', "it writes to this incident's own log")
    case 'terminal':
      return terminalRule(args, state, policy)
    case 'write':
      return writeRule(call, facts, named, digest, state, policy, nowMs)
  }
}

/** An escalation needs one look; a resolution needs evidence, closed verifications and, for a repair, one that held. */
function terminalRule(args: Record<string, unknown>, state: State, policy: Policy): Rule {
  if (state.diagnostics === 0) {
    return refuse('NO_DIAGNOSTIC', 'nothing was looked at yet', 'Make at least one diagnostic call first.')
  }
  const claims = args.claims as { text: string; evidence: number[] }[] | undefined
  if (claims === undefined) return run('TERMINAL', 'a person takes over')

  if (state.open) return blockedByVerification(state)
  if (policy.role === 'follower' && policy.resource && !state.lookedAt.has(resourceKey(policy.resource))) {
    return refuse(
      'OWN_TARGET_UNSEEN',
      'a hint from another incident proves nothing about this one',
      `Look at ${policy.resource.kind} ${policy.resource.id} first.`,
    )
  }
  for (const claim of claims) {
    const missing = claim.evidence.filter((seq) => !state.evidence.has(seq))
    if (missing.length > 0) {
      return refuse(
        'EVIDENCE_MISSING',
        `the claim ${quote(claim.text)} cites ${missing.join(', ')}, which is no successful row of this incident`,
        `Cite meta.seq of successful results: ${[...state.evidence].slice(-20).join(', ')}`,
      )
    }
  }
  if (args.outcome === 'repaired') {
    const last = state.writes.at(-1)
    if (!last) {
      return refuse(
        'NOTHING_WRITTEN',
        'repaired is claimed but this attempt wrote nothing',
        'Use self_resolved or no_fault, or repair it.',
      )
    }
    if (last.verified !== 'held') {
      return refuse(
        'REPAIR_NOT_VERIFIED',
        'the last write has no verification that held',
        'Try another repair or escalate with what you saw.',
      )
    }
  }
  return run('TERMINAL', 'every claim cites rows of this incident')
}

function writeRule(
  call: Call,
  facts: ToolFacts,
  named: ResourceRef[],
  digest: string,
  state: State,
  policy: Policy,
  nowMs: number,
): Rule {
  if (policy.paused)
    return refuse('PAUSED', 'writes are paused by an operator', 'Look, record what you find, and escalate.')
  if (state.open && state.open.callId !== call.callId) return blockedByVerification(state)
  for (const target of named) {
    const entry = state.resolved.get(resourceKey(target))
    if (!entry || nowMs - entry.atMs > resolvedForMs) {
      return refuse(
        'STRICT_RESOLUTION',
        `${target.kind} ${quote(target.id)} was not looked up in this investigation`,
        `Look it up first (find_resource, or get the ${target.kind}), then call ${call.tool} again.`,
      )
    }
  }
  if (policy.denied.includes(digest) || state.denied.has(digest)) {
    return refuse(
      'DENIED_BEFORE',
      'a person denied this very action for this group of incidents',
      'Propose something else or escalate with the reason of the denial.',
    )
  }
  const busy = policy.busy[0]
  if (busy) {
    return refuse(
      'TARGET_BUSY',
      `${busy.target} is being written to by ${busy.incidentId}`,
      'Look again later, or escalate.',
    )
  }
  if (!call.prepared) return refuse('NOT_PREPARED', `what ${call.tool} would do could not be found out`)
  if (!call.prepared.ok) return refuse('NOT_PREPARED', call.prepared.reason)

  if (policy.approval) {
    const { approval } = policy
    const same = approval.callId === call.callId && approval.actionDigest === digest
    if (same && approval.stateFingerprint === call.prepared.preparation.stateFingerprint) {
      return run('APPROVED', `approved (${approval.id})`)
    }
    return ask('DRIFT', 'the platform changed since this was approved: it is asked again for what is there now')
  }
  const near = named.every((target) => policy.vicinity.some((ref) => resourceKey(ref) === resourceKey(target)))
  if (facts.risk === 'low' && facts.reversible) {
    if (near) return run('REVERSIBLE_NEAR', "reversible, and on the incident's own resource or next to it")
    return ask('REVERSIBLE_FAR', "reversible, but not on the incident's resource or next to it")
  }
  return ask(`RISK_${facts.risk.toUpperCase()}`, `a ${facts.risk}-risk write is asked`)
}

function blockedByVerification(state: State): Rule {
  const targets = state.open?.targets.map(resourceKey).join(', ') ?? ''
  return refuse(
    'FSM_BLOCKED',
    `${state.open?.tool} on ${targets} is not verified yet`,
    `Read ${targets} first: that closes the verification.`,
  )
}

const run = (code: string, reason: string): Rule => ({ verdict: 'run', code, reason })
const ask = (code: string, reason: string): Rule => ({ verdict: 'ask', code, reason })
const refuse = (code: string, reason: string, hint?: string): Rule => ({
  verdict: 'refuse',
  code,
  reason,
  ...(hint === undefined ? {} : { hint }),
})

function offeredNames(tools: ReadonlyMap<string, ToolFacts>, policy: Policy): string[] {
  return [...tools.values()]
    .filter((tool) => policy.offered === null || policy.offered.includes(tool.name) || tool.effect === 'terminal')
    .map((tool) => tool.name)
}

/** A piece of what the model said, short and without anything a terminal or a log would act on. */
function quote(text: string): string {
  const inert = text.replace(/[^\p{L}\p{N}\p{P}\p{S} ]/gu, '\uFFFD')
  return JSON.stringify(inert.length > 80 ? `${inert.slice(0, 80).toWellFormed()}…` : inert)
}

function issues(error: z.ZodError): string {
  return error.issues
    .slice(0, 5)
    .map((issue) => (issue.path.length > 0 ? `${issue.path.join('.')}: ${issue.message}` : issue.message))
    .join('; ')
    .slice(0, 600)
}
