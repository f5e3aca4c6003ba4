import { Temporal } from 'temporal-polyfill'
import type { Silence, SilencesRead } from '../../../domain/silence.ts'
import type { SitePolicy, SiteWindow } from '../../../domain/site-policy.ts'

/**
 * A plain reading of docs/reference/policy.md, written before the compiler and without it: rules
 * one by one, days one by one. It knows no index, no library of recurrence and no shortcut, and it
 * is slow.
 */
export type ReferenceThing = { names: { kind: string; id: string }[]; labels: Record<string, string[]> }

export type ReferenceCall = {
  tool: string
  does: 'write' | 'look' | 'record' | 'ending'
  type: string
  things: ReferenceThing[]
  nowMs: number
  /** A silence matches an alert of the incident, or none can be known to match none. */
  isSilenced: boolean
}

export type ReferenceAnswer = {
  action: 'never' | 'ask' | 'run'
  people: number
  /** Null: anybody. */
  members: string[] | null
  isNamed: boolean
} | null

type Rule = SitePolicy['rules'][number]
const many = <T>(value: T | readonly T[]): readonly T[] => (Array.isArray(value) ? value : [value as T])

export function readPlainly(policy: SitePolicy, call: ReferenceCall): ReferenceAnswer {
  // Records and endings belong to no rule.
  if (call.does === 'record' || call.does === 'ending') return null
  // Each thing is judged by itself; of a call that touches nothing known there is one judgement all
  // the same.
  const things: (ReferenceThing | null)[] = call.things.length > 0 ? call.things : [null]
  const rules = things.flatMap((thing) => {
    const fitting = policy.rules.filter((rule) => fits(policy, rule, call, thing))
    const [first = null] = fitting
    // One with `silenced` loosens nothing that the others say.
    return first?.silenced ? [first, fitting.find(({ silenced }) => !silenced) ?? null] : [first]
  })
  if (rules.some((rule) => rule?.action === 'never'))
    return { action: 'never', people: 0, members: null, isNamed: false }
  const asking = rules.filter((rule) => rule?.action === 'ask') as Rule[]
  if (asking.length > 0) {
    const people = Math.max(...asking.map((rule) => rule.people ?? 1))
    const groups = asking.flatMap((rule) => (rule.group === undefined ? [] : [policy.groups[rule.group] ?? []]))
    const everybody = [...new Set(groups.flat())]
    const members = groups.length === 0 ? null : everybody.filter((name) => groups.every((each) => each.includes(name)))
    return { action: 'ask', people, members, isNamed: false }
  }
  // No rule at all is stricter than run.
  if (rules.some((rule) => rule === null)) return null
  const isNamed = call.things.length > 0 && (rules as Rule[]).every((rule) => rule.resource?.id !== undefined)
  return { action: 'run', people: 0, members: null, isNamed }
}

function fits(policy: SitePolicy, rule: Rule, call: ReferenceCall, thing: ReferenceThing | null): boolean {
  if (call.does === 'look' && !(rule.action === 'never' && rule.tool !== undefined)) return false
  if (rule.tool !== undefined && !many(rule.tool).includes(call.tool)) return false
  if (rule.type !== undefined && !many(rule.type).includes(call.type)) return false
  if (rule.silenced && !call.isSilenced) return false
  if (rule.during !== undefined && !many(rule.during).some((name) => holds(policy.windows[name]!, call.nowMs)))
    return false
  if (rule.resource === undefined) return true
  if (thing === null) return false
  const { kind, id, labels = {} } = rule.resource
  const isNamed = thing.names.some(
    (name) =>
      (kind === undefined || many(kind).includes(name.kind as never)) &&
      (id === undefined || many(id).includes(name.id)),
  )
  if ((kind !== undefined || id !== undefined) && !isNamed) return false
  return Object.entries(labels).every(([key, values]) =>
    many(values).some((value) => (thing.labels[key] ?? []).includes(String(value))),
  )
}

const dayMs = 86_400_000
const weekdays = ['SU', 'MO', 'TU', 'WE', 'TH', 'FR', 'SA']

