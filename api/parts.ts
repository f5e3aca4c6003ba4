import { refusedLately } from '../db/alerts/refused-bodies.ts'
import { waitingBodies } from '../db/alerts/waiting-bodies.ts'
import { lookAtOnCall, type OnCallState } from '../db/approvals/on-call.ts'
import { modelHealth } from '../db/current-counts.ts'
import { databaseTrouble, type Trouble } from '../db/database-state.ts'
import { findNeglected, type Neglected } from '../db/incidents/queue-place.ts'
import { type DeviceConnection, listConnections } from '../db/inventory/device-connections.ts'
import { type DeviceRow, usableDevices } from '../db/inventory/devices.ts'
import { type Spend, spendNow } from '../db/models/spend.ts'
import { countUntold, type GivenUp, givenUpLately } from '../db/outbox/given-up.ts'
import { findIdleQueues, type IdleQueues } from '../db/outbox/idle-queues.ts'
import { type IdleBudget, whyBudgetIsIdle } from '../db/outbox/wake-budget.ts'
import { lateRestoration, type Restoration } from '../db/restorations.ts'
import { retentionIsLate } from '../db/retention/preview.ts'
import type { Scope } from '../db/scope.ts'
import { readSitePolicies } from '../db/site-policies.ts'
import { unconfirmedPairs } from '../db/trust/levels.ts'
import { standingStops } from '../db/trust/stops.ts'
import { describeRefusedBody, describeWaiting, type RefusedBody, type WaitingBodies } from '../domain/alert-body.ts'
import { type DutyName, duties } from '../domain/duty.ts'
import { capitalize, formatCount, formatList, formatMinute, formatSpan } from '../domain/format.ts'
import { inertText } from '../domain/inert-text.ts'
import { formatDollars } from '../domain/price.ts'
import type { KnowledgeList } from '../domain/runbook.ts'
import { describeSitePolicy, type SitePolicyState } from '../domain/site-policy-state.ts'
import type { SourceHealth } from '../domain/source.ts'
import type { StatusPart } from '../domain/status.ts'
import { findSandboxLack, sandboxRemedy } from '../domain/status-words.ts'
import { queueScheduleId } from '../domain/step-key.ts'
import { describeStop, type KindStop, nameScope } from '../domain/stop.ts'
import type { TrustPair } from '../domain/trust.ts'
import type { QueueState } from '../effects/runs.ts'
import { describeKnowledge } from '../knowledge/knowledge.ts'
import type { ApiDeps } from './deps.ts'

const askWithinMs = 1_500
/** The worker's note at the Schedule where the agent is off. */
export const agentOffNote = 'AGENT_ENABLED is false'
/**
 * After this long without an answer the model's state is unknown: nobody asks it while nothing
 * happens.
 */
const answeredLatelyMs = 900_000
/** Rounds begin every hour, and one over a backlog of years takes some. */
const lateHours = 24
/** Hours after a restore in which people are reminded of what it lacks. */
const restoredHours = 24

/** What the parts of one duty are like. Without a remedy that of the duty holds. */
type Look = { name?: string; status: StatusPart['status']; detail: string; remedy?: string }

export type PartFacts = {
  trouble: Trouble | null
  isReachable: boolean
  queue: QueueState | null
  neglected: Neglected | null
  platform: { stale: boolean } | null
  model: Awaited<ReturnType<typeof modelHealth>>
  knowledge: KnowledgeList
  sitePolicy: SitePolicyState
  waiting: WaitingBodies
  refused: RefusedBody[]
  givenUp: GivenUp[]
  /** Messages of the last hour that reached nobody, also by no other way. */
  untold: number
  idle: IdleQueues | null
  spend: Spend
  /** Since when nothing went through what is old to its end. */
  retentionLateSince: string | null
  restored: Restoration | null
  onCall: OnCallState
  /** Why the budget of wakes holds nothing back. */
  idleBudget: IdleBudget | null
  /** Pairs that an older version ran unasked. */
  unconfirmed: TrustPair[]
  /** Kinds of write that people stopped. */
  stops: KindStop[]
  devices: (Pick<DeviceRow, 'id' | 'health' | 'healthProblem'> & { connection?: DeviceConnection | 'listens' | null })[]
}

/**
 * Looks at everything with a duty; each look has a limit, and the database's is that of its
 * statements.
 */
