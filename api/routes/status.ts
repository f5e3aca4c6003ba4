import { z } from '@hono/zod-openapi'
import { backlogOf, modelHealth } from '../../db/backlog.ts'
import { lastProfile, slotsNow } from '../../db/model-servers.ts'
import { readSettings } from '../../db/settings.ts'
import { usageOf } from '../../db/usage.ts'
import { shapeInWords } from '../../domain/request-shape.ts'
import type { QueueState } from '../../effects/runs.ts'
import type { ApiDeps } from '../deps.ts'
import { endpoint, type Router } from '../http/endpoint.ts'

const part = z.object({
  name: z.string(),
  status: z.enum(['ok', 'failed', 'unknown', 'off']),
  /** What it means for the night, in one sentence. */
  detail: z.string(),
})
const count = z.number().int()
const askWithinMs = 1_500
/** After this long without an answer, the model's state is unknown: it is not asked while nothing happens. */
const answeredLatelyMs = 900_000

const statusAnswer = z.object({
  parts: z.array(part),
  paused: z.boolean(),
  backlog: z.object({
    waiting: count,
    investigating: count,
    awaitingApproval: count,
    deliveries: count,
    failedDeliveries: count,
    oldestWaitingAt: z.string().nullable(),
  }),
  schedule: z
    .object({
      paused: z.boolean(),
      note: z.string().nullable(),
      everySeconds: z.number().nullable(),
      lastAt: z.string().nullable(),
      nextAt: z.string().nullable(),
    })
    .nullable(),
  model: z.object({
    model: z.string().nullable(),
    lastAnswerAt: z.string().nullable(),
    lastDurationMs: z.number().nullable(),
    answersLastHour: count,
    failuresLastHour: count,
    /** Of the server that was asked last: who asks it now and who waits, the window, and how it wants its requests. */
    asking: count,
    waiting: count,
    windowTokens: count.nullable(),
    windowSource: z.string().nullable(),
    learned: z.array(z.string()),
  }),
})
type Status = z.input<typeof statusAnswer>

const statusExample: Status = {
  parts: [{ name: 'database', status: 'ok', detail: 'It answers.' }],
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
  },
}

export function statusRoutes(router: Router, deps: ApiDeps): void {
  endpoint(router, deps, {
    method: 'get',
    path: '/status',
    permission: 'read',
    tag: 'health',
    summary: 'How the parts are, what waits, when the queue ticks',
    description: 'Reports on everything else also while Temporal or the platform cannot be reached.',
    answer: statusAnswer,
    example: statusExample,
    run: () => readStatus(deps),
  })
}

async function readStatus(deps: ApiDeps): Promise<Status> {
  const { db, platform, runs, state } = deps
  const [backlog, model, slots, profile, settings, queue, isReachable, fresh] = await Promise.all([
    backlogOf(db),
    modelHealth(db),
    slotsNow(db),
    lastProfile(db),
    readSettings(db, deps.environment),
    runs.queue?.(askWithinMs) ?? null,
    runs.isReachable(askWithinMs),
    platform ? state.refresh() : null,
  ])
  const workers = queue?.workers.length ?? 0
  const lately = model.last ? Date.now() - Date.parse(model.last.at) < answeredLatelyMs : false
  return {
    parts: [
      { name: 'database', status: 'ok', detail: 'It answers.' },
      isReachable
        ? { name: 'Temporal', status: 'ok', detail: 'It answers.' }
        : { name: 'Temporal', status: 'failed', detail: 'It does not answer: alerts are taken in and wait.' },
      workerPart(queue === null, workers),
      queuePart(queue),
      platformPart(fresh),
      modelPart(model, lately),
    ],
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
    },
  }
}

function platformPart(fresh: { stale: boolean } | null): z.infer<typeof part> {
  const name = 'platform'
  if (fresh === null) {
    const detail = 'None is configured (PLATFORM_URL or PROXMOX_URL): nothing can be repaired.'
    return { name, status: 'off', detail }
  }
  if (!fresh.stale) return { name, status: 'ok', detail: 'It answers.' }
  return { name, status: 'failed', detail: 'It does not answer: health is unknown, writes are refused.' }
}

/** Does the queue tick? It can be stopped at Temporal, so this page must show that. */
function queuePart(queue: QueueState | null): z.infer<typeof part> {
  const name = 'queue'
  if (queue === null) return { name, status: 'unknown', detail: 'Temporal, which knows, could not be asked.' }
  const { schedule } = queue
  if (schedule === null) {
    const detail = 'Its Schedule is gone from Temporal: a worker makes it again within a minute of its work.'
    return { name, status: 'failed', detail }
  }
  if (schedule.paused) {
    // The worker's own words where the agent is off.
    return schedule.note === 'AGENT_ENABLED is false'
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

function workerPart(isUnknown: boolean, workers: number): z.infer<typeof part> {
  if (isUnknown) return { name: 'worker', status: 'unknown', detail: 'Temporal, which knows, could not be asked.' }
  if (workers === 0) return { name: 'worker', status: 'failed', detail: 'None asks for work: incidents wait.' }
  return { name: 'worker', status: 'ok', detail: workers === 1 ? 'One asks for work.' : `${workers} ask for work.` }
}

function modelPart(model: Awaited<ReturnType<typeof modelHealth>>, lately: boolean): z.infer<typeof part> {
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

export function usageRoutes(router: Router, deps: ApiDeps): void {
  endpoint(router, deps, {
    method: 'get',
    path: '/usage',
    permission: 'read',
    tag: 'usage',
    summary: 'What the last days took of models and of people',
    description: 'Days are days of UTC. A median is null where nothing of the kind has ended.',
    query: z.object({ days: z.coerce.number().int().min(1).max(90).default(7) }),
    answer: z.object({
      models: z.array(
        z.object({
          model: z.string(),
          answers: count,
          failures: count,
          promptTokens: z.number(),
          completionTokens: z.number(),
          reasoningTokens: z.number(),
          seconds: z.number(),
        }),
      ),
      byDay: z.array(z.object({ day: z.string(), incidents: count, tokens: z.number(), approvals: count })),
      incidents: z.array(z.object({ status: z.string(), count, medianSeconds: z.number().nullable() })),
      approvals: z.array(
        z.object({
          status: z.string(),
          count,
          medianWaitSeconds: z.number().nullable(),
          longestWaitSeconds: z.number().nullable(),
        }),
      ),
    }),
    example: {
      models: [
        {
          model: 'Qwen/Qwen2.5-72B-Instruct',
          answers: 41,
          failures: 1,
          promptTokens: 120_400,
          completionTokens: 3_100,
          reasoningTokens: 0,
          seconds: 96,
        },
      ],
      byDay: [{ day: '2026-11-21', incidents: 4, tokens: 123_500, approvals: 2 }],
      incidents: [{ status: 'resolved', count: 3, medianSeconds: 84 }],
      approvals: [{ status: 'approved', count: 2, medianWaitSeconds: 71, longestWaitSeconds: 130 }],
    },
    run: ({ query: { days } }) => usageOf(deps.db, days),
  })
}
