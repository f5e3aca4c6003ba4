import { actionDigest } from '../domain/digest.ts'
import { type ResourceRef, resourceKey } from '../domain/registry.ts'
import { nameFaults } from '../domain/schema-faults.ts'
import { isCallOfCode } from '../domain/step-key.ts'
import { type EffectKind, highestRisk, type Preparation, type Risk, type ToolFacts } from '../domain/tool.ts'
import { similarNames } from '../domain/tool-name.ts'
import { validArguments } from '../domain/valid-call.ts'
import { impactFacts } from './command/impact.ts'
import { hypothesisRule, terminalRule } from './ending.ts'
import { phaseOf, type SafetyState } from './fold.ts'
import { type ResolvedCall, resolveArguments } from './resolve-arguments.ts'
import {
  type Call,
  type Correction,
  firstAnswer,
  type Judging,
  loopRule,
  type Policy,
  type PolicyRule,
  quote,
  type RuleAnswer,
  type Ruling,
  refuse,
  run,
} from './ruling.ts'
import { siteForbidsLook, siteOf } from './site/rules.ts'
import { writeRules } from './write.ts'

export type { Call, Policy, Ruling } from './ruling.ts'

/** Version of the rules, stored on each `call_judged` row. */
export const policyVersion = '11'

/**
 * The rules of the policy in order; the first rule that answers decides. Rules that refuse come
 * first, then rules that request approval, then rules that let a call run, so that no later rule
 * allows what an earlier rule forbids.
 */
const policyRules: readonly PolicyRule[] = [
  notOffered,
  notFree,
  foreignIncident,
  ({ call, state }) => loopRule(call, state),
  // Refuses a name that is unknown or ambiguous.
  ({ resolved }) => resolved.problem,
  forbiddenCommand,
  unboundedCommand,
  commandBeforeLook,
  siteForbidsLook,
  look,
  record,
  ending,
  // Applies to calls that write; the rules above have decided all others.
  ...writeRules,
]

/** The answer if no rule decides: people are asked. */
const undecided: RuleAnswer = { verdict: 'ask', code: 'RISK_CRITICAL', reason: 'no rule covers this call' }

/**
 * Judges one proposed call. Pure and total: the same call, state, policy and time give the same
 * ruling; the judge never throws and never guesses. Rules that refuse come first, then rules that
 * ask people, then rules that let the call run.
 */
export function judge(
  call: Call,
  tools: ReadonlyMap<string, ToolFacts>,
  state: SafetyState,
  policy: Policy,
  nowMs: number,
): Ruling {
  const facts = tools.get(call.tool)
  if (!facts) {
    // Treats a call of an unknown tool as a write of critical risk, and refuses the call.
    const rule = refuse(
      'UNKNOWN_TOOL',
      `there is no tool ${quote(call.tool)}`,
      nameOthers(call.tool, offeredNames(tools, policy)),
    )
    return unread(call, state, rule, 'write', 'critical')
  }
  // Refuses a call that contained a secret. An ending passes without the secret, because nothing
  // may prevent a hand-over.
  if (call.secret && facts.effect !== 'terminal') {
    const rule = refuse(
      'SECRET_IN_ARGUMENTS',
      `the arguments of ${call.tool} contained a secret`,
      'Name the secret; never write its value.',
    )
    return unread(call, state, rule, facts.effect, facts.risk)
  }
  const parsed = call.arguments === null ? null : facts.input.safeParse(call.arguments)
  if (!parsed?.success) {
    const why = parsed
      ? nameFaults(parsed.error, { max: 5 }).slice(0, 600)
      : (call.problem ?? 'the arguments are not a JSON object')
    const rule = refuse(
      call.arguments === null ? 'MALFORMED_ARGUMENTS' : 'INVALID_ARGUMENTS',
      `${call.tool}: ${why}`,
      `Send the call again with arguments that fit its schema${exampleFor(call, facts)}.`,
    )
    return unread(call, state, rule, facts.effect, facts.risk)
  }

  const preparation = call.prepared?.ok ? call.prepared.preparation : null
  const resolved = resolveArguments(facts, parsed.data as Record<string, unknown>, state, nowMs, preparation?.rootReads)
  const digest = actionDigest(call.tool, preparation?.identity ?? resolved.arguments)
  const { effect, risk } = weighOwn(weighWhere(weigh(facts, resolved, policy), preparation), policy)
  const judging = { call, facts: { ...facts, risk }, resolved, effect, digest, state, policy, nowMs }
  const answer = firstAnswer(policyRules, judging) ?? undecided
  const { hint = null, details = {}, ...rule } = answer
  return {
    ...rule,
    hint,
    details: { ...details, ...siteOf(judging, answer) },
    phase: phaseOf(state),
    effect,
    risk,
    targets: preparation?.targets ?? resolved.targets,
    actionDigest: digest,
    arguments: resolved.arguments,
    corrected: [...readingsOf(call), ...resolved.corrected],
  }
}

