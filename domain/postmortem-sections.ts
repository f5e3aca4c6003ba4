import { z } from 'zod'
import { questionOf, sayAsked } from './asked-action.ts'
import type { EventKind, IncidentEvent } from './event.ts'
import { capitalize, formatCount, formatMinute, formatSpan, withSpaces } from './format.ts'
import { formatVerification } from './format-approval.ts'
import { foldHypotheses, isUnshown, notShown, rowsOf } from './hypothesis.ts'
import type { Incident } from './incident.ts'
import { nameResource, type ResourceRef, resourceKey } from './registry.ts'
import { plainWords } from './say.ts'
import { categoryWords, outcomeWords } from './status-words.ts'
import { describeEndReason } from './unproven-end.ts'

/**
 * Computes each section of a postmortem from the rows of an incident. Has no side effect and never
 * throws.
 */

/** A sentence with the numbers of the rows on which it is based. */
export const sentence = z.object({
  text: z.string(),
  rows: z.array(z.number().int()),
  attempt: z.number().int().nullable(),
})
export type Sentence = z.infer<typeof sentence>

export type PostmortemAbout = Pick<
  Incident,
  'id' | 'title' | 'type' | 'severity' | 'resource' | 'createdAt' | 'closedAt' | 'attempt' | 'alerts'
>
export type IncidentLog = readonly IncidentEvent[]
type Ending = IncidentEvent<'resolved' | 'escalated' | 'cancelled'>

/** Maximum number of items in a list of the postmortem. */
const maxListed = 20

function say(text: string, rows: readonly number[], attempt: number | null = null): Sentence {
  return { text, rows: [...new Set(rows)].sort((a, b) => a - b), attempt }
}

export const ofKind = <K extends EventKind>(events: IncidentLog, kind: K): IncidentEvent<K>[] =>
  events.filter((event) => event.kind === kind) as IncidentEvent<K>[]

const isEnding = (event: IncidentEvent): event is Ending =>
  event.kind === 'resolved' || event.kind === 'escalated' || event.kind === 'cancelled'

const writesOf = (events: IncidentLog) =>
  ofKind(events, 'tool_started').filter(({ metadata }) => metadata.effect === 'write')

const nameOf = (actor: string) =>
  actor.startsWith('agent:') ? 'the agent' : actor.replace(/^(user|system|source):/, '')

export function summaryOf(incident: PostmortemAbout, events: IncidentLog): Sentence[] {
  const { title, severity, type, resource, createdAt, closedAt } = incident
  const first = events[0]?.seq ?? []
  const ending = events.findLast(isEnding)
  const writes = writesOf(events)
  // Excludes a person's own write, which is no attempt of the agent.
  const runs = ofKind(events, 'claimed').filter(({ actor }) => !actor.startsWith('user:'))
  const about = resource ? `, about ${resource.kind} ${resource.id}` : ''
  const lasted = closedAt
    ? `it was closed at ${formatMinute(closedAt)}, ${formatSpan(Date.parse(closedAt) - Date.parse(createdAt))} later`
    : 'it is not closed'
  return [
    say(`${title}: ${severity}, of type ${type}${about}.`, [first].flat()),
    say(
      `The incident was opened at ${formatMinute(createdAt)}; ${lasted}.`,
      [first, closedAt && ending ? ending.seq : []].flat(),
    ),
    ...(closedAt && ending ? [say(`${describeEnding(ending)}.`, [ending.seq])] : []),
    say(
      `The agent made ${formatCount(runs.length, 'attempt')}. The log has ${formatCount(writes.length, 'write')} and ${formatCount(ofKind(events, 'approval_requested').length, 'request')} for approval.`,
      [...runs, ...writes].slice(0, maxListed).map(({ seq }) => seq),
    ),
  ]
}

/** Describes how an attempt or the incident ended, without text of the agent. */
function describeEnding(ending: Ending): string {
  const by = nameOf(ending.actor)
  switch (ending.kind) {
    case 'resolved':
      return `Resolved by ${by} as ${outcomeWords[ending.metadata.outcome] ?? ending.metadata.outcome}`
    case 'escalated': {
      const { category, code } = ending.metadata
      return `Escalated to people by ${by}: ${category ? categoryWords[category] : withSpaces(code.toLowerCase())}`
    }
    case 'cancelled':
      return `Cancelled by ${by}: ${ending.metadata.reason}`
  }
}

