import { formatCount, formatList } from '../../domain/format.ts'
import type { SilenceReading } from '../../domain/silence.ts'
import type { SitePolicy } from '../../domain/site-policy.ts'
import { similarNames } from '../../domain/tool-name.ts'
import type { CompiledPolicy, CompiledRule } from './compile.ts'
import { isAboutLooks, isLabelled, isNamed, type SiteThing } from './decide.ts'
import type { PolicyFault, PolicyLines } from './read.ts'
import { lintSilences } from './silences.ts'
import { clockChangesIn, compileWindow, isOver } from './windows.ts'

/** Facts about a site with which a policy is checked. */
export type FactsOfSite = {
  /** All resources; null if there are too many to check. */
  things: readonly SiteThing[] | null
  /** The people by name, with whether they may decide at all. */
  people: ReadonlyMap<string, 'decides' | 'decides nothing' | 'disabled'>
  types: ReadonlySet<string>
  /** The silences of each Alertmanager. */
  silences: readonly SilenceReading[]
  nowMs: number
}

type Said = Omit<PolicyFault, 'line'>

/**
 * Finds parts of a valid policy that have no effect on this site, or a larger effect than it seems.
 * No finding refuses the file, because a resource may be listed later. Each finding has its line
 * and a remedy.
 */
export function lintAgainstSite(
  policy: SitePolicy,
  { rules }: CompiledPolicy,
  lines: PolicyLines,
  facts: FactsOfSite,
): PolicyFault[] {
  const { things } = facts
  const fitted =
    things && rules.map((rule) => things.filter((thing) => isNamed(rule, thing) && isLabelled(rule, thing)))
  const ofRules = policy.rules.flatMap((written, at) => {
    const rule = rules[at] as CompiledRule
    const here =
      things && fitted
        ? [...(written.resource ? checkThings(rule, fitted[at] ?? [], things) : []), ...checkHidden(rules, fitted, at)]
        : []
    const silences = rule.silenced ? lintSilences(facts.silences) : []
    return [...checkTypes(rule, facts), ...here, ...checkOver(rule, facts), ...silences].map(({ why, remedy }) => ({
      line: lines(['rules', at]),
      why: `"${rule.name}": ${why}`,
      remedy,
    }))
  })
  const unseen = {
    line: 1,
    why: 'the registry has too many resources to check the rules against them',
    remedy: '"nightshift policy explain" checks one call',
  }
  return [
    ...(things ? [] : [unseen]),
    ...checkPeople(policy, lines, facts),
    ...checkClocks(policy, lines, facts),
    ...ofRules,
  ].toSorted((a, b) => a.line - b.line)
}

/** Finds nights in which a clock change shortens a window. */
function checkClocks({ windows }: SitePolicy, lines: PolicyLines, { nowMs }: FactsOfSite): PolicyFault[] {
  return Object.entries(windows).flatMap(([name, window]) => {
    const compiled = compileWindow(name, window)
    const cut = 'why' in compiled ? [] : clockChangesIn(compiled, nowMs)
    return cut.map((said) => ({
      line: lines(['windows', name]),
      why: `the window ${name}: ${said}`,
      remedy: 'if that matters, give times outside that hour',
    }))
  })
}

function checkPeople({ groups, rules }: SitePolicy, lines: PolicyLines, { people }: FactsOfSite): PolicyFault[] {
  const wanted = (group: string) =>
    Math.max(1, ...rules.filter((rule) => rule.group === group).map((r) => r.people ?? 1))
  return Object.entries(groups).flatMap(([group, names]) => {
    const line = lines(['groups', group])
    const said = names.flatMap((name): Said[] => {
      const known = people.get(name)
      if (known === undefined)
        return [
          {
            why: `there is no operator ${name}`,
            remedy: similarOr(name, [...people.keys()], '"nightshift operators list" shows all users'),
          },
        ]
      if (known === 'decides') return []
      return [
        {
          why: `${name} ${known === 'disabled' ? 'is disabled' : 'may not decide anything'}`,
          remedy: 'give this person the role approver, or remove the name',
        },
      ]
    })
    const left = names.filter((name) => people.get(name) === 'decides').length
    const few: Said[] =
      left < wanted(group) && rules.some((rule) => rule.group === group)
        ? [
            {
              why: `${formatCount(left, 'person')} in the group may decide, but a rule needs ${wanted(group)}, so nobody can approve a call under that rule`,
              remedy: 'add people who may decide',
            },
          ]
        : []
    return [...said, ...few].map(({ why, remedy }) => ({ line, why: `the group ${group}: ${why}`, remedy }))
  })
}