/** Refuses a call that could not be read, because its meaning is unknown. */
function unread(call: Call, state: SafetyState, rule: RuleAnswer, effect: EffectKind, risk: Risk): Ruling {
  const { hint = null, details = {}, ...rest } = rule
  const targets: ResourceRef[] = []
  const digest = actionDigest(call.tool, call.arguments ?? {})
  return {
    ...rest,
    hint,
    details,
    phase: phaseOf(state),
    effect,
    risk,
    targets,
    actionDigest: digest,
    arguments: null,
    corrected: readingsOf(call),
  }
}

/** Lists values that were converted before the call was judged. */
function readingsOf({ spelled, written, read = [], tool }: Call): Correction[] {
  return [
    ...(spelled ? [{ code: 'UNKNOWN_TOOL' as const, field: 'tool', from: spelled, to: tool }] : []),
    ...(written ? [{ code: 'CALL_AS_TEXT' as const, field: '*', from: written, to: tool }] : []),
    ...read.map((each) => ({ code: 'PLAIN_VALUE' as const, ...each })),
  ]
}

type Weight = { effect: EffectKind; risk: Risk }

/** Makes a change to a machine of Nightshift critical, because it could end Nightshift. */
function weighOwn(weight: Weight, { own = [] }: Policy): Weight {
  return weight.effect === 'write' && own.length > 0 ? { effect: 'write', risk: 'critical' } : weight
}

/**
 * Classes a command by what it does, whatever tool carries it: it is a proven read, or a write with
 * the risk of its worst part. A command as root needs the approval of two people.
 */
function weigh(facts: ToolFacts, { command }: ResolvedCall, policy: Policy): Weight {
  if (!command)
    return {
      effect: facts.effect,
      risk: facts.effect === 'write' ? highestRisk(facts.risk, policy.raised.risk) : facts.risk,
    }
  if (command.effect === 'read' && command.verdict === 'run') return { effect: 'read', risk: 'none' }
  const risk = highestRisk(facts.risk, policy.raised.risk, impactFacts[command.impact].risk)
  return { effect: 'write', risk: command.needsRoot ? 'critical' : risk }
}

/** Raises the risk on resources where every call needs an approval, even a read. */
function weighWhere(weight: Weight, preparation: Preparation | null): Weight {
  const asks = preparation?.asks
  if (!asks || weight.effect === 'record' || weight.effect === 'terminal') return weight
  return { effect: 'write', risk: highestRisk(weight.risk, asks.risk) }
}

/** Refuses tools that this type of incident may not use. A hand-over is always possible. */
function notOffered({ call, facts, policy }: Judging): RuleAnswer | null {
  // Lets a person's own write pass, because limits for the model do not apply to people.
  if (policy.manual || policy.offered === null || policy.offered.includes(call.tool) || facts.effect === 'terminal')
    return null
  return refuse('NOT_OFFERED', `${call.tool} is not offered for this type of incident`)
}