/** Lists resources that were down or unhealthy, and alerts that fired. */
export function impactOf(events: IncidentLog): Sentence[] {
  const alerts = Map.groupBy(
    ofKind(events, 'alert_received'),
    ({ metadata }) => `${metadata.source} ${metadata.fingerprint}`,
  )
  const said = [...alerts.values()].map((rows) => {
    const [first, last] = [rows[0], rows.at(-1)] as [(typeof rows)[number], (typeof rows)[number]]
    const name = first.metadata.labels.alertname ?? first.metadata.fingerprint
    const { status, endReason } = last.metadata
    const end =
      status !== 'resolved'
        ? 'no row shows that it ended'
        : endReason === undefined
          ? `ended at ${formatMinute(last.at)}`
          : `went quiet at ${formatMinute(last.at)} without an end (${describeEndReason(endReason)})`
    // Counts only rows with which the alert begins: most repeats have no row, and an end is not a
    // start.
    const starts = rows.filter(({ metadata }) => metadata.status === 'firing' && metadata.outcome !== 'repeated').length
    const again = starts > 1 ? `, began ${starts} times` : ''
    return say(`Alert ${name} of ${first.metadata.source} arrived at ${formatMinute(first.at)}${again}, and ${end}.`, [
      first.seq,
      last.seq,
    ])
  })
  const seen = [...startedOf(events), ...healthSeen(events)]
  const all = [...seen.slice(0, maxListed), ...said.slice(0, maxListed)]
  const more = said.length + seen.length - all.length
  if (more > 0) all.push(say(`${more} more alerts and resources are in the log.`, []))
  return all.length > 0 ? all : [say('No row shows what was affected.', [])]
}

/** Lists VMs that a plan starts, which did not run before. */
function startedOf(events: IncidentLog): Sentence[] {
  const ends = ofKind(events, 'step_finished')
  const starts = ofKind(events, 'step_started').filter(({ metadata }) => metadata.action === 'start')
  return [...Map.groupBy(starts, ({ metadata }) => metadata.vm)].map(([vm, rows]) => {
    const first = rows[0] as (typeof rows)[number]
    const started = ends.find(
      ({ attempt, metadata: { callId, step, status } }) =>
        status === 'OK' &&
        rows.some((row) => row.attempt === attempt && row.metadata.callId === callId && row.metadata.step === step),
    )
    const end = started ? `started again at ${formatMinute(started.at)}` : 'no row shows that it was started'
    return say(`${vm} was down, and ${end}.`, [first.seq, started?.seq ?? []].flat())
  })
}

/** Reads the health of resources from a read by the agent or by code. */
function healthIn(event: IncidentEvent): (ResourceRef & { health: string })[] {
  if (event.kind === 'looked') {
    const { about, resource: health } = event.metadata
    return health && about.length === 1 ? about.map((thing) => ({ ...thing, health })) : []
  }
  if (event.kind !== 'tool_finished' || !event.metadata.result.ok) return []
  return event.metadata.discovered.flatMap(({ kind, id, health }) => (health ? [{ kind, id, health }] : []))
}

/** Lists resources that a read found unhealthy, with their health then and in the last read. */
function healthSeen(events: IncidentLog): Sentence[] {
  const seen = new Map<
    string,
    { name: string; ill: [health: string, seq: number]; last: [health: string, seq: number] }
  >()
  for (const event of events)
    for (const thing of healthIn(event)) {
      const known = seen.get(resourceKey(thing))
      const last: [string, number] = [thing.health, event.seq]
      if (known) known.last = last
      else if (thing.health !== 'nominal' && thing.health !== 'unknown')
        seen.set(resourceKey(thing), { name: nameResource(thing), ill: last, last })
    }
  return [...seen.values()].map(({ name, ill: [health, seq], last: [now, lastSeq] }) => {
    const then = seq === lastSeq ? '' : now === health ? ', also at the last check' : `, and ${now} at the last check`
    return say(`${name} was ${health}${then}.`, [seq, lastSeq])
  })
}