export async function lookAtParts(scope: Scope, deps: ApiDeps): Promise<PartFacts> {
  const { db, platform, runs, state } = deps
  const [
    trouble,
    isReachable,
    queue,
    neglected,
    fresh,
    model,
    waiting,
    refused,
    devices,
    messages,
    spend,
    retentionLateSince,
    restored,
    onCall,
    idleBudget,
    unconfirmed,
    sitePolicy,
    stops,
  ] = await Promise.all([
    databaseTrouble(db),
    runs.isReachable(askWithinMs),
    runs.queue?.(askWithinMs) ?? null,
    findNeglected(scope, deps.environment),
    platform ? state.refresh() : null,
    modelHealth(db),
    waitingBodies(db),
    refusedLately(db),
    devicesReached(db),
    lookAtOutbox(db),
    spendNow(db),
    retentionIsLate(db, lateHours),
    lateRestoration(db, restoredHours),
    lookAtOnCall(scope),
    whyBudgetIsIdle(db),
    unconfirmedPairs(scope),
    readSitePolicies(db),
    standingStops(db),
  ])
  const knowledge = deps.knowledge.list()
  const found = { trouble, isReachable, queue, neglected, platform: fresh, model, knowledge, waiting, refused }
  const asking = { onCall, idleBudget, unconfirmed, sitePolicy, stops }
  return { ...found, ...messages, devices, spend, retentionLateSince, restored, ...asking }
}

/** Devices that can be asked, as far as rows tell, each with the way to it. */
async function devicesReached(db: ApiDeps['db']): Promise<PartFacts['devices']> {
  const connections = await listConnections(db)
  const devices = await usableDevices(db)
  return devices.map((device) => ({
    ...device,
    connection: device.url === null ? (connections.get(device.id) ?? null) : ('listens' as const),
  }))
}

async function lookAtOutbox(db: ApiDeps['db']): Promise<Pick<PartFacts, 'givenUp' | 'untold' | 'idle'>> {
  const [givenUp, untold, idle] = await Promise.all([givenUpLately(db), countUntold(db), findIdleQueues(db)])
  return { givenUp, untold, idle }
}

const looks: Record<DutyName, (facts: PartFacts) => Look[]> = {
  database: ({ trouble }) => [
    trouble
      ? { status: 'failed', detail: trouble.what, remedy: trouble.remedy }
      : { status: 'ok', detail: 'It answers, and takes writes.' },
  ],
  Temporal: ({ isReachable }) => [
    isReachable
      ? { status: 'ok', detail: 'It answers.' }
      : { status: 'failed', detail: 'It does not answer. Alerts are accepted and wait.' },
  ],
  worker: ({ queue }) => [lookAtWorkers(queue)],
  queue: ({ queue, neglected }) => [lookAtQueue(queue, neglected)],
  platform: ({ platform }) => [lookAtPlatform(platform)],
  model: ({ model }) => [lookAtModel(model)],
  'large bodies': ({ waiting }) => [lookAtBodies(waiting)],
  messages: ({ givenUp, idle }) => [lookAtMessages(givenUp, idle)],
  budget: ({ spend }) => lookAtBudgets(spend),
  alerts: ({ refused }) => [lookAtRefused(refused)],
  retention: ({ retentionLateSince }) => [
    retentionLateSince === null
      ? { status: 'ok', detail: 'Every hour a round removes old rows.' }
      : { status: 'failed', detail: `No round over old rows has ended since ${formatMinute(retentionLateSince)}.` },
  ],
  questions: ({ onCall, idleBudget }) => [
    lookAtQuestions(onCall),
    ...(idleBudget === null ? [] : [lookAtBudget(idleBudget)]),
  ],
  restore: ({ restored }) => (restored === null ? [] : [lookAtRestored(restored)]),
  trust: ({ unconfirmed, stops }) => [
    ...(unconfirmed.length === 0 ? [] : [lookAtUnconfirmed(unconfirmed)]),
    ...(stops.length === 0 ? [] : [lookAtStops(stops)]),
  ],
  knowledge: ({ knowledge }) => [lookAtKnowledge(knowledge)],
  'site policy': ({ sitePolicy }) => lookAtSitePolicy(sitePolicy),
  devices: ({ devices }) => lookAtDevices(devices),
}

/** Every part as people read it, by the list of duties. */
export function partsOf(facts: PartFacts): StatusPart[] {
  return (Object.keys(duties) as DutyName[]).flatMap((duty) =>
    looks[duty](facts).map(({ name = duty, status, detail, remedy = duties[duty].remedy }) => ({
      name,
      status,
      detail,
      remedy: status === 'failed' ? remedy : null,
    })),
  )
}

