import { formatCount, formatList } from '../../domain/format.ts'
import type { SilenceReading } from '../../domain/silence.ts'
import type { SitePolicy } from '../../domain/site-policy.ts'
import { similarNames } from '../../domain/tool-name.ts'
import type { CompiledPolicy, CompiledRule } from './compile.ts'
import { isAboutLooks, isLabelled, isNamed, type SiteThing } from './decide.ts'
import type { PolicyFault, PolicyLines } from './read.ts'
import { lintSilences } from './silences.ts'
import { clockChangesIn, compileWindow, isOver } from './windows.ts'

/** What a site is, as a policy is held against it. */
export type FactsOfSite = {
  /** Null where there are too many to be looked at. */
  things: readonly SiteThing[] | null
  /** By name: may they decide at all? */
  people: ReadonlyMap<string, 'decides' | 'decides nothing' | 'disabled'>
  types: ReadonlySet<string>
  /** Each Alertmanager. */
  silences: readonly SilenceReading[]
  nowMs: number
}

type Said = Omit<PolicyFault, 'line'>

/**
 * Parts of a sound policy that come to nothing on this site, or to more than it seems. None refuses
 * the file, since a thing may be listed tomorrow. Each with its line and what helps.
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
    why: 'the registry has too many things to hold rules against them',
    remedy: '"nightshift policy explain" asks of one',
  }
  return [
    ...(things ? [] : [unseen]),
    ...checkPeople(policy, lines, facts),
    ...checkClocks(policy, lines, facts),
    ...ofRules,
  ].toSorted((a, b) => a.line - b.line)
}

/** Nights in which a clock change cuts a window. */
function checkClocks({ windows }: SitePolicy, lines: PolicyLines, { nowMs }: FactsOfSite): PolicyFault[] {
  return Object.entries(windows).flatMap(([name, window]) => {
    const compiled = compileWindow(name, window)
    const cut = 'why' in compiled ? [] : clockChangesIn(compiled, nowMs)
    return cut.map((said) => ({
      line: lines(['windows', name]),
      why: `the window ${name}: ${said}`,
      remedy: 'give times outside of that hour where it matters',
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
            why: `nobody is called ${name}`,
            remedy: similarOr(name, [...people.keys()], '"nightshift operators list" has who there is'),
          },
        ]
      if (known === 'decides') return []
      return [
        {
          why: `${name} ${known === 'disabled' ? 'is disabled' : 'may decide nothing'}`,
          remedy: 'give them the role approver, or take them out',
        },
      ]
    })
    const left = names.filter((name) => people.get(name) === 'decides').length
    const few: Said[] =
      left < wanted(group) && rules.some((rule) => rule.group === group)
        ? [
            {
              why: `${formatCount(left, 'person')} of it may decide, and a rule wants ${wanted(group)}: nothing that it asks about can be approved`,
              remedy: 'put people in who may decide',
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
      why: `no incident here ever had the type ${type}`,
      remedy: similarOr(type, [...facts.types], '"nightshift incidents list" shows their types'),
    }))
}

/** Names of things and labels that there are not; then rules that fit nothing, or all there is. */
function checkThings(rule: CompiledRule, fitted: readonly SiteThing[], things: readonly SiteThing[]): Said[] {
  const known = things.flatMap(({ names }) => names.map(({ kind, id }) => `${kind}:${id}`))
  const list = '"nightshift resources list" has what there is'
  const ids = [...(rule.ids ?? [])].filter((key) => !known.includes(key))
  const found: Said[] = ids.map((key) => ({ why: `no source lists ${key}`, remedy: similarOr(key, known, list) }))
  const kinds = rule.ids ? [] : [...(rule.kinds ?? [])]
  for (const kind of kinds.filter((each) => !known.some((key) => key.startsWith(`${each}:`))))
    found.push({ why: `no source lists a ${kind}`, remedy: 'connect one that does, or leave the kind out' })
  for (const [key, values] of rule.labels) {
    const there = new Set(things.flatMap(({ labels }) => labels[key] ?? []))
    const missing = [...values].filter((value) => !there.has(value))
    if (there.size === 0)
      found.push({ why: `nothing here has the label ${key}`, remedy: `write one of ${labelsOf(things)}` })
    else if (missing.length > 0)
      found.push({
        why: `nothing here has ${key}: ${formatList(missing)}`,
        remedy: `write one of ${formatList([...there].slice(0, 5))}`,
      })
  }
  if (fitted.length === 0)
    return [...found, { why: 'it fits nothing that a source lists: it never decides', remedy: list }]
  if (fitted.length === things.length && things.length > 1)
    found.push({
      why: `it fits all ${things.length} things that there are`,
      remedy: 'leave resource out where that is meant, or name fewer',
    })
  return found
}

const labelsOf = (things: readonly SiteThing[]): string =>
  formatList([...new Set(things.flatMap(({ labels }) => Object.keys(labels)))].slice(0, 5)) ||
  'those that a source gives'

function checkOver({ windows }: CompiledRule, { nowMs }: FactsOfSite): Said[] {
  if (!windows?.every((window) => isOver(window, nowMs))) return []
  return [
    {
      why: `it never holds again: ${formatList(windows.map(({ name }) => name))} is over`,
      remedy: 'remove it, or give a window that comes',
    },
  ]
}

/** Whatever it fits here, an earlier rule fits as well, under whatever name or label. */
function checkHidden(rules: readonly CompiledRule[], fitted: readonly (readonly SiteThing[])[], at: number): Said[] {
  const rule = rules[at] as CompiledRule
  const own = fitted[at] ?? []
  // A call about no thing is fitted by rules that name none.
  if (own.length === 0 || (isNamed(rule, null) && isLabelled(rule, null))) return []
  const earlier = rules.slice(0, at).find((each, place) => {
    // Looks that the later one refuses are refused by rules about looks alone.
    if (isAboutLooks(rule) && !isAboutLooks(each)) return false
    if (!isWider(each.tools, rule.tools) || !isWider(each.types, rule.types) || each.windows !== null || each.silenced)
      return false
    const theirs = new Set(fitted[place])
    return own.every((thing) => theirs.has(thing))
  })
  if (!earlier) return []
  const where = `"${earlier.name}" (line ${earlier.line})`
  const all = own.length === 1 ? 'the one thing that it fits' : `all ${own.length} things that it fits`
  const why =
    earlier.action === rule.action
      ? `it never decides here: ${where} stands before it for ${all}`
      : `it contradicts ${where}, which stands before it for ${all}: ${earlier.action}, not ${rule.action}`
  return [{ why, remedy: 'remove one of the two, or put this one before it' }]
}

const isWider = (wide: ReadonlySet<string> | null, narrow: ReadonlySet<string> | null): boolean =>
  wide === null || (narrow !== null && [...narrow].every((each) => wide.has(each)))