/**
 * Describes each possible cause and its state. The section `done` describes the repair of a cause.
 */
export function causeOf(incident: PostmortemAbout, events: IncidentLog): Sentence[] {
  const causes = foldHypotheses(events, incident.attempt).filter(({ state }) => state !== 'proposed')
  const said = causes.map(({ state, text, seq, supports, refutes }) => {
    const quotes = state === 'refuted' ? refutes : supports
    return say(`${state === 'refuted' ? 'Ruled out' : 'Quoted for'}: ${text}`, [
      seq,
      ...quotes.map((quote) => quote.seq),
    ])
  })
  const ending = events.findLast(isEnding)
  if (ending?.kind === 'resolved') {
    if (!causes.some(({ state }) => state === 'supported'))
      said.push(
        say(`No row is quoted for the cause. The ending says: ${plainWords(ending.metadata.resolution)}`, [ending.seq]),
      )
    for (const claim of ending.metadata.claims)
      said.push(say(`${claim.text}${isUnshown(claim) ? ` (${notShown})` : ''}`, rowsOf(claim)))
  }
  if (ending?.kind === 'escalated') said.push(say(plainWords(ending.metadata.reason), [ending.seq]))
  return said.length > 0 ? said : [say('No row shows the cause.', [])]
}

/**
 * Lists each attempt with its ending, its writes and their verification, and the actions of people.
 */
export function doneOf(incident: PostmortemAbout, events: IncidentLog): Sentence[] {
  const attempts = [...Map.groupBy(events, ({ attempt }) => attempt)].sort(([a], [b]) => a - b)
  const said = attempts.flatMap(([attempt, own]) => {
    const began = own.find(({ kind }) => kind === 'claimed')
    const ending = own.findLast(isEnding)
    const model = ofKind(own, 'model_answered')[0]?.metadata.model
    const turns = `${formatCount(ofKind(own, 'model_answered').length, 'turn')}${model ? ` of ${model}` : ''}`
    const isAtWork = !ending && incident.closedAt === null && attempt === incident.attempt
    const how = ending ? describeEnding(ending) : isAtWork ? 'At work' : 'Ended, but no row shows how'
    const rows = [began?.seq ?? [], ending?.seq ?? []].flat()
    return [
      ...(attempt > 0 && (began || ending) ? [say(`${how}, after ${turns}.`, rows, attempt)] : []),
      ...(ending?.kind === 'resolved' ? [say(plainWords(ending.metadata.resolution), [ending.seq], attempt)] : []),
      ...writesOf(own).map((write) => tellWrite(write, events)),
      ...own.flatMap(tellPerson),
    ]
  })
  return said.length > 0 ? said : [say('Nothing was changed: only alerts arrived.', [])]
}

function tellWrite(
  { metadata: { callId, tool, targets, approvalId }, attempt, seq }: IncidentEvent<'tool_started'>,
  events: IncidentLog,
): Sentence {
  const isOwn = (event: { attempt: number; metadata: { callId: string } }) =>
    event.attempt === attempt && event.metadata.callId === callId
  const finished = ofKind(events, 'tool_finished').find(isOwn)
  const proved = ofKind(events, 'verification').findLast(isOwn)
  const what = `${tool} on ${targets.map(resourceKey).join(', ') || 'nothing named'}`
  const ended = finished ? withSpaces(finished.metadata.outcome) : 'no row shows the end'
  const proof = proved
    ? `${formatVerification(proved.metadata.outcome)}${proved.metadata.observed && `: ${proved.metadata.observed}`}`
    : 'never verified'
  const approved = approvalId === null ? '' : ', approved by a person'
  return say(`${what}${approved}: ${ended}. ${proof}.`, [seq, finished?.seq ?? [], proved?.seq ?? []].flat(), attempt)
}

/** Describes a row that a person wrote, except a decision, which another function lists. */
function tellPerson(event: IncidentEvent): Sentence[] {
  if (!event.actor.startsWith('user:') || !['commented', 'noted'].includes(event.kind)) return []
  return [say(`${nameOf(event.actor)}: ${event.detail}`, [event.seq], event.attempt)]
}

