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
/** The note that the worker writes at the queue's Schedule if the agent is off. */
export const agentOffNote = 'AGENT_ENABLED is false'
/**
 * Milliseconds without a response after which the model's state is unknown. Without incidents,
 * nobody queries the model.
 */
const answeredLatelyMs = 900_000
/**
 * Hours without a complete round of retention after which retention is late. Rounds are hourly, and
 * a backlog of years takes several.
 */
const lateHours = 24
/** Hours after a restore for which people are reminded of the missing data. */
const restoredHours = 24

/** The state of a part. If the state has no remedy, the remedy of the part in `duties` is used. */
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
  /** Number of messages of the last hour that reached nobody in any way. */
  untold: number
  idle: IdleQueues | null
  spend: Spend
  /** Since when no round of retention was completed; null if retention is not late. */
  retentionLateSince: string | null
  restored: Restoration | null
  onCall: OnCallState
  /** Why a budget of wakes delays no question; null if it delays some, or if none is set. */
  idleBudget: IdleBudget | null
  /** Pairs that an older version ran automatically and that nobody has confirmed. */
  unconfirmed: TrustPair[]
  /** Kinds of writes that people stopped. */
  stops: KindStop[]
  devices: (Pick<DeviceRow, 'id' | 'health' | 'healthProblem'> & { connection?: DeviceConnection | 'listens' | null })[]
}

/**
 * Checks every part. Each check has a time limit; for the database, the limit of its statements
 * applies.
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

/** Lists devices that can be queried now according to rows, and how each device is reached. */
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
      : { status: 'ok', detail: 'The database answers and accepts writes.' },
  ],
  Temporal: ({ isReachable }) => [
    isReachable
      ? { status: 'ok', detail: 'Temporal answers.' }
      : { status: 'failed', detail: 'Temporal does not answer. Alerts are accepted and wait.' },
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
      ? { status: 'ok', detail: 'Retention runs every hour.' }
      : { status: 'failed', detail: `Retention has not finished a run since ${formatMinute(retentionLateSince)}.` },
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

/** Describes every part for people, in the order of the table `duties`. */
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
  if (useless.length > 0)
    return { status: 'failed', detail: `The list of people to ask first has faults: ${formatList(useless)}.` }
  return isEmpty
    ? { status: 'off', detail: 'No list of people to ask is set, so everybody who may decide is notified at once.' }
    : { status: 'ok', detail: 'A list sets who is asked first, and who is asked after 5 and 10 minutes.' }
}

const idleBudgets: Record<IdleBudget, { why: string; remedy: string }> = {
  'the card is off': {
    why: 'morning.card is off',
    remedy: '"nightshift config set morning.card news", or "nightshift config set page.wake_budget off"',
  },
  // Explains how to add a trigger. `--triggers` needs the complete list: with `morning` alone, a
  // destination would get no requests for approval.
  'nobody takes the card': {
    why: 'no destination gets the morning card',
    remedy:
      'set webhook.news, or add morning to the triggers of a destination ("nightshift destinations list" shows them, and --triggers takes the whole list); docs/how-to/nights.md',
  },
}

function lookAtBudget(idle: IdleBudget): Look {
  const { why, remedy } = idleBudgets[idle]
  const detail = `page.wake_budget is set, but every question still wakes people: ${why}.`
  return { name: 'wake budget', status: 'failed', detail, remedy }
}

/** Names the hours that a restored database lacks, as long as people have to check them. */
function lookAtRestored({ backupAt, restoredAt }: Restoration): Look {
  const lost = formatSpan(Date.parse(restoredAt) - Date.parse(backupAt))
  const detail = `The backup of ${formatMinute(backupAt)} was restored at ${formatMinute(restoredAt)}. Decisions, writes and alerts of the ${lost} between are missing from it.`
  return { status: 'failed', detail }
}

/** Names the pairs that nobody has confirmed since the upgrade. */
function lookAtUnconfirmed(pairs: readonly TrustPair[]): Look {
  const named = formatList(pairs.slice(0, maxNamedPairs).map(({ type, tool }) => `${tool} in ${type}`))
  const more = pairs.length > maxNamedPairs ? ` and ${pairs.length - maxNamedPairs} more` : ''
  return {
    status: 'failed',
    detail: `An older version ran these tools without approval, and they still run without approval: ${named}${more}.`,
  }
}

const maxNamedPairs = 10

/** A stop by people is not a failure, but everybody should know of the stop. */
function lookAtStops(stops: readonly KindStop[]): Look {
  const said = stops.slice(0, maxNamedPairs).map((stop) => `${nameScope(stop)} is ${describeStop(stop)}`)
  const more = stops.length > maxNamedPairs ? `; and ${stops.length - maxNamedPairs} more` : ''
  return { name: 'stopped writes', status: 'off', detail: `${capitalize(said.join('; '))}${more}` }
}

