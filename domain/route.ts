import { z } from 'zod'
import { isTimeZone, isWithin } from './hours.ts'
import { type Severity, severity } from './incident.ts'
import { formerTypes } from './incident-type.ts'
import { type Trigger, trigger } from './notification.ts'

/** Selects the messages for a destination by severity, incident type, trigger and hour. */

const typeGlob = z
  .string()
  .regex(/^[a-z0-9_*]{1,60}$/, 'must be a type of incident, or a part of it and *, such as disk_pressure or disk_*')

const timeOfDay = z.string().regex(/^([01]\d|2[0-3]):[0-5]\d$/, 'must be hours and minutes, such as 22:00')

const timeZone = z.string().max(60).refine(isTimeZone, 'must be the name of a time zone, such as Europe/Oslo or UTC')

const hours = z.strictObject({ from: timeOfDay, to: timeOfDay, zone: timeZone }).refine(({ from, to }) => from !== to, {
  path: ['to'],
  message:
    'is the same as from, so the span is empty: leave hours out for the whole day, or set another time, such as 06:00',
})

/**
 * Conditions on the messages that a destination gets. A condition that is null allows every
 * message.
 */
export const route = z.strictObject({
  severities: z.array(severity).min(1, 'must have at least one entry, such as critical').nullable().default(null),
  types: z.array(typeGlob).min(1, 'must have at least one entry, such as disk_*').max(50).nullable().default(null),
  triggers: z.array(trigger).min(1, 'must have at least one entry, such as critical').nullable().default(null),
  /** If `from` is later than `to`, the hours include midnight. */
  hours: hours.nullable().default(null),
  /**
   * Whether pages to this destination wake somebody. Null leaves the answer to the kind of the
   * destination.
   */
  wakes: z.boolean().nullable().default(null),
})
export type Route = z.infer<typeof route>

/** The facts about a message on which routes decide. */
export type RoutedNews = { severity: Severity; incidentType: string; page: boolean }

/** Kinds of destinations that have a route. */
export const destinationKinds = ['webhook', 'pagerduty', 'teams', 'email'] as const
export type DestinationKind = (typeof destinationKinds)[number]

/**
 * Whether pages to this destination wake somebody. By default only pages to PagerDuty and to a
 * webhook that posts events wake somebody. Channels and mails do not.
 */
export function wakesSomebody({
  kind,
  options,
  route,
}: {
  kind: DestinationKind
  options: object
  route: Partial<Route>
}): boolean {
  if (route.wakes !== undefined && route.wakes !== null) return route.wakes
  return (
    kind === 'pagerduty' ||
    (kind === 'webhook' && ((options as { template?: string }).template ?? 'generic') === 'generic')
  )
}

/**
 * Triggers of messages that end earlier messages. They are sent to every destination that had a
 * message about the incident, at any hour.
 */
export const endings: readonly Trigger[] = ['resolved', 'closed', 'taken']
/** Triggers for which PagerDuty opens an alert. */
const paging: readonly Trigger[] = [
  ...(['critical', 'escalated', 'approval', 'reopened', 'reminder', 'owner', 'notice', 'undelivered'] as const),
]
/** Triggers that are sent only if a route names them. */
const unasked: readonly Trigger[] = ['taken']

/**
 * Triggers of the cards of a night and of a hand-over. A card has no severity, type or hour, so a
 * route can exclude it only by its triggers.
 */
const cards: readonly Trigger[] = ['morning', 'hand_over']

type Routed = { kind: DestinationKind; route: Route }

/** Messages about destinations and Nightshift itself, which go to every destination. */
const forAll: readonly Trigger[] = ['undelivered', 'duty']

/**
 * Whether a message is sent to a destination now. `hasHeard`: the destination had an earlier
 * message about the incident. A message that reached nobody elsewhere, and a message about a failed
 * vital part, are sent to every destination, whatever its route. PagerDuty gets only pages and
 * messages that end its alerts.
 */
export function isRouted(
  { kind, route }: Routed,
  why: Trigger,
  told: RoutedNews,
  { hasHeard, at }: { hasHeard: boolean; at: string },
): boolean {
  if (why === 'duty') return true
  if (kind === 'pagerduty' && endings.includes(why)) return hasHeard
  if (kind === 'pagerduty' && !(told.page && paging.includes(why))) return false
  if (forAll.includes(why)) return true
  if (!mayTell({ kind, route }, why)) return false
  if (cards.includes(why)) return true
  if (hasHeard && endings.includes(why)) return true
  return why !== 'closed' && fits(route, told, at)
}

/** Whether a destination can ever get a message with this trigger. */
export function mayTell({ kind, route }: Routed, why: Trigger): boolean {
  if (forAll.includes(why)) return true
  if (kind === 'pagerduty' && !paging.includes(why) && !endings.includes(why)) return false
  return route.triggers?.includes(why) ?? !unasked.includes(why)
}

function fits({ severities, types, hours }: Route, told: RoutedNews, at: string): boolean {
  if (severities && !severities.includes(told.severity)) return false
  const spelled = types ? [told.incidentType, ...formerTypes(told.incidentType)] : []
  if (types && !types.some((glob) => spelled.some((type) => matchesGlob(glob, type)))) return false
  return !hours || isWithin(hours, at)
}

/**
 * Whether a word matches a pattern in which a star stands for any text. Tries star after star, so
 * that no pattern is slow.
 */
export function matchesGlob(glob: string, word: string): boolean {
  const [first = '', ...rest] = glob.split('*')
  if (rest.length === 0) return glob === word
  if (!word.startsWith(first)) return false
  const last = rest.pop() as string
  let from = first.length
  for (const part of rest) {
    const found = word.indexOf(part, from)
    if (found < 0) return false
    from = found + part.length
  }
  return word.length - last.length >= from && word.endsWith(last)
}
