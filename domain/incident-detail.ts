import { z } from 'zod'
import { alertLinks, alertState } from './alert.ts'
import { eventKind } from './event.ts'
import { escalationCategory, incident, incidentType, queuePlace, resolveOutcome, severity } from './incident.ts'
import { resourceRef } from './registry.ts'
import { risks } from './tool.ts'

/** An incident of a list, with its newest row. */
export const listedIncident = incident.extend({
  lastEvent: z.object({ seq: z.number().int(), kind: eventKind, detail: z.string(), at: z.string() }).nullable(),
})
export type ListedIncident = z.infer<typeof listedIncident>

/** One incident, with what its run does now, or where it stands in the queue. */
export const detailedIncident = incident.extend({
  model: z.object({ state: z.enum(['asked', 'waiting']), since: z.string(), ahead: z.number().int() }).nullable(),
  queue: queuePlace.nullable(),
  /** Dollars that models took for it so far; 0 also where their price is not known. */
  cost: z.number(),
  /** What a step of its run waits for because nothing answers. */
  waits: z.object({ for: z.enum(['core_api', 'database']), since: z.string() }).nullable(),
})
export type DetailedIncident = z.infer<typeof detailedIncident>

/** What a person can do about an incident. */
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

/** Facts that only the server has about an incident: alerts, group, run, what the caller may do. */
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
      /** The sender's notification group. */
      groupKey: z.string().nullable(),
      /** Another sender that ended it than the one that opened it. */
      endedBy: z.string().nullable(),
      /** Its sender's word for an end that proves nothing. */
      endReason: z.string().nullable(),
      /** The newest word for its state that nobody knows. */
      stateWord: z.string().nullable(),
    }),
  ),
  group: z.array(incident.pick({ id: true, title: true, status: true, role: true })),
  workflow: z.object({ id: z.string(), url: z.string().nullable() }).nullable(),
  actions: z.array(z.object({ action: personAction, refused: z.string().nullable() })),
})
export type Surroundings = z.infer<typeof surroundings>

/**
 * The reason why an incident stands first. `yours`: the reader took it. `kept`: no rule has it
 * investigated.
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
 * Incidents behind one line: a storm is one line, a few are one each. `incident`: the most urgent,
 * then the newest.
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
  /** What waits for an answer; null unless `need` is `approval`. */
  approval: z
    .object({
      id: z.string(),
      summary: z.string(),
      /** The worst that is known of approving, as the card says it. */
      cost: z.string().default(''),
      risk: z.enum(risks),
      expiresAt: z.string(),
      /** How many more calls of the same answer wait on its card. */
      alsoAsked: z.number().int().default(0),
    })
    .nullable(),
})
export type NeedLine = z.infer<typeof needLine>

const workLine = homeLine.extend({
  investigating: z.number().int(),
  queued: z.number().int(),
  /** With people who have them. */
  owned: z.number().int(),
})
export type WorkLine = z.infer<typeof workLine>

const doneLine = homeLine.extend({ outcome: resolveOutcome.nullable(), seconds: z.number() })
export type DoneLine = z.infer<typeof doneLine>

/** One part of the page: its lines, and how many incidents it is about altogether. */
const part = <T extends z.ZodType>(line: T) => z.object({ incidents: z.number().int(), lines: z.array(line) })

export const home = z.object({
  since: z.string(),
  /** True until the first incident: a new site has steps to take. */
  isFresh: z.boolean().default(false),
  /**
   * Counts incidents that began since then. Failed repairs, tokens and dollars count since then,
   * whatever the incident.
   */
  tonight: z.object({
    incidents: z.number().int(),
    /** Resolved, escalated, cancelled, or quiet and unproven. */
    closed: z.number().int(),
    resolved: z.number().int(),
    /** Resolved ones in which no person had a hand, as reports count them. */
    resolvedAlone: z.number().int(),
    /** Closed as quiet, unproven: no resolution. */
    unproven: z.number().int(),
    escalated: z.number().int(),
    medianSeconds: z.number().nullable(),
    /** Repairs whose newest verification found the fault still there. */
    failedRepairs: z.number().int(),
    tokens: z.number().int(),
    dollars: z.number(),
  }),
  needsYou: part(needLine),
  inProgress: part(workLine),
  done: part(doneLine),
})
export type Home = z.infer<typeof home>

/** What a search found, the nearest first. `log`: rows whose text holds every word. */
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
  /** The log has too many rows with these words to look through in time: its list may lack some. */
  isPartial: z.boolean(),
})
export type SearchAnswer = z.infer<typeof searchAnswer>
