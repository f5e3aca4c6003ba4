import { formatCount, formatList, formatMinute } from '../../domain/format.ts'
import {
  isUnread,
  nameUnread,
  type Silence,
  type SilenceFinding,
  type SilenceMatcher,
  type SilenceReading,
  type SilencesRead,
} from '../../domain/silence.ts'
import { compileLabelPattern, type LabelPattern, type PatternBudget } from '../query/pattern.ts'

/** Labels of one alert, as they were received. */
export type SilencedLabels = Readonly<Record<string, string>>

/** Most steps that untrusted patterns may take in one ruling, which is half a second. */
const maxSteps = 1_000_000
/** Most steps of one comparison, so that one pattern cannot use all steps. */
const maxStepsEach = 100_000
/**
 * Number of labels of an alert that are kept: at this number, a missing label may have been left
 * out.
 */
const maxLabels = 64
/** Most alerts of one incident that are compared. All further alerts count as unknown. */
export const maxSilencedAlerts = 1_000

type Comparing = { budget: PatternBudget; patterns: Map<string, LabelPattern> }
type Answer = 'yes' | 'no' | 'unknown'

/**
 * Returns why an incident's alert counts as silenced; null if none does. A rule with `silenced`
 * only narrows, so what is unknown counts as silenced: an unreachable source, and matchers that
 * cannot be compared. An incident without alerts is not silenced.
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
 * Whether a silence applies: an active silence applies until its Alertmanager reports otherwise, a
 * pending silence from its beginning, by the faster clock.
 */
const holds = ({ state, startsAt }: Silence, nowMs: number): boolean =>
  state === 'active' || Date.parse(startsAt) <= nowMs

function compareAll({ matchers }: Silence, alerts: readonly SilencedLabels[], comparing: Comparing): Answer {
  if (matchers === null) return 'unknown'
  let answer: Answer = alerts.length > maxSilencedAlerts ? 'unknown' : 'no'
  // Compares equality first, which is cheapest and excludes most.
  const cheapFirst = matchers.toSorted((a, b) => Number(a.isRegex) - Number(b.isRegex))
  for (const labels of alerts) {
    // Returns unknown for all further comparisons, because the steps are used up.
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
 * Compares a matcher with a label. A missing label counts as empty, as in Alertmanager. Null if the
 * result is unknown.
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

/** Describes for people why no rule with `silenced` fits. */
export function describeNoSilence(read: readonly SilencesRead[], alerts: readonly SilencedLabels[] | null): string {
  if (alerts === null) return 'Name an incident with --incident, because silences match the alerts of an incident'
  if (alerts.length === 0) return 'The incident has no alert that could be silenced'
  const said = read.map(({ source, readAt, silences }) => {
    const when = readAt === null ? '' : ` (read ${formatMinute(readAt)})`
    return `${formatCount(silences.length, 'silence')} of ${source}${when}`
  })
  return `These silences match none of its ${formatCount(alerts.length, 'alert')}: ${formatList(said)}`
}

/**
 * Lists for `policy lint --site` the Alertmanagers that cannot be read: calls are then judged as if
 * everything were silenced.
 */
export function lintSilences(read: readonly SilenceReading[]): {
  why: string
  remedy: string
}[] {
  const fits = 'calls are judged as if every alert were silenced'
  if (read.length === 0)
    return [
      {
        why: `${nameUnread({ source: null, readAt: null })}: ${fits}`,
        remedy: '"nightshift sources add" connects an Alertmanager, or leave silenced out',
      },
    ]
  return read
    .filter((each) => each.isUnread)
    .map((each) => ({
      why: `${nameUnread(each)}: ${fits}`,
      remedy: `"nightshift sources test ${each.source}" shows why`,
    }))
}