function lookAtQuestions({ isEmpty, useless }: OnCallState): Look {
  if (useless.length > 0) return { status: 'failed', detail: `Whom to ask first: ${formatList(useless)}.` }
  return isEmpty
    ? { status: 'off', detail: 'No list says whom to ask first, so everybody who may decide is told at once.' }
    : { status: 'ok', detail: 'A list says whom to ask first, and whom after 5 and 10 minutes.' }
}

const idleBudgets: Record<IdleBudget, { why: string; remedy: string }> = {
  'the card is off': {
    why: 'morning.card is off',
    remedy: '"nightshift config set morning.card news", or "nightshift config set page.wake_budget off"',
  },
  // `--triggers` takes the whole list: given this alone, a destination gets no question.
  'nobody takes the card': {
    why: 'no way out takes the morning card',
    remedy:
      'set webhook.news, or add morning to what a destination takes already ("nightshift destinations list" shows it, and --triggers takes the whole list); docs/how-to/nights.md',
  },
}

function lookAtBudget(idle: IdleBudget): Look {
  const { why, remedy } = idleBudgets[idle]
  const detail = `page.wake_budget is set, but every question still wakes people: ${why}.`
  return { name: 'wake budget', status: 'failed', detail, remedy }
}

/** Says which hours a restored database lacks, while somebody still has to go through them. */
function lookAtRestored({ backupAt, restoredAt }: Restoration): Look {
  const lost = formatSpan(Date.parse(restoredAt) - Date.parse(backupAt))
  const detail = `The backup of ${formatMinute(backupAt)} was restored at ${formatMinute(restoredAt)}. Decisions, writes and alerts of the ${lost} between are missing from it.`
  return { status: 'failed', detail }
}

/** Names the pairs that nobody has looked at since the upgrade. */
function lookAtUnconfirmed(pairs: readonly TrustPair[]): Look {
  const named = formatList(pairs.slice(0, maxNamedPairs).map(({ type, tool }) => `${tool} in ${type}`))
  const more = pairs.length > maxNamedPairs ? ` and ${pairs.length - maxNamedPairs} more` : ''
  return {
    status: 'failed',
    detail: `An older version ran these without asking, and they still run so: ${named}${more}.`,
  }
}

const maxNamedPairs = 10

/** Nothing is lost where people stopped something, and everybody should know. */
function lookAtStops(stops: readonly KindStop[]): Look {
  const said = stops.slice(0, maxNamedPairs).map((stop) => `${nameScope(stop)} is ${describeStop(stop)}`)
  const more = stops.length > maxNamedPairs ? `; and ${stops.length - maxNamedPairs} more` : ''
  return { name: 'trust of the stopped', status: 'off', detail: `${capitalize(said.join('; '))}${more}` }
}

function lookAtPlatform(fresh: { stale: boolean } | null): Look {
  if (fresh === null) {
    const detail = 'None is configured (PLATFORM_URL or PROXMOX_URL). Only hosts with an agent, and jobs, can repair.'
    return { status: 'off', detail }
  }
  if (!fresh.stale) return { status: 'ok', detail: 'It answers.' }
  return { status: 'failed', detail: 'It does not answer. Health is unknown, and writes are refused.' }
}

const schedule = `--schedule-id ${queueScheduleId}`

/** Does the queue tick, and is what waits taken up? It can be stopped at Temporal. */
function lookAtQueue(queue: QueueState | null, neglected: Neglected | null): Look {
  if (queue === null) return { status: 'unknown', detail: 'Temporal knows, but did not answer.' }
  const { schedule: found, missingAttributes } = queue
  if (found === null) {
    const detail = 'Its Schedule is missing in Temporal. A running worker makes it again within a minute.'
    return { status: 'failed', detail, remedy: 'start a worker, or see its log: it makes the Schedule again' }
  }
  if (found.paused) {
    // The worker's own words where the agent is off.
    return found.note === agentOffNote
      ? { status: 'off', detail: 'The agent is off (AGENT_ENABLED), so nothing is investigated.' }
      : {
          status: 'failed',
          detail: 'Somebody paused its Schedule in Temporal, so nothing is investigated.',
          remedy: `temporal schedule toggle ${schedule} --unpause --reason "work goes on"`,
        }
  }
  const lateMs = Math.max(120_000, 3_000 * (found.everySeconds ?? 60))
  if (found.everySeconds === null || found.nextAt === null || isLate(found.lastAt, lateMs)) {
    const detail = 'Its Schedule does not tick. Somebody edited it in Temporal, or it cannot run.'
    return { status: 'failed', detail, remedy: `temporal schedule delete ${schedule}: a worker makes it again` }
  }
  if (missingAttributes.length > 0)
    return { status: 'failed', detail: `Temporal does not know ${missingAttributes.join(', ')}, so no run starts.` }
  if (neglected) {
    const detail = `It ticks, but ${neglected.incidentId} has waited for ${neglected.minutes} min although a slot is free.`
    return {
      status: 'failed',
      detail,
      remedy: `see the log of the worker: "nightshift incidents show ${neglected.incidentId}"`,
    }
  }
  return { status: 'ok', detail: 'It ticks.' }
}