/** Lists refused calls by tool and reason, and questions that people did not approve. */
export function refusedOf(events: IncidentLog): Sentence[] {
  const refused = ofKind(events, 'call_judged').filter(({ metadata }) => metadata.verdict === 'refuse')
  const calls = [...Map.groupBy(refused, ({ metadata }) => `${metadata.tool} ${metadata.code}`).values()].map(
    (rows) => {
      const { tool, code, reason } = (rows[0] as (typeof rows)[number]).metadata
      const times = rows.length > 1 ? `, ${rows.length} times` : ''
      return say(
        `The rules refused ${tool}${times} (${code}): ${reason}.`,
        rows.slice(0, maxListed).map(({ seq }) => seq),
      )
    },
  )
  const people = events.flatMap((event) => {
    if (event.kind !== 'approval_decided' && event.kind !== 'approval_expired' && event.kind !== 'approval_withdrawn')
      return []
    const question = questionOf(events, event)
    const what = sayAsked(question)
    const rows = [question?.seq ?? [], event.seq].flat()
    if (event.kind === 'approval_expired') return [say(`Nobody decided in time about: ${what}.`, rows)]
    if (event.kind === 'approval_withdrawn') return [say(`Withdrawn before a decision: ${what}.`, rows)]
    if (event.metadata.decision !== 'deny') return []
    return [say(`${nameOf(event.actor)} denied: ${what} (${event.metadata.reason ?? 'no reason given'}).`, rows)]
  })
  const all = [...calls, ...people]
  return all.length > 0 ? all.slice(0, 2 * maxListed) : [say('Nothing was refused.', [])]
}

/** Lists questions about the incident that its rows leave open. */
export function questionsOf(incident: PostmortemAbout, events: IncidentLog): Sentence[] {
  const ending = events.findLast(isEnding)
  const newest = new Map(
    ofKind(events, 'verification').map((event) => [`${event.attempt} ${event.metadata.callId}`, event]),
  )
  const unproved = [...newest.values()].filter(({ metadata }) => metadata.outcome !== 'held')
  const last = ofKind(events, 'alert_received').at(-1)
  const unshown = ending && 'unshown' in ending.metadata ? (ending.metadata.unshown ?? []) : []
  const said = [
    ...(incident.closedAt === null ? [say('The incident is not closed.', [events.at(-1)?.seq ?? []].flat())] : []),
    ...(incident.alerts.firing > 0
      ? [
          say(
            `${capitalize(formatCount(incident.alerts.firing, 'alert'))} still fire${incident.alerts.firing === 1 ? 's' : ''}.`,
            [last?.seq ?? []].flat(),
          ),
        ]
      : []),
    ...unproved.map(({ metadata: { tool, targets, outcome }, seq }) =>
      say(
        `Did ${tool} on ${targets.map(resourceKey).join(', ') || 'nothing named'} work? ${formatVerification(outcome)}.`,
        [seq],
      ),
    ),
    ...foldHypotheses(events, incident.attempt)
      .filter(({ state }) => state === 'proposed')
      .map(({ text, seq }) => say(`Proposed, with no row for or against it: ${text}`, [seq])),
    ...unshown.map(({ text, why }) => say(`No row shows "${text}" (${why}).`, [ending?.seq ?? []].flat())),
    ...ofKind(events, 'capability_gap').map(({ metadata, seq }) =>
      say(`The agent lacked a tool: ${metadata.description}`, [seq]),
    ),
    ...ofKind(events, 'budget_ended').map(({ metadata: { budget, used, limit }, seq, attempt }) =>
      say(`Attempt ${attempt} was ended by its limit of ${budget}: ${used} of ${limit}.`, [seq]),
    ),
    ...(ending &&
    'certainty' in ending.metadata &&
    ending.metadata.certainty &&
    ending.metadata.certainty !== 'confirmed'
      ? [say(`The cause is ${ending.metadata.certainty}, not confirmed.`, [ending.seq])]
      : []),
    ...(ending?.kind === 'escalated' && ending.metadata.report
      ? [say(`Next step: ${ending.metadata.report.nextStep}`, [ending.seq])]
      : []),
  ]
  return said.length > 0 ? said.slice(0, 2 * maxListed) : [say('No question is open.', [])]
}
