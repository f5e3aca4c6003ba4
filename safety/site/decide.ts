import { type ResourceRef, resourceKey } from '../../domain/registry.ts'
import type { SilenceFinding } from '../../domain/silence.ts'
import type { SiteDecision, SiteDecisions, SiteDemand } from '../../domain/site-decision.ts'
import type { CompiledPolicy, CompiledRule } from './compile.ts'
import { isInWindow } from './windows.ts'

/** A thing by all its names, with what sources with authority say of it. */
export type SiteThing = { names: readonly ResourceRef[]; labels: Readonly<Record<string, readonly string[]>> }

/** `silence`: why an alert of the incident is taken to be silenced; null where none is. */
type SiteCall = {
  tool: string
  type: string
  things: readonly SiteThing[]
  nowMs: number
  silence: SilenceFinding | null
}

/**
 * The policy's word on a call, as a write and as a look. Each thing is judged by itself, and the
 * strictest answer counts.
 */
export function decideBySite(policy: CompiledPolicy, call: SiteCall): SiteDecisions {
  const rules = policy.ofTool(call.tool)
  return { write: decide(policy, rules, call), look: decide(policy, rules.filter(isAboutLooks), call) }
}

/** A look is refused by the rules that name its tool, and by no other. */
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
 * The first rule that fits a thing; null for none. Behind one with `silenced` the first without it
 * counts as well: who silences an alert, or an Alertmanager that is away, loosens nothing.
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

/** As many people as the rule that wants most, each in every group that one names. */
function demandOf(asking: readonly CompiledRule[]): SiteDemand {
  const groups = [...new Set(asking.flatMap((rule) => rule.groups))]
  const sets = asking.flatMap(({ members }) => members ?? [])
  const members = sets[0] ? [...sets[0]].filter((name) => sets.every((each) => each.has(name))) : null
  return { people: Math.max(...asking.map(({ people }) => people)), groups, members }
}

/** From what costs least to what costs most. */
function fits(rule: CompiledRule, call: SiteCall, thing: SiteThing | null): boolean {
  return whyNot(rule, call, thing) === null
}

/**
 * The part of a rule that does not fit a call about a thing; null where all fits. The tool was
 * looked up before.
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

/** Is it of the kinds, or among the ids, that the rule names? */
export function isNamed({ ids, kinds }: CompiledRule, thing: SiteThing | null): boolean {
  if (ids) return thing?.names.some((name) => ids.has(resourceKey(name))) ?? false
  return !kinds || (thing?.names.some(({ kind }) => kinds.has(kind)) ?? false)
}

export function isLabelled({ labels }: CompiledRule, thing: SiteThing | null): boolean {
  return labels.every(([key, values]) => thing?.labels[key]?.some((value) => values.has(value)))
}
