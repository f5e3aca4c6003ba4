import { capitalize, formatMinute } from './format.ts'
import { inertText } from './inert-text.ts'

/**
 * Silences of connected Alertmanagers, for rules of the configured policy. The file has no schemas:
 * rows store silences, and pages import their types.
 */

/** The kind of source that has silences. */
export const silencingKind = 'alertmanager'

/** Milliseconds without a response of an Alertmanager after which its silences count as unknown. */
const unreadAfterMs = 300_000

export type SilenceMatcher = { name: string; value: string; isRegex: boolean; isEqual: boolean }

/**
 * A silence, active or pending. Matchers are null if Nightshift cannot compare them. Author and
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

/** The last response of an Alertmanager. The time is null if there was no response. */
export type SilencesRead = { source: string; readAt: string | null; silences: Silence[] }

/** The last response of an Alertmanager without its silences, and why the newest read failed. */
export type SilenceReading = { source: string; readAt: string | null; fault: string | null; isUnread: boolean }

/** Why a policy rule with `silenced` applies. */
export type SilenceFinding =
  | {
      is: 'silenced'
      source: string
      id: string
      until: string
      createdBy: string
      comment: string
      /** Whether matchers or labels cannot be compared. The silence is then assumed to match. */
      isSupposed: boolean
    }
  /** The silences are unknown. `source` is null if no Alertmanager is connected. */
  | { is: 'unread'; source: string | null; readAt: string | null }

/**
 * Whether silences are too old to be used. A time in the future also counts as too old: the clock
 * of the database was then set back.
 */
export const isUnread = (readAt: string | null, nowMs: number): boolean =>
  readAt === null || Math.abs(nowMs - Date.parse(readAt)) > unreadAfterMs

/**
 * Names a silence within a sentence. The name contains no text of the silence's creator, because a
 * model also reads the sentence.
 */
export function nameSilence(finding: SilenceFinding): string {
  if (finding.is === 'unread') return nameUnread(finding)
  const { id, source, until, isSupposed } = finding
  const name = `silence ${id} of ${source}, until ${formatMinute(until)},`
  return isSupposed
    ? `${name} may match an alert of the incident: not all its conditions can be checked`
    : `${name} matches an alert of the incident`
}

/** Describes a silence for people, with the text of the silence's creator. */
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
