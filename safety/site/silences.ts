import { formatCount, formatList, formatMinute } from '../../domain/format.ts'
import {
  isUnread,
  nameUnread,
  type Silence,
  type SilenceFinding,
  type SilenceMatcher,
  type SilencesRead,
} from '../../domain/silence.ts'
import { compileLabelPattern, type LabelPattern, type PatternBudget } from '../query/pattern.ts'

/** Labels of one alert, as they were received. */
export type SilencedLabels = Readonly<Record<string, string>>

/** What a stranger's patterns may cost one ruling, in places that are tried: half a second. */
const maxSteps = 1_000_000
/** One comparison's share, so that one pattern leaves the others theirs. */
const maxStepsEach = 100_000
/** As many labels of an alert are kept: one that is missing among them may have been left out. */
const maxLabels = 64
/** Alerts of one incident that are compared; of more nobody knows the rest. */
export const maxSilencedAlerts = 1_000

type Comparing = { budget: PatternBudget; patterns: Map<string, LabelPattern> }
type Answer = 'yes' | 'no' | 'unknown'

/**
 * The reason why an incident's alert counts as silenced; null where none does. A rule with
 * `silenced` only narrows, so the unknown counts as silenced: a silent source, and matchers that do
 * not compare. An incident without alerts is silenced by nobody.
 */
export function findSilence(
  read: readonly SilencesRead[],
  alerts: readonly SilencedLabels[],
  nowMs: number,
): SilenceFinding | null {
  if (alerts.length === 0) return null
  const comparing: Comparing = { budget: { left: maxSteps }, patterns: new Map() }
  let supposed: SilenceFinding | null = null
  for (const { source, readAt, silences } of read) {
    if (isUnread(readAt, nowMs)) continue
    for (const silence of silences) {
      const answer = holds(silence, nowMs) ? compareAll(silence, alerts, comparing) : 'no'
      if (answer === 'yes') return found(source, silence, false)
      if (answer === 'unknown') supposed ??= found(source, silence, true)
    }
  }
  const unread = read.find(({ readAt }) => isUnread(readAt, nowMs))
  if (unread) return { is: 'unread', source: unread.source, readAt: unread.readAt }
  return read.length === 0 ? { is: 'unread', source: null, readAt: null } : supposed
}

const found = (source: string, silence: Silence, isSupposed: boolean): SilenceFinding => {
  const { id, endsAt: until, createdBy, comment } = silence
  return { is: 'silenced', source, id, until, createdBy, comment, isSupposed }
}

/**
 * An active one holds until its Alertmanager says otherwise, a pending one from its beginning, by
 * the clock ahead.
 */
const holds = ({ state, startsAt }: Silence, nowMs: number): boolean =>
  state === 'active' || Date.parse(startsAt) <= nowMs

function compareAll({ matchers }: Silence, alerts: readonly SilencedLabels[], comparing: Comparing): Answer {
  if (matchers === null) return 'unknown'
  let answer: Answer = alerts.length > maxSilencedAlerts ? 'unknown' : 'no'
  // Equality costs least, and leaves most out.
  const cheapFirst = matchers.toSorted((a, b) => Number(a.isRegex) - Number(b.isRegex))
  for (const labels of alerts) {
    // The rest is not looked at: it takes as long as it may.
    if (--comparing.budget.left < 0) return 'unknown'
    const one = compareOne(cheapFirst, labels, comparing)
    if (one === 'yes') return one
    if (one === 'unknown') answer = one
  }
  return answer
}

function compareOne(matchers: readonly SilenceMatcher[], labels: SilencedLabels, comparing: Comparing): Answer {
  let answer: Answer = 'yes'
  for (const matcher of matchers) {
    const is = compare(matcher, labels, comparing)
    if (is === false) return 'no'
    if (is === null) answer = 'unknown'
  }
  return answer
}

/**
 * Whether a matcher holds of a label. An absent label is empty, as for Alertmanager. Null: unknown.
 */
function compare(
  { name, value, isRegex, isEqual }: SilenceMatcher,
  labels: SilencedLabels,
  { budget, patterns }: Comparing,
): boolean | null {
  const has = Object.hasOwn(labels, name) ? labels[name] : undefined
  const isWhole = has === undefined ? Object.keys(labels).length < maxLabels : !/…$|\[redacted:/.test(has)
  if (!isWhole) return null
  if (!isRegex) return ((has ?? '') === value) === isEqual
  const pattern = patterns.get(value) ?? compileLabelPattern(value, budget)
  patterns.set(value, pattern)
  const own = { left: Math.min(maxStepsEach, budget.left) }
  const before = own.left
  const is = pattern(has ?? '', own)
  budget.left -= before - own.left
  return is === null ? null : is === isEqual
}

/** Why no rule with `silenced` fits, in a sentence for people. */
export function describeNoSilence(read: readonly SilencesRead[], alerts: readonly SilencedLabels[] | null): string {
  if (alerts === null) return 'No incident is named (--incident), and a silence is about the alerts of one'
  if (alerts.length === 0) return 'The incident has no alert that could be silenced'
  const said = read.map(({ source, readAt, silences }) => {
    const when = readAt === null ? '' : ` (read ${formatMinute(readAt)})`
    return `${formatCount(silences.length, 'silence')} of ${source}${when}`
  })
  return `None of its ${formatCount(alerts.length, 'alert')} is matched by ${formatList(said)}`
}

/** What `policy lint --site` says of a rule with `silenced`. */
export function lintSilences(read: readonly { source: string; readAt: string | null; isUnread: boolean }[]): {
  why: string
  remedy: string
}[] {
  const fits = 'it fits as if everything were silenced'
  if (read.length === 0)
    return [
      {
        why: `${nameUnread({ source: null, readAt: null })}: ${fits}`,
        remedy: '"nightshift sources add" connects one (alertmanager), or leave silenced out',
      },
    ]
  return read
    .filter((each) => each.isUnread)
    .map((each) => ({
      why: `${nameUnread(each)}: ${fits}`,
      remedy: `"nightshift sources test ${each.source}" says why`,
    }))
}
