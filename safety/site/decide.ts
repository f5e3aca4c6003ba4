import { type ResourceRef, resourceKey } from '../../domain/registry.ts'
import type { SilenceFinding } from '../../domain/silence.ts'
import type { SiteDecision, SiteDecisions, SiteDemand } from '../../domain/site-decision.ts'
import type { CompiledPolicy, CompiledRule } from './compile.ts'
import { isInWindow } from './windows.ts'

/** A resource with all its names, and facts from sources with authority. */
export type SiteThing = { names: readonly ResourceRef[]; labels: Readonly<Record<string, readonly string[]>> }

/** `silence`: why an alert of the incident counts as silenced; null if none does. */
type SiteCall = {
  tool: string
  type: string
  things: readonly SiteThing[]
  nowMs: number
  silence: SilenceFinding | null
}

/**
 * Decides a call by the policy, as a write and as a read. Each resource is judged alone, and the
 * strictest answer counts.
 */
export function decideBySite(policy: CompiledPolicy, call: SiteCall): SiteDecisions {
  const rules = policy.ofTool(call.tool)
  return { write: decide(policy, rules, call), look: decide(policy, rules.filter(isAboutLooks), call) }
}

/** Whether a rule can refuse a read. Only a rule that names the tool can. */
export const isAboutLooks = ({ action, tools }: Pick<CompiledRule, 'action' | 'tools'>): boolean =>
  action === 'never' && tools !== null

function decide(
  { digest, commit }: CompiledPolicy,
  rules: readonly CompiledRule[],
  call: SiteCall,
): SiteDecision | null {
  if (rules.length === 0) return null
  const things = call.things.length > 0 ? call.things : [null]
  const found = things.flatMap((thing) => rulesOf(rules, call, thing))
  const never = found.find((rule) => rule?.action === 'never')
  const silencing = ({ silenced }: CompiledRule) => silenced && call.silence && { silence: call.silence }
  if (never) return { action: 'never', ...placeOf(never, { digest, commit }), ...silencing(never) }
  const asking = found.filter((rule) => rule?.action === 'ask') as CompiledRule[]
  if (asking[0])
    return {
      action: 'ask',
      ...placeOf(asking[0], { digest, commit }),
      demand: demandOf(asking),
      ...silencing(asking[0]),
    }
  const [first] = found
  if (!first || found.includes(null)) return null
  return { action: 'run', ...placeOf(first, { digest, commit }), isNamed: found.every((rule) => rule?.ids != null) }
}

/**
 * Returns the first rule that fits a resource; null if none does. After a rule with `silenced`, the
 * first rule without that condition is added, because a silence, or an unreachable Alertmanager,
 * must not loosen anything.
 */
function rulesOf(rules: readonly CompiledRule[], call: SiteCall, thing: SiteThing | null): (CompiledRule | null)[] {
  const first = rules.find((rule) => fits(rule, call, thing)) ?? null
  if (!first?.silenced) return [first]
  return [first, rules.find((rule) => !rule.silenced && fits(rule, call, thing)) ?? null]
}

const placeOf = ({ name, line }: CompiledRule, of: Pick<CompiledPolicy, 'digest' | 'commit'>) => ({
  rule: name,
  line,
  ...of,
})

/**
 * Combines the demands of several rules: the highest number of people, who must all be in every
 * group that a rule names.
 */
function demandOf(asking: readonly CompiledRule[]): SiteDemand {
  const groups = [...new Set(asking.flatMap((rule) => rule.groups))]
  const sets = asking.flatMap(({ members }) => members ?? [])
  const members = sets[0] ? [...sets[0]].filter((name) => sets.every((each) => each.has(name))) : null
  return { people: Math.max(...asking.map(({ people }) => people)), groups, members }
}

/**
 * Whether a rule fits a call about a resource. The checks are ordered from the cheapest to the most
 * expensive.
 */
function fits(rule: CompiledRule, call: SiteCall, thing: SiteThing | null): boolean {
  return whyNot(rule, call, thing) === null
}

/**
 * Returns which part of a rule does not fit a call about a resource; null if all fit. The tool was
 * compared before.
 */
export function whyNot(
  rule: CompiledRule,
  { type, nowMs, silence }: SiteCall,
  thing: SiteThing | null,
): 'resource' | 'labels' | 'type' | 'during' | 'silenced' | null {
  const { types, windows, silenced } = rule
  if (!isNamed(rule, thing)) return 'resource'
  if (types && !types.has(type)) return 'type'
  if (!isLabelled(rule, thing)) return 'labels'
  if (windows && !windows.some((window) => isInWindow(window, nowMs))) return 'during'
  return silenced && silence === null ? 'silenced' : null
}

/** Whether a resource has one of the kinds or ids that the rule names. */
export function isNamed({ ids, kinds }: CompiledRule, thing: SiteThing | null): boolean {
  if (ids) return thing?.names.some((name) => ids.has(resourceKey(name))) ?? false
  return !kinds || (thing?.names.some(({ kind }) => kinds.has(kind)) ?? false)
}

export function isLabelled({ labels }: CompiledRule, thing: SiteThing | null): boolean {
  return labels.every(([key, values]) => thing?.labels[key]?.some((value) => values.has(value)))
}