function isLate(at: string | null, byMs: number): boolean {
  return at !== null && Date.now() - Date.parse(at) > byMs
}

function lookAtWorkers(queue: QueueState | null): Look {
  if (queue === null) return { status: 'unknown', detail: 'Temporal knows, but did not answer.' }
  const { length } = queue.workers
  if (length === 0) return { status: 'failed', detail: 'None asks for work: incidents wait.' }
  return { status: 'ok', detail: length === 1 ? 'One asks for work.' : `${length} ask for work.` }
}

function lookAtModel({ last, lastHour, lastFailure }: PartFacts['model']): Look {
  const { answers, failures } = lastHour
  // A single failure is no loss yet, and a model that answered since is back.
  const isFailing = lastFailure !== null && (last === null || last.at < lastFailure.at)
  if (isFailing && failures > answers && failures > 1) {
    const said = ` The last: ${inertText(lastFailure.detail, 200)}.`
    return { status: 'failed', detail: `${failures} of ${answers + failures} requests failed in the last hour.${said}` }
  }
  const isLately = last !== null && Date.now() - Date.parse(last.at) < answeredLatelyMs
  return isLately
    ? { status: 'ok', detail: 'It answered recently.' }
    : { status: 'unknown', detail: 'Nobody asked it recently.' }
}

/** A file that was not taken makes investigations poorer, and stops nothing. */
function lookAtKnowledge(known: KnowledgeList): Look {
  if (known.items.length === 0 && known.places.length === 0)
    return { status: 'unknown', detail: 'No runbook is read yet.' }
  const { isWell, detail } = describeKnowledge(known)
  return { status: isWell ? 'ok' : 'failed', detail }
}

/** No line where the site has none. */
function lookAtSitePolicy(state: SitePolicyState): Look[] {
  if (state.inForce === null && state.waiting === null && (state.reading?.faults.length ?? 0) === 0) return []
  const { isWell, detail } = describeSitePolicy(state)
  return [{ status: isWell ? 'ok' : 'failed', detail }]
}

/** Do devices answer, and may looks at them run? No line where there are none. */
function lookAtDevices(devices: PartFacts['devices']): Look[] {
  if (devices.length === 0) return []
  const away = devices.flatMap(({ id, connection = 'listens' }) =>
    connection !== 'listens' && !connection?.isConnected ? [describeAway(id, connection)] : [],
  )
  const silent = devices
    .filter(({ healthProblem, connection = 'listens' }) => {
      const isThere = connection === 'listens' || connection?.isConnected === true
      return healthProblem !== null && isThere
    })
    .map(({ id }) => id)
  const asking = devices.flatMap(({ id, health }) => {
    const lack = findSandboxLack(health)
    return lack === null ? [] : [`${id} (${lack})`]
  })
  const faults = [
    ...(away.length > 0 ? [`These call out but are not connected: ${formatList(away)}.`] : []),
    ...(silent.length > 0 ? [`No answer: ${formatList(silent)}.`] : []),
    ...(asking.length > 0
      ? [`No sandbox confines reads on these, so each read asks a person: ${formatList(asking)}.`]
      : []),
  ]
  const unasked = devices.filter(({ health, healthProblem }) => health === null && healthProblem === null)
  if (faults.length === 0 && unasked.length > 0)
    return [{ status: 'unknown', detail: `Not asked yet: ${formatList(unasked.map(({ id }) => id))}.` }]
  if (faults.length === 0)
    return [{ status: 'ok', detail: `${formatCount(devices.length, 'device')}. Each answers, and confines its reads.` }]
  const more =
    away.length > 0
      ? { remedy: 'see the log of the agent there: nightshift agent' }
      : asking.length > 0
        ? { remedy: sandboxRemedy }
        : {}
  return [{ status: 'failed', detail: inertText(faults.join(' '), 1_000), ...more }]
}

