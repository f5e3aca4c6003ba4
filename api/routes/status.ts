import { backlogOf, modelHealth } from '../../db/current-counts.ts'
import { databaseTrouble } from '../../db/database-state.ts'
import { listSources } from '../../db/inventory/sources.ts'
import { lastProfile, modelProfile } from '../../db/models/profiles.ts'
import { countSlots } from '../../db/models/slots.ts'
import { type Spend, spendNow } from '../../db/models/spend.ts'
import { givenUpLately } from '../../db/outbox/given-up.ts'
import type { Scope } from '../../db/scope.ts'
import { readSettings } from '../../db/settings.ts'
import { shapeInWords } from '../../domain/chat.ts'
import { formatMinute } from '../../domain/format.ts'
import { inertText } from '../../domain/inert-text.ts'
import { warnOfModel } from '../../domain/passport.ts'
import { formatDollars } from '../../domain/price.ts'
import type { KnowledgeList } from '../../domain/runbook.ts'
import type { SourceHealth } from '../../domain/source.ts'
import { type Status, type StatusPart, status } from '../../domain/status.ts'
import type { QueueState } from '../../effects/runs.ts'
import { describeKnowledge } from '../../knowledge/knowledge.ts'
import { healthOf } from '../../sources/ask.ts'
import type { ApiDeps } from '../deps.ts'
import { endpoint } from '../http/endpoint.ts'
import { abilitiesExample, gradeOfModel } from './model.ts'

const askWithinMs = 1_500
/** The worker's note at the Schedule where the agent is off. */
const agentOffNote = 'AGENT_ENABLED is false'
/** After this long without an answer, the model's state is unknown: it is not asked while nothing happens. */
const answeredLatelyMs = 900_000

const statusExample: Status = {
  parts: [{ name: 'database', status: 'ok', detail: 'It answers.' }],
  sources: [{ name: 'main (prometheus)', status: 'ok', detail: 'It answered at 2026-11-21 01:46 UTC.' }],
  paused: false,
  backlog: {
    waiting: 1,
    investigating: 2,
    awaitingApproval: 1,
    deliveries: 0,
    failedDeliveries: 0,
    oldestWaitingAt: '2026-11-21T01:45:40.120000Z',
  },
  schedule: {
    paused: false,
    note: 'agent enabled',
    everySeconds: 60,
    lastAt: '2026-11-21T01:45:00.000Z',
    nextAt: '2026-11-21T01:46:00.000Z',
  },
  model: {
    model: 'Qwen/Qwen2.5-72B-Instruct',
    lastAnswerAt: '2026-11-21T01:45:44.530000Z',
    lastDurationMs: 2_300,
    answersLastHour: 12,
    failuresLastHour: 0,
    asking: 2,
    waiting: 0,
    windowTokens: 32_768,
    windowSource: 'max_model_len of /v1/models',
    learned: [],
    abilities: abilitiesExample,
    grade: {
      server: 'http://10.0.0.7:8000/v1',
      model: 'Qwen/Qwen2.5-72B-Instruct',
      passport: null,
      warning: warnOfModel('Qwen/Qwen2.5-72B-Instruct', null),
    },
  },
}

export const statusRoutes = endpoint({
  method: 'get',
  path: '/status',
  permission: 'read',
  tag: 'health',
  summary: 'How the parts are, what waits, when the queue ticks',
  description: 'Reports on everything else also while Temporal or the platform cannot be reached.',
  answer: status,
  example: statusExample,
  run: ({ scope }, deps) => readStatus(scope, deps),
})

/** How everything is just now. Each look has its own limit; the database's is that of its statements. */
export async function readStatus(scope: Scope, deps: ApiDeps): Promise<Status> {
  const { db, platform, runs, state } = deps
  const [backlog, model, slots, profile, settings, queue, isReachable, fresh, sources, spend, givenUp, trouble] =
    await Promise.all([
      backlogOf(scope),
      modelHealth(db),
      countSlots(db),
      deps.modelInUse ? modelProfile(db, deps.modelInUse) : lastProfile(db),
      readSettings(db, deps.environment),
      runs.queue?.(askWithinMs) ?? null,
      runs.isReachable(askWithinMs),
      platform ? state.refresh() : null,
      listSources(db),
      spendNow(db),
      givenUpLately(db),
      databaseTrouble(db),
    ])
  const workers = queue?.workers.length ?? 0
  const lately = model.last ? Date.now() - Date.parse(model.last.at) < answeredLatelyMs : false
  return {
    parts: [
      { name: 'database', status: trouble ? 'failed' : 'ok', detail: trouble ?? 'It answers, and takes writes.' },
      isReachable
        ? { name: 'Temporal', status: 'ok', detail: 'It answers.' }
        : { name: 'Temporal', status: 'failed', detail: 'It does not answer: alerts are taken in and wait.' },
      workerPart(queue === null, workers),
      queuePart(queue),
      platformPart(fresh),
      modelPart(model, lately),
      knowledgePart(deps.knowledge.list()),
      messagePart(givenUp),
      ...budgetParts(spend),
    ],
    sources: sources.map((each) => sourcePart(each.name, each.kind, healthOf(deps.sources, each, Date.now()))),
    paused: settings.value<boolean>('agent.paused'),
    backlog,
    schedule: queue?.schedule ?? null,
    model: {
      model: model.last?.model ?? null,
      lastAnswerAt: model.last?.at ?? null,
      lastDurationMs: model.last?.durationMs ?? null,
      answersLastHour: model.lastHour.answers,
      failuresLastHour: model.lastHour.failures,
      asking: slots.reduce((sum, { held }) => sum + held, 0),
      waiting: slots.reduce((sum, { waiting }) => sum + waiting, 0),
      windowTokens: profile?.windowTokens ?? null,
      windowSource: profile?.windowSource ?? null,
      learned: profile ? shapeInWords(profile.shape) : [],
      abilities: profile?.abilities ?? null,
      grade: await gradeOfModel(deps, queue?.schedule?.note === agentOffNote),
    },
  }
}

