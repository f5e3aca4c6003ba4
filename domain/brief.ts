import { z } from 'zod'
import type { Alert } from './alert.ts'
import { type Approval, approval } from './approval.ts'
import { listDone } from './done.ts'
import type { IncidentEvent } from './event.ts'
import { formatCount, formatList } from './format.ts'
import { certainties, foldHypotheses, type Hypothesis, standingOf } from './hypothesis.ts'
import { closedStatuses, type Incident, incidentStatus } from './incident.ts'
import { manualChangeType } from './manual-change.ts'
import { isOfGate } from './page-gate.ts'
import { nameResource, type ResourceRef, resourceKey } from './registry.ts'
import { sayAction, toList, toSentence, toText } from './say.ts'
import { describeEnd, withItsAlert } from './status-words.ts'

/**
 * A sentence with the numbers of the log rows on which it is based. The sentence may contain
 * untrusted text.
 */
const line = z.object({ text: z.string(), rows: z.array(z.number().int()) })
export type BriefLine = z.infer<typeof line>

/**
 * The outcome of an action. `open`: not verified yet. `indeterminate`: it is unknown whether the
 * action took effect.
 */
const doneOutcomes = [
  'verified',
  'verification_failed',
  'unproven',
  'open',
  'running',
  'failed',
  'indeterminate',
  'refused',
  'denied',
  'expired',
] as const
export type DoneOutcome = (typeof doneOutcomes)[number]

/**
 * The basis of the stated cause: a hypothesis, a verified repair, the text of an ending, the text
 * with which the agent or a person asks for approval, or nothing.
 */
const causeStates = ['supported', 'survived', 'held', 'proposed', 'ending', 'stated', 'requested', 'unknown'] as const

const attempt = z.object({
  attempt: z.number().int(),
  outcome: z.string(),
  cause: z.string(),
  turns: z.number().int(),
  tokens: z.number().int(),
  dollars: z.number(),
  startedAt: z.string(),
  endedAt: z.string().nullable(),
  rows: z.array(z.number().int()),
})
type AttemptBrief = z.infer<typeof attempt>

/**
 * A summary of an incident. Each line names the log rows on which it is based. Times are RFC 3339
 * in UTC.
 */
export const incidentBrief = z.object({
  since: z.object({ at: z.string(), by: z.enum(['alert', 'incident']) }),
  alert: z.object({
    state: z.enum(['firing', 'resolved', 'unproven', 'unknown', 'none']),
    endedAt: z.string().nullable(),
  }),
  /** The state of the resource at the last read; null if no log row shows the state. */
  resource: line.extend({ at: z.string() }).nullable(),
  /** The outcome of the page that waited during the investigation; null if no page waited. */
  page: line.nullable(),
  cause: line.extend({ state: z.enum(causeStates), certainty: z.enum(certainties).nullable() }),
  impact: line.nullable(),
  /**
   * Writes of all attempts and their outcomes, and actions that were refused or denied. Newest
   * first, at most eight.
   */
  done: z.array(line.extend({ outcome: z.enum(doneOutcomes) })),
  /** The number of successful and failed reads in the newest attempt. */
  looks: z.number().int(),
  /** The pending question to people, without the details of its dry run. */
  asked: approval.nullable(),
  /** How many further calls wait on the card of this question. */
  alsoAsked: z.number().int().default(0),
  next: line,
  spent: z.object({
    turns: z.number().int(),
    tokens: z.number().int(),
    dollars: z.number(),
    modelMs: z.number().int(),
  }),
  attempts: z.array(attempt),
})
export type IncidentBrief = z.infer<typeof incidentBrief>

/** A closed incident of the given incident's type, with the tools that repaired it. */
const similarIncident = z.object({
  id: z.string(),
  title: z.string(),
  status: incidentStatus,
  outcome: z.string().nullable(),
  resolution: z.string().nullable(),
  /** Tools whose writes were verified. */
  repairedBy: z.array(z.string()),
  closedAt: z.string().nullable(),
})
export type SimilarIncident = z.infer<typeof similarIncident>

/** The brief of an incident in the form that the API returns. */
export const servedBrief = incidentBrief.extend({ similar: z.array(similarIncident) })
export type ServedBrief = z.infer<typeof servedBrief>