const similarOr = (name: string, known: readonly string[], remedy: string): string => {
  const similar = similarNames(name, known)
  return similar.length > 0 ? `write ${similar.join(' or ')}` : remedy
}

function checkTypes({ types }: CompiledRule, facts: FactsOfSite): Said[] {
  return [...(types ?? [])]
    .filter((type) => !facts.types.has(type))
    .map((type) => ({
      why: `no incident of this site has ever had the type ${type}`,
      remedy: similarOr(type, [...facts.types], '"nightshift incidents list" shows the types of incidents'),
    }))
}

/** Finds unknown resources and labels; then rules that fit nothing, or everything. */
function checkThings(rule: CompiledRule, fitted: readonly SiteThing[], things: readonly SiteThing[]): Said[] {
  const known = things.flatMap(({ names }) => names.map(({ kind, id }) => `${kind}:${id}`))
  const list = '"nightshift resources list" lists all resources'
  const ids = [...(rule.ids ?? [])].filter((key) => !known.includes(key))
  const found: Said[] = ids.map((key) => ({ why: `no source lists ${key}`, remedy: similarOr(key, known, list) }))
  const kinds = rule.ids ? [] : [...(rule.kinds ?? [])]
  for (const kind of kinds.filter((each) => !known.some((key) => key.startsWith(`${each}:`))))
    found.push({
      why: `no source lists a ${kind}`,
      remedy: 'connect a source that lists this kind, or leave the kind out',
    })
  for (const [key, values] of rule.labels) {
    const there = new Set(things.flatMap(({ labels }) => labels[key] ?? []))
    const missing = [...values].filter((value) => !there.has(value))
    if (there.size === 0)
      found.push({ why: `no resource has the label ${key}`, remedy: `write one of ${labelsOf(things)}` })
    else if (missing.length > 0)
      found.push({
        why: `no resource has ${key}: ${formatList(missing)}`,
        remedy: `write one of ${formatList([...there].slice(0, 5))}`,
      })
  }
  if (fitted.length === 0)
    return [...found, { why: 'the rule matches no resource that a source lists, so it never decides', remedy: list }]
  if (fitted.length === things.length && things.length > 1)
    found.push({
      why: `the rule matches all ${things.length} resources`,
      remedy: 'leave resource out if you mean all, or name fewer',
    })
  return found
}

const labelsOf = (things: readonly SiteThing[]): string =>
  formatList([...new Set(things.flatMap(({ labels }) => Object.keys(labels)))].slice(0, 5)) || 'the labels of a source'

function checkOver({ windows }: CompiledRule, { nowMs }: FactsOfSite): Said[] {
  if (!windows?.every((window) => isOver(window, nowMs))) return []
  return [
    {
      why: `the rule never applies again: ${formatList(windows.map(({ name }) => name))} is over`,
      remedy: 'remove the rule, or give it a window that is not over',
    },
  ]
}

/** Finds rules for which an earlier rule fits every resource that they fit. */
function checkHidden(rules: readonly CompiledRule[], fitted: readonly (readonly SiteThing[])[], at: number): Said[] {
  const rule = rules[at] as CompiledRule
  const own = fitted[at] ?? []
  // Skips a rule that names no resource, because a call without one fits it too.
  if (own.length === 0 || (isNamed(rule, null) && isLabelled(rule, null))) return []
  const earlier = rules.slice(0, at).find((each, place) => {
    // Counts an earlier rule only if it is about reads too, if the later rule refuses reads.
    if (isAboutLooks(rule) && !isAboutLooks(each)) return false
    if (!isWider(each.tools, rule.tools) || !isWider(each.types, rule.types) || each.windows !== null || each.silenced)
      return false
    const theirs = new Set(fitted[place])
    return own.every((thing) => theirs.has(thing))
  })
  if (!earlier) return []
  const where = `"${earlier.name}" (line ${earlier.line})`
  const all = own.length === 1 ? 'the one resource that it matches' : `all ${own.length} resources that it matches`
  const why =
    earlier.action === rule.action
      ? `the rule never decides on this site: ${where} comes first for ${all}`
      : `the rule contradicts ${where}, which comes first for ${all}: ${earlier.action}, not ${rule.action}`
  return [{ why, remedy: 'remove one of the two rules, or put this rule first' }]
}

const isWider = (wide: ReadonlySet<string> | null, narrow: ReadonlySet<string> | null): boolean =>
  wide === null || (narrow !== null && [...narrow].every((each) => wide.has(each)))