function platformPart(fresh: { stale: boolean } | null): StatusPart {
  const name = 'platform'
  if (fresh === null) {
    const detail = 'None is configured (PLATFORM_URL or PROXMOX_URL): nothing can be repaired.'
    return { name, status: 'off', detail }
  }
  if (!fresh.stale) return { name, status: 'ok', detail: 'It answers.' }
  return { name, status: 'failed', detail: 'It does not answer: health is unknown, writes are refused.' }
}

/** Does the queue tick? It can be stopped at Temporal, so this page must show that. */
function queuePart(queue: QueueState | null): StatusPart {
  const name = 'queue'
  if (queue === null) return { name, status: 'unknown', detail: 'Temporal, which knows, could not be asked.' }
  const { schedule } = queue
  if (schedule === null) {
    const detail = 'Its Schedule is gone from Temporal: a worker makes it again within a minute of its work.'
    return { name, status: 'failed', detail }
  }
  if (schedule.paused) {
    // The worker's own words where the agent is off.
    return schedule.note === agentOffNote
      ? { name, status: 'off', detail: 'The agent is off (AGENT_ENABLED): nothing is taken up.' }
      : { name, status: 'failed', detail: 'Somebody paused its Schedule in Temporal: nothing is taken up.' }
  }
  const lateMs = Math.max(120_000, 3_000 * (schedule.everySeconds ?? 60))
  if (schedule.everySeconds === null || schedule.nextAt === null || isLate(schedule.lastAt, lateMs)) {
    return { name, status: 'failed', detail: 'Its Schedule does not tick: it was edited in Temporal, or cannot run.' }
  }
  return { name, status: 'ok', detail: 'It ticks.' }
}

function isLate(at: string | null, byMs: number): boolean {
  return at !== null && Date.now() - Date.parse(at) > byMs
}

function workerPart(isUnknown: boolean, workers: number): StatusPart {
  if (isUnknown) return { name: 'worker', status: 'unknown', detail: 'Temporal, which knows, could not be asked.' }
  if (workers === 0) return { name: 'worker', status: 'failed', detail: 'None asks for work: incidents wait.' }
  return { name: 'worker', status: 'ok', detail: workers === 1 ? 'One asks for work.' : `${workers} ask for work.` }
}

function modelPart(model: Awaited<ReturnType<typeof modelHealth>>, lately: boolean): StatusPart {
  const { answers, failures } = model.lastHour
  if (failures > answers) {
    return {
      name: 'model',
      status: 'failed',
      detail: `${failures} of ${answers + failures} requests failed in the last hour.`,
    }
  }
  if (lately) return { name: 'model', status: 'ok', detail: 'It answered lately.' }
  return { name: 'model', status: 'unknown', detail: 'Nobody asked it lately.' }
}

/** A file that was not taken makes investigations poorer, and stops nothing. */
function knowledgePart(known: KnowledgeList): StatusPart {
  if (known.items.length === 0 && known.places.length === 0)
    return { name: 'knowledge', status: 'unknown', detail: 'No runbook is read yet.' }
  const { isWell, detail } = describeKnowledge(known)
  return { name: 'knowledge', status: isWell ? 'ok' : 'failed', detail }
}

/** Do messages reach people? */
function messagePart(givenUp: Awaited<ReturnType<typeof givenUpLately>>): StatusPart {
  const name = 'messages'
  if (givenUp.length === 0) return { name, status: 'ok', detail: 'None was given up within a day.' }
  const sentences = givenUp.map(({ destination, count, response }) => {
    const messages = count === 1 ? '1 message' : `${count} messages`
    return `${messages} of the last day reached nobody at ${destination}: ${inertText(response, 200)}.`
  })
  return { name, status: 'failed', detail: sentences.join(' ') }
}

/** A line for each cap that is set. */
function budgetParts(spend: Spend): StatusPart[] {
  return (['day', 'month'] as const).flatMap((period): StatusPart[] => {
    const { dollars, cap } = spend[period]
    if (cap === null) return []
    const detail = `${formatDollars(dollars)} of ${formatDollars(cap)} is spent this ${period} (UTC).`
    const name = `budget of the ${period}`
    if (dollars < cap) return [{ name, status: 'ok', detail }]
    return [
      {
        name,
        status: 'failed',
        detail: `${detail} Nothing is investigated until it ends, or agent.budget_${period} is raised.`,
      },
    ]
  })
}

function sourcePart(
  source: string,
  kind: string,
  { state, lastOkAt, lastError, restsUntil }: SourceHealth,
): StatusPart {
  const name = `${source} (${kind})`
  if (state === 'unknown') return { name, status: 'unknown', detail: 'Nobody asked it since the API process began.' }
  const answered = lastOkAt === null ? null : `answered at ${formatMinute(lastOkAt)}`
  if (state === 'ok') return { name, status: 'ok', detail: `It ${answered}.` }
  const facts = [lastError ?? 'it gave no answer', answered && `it last ${answered}`].filter(Boolean)
  const rest = restsUntil === null ? '' : ` It is left alone until ${restsUntil.slice(11, 19)} UTC.`
  return { name, status: 'failed', detail: `${facts.join('; ')}.${rest} Investigations do without it.` }
}
