import type { SitePolicy, SiteRule } from '../../domain/site-policy.ts'
import { listOf } from '../../domain/site-policy.ts'
import type { ToolFacts } from '../../domain/tool.ts'
import { type CompiledWindow, compileWindow } from './windows.ts'

/** A rule of the policy, with its lists as sets. A null in place of a set fits everything. */
export type CompiledRule = {
  name: string
  line: number
  tools: ReadonlySet<string> | null
  kinds: ReadonlySet<string> | null
  ids: ReadonlySet<string> | null
  labels: readonly [key: string, values: ReadonlySet<string>][]
  types: ReadonlySet<string> | null
  windows: readonly CompiledWindow[] | null
  /** Whether the rule applies only while an alert of the incident is silenced. */
  silenced: boolean
  action: SiteRule['action']
  people: number
  groups: readonly string[]
  /** Members of the rule's groups; null means everybody who may decide about the call's risk. */
  members: ReadonlySet<string> | null
}

export type CompiledPolicy = {
  digest: string
  commit: string | null
  rules: readonly CompiledRule[]
  /** Returns, in order, the rules that may fit a call of a tool. */
  ofTool(tool: string): readonly CompiledRule[]
}

/** Facts about the file besides its rules. */
type PolicyOrigin = { digest: string; commit: string | null; lineOf?: (rule: number) => number }

/**
 * Builds the policy's sets, and an index of its rules by tool. Throws on a fault, because the file
 * was checked before.
 */
export function compilePolicy(
  policy: SitePolicy,
  { digest, commit, lineOf = (at) => at + 1 }: PolicyOrigin,
): CompiledPolicy {
  const windows = new Map(
    Object.entries(policy.windows).map(([name, window]) => {
      const compiled = compileWindow(name, window)
      if ('why' in compiled) throw new Error(`the window ${name} of the site's policy: ${compiled.why}`)
      return [name, compiled]
    }),
  )
  const rules = policy.rules.map((rule, at) => compileRule(policy, windows, rule, lineOf(at)))
  const any = rules.filter(({ tools }) => tools === null)
  const byTool = new Map<string, readonly CompiledRule[]>()
  for (const tool of new Set(rules.flatMap(({ tools }) => [...(tools ?? [])])))
    byTool.set(
      tool,
      rules.filter(({ tools }) => tools === null || tools.has(tool)),
    )
  return { digest, commit, rules, ofTool: (tool) => byTool.get(tool) ?? any }
}

function compileRule(
  policy: SitePolicy,
  windows: ReadonlyMap<string, CompiledWindow>,
  rule: SiteRule,
  line: number,
): CompiledRule {
  const { name, action, group, people = 1, resource = {} } = rule
  const kinds = listOf(resource.kind)
  const ids = listOf(resource.id)
  return {
    ...{ name, line, action, people },
    tools: toSet(listOf(rule.tool)),
    kinds: toSet(kinds),
    ids: ids && new Set(ids.map((id) => `${kinds?.[0]}:${id}`)),
    labels: Object.entries(resource.labels ?? {}).map(([key, values]) => [key, new Set(listOf(values)?.map(String))]),
    types: toSet(listOf(rule.type)),
    windows: listOf(rule.during)?.map((each) => windows.get(each) as CompiledWindow) ?? null,
    silenced: rule.silenced ?? false,
    groups: group === undefined ? [] : [group],
    members: group === undefined ? null : new Set(policy.groups[group]),
  }
}

const toSet = <T>(list: readonly T[] | null): ReadonlySet<T> | null => list && new Set(list)

/** Whether a rule with `run` may ever let a call of this tool run. */
export function mayRunBySite({
  effect,
  risk,
  reversible,
  command,
}: Pick<ToolFacts, 'effect' | 'risk' | 'reversible' | 'command'>): boolean {
  return effect === 'write' && reversible && command === undefined && (risk === 'low' || risk === 'medium')
}
