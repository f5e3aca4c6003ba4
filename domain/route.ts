import { z } from 'zod'
import { isTimeZone, isWithin } from './hours.ts'
import { type Severity, severity } from './incident.ts'
import { formerTypes } from './incident-type.ts'
import { type Trigger, trigger } from './notification.ts'

/** Messages that go to a destination: by severity, incident type, trigger and hour. */

const typeGlob = z
  .string()
  .regex(/^[a-z0-9_*]{1,60}$/, 'takes a type of incident, or a part of it and *, as disk_pressure or disk_*')

const timeOfDay = z.string().regex(/^([01]\d|2[0-3]):[0-5]\d$/, 'takes hours and minutes, as 22:00')

const timeZone = z.string().max(60).refine(isTimeZone, 'takes a time zone by its name, as Europe/Oslo or UTC')

const hours = z.strictObject({ from: timeOfDay, to: timeOfDay, zone: timeZone }).refine(({ from, to }) => from !== to, {
  path: ['to'],
  message: 'is the same as from, which leaves no minute: leave hours out for the whole day, or set another, as 06:00',
})

/** Null of any part: all of them. */
export const route = z.strictObject({
  severities: z.array(severity).min(1, 'takes at least one, as critical').nullable().default(null),
  types: z.array(typeGlob).min(1, 'takes at least one, as disk_*').max(50).nullable().default(null),
  triggers: z.array(trigger).min(1, 'takes at least one, as critical').nullable().default(null),
  /** From midnight on where `from` is later than `to`. */
  hours: hours.nullable().default(null),
  /** Does what pages wake somebody there? Null: by its kind. */
  wakes: z.boolean().nullable().default(null),
})
export type Route = z.infer<typeof route>

/** What there is to tell, as far as routes ask. */
export type RoutedNews = { severity: Severity; incidentType: string; page: boolean }

/** The ways out that a route can stand at. */
export const destinationKinds = ['webhook', 'pagerduty', 'teams', 'email'] as const
export type DestinationKind = (typeof destinationKinds)[number]

/**
 * Whether pages there wake somebody: PagerDuty's do, and those of a webhook that posts events;
 * channels and mails are read.
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

/** These end what was begun elsewhere: they go to those who heard of the incident, at any hour. */
export const endings: readonly Trigger[] = ['resolved', 'closed', 'taken']
/** What PagerDuty opens an alert for, where somebody is to be woken. */
const paging: readonly Trigger[] = [
  ...(['critical', 'escalated', 'approval', 'reopened', 'reminder', 'owner', 'notice', 'undelivered'] as const),
]
/** Goes only to those who ask for it by name. */
const unasked: readonly Trigger[] = ['taken']

/**
 * About a night or a shift, so without severity, type or hour: a route leaves them out by its
 * triggers.
 */
const cards: readonly Trigger[] = ['morning', 'hand_over']

type Routed = { kind: DestinationKind; route: Route }

/** About the ways out and Nightshift itself, and so for everybody. */
const forAll: readonly Trigger[] = ['undelivered', 'duty']

/**
 * Whether this goes there now. `hasHeard`: it was told of the incident before. A message that
 * reached nobody elsewhere, and a lost duty, go to every destination, whatever its route. PagerDuty
 * takes pages, and the ends of what it began.
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

/** Might a destination hear of such a thing at all? */
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
 * Whether a word matches a pattern, whose stars stand for anything. Goes star by star, so that no
 * glob takes long.
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
