import { z } from '@hono/zod-openapi'
import type { Db } from '../../db/connect.ts'
import type { Scope } from '../../db/scope.ts'
import { readSettings } from '../../db/settings.ts'
import { gradeIncident, incidentTrust } from '../../db/trust/grade.ts'
import { setTrustOf, stepsOf, trustOf } from '../../db/trust/levels.ts'
import { callsOf, gradedWeeksOf, recordOf, standings } from '../../db/trust/record.ts'
import { recordDigest, setTrust } from '../../db/trust/set.ts'
import { capitalize } from '../../domain/format.ts'
import { incidentType } from '../../domain/incident.ts'
import { highestRisk, type Risk } from '../../domain/tool.ts'
import {
  causeGrades,
  emptyRecord,
  type PairHistory,
  type PairStanding,
  shadowGrades,
  type TrustPair,
  trustLevels,
  wilson,
} from '../../domain/trust.ts'
import { incidentTrust as incidentTrustAnswer, pairHistory, trustList } from '../../domain/trust-answer.ts'
import { toolFacts } from '../../tools/registry.ts'
import { type ApiDeps, requirePerson } from '../deps.ts'
import { writtenText } from '../http/body.ts'
import { endpoint } from '../http/endpoint.ts'
import { notFound, Problem } from '../http/problem.ts'
import { requireType } from '../known-types.ts'
import { incidentId } from './examples.ts'
import { incidentParams, requireIncident } from './incidents.ts'

const tag = 'trust'
const at = '2026-11-28T03:00:00.000000Z'
const standing: PairStanding = {
  type: 'replication_lag',
  tool: 'converge_shard',
  level: 'propose',
  cause: 'person',
  since: at,
  record: { ...emptyRecord, proposed: 21, approved: 20, denied: 1, ran: 20, held: 20, lasted: 19, lost: 1, right: 12 },
}
const history: PairHistory = {
  ...standing,
  risk: 'low',
  seen: '9f2c',
  steps: [{ level: 'propose', cause: 'person', at, by: 'anna', reason: 'From shadow to propose', incidentId: null }],
  calls: [
    {
      incidentId,
      attempt: 1,
      callId: 'c4_0',
      seq: 18,
      at,
      shadowed: false,
      approved: true,
      denied: false,
      ran: true,
      verified: 'held',
      lost: false,
      grade: 'right',
    },
  ],
  weeks: [{ week: '2026-11-23', right: 12, wrong: 0, low: 0.757, high: 1 }],
}

const pairParams = z.object({ type: incidentType, tool: z.string().max(100) })
const maxSteps = 100
const maxCalls = 50
const maxWeeks = 26

/** Requires a tool that may write. A tool that only reads has no trust level. */
function requirePair(pair: TrustPair): TrustPair {
  const facts = toolFacts.get(pair.tool)
  if (!facts || (facts.effect !== 'write' && !facts.command)) throw notFound(`tool ${pair.tool} that writes`)
  return pair
}

/** Returns the risk of the tool, or the higher risk from the settings. */
async function riskOf(db: Db | Scope['db'], tool: string): Promise<Risk> {
  const settings = await readSettings(db)
  return highestRisk(toolFacts.get(tool)?.risk ?? 'critical', settings.value<Risk | null>('approval.risk', tool))
}

async function historyOf(scope: Scope, { environment }: Pick<ApiDeps, 'environment'>, pair: TrustPair) {
  const settings = await readSettings(scope.db, environment)
  const [level, set, record, risk, steps, calls, weeks] = await Promise.all([
    trustOf(scope.db, pair, settings),
    setTrustOf(scope.db, pair),
    recordOf(scope.db, pair),
    riskOf(scope.db, pair.tool),
    stepsOf(scope, pair, maxSteps),
    callsOf(scope, pair, maxCalls),
    gradedWeeksOf(scope, pair, maxWeeks),
  ])
  return {
    ...pair,
    level: level.level,
    cause: set?.cause ?? null,
    since: level.since,
    record,
    risk,
    seen: recordDigest(record),
    steps,
    calls,
    weeks: weeks.map((week) => ({ ...week, ...(wilson(week.right, week.right + week.wrong) ?? { low: 0, high: 1 }) })),
  }
}

