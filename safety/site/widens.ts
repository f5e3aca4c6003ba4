import type { CompiledPolicy, CompiledRule } from './compile.ts'
import { isAboutLooks } from './decide.ts'

/**
 * Lists where one policy may allow more than another. Proves by pairs of rules that the new policy
 * allows no more for any other call. One rule of each file decides a call, or no rule. For every
 * pair that may fit the same call, the new rule must be as strict, or an earlier rule of either
 * file must come before both. A pair without a proof counts as wider.
 */
export function widens(before: CompiledPolicy | null, after: CompiledPolicy): string[] {
  const [old, now] = [
    [...(before?.rules ?? []), noRule],
    [...after.rules, noRule],
  ]
  const [firstOld, firstNow] = [firstPlaces(old), firstPlaces(now)]
  const found: string[] = []
  const budget = { left: maxLooks }
  for (const [at, rule] of now.entries()) {
    for (const [was, other] of old.entries()) {
      if (isAsStrict(rule, other) || isBeside(rule, other) || !mayMeet(rule, other)) continue
      // Skips rules that have an equal rule before them, because files that differ in a few places
      // share most rules.
      const hasTwin = (firstOld.get(partsOf(rule)) ?? was) < was || (firstNow.get(partsOf(other)) ?? at) < at
      if (hasTwin && rule !== noRule) continue
      const stands = (each: CompiledRule) => covers(each, rule, other, budget)
      if (hasBefore(now, at, stands) || hasBefore(old, was, stands)) continue
      found.push(describe(rule, other))
      if (budget.left <= 0) return [...found, 'the two policies are too long to compare in full']
      if (found.length >= maxSaid) return found
      break
    }
  }
  return found
}

/** Returns the first place of each distinct set of conditions. */
function firstPlaces(rules: readonly CompiledRule[]): ReadonlyMap<string, number> {
  return new Map(rules.map((rule, at) => [partsOf(rule), at] as const).toReversed())
}

const parts = new WeakMap<CompiledRule, string>()

/** Writes all conditions of a rule as a text. */
function partsOf(rule: CompiledRule): string {
  const known = parts.get(rule)
  if (known !== undefined) return known
  const sorted = (set: ReadonlySet<string> | null) => set && [...set].sort()
  const { tools, kinds, ids, types, labels } = rule
  const said = [
    ...[tools, kinds, ids, types, keysOf(rule)].map(sorted),
    rule.silenced,
    labels.map(([key, some]) => [key, sorted(some)]),
  ]
  const text = JSON.stringify(said)
  parts.set(rule, text)
  return text
}

function hasBefore(rules: readonly CompiledRule[], end: number, isSo: (rule: CompiledRule) => boolean): boolean {
  for (let at = 0; at < end; at += 1) if (isSo(rules[at] as CompiledRule)) return true
  return false
}

/** Most sentences and most steps, enough for a thousand rules with a few changes. */
const maxSaid = 20
const maxLooks = 1_000_000

/** A rule that stands for the case that no rule fits. Then the kernel alone decides. */
const noRule: CompiledRule = {
  ...{ name: '', line: 0, tools: null, kinds: null, ids: null, labels: [], types: null, windows: null },
  silenced: false,
  ...{ action: 'run', people: 1, groups: [], members: null },
}

/** Whether a rule lets calls run: `run` without an id does not change the kernel's answer. */
const mayRun = ({ action, ids }: CompiledRule): boolean => action === 'run' && ids !== null

function isAsStrict(rule: CompiledRule, other: CompiledRule): boolean {
  if (rule.action === 'never') return true
  if (other.action === 'never') return false
  if (rule.action === 'ask' && other.action === 'ask')
    return rule.people >= other.people && isWithin(rule.members, other.members)
  if (rule.action === 'ask') return true
  return other.action === 'run' && (!mayRun(rule) || mayRun(other))
}

/**
 * Whether a rule with `silenced` only adds to the first rule without `silenced`, which is compared
 * with the old rule.
 */
const isBeside = (rule: CompiledRule, other: CompiledRule): boolean => rule.silenced && !other.silenced

/**
 * Whether one call may fit both rules. Only tools separate rules for certain, because a resource
 * has several names and a label several values.
 */
function mayMeet(rule: CompiledRule, other: CompiledRule): boolean {
  // Separates rules by tools. A read fits only rules that name its tool and refuse, which are
  // equally strict.
  const { tools } = rule
  const others = other.tools
  if (tools === null || others === null) return true
  for (const tool of tools) if (others.has(tool)) return true
  return false
}

/**
 * Whether the rule `each` fits every call that `rule` and `other` both fit: each part of `each`
 * contains the same part of `rule` or of `other`.
 */
function covers(each: CompiledRule, rule: CompiledRule, other: CompiledRule, budget: { left: number }): boolean {
  budget.left -= 1
  // Requires that `each` is about reads, if `rule` and `other` may fit reads.
  if (isAboutLooks(other) && rule === noRule && !isAboutLooks(each)) return false
  const either = (part: (one: CompiledRule) => boolean) => part(rule) || part(other)
  return (
    either((one) => hasResource(each, one)) &&
    either((one) => isWithin(one.types, each.types)) &&
    isWithinBoth(rule.tools, other.tools, each.tools) &&
    each.labels.every(([key, values]) =>
      either((one) => one.labels.some(([name, some]) => name === key && isWithin(some, values))),
    ) &&
    either((one) => isWithin(keysOf(one), keysOf(each))) &&
    (!each.silenced || either((one) => one.silenced))
  )
}

/** Whether a third set contains everything that two sets have in common. */
function isWithinBoth(
  left: ReadonlySet<string> | null,
  right: ReadonlySet<string> | null,
  all: ReadonlySet<string> | null,
): boolean {
  if (isWithin(left, all) || isWithin(right, all)) return true
  if (all === null || left === null || right === null) return false
  for (const each of left) if (right.has(each) && !all.has(each)) return false
  return true
}

function isWithin(some: ReadonlySet<string> | null, all: ReadonlySet<string> | null): boolean {
  if (all === null || some === all) return true
  if (some === null || some.size > all.size) return false
  for (const each of some) if (!all.has(each)) return false
  return true
}

/** Whether one rule names every resource that the other names. */
function hasResource(all: CompiledRule, { ids, kinds }: CompiledRule): boolean {
  if (all.ids) return isWithin(ids, all.ids)
  return isWithin(kinds, all.kinds)
}

const keysOf = ({ windows }: CompiledRule): ReadonlySet<string> | null =>
  windows && new Set(windows.map(({ key }) => key))

/**
 * Whether an earlier rule fits everything that a later one fits, so that the later one never
 * decides. `mayLook`: a tool may only read.
 */
export function standsBefore(earlier: CompiledRule, later: CompiledRule, mayLook: boolean): boolean {
  if (mayLook && isAboutLooks(later) && !isAboutLooks(earlier)) return false
  return covers(earlier, later, later, { left: 1 })
}

function describe(rule: CompiledRule, other: CompiledRule): string {
  const was = other === noRule ? 'only the built-in rules decided' : `"${other.name}" said ${wordsOf(other)}`
  if (rule === noRule) return `no rule decides now; before, ${was}`
  return `"${rule.name}" (line ${rule.line}) now says ${wordsOf(rule)}; before, ${was}`
}

function wordsOf({ action, people, groups }: CompiledRule): string {
  if (action !== 'ask') return action
  return `ask ${groups[0] ? `${people} of ${groups[0]}` : people}`
}
