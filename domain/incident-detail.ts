import { z } from 'zod'
import { alertLinks, alertState } from './alert.ts'
import { eventKind } from './event.ts'
import { incident, queuePlace } from './incident.ts'

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
])
export type PersonAction = z.infer<typeof personAction>

/** What only the server can say about an incident as a whole: its alerts, its group, its run, what the caller may do. */
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
    }),
  ),
  group: z.array(incident.pick({ id: true, title: true, status: true, role: true })),
  workflow: z.object({ id: z.string(), url: z.string().nullable() }).nullable(),
  actions: z.array(z.object({ action: personAction, refused: z.string().nullable() })),
})
export type Surroundings = z.infer<typeof surroundings>
