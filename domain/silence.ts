import { capitalize, formatMinute } from './format.ts'
import { inertText } from './inert-text.ts'

/**
 * Silences of connected Alertmanagers, for rules of the configured policy. Has no schemas, because
 * rows store silences and pages read them.
 */

/** The kind of source that has silences. */
export const silencingKind = 'alertmanager'

/** Milliseconds without a response after which silences are considered unknown. */
const unreadAfterMs = 300_000

export type SilenceMatcher = { name: string; value: string; isRegex: boolean; isEqual: boolean }

/**
 * A silence, active or pending. Matchers are null if they cannot be compared here. Author and
 * reason are untrusted.
 */
export type Silence = {
  id: string
  /** The state according to the clock of the Alertmanager. */
  state: 'active' | 'pending'
  matchers: SilenceMatcher[] | null
  startsAt: string
  endsAt: string
  createdBy: string
  comment: string
}

/** The last response of a source, with its time. Null if there was none. */
export type SilencesRead = { source: string; readAt: string | null; silences: Silence[] }

/** The last response of a source without its silences, and why the newest read failed. */
export type SilenceReading = { source: string; readAt: string | null; fault: string | null; isUnread: boolean }

/** Why a rule with `silenced` applies. */
export type SilenceFinding =
  | {
      is: 'silenced'
      source: string
      id: string
      until: string
      createdBy: string
      comment: string
      /**
       * Whether the matchers or labels cannot be compared, so that the silence is assumed to match.
       */
      isSupposed: boolean
    }
  /** Silences are unknown. Without a source, no Alertmanager is connected. */
  | { is: 'unread'; source: string | null; readAt: string | null }

/**
 * Whether silences are too old to be used. A time in the future also counts as too old, because the
 * clock of the database was then set back.
 */
export const isUnread = (readAt: string | null, nowMs: number): boolean =>
  readAt === null || Math.abs(nowMs - Date.parse(readAt)) > unreadAfterMs

/**
 * Names a silence within a sentence. Does not contain text of its creator, because a model also
 * reads the sentence.
 */
export function nameSilence(finding: SilenceFinding): string {
  if (finding.is === 'unread') return nameUnread(finding)
  const { id, source, until, isSupposed } = finding
  const name = `silence ${id} of ${source}, until ${formatMinute(until)},`
  return isSupposed
    ? `${name} cannot be fully compared with the alerts of the incident, and may match one`
    : `${name} matches an alert of the incident`
}

/** Describes a silence for people, with the text of its creator. */
export function tellSilence(finding: SilenceFinding): string {
  const said = `${capitalize(nameSilence(finding))}.`
  if (finding.is === 'unread') return said
  const { createdBy, comment } = finding
  return `${said} ${inertText(createdBy, 100) || 'Somebody'} made it: "${inertText(comment, 200)}".`
}

export function nameUnread({ source, readAt }: { source: string | null; readAt: string | null }): string {
  if (source === null) return 'no Alertmanager is connected, so silences are unknown'
  const when = readAt === null ? 'never read' : `last read ${formatMinute(readAt)}`
  return `silences of ${source} were ${when}, so silences are unknown`
}