/** The tokens and time that the model's responses in one attempt took. */
export type AttemptSpent = { attempt: number } & IncidentBrief['spent']

/** The input of a brief. `events` may lack data of results, and log rows that no brief reads. */
export type BriefSources = {
  incident: Incident
  events: readonly IncidentEvent[]
  alerts: readonly (Pick<Alert, 'startsAt' | 'endsAt'> & {
    status: 'firing' | 'resolved' | 'unknown'
    endReason: string | null
  })[]
  asked: Approval | null
  alsoAsked?: number
  spent: readonly AttemptSpent[]
  followers: number
}

/**
 * Computes the brief of an incident from `sources` alone. Uses no model, has no side effect and
 * never throws.
 */
export function foldBrief(sources: BriefSources): IncidentBrief {
  const { incident, events, alerts, asked, spent } = sources
  const own = events.filter((event) => event.attempt === incident.attempt)
  return {
    since: sinceWhen(incident, alerts),
    alert: alertNow(alerts),
    resource: resourceNow(incident.resource, events, alertNow(alerts)),
    page: pageNow(events),
    cause: causeOf(incident, events, asked),
    impact: impactOf(sources, own),
    done: listDone(events).slice(0, maxDone),
    looks: own.filter((event) => event.kind === 'tool_finished' && event.metadata.effect === 'read').length,
    asked: asked && {
      ...asked,
      dryRun: { ...asked.dryRun, summary: sayAction(asked.dryRun.summary), details: costOf(asked) },
    },
    alsoAsked: sources.alsoAsked ?? 0,
    next: nextOf(incident, events, asked),
    spent: sumSpent(spent),
    attempts: listAttempts(events, spent),
  }
}

const maxDone = 8

function pageNow(events: readonly IncidentEvent[]): BriefLine | null {
  const rows = events.flatMap((event) =>
    event.kind === 'noted' && isOfGate(event.metadata.code) ? [{ seq: event.seq, text: event.metadata.text }] : [],
  )
  const last = rows.at(-1)
  return last ? { text: last.text, rows: rows.map(({ seq }) => seq) } : null
}

function sinceWhen({ createdAt }: Incident, alerts: BriefSources['alerts']): IncidentBrief['since'] {
  const firing = alerts.filter(({ status }) => status === 'firing')
  const [first] = (firing.length > 0 ? firing : alerts).map(({ startsAt }) => startsAt).sort()
  return first === undefined ? { at: createdAt, by: 'incident' } : { at: first, by: 'alert' }
}

function alertNow(alerts: BriefSources['alerts']): IncidentBrief['alert'] {
  const states = alerts.map(({ status, endReason }) => (status === 'resolved' && endReason ? 'unproven' : status))
  const state = (['firing', 'unknown', 'unproven', 'resolved'] as const).find((each) => states.includes(each)) ?? 'none'
  const ends = alerts.flatMap(({ endsAt }) => endsAt ?? []).sort()
  return { state, endedAt: state === 'resolved' ? (ends.at(-1) ?? null) : null }
}

const isAbout = (things: readonly ResourceRef[], resource: ResourceRef) =>
  things.some((thing) => resourceKey(thing) === resourceKey(resource))

/** Finds the newest log row about the health of the resource: a verification or a read. */
function resourceNow(
  resource: ResourceRef | null,
  events: readonly IncidentEvent[],
  alert: IncidentBrief['alert'],
): IncidentBrief['resource'] {
  if (resource === null) return null
  for (const event of events.toReversed()) {
    const text = healthIn(event, resource)
    if (text !== null) {
      const said = withItsAlert(toSentence(text), showsWell(event, resource), alert)
      return { text: said, rows: [event.seq], at: event.at }
    }
  }
  return null
}

function healthIn(event: IncidentEvent, resource: ResourceRef): string | null {
  switch (event.kind) {
    case 'verification':
      return isAbout(event.metadata.targets, resource) && event.metadata.outcome !== 'open'
        ? event.metadata.observed || null
        : null
    case 'looked':
      if (!isAbout(event.metadata.about, resource)) return null
      return event.metadata.observed || (event.metadata.resource && `${resource.id} is ${event.metadata.resource}`)
    case 'tool_finished': {
      const { discovered = [], result, said } = event.metadata
      const seen = discovered.find((thing) => thing.seen && resourceKey(thing) === resourceKey(resource))
      if (!result.ok || !seen?.health) return null
      return said ?? `${resource.id} is ${seen.health}`
    }
    default:
      return null
  }
}