function lookAtPlatform(fresh: { stale: boolean } | null): Look {
  if (fresh === null) {
    const detail = 'No platform is configured (PLATFORM_URL or PROXMOX_URL), so no platform is read or changed.'
    return { status: 'off', detail }
  }
  if (!fresh.stale) return { status: 'ok', detail: 'The platform answers.' }
  return { status: 'failed', detail: 'The platform does not answer. Health is unknown, and writes are refused.' }
}

const schedule = `--schedule-id ${queueScheduleId}`

/**
 * Checks that the queue's Schedule runs and starts waiting incidents. Somebody may have stopped the
 * Schedule at Temporal.
 */
function lookAtQueue(queue: QueueState | null, neglected: Neglected | null): Look {
  if (queue === null) return { status: 'unknown', detail: 'Unknown, because Temporal did not answer.' }
  const { schedule: found, missingAttributes } = queue
  if (found === null) {
    const detail =
      "The queue's Schedule is missing in Temporal. A running worker creates the Schedule again within a minute."
    return {
      status: 'failed',
      detail,
      remedy: "start a worker, which creates the Schedule again, or read the worker's log",
    }
  }
  if (found.paused) {
    // Uses the text of the worker if the agent is off.
    return found.note === agentOffNote
      ? { status: 'off', detail: 'The agent is off (AGENT_ENABLED), so nothing is investigated.' }
      : {
          status: 'failed',
          detail: "Somebody paused the queue's Schedule in Temporal, so nothing is investigated.",
          remedy: `temporal schedule toggle ${schedule} --unpause --reason "work goes on"`,
        }
  }
  const lateMs = Math.max(120_000, 3_000 * (found.everySeconds ?? 60))
  if (found.everySeconds === null || found.nextAt === null || isLate(found.lastAt, lateMs)) {
    const detail =
      "The queue's Schedule does not run. Somebody edited the Schedule in Temporal, or the Schedule cannot run."
    return { status: 'failed', detail, remedy: `temporal schedule delete ${schedule}: a worker creates it again` }
  }
  if (missingAttributes.length > 0)
    return {
      status: 'failed',
      detail: `Temporal lacks the search attributes ${missingAttributes.join(', ')}, so no run starts.`,
    }
  if (neglected) {
    const detail = `The queue's Schedule runs, but ${neglected.incidentId} has waited for ${neglected.minutes} min although a slot is free.`
    return {
      status: 'failed',
      detail,
      remedy: `see the log of the worker: "nightshift incidents show ${neglected.incidentId}"`,
    }
  }
  return { status: 'ok', detail: "The queue's Schedule runs." }
}

function isLate(at: string | null, byMs: number): boolean {
  return at !== null && Date.now() - Date.parse(at) > byMs
}

function lookAtWorkers(queue: QueueState | null): Look {
  if (queue === null) return { status: 'unknown', detail: 'Unknown, because Temporal did not answer.' }
  const { length } = queue.workers
  if (length === 0) return { status: 'failed', detail: 'No worker runs: incidents wait.' }
  return { status: 'ok', detail: length === 1 ? 'One worker runs.' : `${length} workers run.` }
}

function lookAtModel({ last, lastHour, lastFailure }: PartFacts['model']): Look {
  const { answers, failures } = lastHour
  // Leaves out a single failure, and a model that has responded since the failure.
  const isFailing = lastFailure !== null && (last === null || last.at < lastFailure.at)
  if (isFailing && failures > answers && failures > 1) {
    const said = ` The last failure: ${inertText(lastFailure.detail, 200)}.`
    return { status: 'failed', detail: `${failures} of ${answers + failures} requests failed in the last hour.${said}` }
  }
  const isLately = last !== null && Date.now() - Date.parse(last.at) < answeredLatelyMs
  return isLately
    ? { status: 'ok', detail: 'The model answered recently.' }
    : { status: 'unknown', detail: 'No request was sent recently.' }
}

/** Describes the runbooks. A refused file does not stop investigations, but makes them worse. */
function lookAtKnowledge(known: KnowledgeList): Look {
  if (known.items.length === 0 && known.places.length === 0)
    return { status: 'unknown', detail: 'No runbook is read yet.' }
  const { isWell, detail } = describeKnowledge(known)
  return { status: isWell ? 'ok' : 'failed', detail }
}

/** Describes the configured policy. Returns no line if there is no policy. */
function lookAtSitePolicy(state: SitePolicyState): Look[] {
  if (state.inForce === null && state.waiting === null && (state.reading?.faults.length ?? 0) === 0) return []
  const { isWell, detail } = describeSitePolicy(state)
  return [{ status: isWell ? 'ok' : 'failed', detail }]
}