const setEndpoint = endpoint({
  method: 'post',
  path: '/trust/{type}/{tool}',
  permission: 'decide',
  tag,
  summary: 'Sets the trust level of a tool in incidents of a type',
  description:
    'To raise the level, the caller must currently be allowed to decide about such a write, and must send `seen` of the current record: 412 if the record has changed. Setting `act` again confirms a pair that an older version ran without approval. The audit gets a row.',
  params: pairParams,
  body: z.strictObject({
    to: z.enum(trustLevels),
    reason: writtenText(3, 1_000),
    seen: z.string().max(100).default(''),
  }),
  bodyExample: { to: 'act', reason: '20 of 20 held.', seen: '9f2c' },
  answer: pairHistory,
  example: { ...history, level: 'act' },
  problems: [404, 409, 412],
  async run({ scope, params, body, principal, actor }, deps) {
    const pair = requirePair(params)
    await requireType(deps, pair.type, 'set')
    const settings = await readSettings(deps.db, deps.environment)
    const asked = { ...body, risk: await riskOf(deps.db, pair.tool) }
    const set = await setTrust(deps.db, requirePerson(principal, actor), pair, asked, settings)
    if (set.outcome !== 'set') {
      const status = { forbidden: 403, conflict: 409, moved_on: 412 }[set.outcome]
      throw new Problem(status, set.outcome.toUpperCase(), `${set.message}.`)
    }
    return await historyOf(scope, deps, pair)
  },
})

const gradeEndpoint = endpoint({
  method: 'post',
  path: '/incidents/{id}/grade',
  permission: 'manage_incident',
  tag,
  summary: 'Grades the cause of an incident, or a write that was recorded in shadow mode',
  description:
    'The newest grade counts. A cause graded `wrong` is no longer a hint or a precedent, and the tools that wrote for it lose trust. `attempt` names the attempt whose cause was read: 409 if a newer attempt has begun. With `call`, from the list in *trust* of the incident, the grade is for that write.',
  params: incidentParams,
  body: z.union([
    z.strictObject({
      verdict: z.enum(causeGrades),
      text: writtenText(1, 1_000).nullable().default(null),
      attempt: z.number().int().min(1).optional(),
    }),
    z.strictObject({
      verdict: z.enum(shadowGrades),
      text: writtenText(1, 1_000).nullable().default(null),
      call: z.strictObject({ callId: z.string().max(40), attempt: z.number().int().min(1) }),
    }),
  ]),
  bodyExample: { verdict: 'wrong', text: 'The disk was full, the replica was fine.', attempt: 1 },
  answer: incidentTrustAnswer,
  example: { cause: { verdict: 'wrong', by: 'anna', at }, shadow: [] },
  problems: [404, 409],
  async run({ scope, params: { id }, body, principal, actor }, { db }) {
    await requireIncident(scope, id)
    const given =
      'call' in body ? { ...body.call, verdict: body.verdict, text: body.text } : { ...body, callId: null as null }
    const graded = await gradeIncident(db, requirePerson(principal, actor), id, given)
    if (graded.outcome === 'not_found') throw notFound(`incident ${id}`)
    if (graded.outcome === 'conflict') throw new Problem(409, 'CONFLICT', capitalize(`${graded.message}.`))
    return await incidentTrust(scope, id)
  },
})

export const trustRoutes = [
  endpoint({
    method: 'get',
    path: '/trust',
    permission: 'read',
    tag,
    summary: 'The trust level of each tool in incidents of each type, with its record',
    description:
      'Every pair of type and tool that was proposed or set; `newPairs` is the level of all other pairs. The results of the writes of a pair are counted from the log.',
    answer: trustList,
    example: { newPairs: 'propose', items: [standing] },
    async run({ scope }, { environment }) {
      const settings = await readSettings(scope.db, environment)
      return { newPairs: settings.value<PairStanding['level']>('agent.trust'), items: await standings(scope, settings) }
    },
  }),
  endpoint({
    method: 'get',
    path: '/trust/{type}/{tool}',
    permission: 'read',
    tag,
    summary: 'One pair: its level, its record, who set the level and when, and the results of its newest calls',
    params: pairParams,
    answer: pairHistory,
    example: history,
    problems: [404],
    run: async ({ scope, params }, deps) => await historyOf(scope, deps, requirePair(params)),
  }),
  setEndpoint,
  endpoint({
    method: 'get',
    path: '/incidents/{id}/trust',
    permission: 'read',
    tag,
    summary: 'The grades for the cause of an incident, and the writes that were recorded instead of done',
    params: incidentParams,
    answer: incidentTrustAnswer,
    example: { cause: null, shadow: [] },
    problems: [404],
    async run({ scope, params: { id } }) {
      await requireIncident(scope, id)
      return await incidentTrust(scope, id)
    },
  }),
  gradeEndpoint,
]
