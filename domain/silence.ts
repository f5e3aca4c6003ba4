import { capitalize, formatMinute } from './format.ts'
import { inertText } from './inert-text.ts'

/**
 * Silences of the site's Alertmanagers, for rules of its policy. Plain words: rows store them, and
 * pages read them.
 */

/** The kind of source that has silences. */
export const silencingKind = 'alertmanager'

/** Without an answer for longer than this, nobody knows what is silenced. */
const unreadAfterMs = 300_000

export type SilenceMatcher = { name: string; value: string; isRegex: boolean; isEqual: boolean }

/**
 * A silence in force, or to come. Matchers are null where they do not compare here; author and
 * reason are a stranger's text.
 */
export type Silence = {
  id: string
  /** As its Alertmanager said, by its own clock. */
  state: 'active' | 'pending'
  matchers: SilenceMatcher[] | null
  startsAt: string
  endsAt: string
  createdBy: string
  comment: string
}

/** What a source said last, and when. Null: it never did. */
export type SilencesRead = { source: string; readAt: string | null; silences: Silence[] }

/** The same without them, and why the newest reading failed. */
export type SilenceReading = { source: string; readAt: string | null; fault: string | null; isUnread: boolean }

/** Why a rule with `silenced` fits. */
export type SilenceFinding =
  | {
      is: 'silenced'
      source: string
      id: string
      until: string
      createdBy: string
      comment: string
      /** Its matchers, or the labels, cannot be compared: it is taken to match. */
      isSupposed: boolean
    }
  /** Nobody knows what is silenced. Without a source: no Alertmanager is connected. */
  | { is: 'unread'; source: string | null; readAt: string | null }

/** A time ahead is as old as nobody knows: the database's clock was put back since. */
export const isUnread = (readAt: string | null, nowMs: number): boolean =>
  readAt === null || Math.abs(nowMs - Date.parse(readAt)) > unreadAfterMs

/** In a part of a sentence, without a word of its creator: a model reads it as well. */
export function nameSilence(finding: SilenceFinding): string {
  if (finding.is === 'unread') return nameUnread(finding)
  const { id, source, until, isSupposed } = finding
  const name = `silence ${id} of ${source}, until ${formatMinute(until)},`
  return isSupposed
    ? `${name} cannot be compared with the alerts of the incident in full, and may match one`
    : `${name} matches an alert of the incident`
}

/** For people, with its creator's words. */
export function tellSilence(finding: SilenceFinding): string {
  const said = `${capitalize(nameSilence(finding))}.`
  if (finding.is === 'unread') return said
  const { createdBy, comment } = finding
  return `${said} ${inertText(createdBy, 100) || 'Somebody'} made it: "${inertText(comment, 200)}".`
}

export function nameUnread({ source, readAt }: { source: string | null; readAt: string | null }): string {
  if (source === null) return 'no Alertmanager is connected, so that nobody knows what is silenced'
  const when = readAt === null ? 'never read' : `last read ${formatMinute(readAt)}`
  return `silences of ${source} were ${when}, so that nobody knows what is silenced`
}
