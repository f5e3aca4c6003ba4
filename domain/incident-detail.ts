import { z } from 'zod'
import { alertLinks, alertState } from './alert.ts'
import { eventKind } from './event.ts'
import { escalationCategory, incident, incidentType, queuePlace, resolveOutcome, severity } from './incident.ts'
import { resourceRef } from './registry.ts'
import { risks } from './tool.ts'

/** An incident in a list, with its newest log row. */
export const listedIncident = incident.extend({
  lastEvent: z.object({ seq: z.number().int(), kind: eventKind, detail: z.string(), at: z.string() }).nullable(),
})
export type ListedIncident = z.infer<typeof listedIncident>

/** One incident, with the current step of its run, or its place in the queue. */
export const detailedIncident = incident.extend({
  model: z.object({ state: z.enum(['asked', 'waiting']), since: z.string(), ahead: z.number().int() }).nullable(),
  queue: queuePlace.nullable(),
  /** Dollars spent on models so far. Also 0 if the price of the models is unknown. */
  cost: z.number(),
  /** The service that a step of the run waits for, because it does not respond. */
  waits: z.object({ for: z.enum(['core_api', 'database']), since: z.string() }).nullable(),
})
export type DetailedIncident = z.infer<typeof detailedIncident>

/** Actions that a person can take on an incident. */
export const personAction = z.enum([
  'resolve',
  'escalate',
  'cancel',
  'take',
  'give_back',
  'expected',
  'investigate',
  'comment',
  'tell',
  'review',
])
export type PersonAction = z.infer<typeof personAction>

/**
 * The server's facts around an incident: alerts, group, run, and the actions that the caller may
 * take.
 */
export const surroundings = z.object({
  alerts: z.array(
    z.object({
      id: z.string(),
      source: z.string(),
      status: alertState,
      name: z.string(),
      title: z.string(),
      count: z.number().int(),
      startsAt: z.string(),
      endsAt: z.string().nullable(),
      links: alertLinks,
      /** The notification group at the sender. */
      groupKey: z.string().nullable(),
      /** The sender that ended the alert, if another sender opened the alert. */
      endedBy: z.string().nullable(),
      /** The sender's word for an end of the alert that proves nothing. */
      endReason: z.string().nullable(),
      /** The sender's newest word for a state of the alert that Nightshift does not know. */
      stateWord: z.string().nullable(),
    }),
  ),
  group: z.array(incident.pick({ id: true, title: true, status: true, role: true })),
  workflow: z.object({ id: z.string(), url: z.string().nullable() }).nullable(),
  actions: z.array(z.object({ action: personAction, refused: z.string().nullable() })),
})
export type Surroundings = z.infer<typeof surroundings>

/**
 * Why an incident is listed first. `yours`: the reader took the incident. `kept`: the rules do not
 * let the incident be investigated automatically.
 */
const need = z.enum(['approval', 'review', 'yours', 'escalated', 'kept'])
export type Need = z.infer<typeof need>

const shownIncident = incident.pick({
  id: true,
  title: true,
  resource: true,
  severity: true,
  status: true,
  category: true,
  outcome: true,
  resolution: true,
  owner: true,
  closedBy: true,
  alerts: true,
  createdAt: true,
  closedAt: true,
})

/**
 * A line of Home about one or more incidents of a type. A storm of incidents has one line, and a
 * few incidents have a line each. `incident`: in lines that need a person the most urgent incident,
 * then the newest; in lines of work the leader; in done lines the incident that closed last.
 */
const homeLine = z.object({
  type: incidentType,
  severity,
  count: z.number().int(),
  since: z.string(),
  incident: shownIncident,
})

const needLine = homeLine.extend({
  need,
  category: escalationCategory.nullable(),
  /** The pending question; null unless `need` is `approval`. */
  approval: z
    .object({
      id: z.string(),
      summary: z.string(),
      /** The worst known consequence of an approval, as the card states it. */
      cost: z.string().default(''),
      risk: z.enum(risks),
      expiresAt: z.string(),
      /** How many further calls wait on the card of this question. */
      alsoAsked: z.number().int().default(0),
    })
    .nullable(),
})
export type NeedLine = z.infer<typeof needLine>

const workLine = homeLine.extend({
  investigating: z.number().int(),
  queued: z.number().int(),
  /** How many incidents of this line have an owner. */
  owned: z.number().int(),
})
export type WorkLine = z.infer<typeof workLine>

const doneLine = homeLine.extend({ outcome: resolveOutcome.nullable(), seconds: z.number() })
export type DoneLine = z.infer<typeof doneLine>

/** A part of Home: its lines, and how many incidents the lines contain. */
const part = <T extends z.ZodType>(line: T) => z.object({ incidents: z.number().int(), lines: z.array(line) })

export const home = z.object({
  since: z.string(),
  /** True until Nightshift has an incident. Home then shows first steps of an installation. */
  isFresh: z.boolean().default(false),
  /**
   * Numbers about incidents that began since `since`. Failed repairs, tokens and dollars are
   * counted since then in all incidents.
   */
  tonight: z.object({
    incidents: z.number().int(),
    /** Incidents that are resolved, escalated, cancelled, or quiet and unproven. */
    closed: z.number().int(),
    resolved: z.number().int(),
    /** Incidents that were resolved without an action of a person, as reports count them. */
    resolvedAlone: z.number().int(),
    /** Incidents that closed as quiet and unproven. They do not count as resolved. */
    unproven: z.number().int(),
    escalated: z.number().int(),
    medianSeconds: z.number().nullable(),
    /** Repairs after which the newest verification still found the fault. */
    failedRepairs: z.number().int(),
    tokens: z.number().int(),
    dollars: z.number(),
  }),
  needsYou: part(needLine),
  inProgress: part(workLine),
  done: part(doneLine),
})
export type Home = z.infer<typeof home>

/** Results of a search, the best first. `log`: log rows whose text contains every searched word. */
export const searchAnswer = z.object({
  incidents: z.array(
    incident.pick({
      id: true,
      title: true,
      alertName: true,
      resource: true,
      status: true,
      severity: true,
      createdAt: true,
    }),
  ),
  resources: z.array(resourceRef),
  log: z.array(
    z.object({ incidentId: z.string(), title: z.string(), seq: z.number().int(), detail: z.string(), at: z.string() }),
  ),
  /**
   * True if the log has too many matching rows to read in time, so that the list may be incomplete.
   */
  isPartial: z.boolean(),
})
export type SearchAnswer = z.infer<typeof searchAnswer>