/** Whether a log row that `healthIn` reads shows that the resource is healthy. */
function showsWell(event: IncidentEvent, resource: ResourceRef): boolean {
  if (event.kind === 'verification') return event.metadata.outcome === 'held'
  if (event.kind === 'looked') return event.metadata.resource === 'nominal'
  if (event.kind !== 'tool_finished') return false
  return (event.metadata.discovered ?? []).some(
    (thing) => thing.seen && resourceKey(thing) === resourceKey(resource) && thing.health === 'nominal',
  )
}

type Cause = IncidentBrief['cause']

/**
 * Finds the cause: the leading hypothesis of the newest attempt, otherwise the text of the newest
 * ending, otherwise the text with which the agent asks for approval.
 */
function causeOf(incident: Incident, events: readonly IncidentEvent[], asked: Approval | null): Cause {
  const ending = events.findLast(isEnding)
  const certainty = ending && 'certainty' in ending.metadata ? (ending.metadata.certainty ?? null) : null
  const leading = leadingOf(foldHypotheses(events, incident.attempt))
  if (leading) {
    const rows = [...leading.supports.map(({ seq }) => seq), leading.seq]
    return {
      text: toSentence(leading.text),
      state: causeStateOf(leading, ending),
      certainty,
      rows: distinct(rows),
    }
  }
  const isOver = ending !== undefined && ending.attempt === incident.attempt
  if (isOver || (ending && !asked)) return { text: saidAtEnd(ending), state: 'ending', certainty, rows: [ending.seq] }
  const question = asked && events.findLast((event) => event.kind === 'approval_requested')
  if (asked?.reason)
    return {
      text: toSentence(asked.reason),
      state: asked.askedBy ? 'requested' : 'stated',
      certainty: null,
      rows: question ? [question.seq] : [],
    }
  return { text: 'Not known yet.', state: 'unknown', certainty: null, rows: [] }
}

function causeStateOf(leading: Hypothesis, ending: Ending | undefined): Cause['state'] {
  if (leading.state !== 'supported') return 'proposed'
  // Relies on the ending: an ending is `repaired` only if its writes were verified.
  if (ending?.kind === 'resolved' && ending.metadata.outcome === 'repaired') return 'held'
  return standingOf(leading) === 'survived' ? 'survived' : 'supported'
}

/**
 * Returns the newest hypothesis that log rows support and none refutes, otherwise the newest that
 * is not refuted.
 */
function leadingOf(causes: readonly Hypothesis[]): Hypothesis | null {
  const byRow = causes.filter(({ state }) => state !== 'refuted').sort((a, b) => b.seq - a.seq)
  return byRow.find(({ state }) => state === 'supported') ?? byRow[0] ?? null
}

type Ending = IncidentEvent<'resolved' | 'escalated' | 'cancelled'>

const isEnding = (event: IncidentEvent): event is Ending =>
  event.kind === 'resolved' || event.kind === 'escalated' || event.kind === 'cancelled'

function saidAtEnd(event: Ending): string {
  return toSentence(event.kind === 'resolved' ? event.metadata.resolution : event.metadata.reason)
}

/** Lists all other unhealthy resources, and how many similar incidents wait for this incident. */
function impactOf({ incident, followers, asked }: BriefSources, own: readonly IncidentEvent[]): BriefLine | null {
  const seen = new Map<string, { health: string; id: string; seq: number }>()
  const resource = incident.resource && resourceKey(incident.resource)
  for (const event of own) {
    if (event.kind !== 'tool_finished' || !event.metadata.result.ok) continue
    for (const thing of event.metadata.discovered ?? [])
      if (thing.health && resourceKey(thing) !== resource)
        seen.set(resourceKey(thing), { health: thing.health, id: nameResource(thing), seq: event.seq })
  }
  const question = own.findLast((event) => event.kind === 'approval_requested')
  if (asked && question)
    for (const id of downInPlan(asked))
      if (!seen.has(`vm:${id}`)) seen.set(`vm:${id}`, { health: 'down', id, seq: question.seq })
  const ill = [...seen.values()].filter(({ health }) => health !== 'nominal' && health !== 'unknown')
  const byHealth = [...Map.groupBy(ill, ({ health }) => health)].map(([health, things]) => {
    const named = things.slice(0, namedIll).map(({ id }) => id)
    const more = things.length - named.length
    return `${health}: ${formatList([...named, ...(more > 0 ? [`${more} more`] : [])])}`
  })
  const alike = followers > 0 ? [`${formatCount(followers, 'similar incident')} in its group`] : []
  if (byHealth.length + alike.length === 0) return null
  return { text: [...byHealth, ...alike].join('; '), rows: distinct(ill.map(({ seq }) => seq)) }
}

