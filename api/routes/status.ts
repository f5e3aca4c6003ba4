import { backlogOf } from '../../db/current-counts.ts'
import { listSources } from '../../db/inventory/sources.ts'
import { lastProfile, modelProfile } from '../../db/models/profiles.ts'
import { countSlots } from '../../db/models/slots.ts'
import type { Scope } from '../../db/scope.ts'
import { readSettings } from '../../db/settings.ts'
import { shapeInWords } from '../../domain/chat.ts'
import { warnOfModel } from '../../domain/passport.ts'
import { type Status, status } from '../../domain/status.ts'
import { healthOf } from '../../sources/ask.ts'
import type { ApiDeps } from '../deps.ts'
import { endpoint } from '../http/endpoint.ts'
import { agentOffNote, lookAtParts, partsOf, sourcePart } from '../parts.ts'
import { abilitiesExample, gradeOfModel } from './model.ts'

const statusExample: Status = {
  parts: [{ name: 'database', status: 'ok', detail: 'The database answers and accepts writes.', remedy: null }],
  sources: [{ name: 'main (prometheus)', status: 'ok', detail: 'It answered at 2026-11-21 01:46 UTC.', remedy: null }],
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
    statedWindow: 32_768,
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
  summary: 'The state of all parts, the backlog, and the schedule of the queue',
  description: 'While Temporal or the platform cannot be reached, the response still has all other parts.',
  answer: status,
  example: statusExample,
  run: ({ scope }, deps) => readStatus(scope, deps),
})

/** Reads the current state of all parts. Each check has a time limit. */
async function readStatus(scope: Scope, deps: ApiDeps): Promise<Status> {
  const { db } = deps
  const [backlog, slots, profile, settings, sources, facts] = await Promise.all([
    backlogOf(scope),
    countSlots(db),
    deps.modelInUse ? modelProfile(db, deps.modelInUse) : lastProfile(db),
    readSettings(db, deps.environment),
    listSources(db),
    lookAtParts(scope, deps),
  ])
  const { queue, model } = facts
  return {
    parts: partsOf(facts),
    sources: sources.map((each) =>
      sourcePart(each, healthOf(deps.sources, each, Date.now()), deps.sources.warnings.get(each.name) ?? null),
    ),
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
      statedWindow: profile?.statedWindow ?? null,
      learned: profile ? shapeInWords(profile.shape) : [],
      abilities: profile?.abilities ?? null,
      grade: await gradeOfModel(deps, queue?.schedule?.note === agentOffNote),
    },
  }
}