/** Refuses calls by code itself that write, or that would notify an on-call engineer. */
function notFree({ call, effect }: Judging): RuleAnswer | null {
  if (!isCallOfCode(call.callId) || effect === 'read' || effect === 'resolve') return null
  return refuse('NOT_A_FREE_LOOK', `code proposes only reads, and ${call.tool} is not a read`)
}

/** Refuses records and endings that name another incident. */
function foreignIncident({ call, facts, resolved, policy }: Judging): RuleAnswer | null {
  if (facts.effect !== 'record' && facts.effect !== 'terminal') return null
  if (resolved.targets.every(({ id }) => id === policy.incidentId)) return null
  return refuse(
    'FOREIGN_INCIDENT',
    `${call.tool} may only name this incident`,
    `This incident is ${policy.incidentId}.`,
  )
}

/** Refuses commands of the blocklist, for which no approval helps. */
function forbiddenCommand({ resolved: { command } }: Judging): RuleAnswer | null {
  if (command?.verdict !== 'refuse') return null
  return refuse('FORBIDDEN_COMMAND', command.reason, 'No approval lifts this. Find another way, or escalate.')
}

function unboundedCommand({ resolved: { command } }: Judging): RuleAnswer | null {
  if (command?.code !== 'UNBOUNDED') return null
  const hint = command.rewrite ? `Use: ${command.rewrite}` : 'Use a form that ends by itself.'
  return refuse('UNBOUNDED_COMMAND', command.reason, hint, { suggested_rewrite: command.rewrite })
}

/**
 * Refuses a command before a read of its target. For the incident's resource, which the context
 * shows, the command may be that first read; any other resource must be looked up first.
 */
function commandBeforeLook({ call, effect, resolved, state }: Judging): RuleAnswer | null {
  if (!resolved.command || state.resolved.entries.size > 0) return null
  // Uses the resources that the preparation found as the place where the command would run.
  const targets = call.prepared?.ok ? call.prepared.preparation.targets : []
  const isOwn = targets.length > 0 && targets.every((each) => resourceKey(each) === state.resolved.pinned)
  if (isOwn && effect === 'read') return null
  return refuse(
    'STRICT_RESOLUTION',
    'no command runs before this investigation looked up a resource',
    `First look up what ${call.tool} runs on.`,
  )
}

function look({ effect, resolved }: Judging): RuleAnswer | null {
  if (effect !== 'read' && effect !== 'resolve') return null
  return resolved.command ? run('READ_COMMAND', resolved.command.reason) : run('READ', 'read-only')
}

function record({ effect, resolved, state, policy, call }: Judging): RuleAnswer | null {
  if (effect !== 'record') return null
  const unshown = hypothesisRule(resolved.arguments, state, policy, call.bodies)
  return unshown ?? run('RECORD', "the call writes to this incident's log")
}

function ending({ effect, resolved, state, policy, call }: Judging): RuleAnswer | null {
  return effect === 'terminal' ? terminalRule(resolved.arguments, state, policy, call.bodies) : null
}

function offeredNames(tools: ReadonlyMap<string, ToolFacts>, policy: Policy): string[] {
  return [...tools.values()]
    .filter((tool) => policy.offered === null || policy.offered.includes(tool.name) || tool.effect === 'terminal')
    .map((tool) => tool.name)
}

/** Lists names that are similar to an unknown name, or else the first of all names. */
function nameOthers(spelled: string, names: readonly string[]): string {
  const similar = similarNames(spelled, names)
  if (similar.length > 0) return `Did you mean ${similar.join(', ')}?`
  const more = names.length - maxNamed
  return `Use one of: ${names.slice(0, maxNamed).join(', ')}${more > 0 ? `, or one of ${more} that more_tools lists` : ''}`
}

const maxNamed = 20

/** Builds a valid call from those arguments of the sent call that fit the tool's schema. */
function exampleFor({ tool, arguments: given }: Call, { input }: ToolFacts): string {
  const valid = validArguments(input, given)
  return valid ? `, as ${tool} ${JSON.stringify(valid)}` : ''
}