/** The clock on the wall, as if it were that of UTC. */
const wallOf = (timezone: string, ms: number): number => {
  const { year, month, day, hour, minute, second, millisecond } =
    Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(timezone)
  return Date.UTC(year, month - 1, day, hour, minute, second, millisecond)
}

/** Every day from the first on is asked whether the window begins on it. */
function holds({ timezone, start, end, rrule }: SiteWindow, nowMs: number): boolean {
  const wall = wallOf(timezone, nowMs)
  const first = Date.parse(`${start}:00Z`)
  const length = Date.parse(`${end}:00Z`) - first
  if (rrule === undefined) return wall >= first && wall < first + length
  const parts = Object.fromEntries(rrule.split(';').map((part) => part.split('='))) as Record<string, string>
  let count = 0
  for (let at = first; at <= wall; at += dayMs) {
    if (!begins(parts, first, at)) continue
    count += 1
    if (parts.COUNT !== undefined && count > Number(parts.COUNT)) return false
    if (wall < at + length) return true
  }
  return false
}

/**
 * The forms that the random cases use: DAILY, WEEKLY by days, MONTHLY by days of the month, YEARLY,
 * with INTERVAL and UNTIL.
 */
function begins(parts: Record<string, string>, first: number, at: number): boolean {
  const interval = Number(parts.INTERVAL ?? 1)
  const [day, begin] = [new Date(at), new Date(first)]
  if (parts.UNTIL !== undefined && day.toISOString().slice(0, 10).replaceAll('-', '') > parts.UNTIL) return false
  const days = Math.round((at - first) / dayMs)
  if (parts.FREQ === 'DAILY') return days % interval === 0
  if (parts.FREQ === 'WEEKLY') {
    // Weeks begin on Monday.
    const monday = first - ((begin.getUTCDay() + 6) % 7) * dayMs
    const week = Math.floor((at - monday) / (7 * dayMs))
    const named = parts.BYDAY?.split(',') ?? [weekdays[begin.getUTCDay()]!]
    return week % interval === 0 && named.includes(weekdays[day.getUTCDay()]!)
  }
  const months = (day.getUTCFullYear() - begin.getUTCFullYear()) * 12 + day.getUTCMonth() - begin.getUTCMonth()
  if (parts.FREQ === 'MONTHLY') {
    const named = parts.BYMONTHDAY?.split(',').map(Number) ?? [begin.getUTCDate()]
    const last = new Date(Date.UTC(day.getUTCFullYear(), day.getUTCMonth() + 1, 0)).getUTCDate()
    return months % interval === 0 && named.some((each) => (each > 0 ? each : last + 1 + each) === day.getUTCDate())
  }
  const years = day.getUTCFullYear() - begin.getUTCFullYear()
  return years % interval === 0 && day.getUTCMonth() === begin.getUTCMonth() && day.getUTCDate() === begin.getUTCDate()
}

/**
 * Whether a rule with `silenced` fits: for alerts with whole labels, and patterns that JavaScript
 * reads as RE2.
 */
export function isSilencedPlainly(read: SilencesRead[], alerts: Record<string, string>[], nowMs: number): boolean {
  // An incident without alerts is silenced by nobody.
  if (alerts.length === 0) return false
  const holds = ({ state, startsAt }: Silence) => state === 'active' || Date.parse(startsAt) <= nowMs
  const matches = ({ matchers }: Silence, labels: Record<string, string>) =>
    (matchers ?? []).every(({ name, value, isRegex, isEqual }) => {
      // A label that is not there is an empty one.
      const has = labels[name] ?? ''
      return (isRegex ? new RegExp(`^(?:${value})$`, 'u').test(has) : has === value) === isEqual
    })
  const isUnread = ({ readAt }: SilencesRead) => readAt === null || nowMs - Date.parse(readAt) > 300_000
  if (read.length === 0 || read.some(isUnread)) return true
  return read.some(({ silences }) =>
    silences.some((silence) => holds(silence) && alerts.some((labels) => matches(silence, labels))),
  )
}