function describeAway(id: string, connection: DeviceConnection | null): string {
  if (connection === null) return `${id} (never yet)`
  return connection.endedAt === null ? id : `${id} (since ${formatMinute(connection.endedAt)})`
}

/** A part takes seconds at most; a body has two hundred. */
const maxIdleSeconds = 120

/** Is what came in whole taken up? */
function lookAtBodies(waiting: WaitingBodies): Look {
  if (waiting.bodies === 0) return { status: 'ok', detail: 'No large body waits.' }
  return { status: waiting.idleSeconds > maxIdleSeconds ? 'failed' : 'ok', detail: describeWaiting(waiting) }
}

/** Is anything refused that a known sender sends? */
function lookAtRefused(refused: readonly RefusedBody[]): Look {
  if (refused.length === 0) return { status: 'ok', detail: 'No body was refused within a day.' }
  return { status: 'failed', detail: refused.map(describeRefusedBody).join(' ') }
}

/** Do messages reach people? */
function lookAtMessages(givenUp: readonly GivenUp[], idle: IdleQueues | null): Look {
  const sentences = givenUp.map(({ destination, count, response }) => {
    const said = `${formatCount(count, 'message')} of the last day did not arrive at ${destination}`
    return `${said}: ${inertText(response, 200)}.`
  })
  if (idle !== null)
    sentences.unshift(
      `${formatCount(idle.messages, 'message')} have waited since ${formatMinute(idle.since)}${describePages(idle)}, and no worker takes them.`,
    )
  if (sentences.length === 0) return { status: 'ok', detail: 'None was given up within a day.' }
  const more = idle === null ? {} : { remedy: duties.worker.remedy }
  return { status: 'failed', detail: sentences.join(' '), ...more }
}

/** Held pages that are due, among those that nobody takes. */
function describePages({ pages, messages }: IdleQueues): string {
  if (pages === 0) return ''
  return pages === messages
    ? ', held pages that are due'
    : `, of them ${formatCount(pages, 'held page')} that ${pages === 1 ? 'is' : 'are'} due`
}

/** A line for each cap that is set. */
function lookAtBudgets(spend: Spend): Look[] {
  return (['day', 'month'] as const).flatMap((period): Look[] => {
    const { dollars, cap } = spend[period]
    if (cap === null) return []
    const detail = `${formatDollars(dollars)} of ${formatDollars(cap)} is spent this ${period} (UTC).`
    const name = `budget of the ${period}`
    if (dollars < cap) return [{ name, status: 'ok', detail }]
    const remedy = `raise agent.budget_${period}: "nightshift config set agent.budget_${period} ${Math.ceil(cap * 2)}"`
    return [{ name, status: 'failed', detail: `${detail} Until it ends, nothing is investigated.`, remedy }]
  })
}

/** A source is no duty: investigations do without it. */
export function sourcePart(
  { name: source, kind }: { name: string; kind: string },
  { state, lastOkAt, lastError, restsUntil }: SourceHealth,
  warning: string | null,
): StatusPart {
  const name = `${source} (${kind})`
  const remedy = null
  if (state === 'unknown')
    return { name, status: 'unknown', detail: 'Nobody asked it since the API process began.', remedy }
  const answered = lastOkAt === null ? null : `answered at ${formatMinute(lastOkAt)}`
  if (state === 'ok' && warning !== null)
    return {
      name,
      status: 'ok',
      detail: `It ${answered}; ${warning}.`,
      remedy: `"nightshift sources rights ${source}" prints the grants`,
    }
  if (state === 'ok') return { name, status: 'ok', detail: `It ${answered}.`, remedy }
  const facts = [lastError ?? 'it did not answer', answered && `it last ${answered}`].filter(Boolean)
  const rest = restsUntil === null ? '' : ` Nightshift leaves it alone until ${restsUntil.slice(11, 19)} UTC.`
  const detail = `${facts.join('; ')}.${rest} Investigations go on without it.`
  return { name, status: 'failed', detail, remedy: `"nightshift sources test ${source}" says more` }
}