/** Returns the part of the dry run about the cost of the plan. The card shows all other parts. */
function costOf({ dryRun: { details } }: Approval): Record<string, unknown> {
  return details.standing ? { standing: details.standing } : {}
}

/** Lists the VMs that the plan of this approval starts or leaves down. These VMs do not run now. */
function downInPlan({ dryRun: { details } }: Approval): string[] {
  const started = toList(details.steps).filter(({ action }) => action === 'start')
  return [...started, ...toList(details.unplaced)].map(({ vm }) => toText(vm)).filter(Boolean)
}

const namedIll = 4

function nextOf(
  { type, status, owner, watchUntil, keptReason, cancelledUntil, reviewWantedAt }: Incident,
  events: readonly IncidentEvent[],
  asked: Approval | null,
): BriefLine {
  const say = (text: string, rows: number[] = []): BriefLine => ({ text, rows })
  const ending = events.findLast(isEnding)
  if (asked) return say('An approval waits for a decision.')
  if (reviewWantedAt) return say('Another person must review the write.')
  if (type === manualChangeType) return say(closedStatuses.includes(status) ? 'Nothing.' : 'The approved action runs.')
  if (!closedStatuses.includes(status)) {
    if (keptReason !== null) return say(`The incident is not investigated: ${keptReason}`)
    if (owner) return say(`${owner.name} works on the incident. Meanwhile the agent does not investigate it.`)
    return say(status === 'open' ? 'The incident waits for an investigation.' : 'The agent investigates.')
  }
  if (status === 'resolved')
    return say(
      watchUntil
        ? 'Code watches whether the alert ends, and escalates the incident if not.'
        : 'Nothing. If the alert comes back, the incident is investigated again.',
    )
  if (status === 'cancelled')
    return say(cancelledUntil ? 'After the cancellation ends, its alerts are investigated again.' : 'Nothing.')
  const advice = ending?.kind === 'escalated' ? ending.metadata.report?.nextStep : undefined
  if (advice) return say(toSentence(advice), ending ? [ending.seq] : [])
  return say(owner ? `${owner.name} has it.` : 'A person must take the incident.')
}

function sumSpent(spent: readonly AttemptSpent[]): IncidentBrief['spent'] {
  const sum = (field: keyof IncidentBrief['spent']) => spent.reduce((total, each) => total + each[field], 0)
  return { turns: sum('turns'), tokens: sum('tokens'), dollars: sum('dollars'), modelMs: sum('modelMs') }
}

/** Lists each attempt with its ending and its leading hypothesis. */
function listAttempts(events: readonly IncidentEvent[], spent: readonly AttemptSpent[]): AttemptBrief[] {
  const byAttempt = Map.groupBy(events, ({ attempt }) => attempt)
  return [...byAttempt].flatMap(([number, own]): AttemptBrief[] => {
    const [first] = own
    if (number === 0 || !first) return []
    const ending = own.findLast(isEnding)
    const leading = leadingOf(foldHypotheses(own, number))
    const { turns = 0, tokens = 0, dollars = 0 } = spent.find((each) => each.attempt === number) ?? {}
    return [
      {
        attempt: number,
        turns,
        tokens,
        dollars,
        startedAt: first.at,
        endedAt: ending?.at ?? null,
        outcome: ending ? describeEnd(ending) : 'not over',
        cause: leading ? toSentence(leading.text) : ending ? saidAtEnd(ending) : 'Not known yet.',
        rows: [first.seq, ...(ending ? [ending.seq] : [])],
      },
    ]
  })
}

const distinct = (rows: readonly number[]): number[] => [...new Set(rows)].sort((a, b) => a - b)