/** Checks that devices respond, and may run reads. Returns no line if there are no devices. */
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
    ...(away.length > 0 ? [`Not connected: ${formatList(away)}.`] : []),
    ...(silent.length > 0 ? [`These devices do not answer: ${formatList(silent)}.`] : []),
    ...(asking.length > 0
      ? [`No sandbox confines reads on these devices, so each read needs approval: ${formatList(asking)}.`]
      : []),
  ]
  const unasked = devices.filter(({ health, healthProblem }) => health === null && healthProblem === null)
  if (faults.length === 0 && unasked.length > 0)
    return [{ status: 'unknown', detail: `Health not read yet: ${formatList(unasked.map(({ id }) => id))}.` }]
  if (faults.length === 0)
    return [
      { status: 'ok', detail: `${formatCount(devices.length, 'device')}. All devices answer and confine their reads.` },
    ]
  const more =
    away.length > 0
      ? { remedy: 'see the log of the agent (nightshift agent) on the device' }
      : asking.length > 0
        ? { remedy: sandboxRemedy }
        : {}
  return [{ status: 'failed', detail: inertText(faults.join(' '), 1_000), ...more }]
}

function describeAway(id: string, connection: DeviceConnection | null): string {
  if (connection === null) return `${id} (never yet)`
  return connection.endedAt === null ? id : `${id} (since ${formatMinute(connection.endedAt)})`
}

/** Seconds without progress until bodies count as stuck. A part of a body takes seconds at most. */
const maxIdleSeconds = 120

/** Checks that stored alert bodies are processed. */
function lookAtBodies(waiting: WaitingBodies): Look {
  if (waiting.bodies === 0) return { status: 'ok', detail: 'No large alert body waits.' }
  return { status: waiting.idleSeconds > maxIdleSeconds ? 'failed' : 'ok', detail: describeWaiting(waiting) }
}

/** Reports refused alert bodies of known senders. */
function lookAtRefused(refused: readonly RefusedBody[]): Look {
  if (refused.length === 0) return { status: 'ok', detail: 'No alert body was refused in the last day.' }
  return { status: 'failed', detail: refused.map(describeRefusedBody).join(' ') }
}

/** Checks that messages reach people. */
function lookAtMessages(givenUp: readonly GivenUp[], idle: IdleQueues | null): Look {
  const sentences = givenUp.map(({ destination, count, response }) => {
    const said = `${formatCount(count, 'message')} of the last day did not arrive at ${destination}`
    return `${said}: ${inertText(response, 200)}.`
  })
  if (idle !== null)
    sentences.unshift(
      `${formatCount(idle.messages, 'message')} have waited since ${formatMinute(idle.since)}${describePages(idle)}, and no worker takes them.`,
    )
  if (sentences.length === 0) return { status: 'ok', detail: 'No message was given up in the last day.' }
  const more = idle === null ? {} : { remedy: duties.worker.remedy }
  return { status: 'failed', detail: sentences.join(' '), ...more }
}

/** Describes delayed pages that are due but that no process sends. */
function describePages({ pages, messages }: IdleQueues): string {
  if (pages === 0) return ''
  return pages === messages
    ? ', held pages that are due'
    : `, of them ${formatCount(pages, 'held page')} that ${pages === 1 ? 'is' : 'are'} due`
}

/** Makes a line for each budget that is set. */
function lookAtBudgets(spend: Spend): Look[] {
  return (['day', 'month'] as const).flatMap((period): Look[] => {
    const { dollars, cap } = spend[period]
    if (cap === null) return []
    const detail = `${formatDollars(dollars)} of ${formatDollars(cap)} is spent this ${period} (UTC).`
    const name = `budget of the ${period}`
    if (dollars < cap) return [{ name, status: 'ok', detail }]
    const remedy = `raise agent.budget_${period}: "nightshift config set agent.budget_${period} ${Math.ceil(cap * 2)}"`
    return [{ name, status: 'failed', detail: `${detail} Until the ${period} ends, nothing is investigated.`, remedy }]
  })
}

/** Describes a source, which is not vital because investigations work without it. */
export function sourcePart(
  { name: source, kind }: { name: string; kind: string },
  { state, lastOkAt, lastError, restsUntil }: SourceHealth,
  warning: string | null,
): StatusPart {
  const name = `${source} (${kind})`
  const remedy = null
  if (state === 'unknown')
    return { name, status: 'unknown', detail: 'No query was sent since the API process began.', remedy }
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
  const rest = restsUntil === null ? '' : ` Nightshift sends the source no query until ${restsUntil.slice(11, 19)} UTC.`
  const detail = `${facts.join('; ')}.${rest} Investigations continue without it.`
  return { name, status: 'failed', detail, remedy: `"nightshift sources test ${source}" shows more` }
}
