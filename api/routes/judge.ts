import { z } from '@hono/zod-openapi'
import { databaseTime } from '../../db/clock.ts'
import { incidentById } from '../../db/incidents/incidents.ts'
import { eventsOf } from '../../db/log/events.ts'
import { readPolicy } from '../../db/policy.ts'
import { readSettings } from '../../db/settings.ts'
import type { Incident } from '../../domain/incident.ts'
import { fold } from '../../safety/fold.ts'
import { type DryRunResult, dryRunInput } from '../../safety/replay.ts'
import { resolveArguments } from '../../safety/resolve-arguments.ts'
import { toolFacts } from '../../tools/registry.ts'
import type { ApiDeps } from '../deps.ts'
import { endpoint } from '../http/endpoint.ts'
import { Problem } from '../http/problem.ts'
import { judgeApart } from '../judge-apart.ts'

const question = z.union([
  z.strictObject({ tool: z.string(), args: z.record(z.string(), z.unknown()), incident_id: z.string() }),
  dryRunInput,
])

const answer = z.looseObject({
  verdict: z.enum(['run', 'ask', 'refuse']),
  code: z.string(),
  effect: z.string(),
  reason: z.string(),
})

const example: z.input<typeof answer> = {
  command: 'systemctl restart mysql',
  verdict: 'ask',
  code: 'ARGUMENT',
  effect: 'write',
  reason: 'restart is not a known read-only sub-command',
}

/** Routes for judging a command or a call. Nothing is run, written or requested. */
export const judgeRoutes = endpoint({
  method: 'post',
  path: '/judge',
  permission: 'read',
  tag: 'safety',
  summary: 'How a command or a call would be judged',
  description:
    'Limits: one request at a time for each person, 64,000 characters, ten seconds. Nothing is run. The request has a `command`, or a `tool` with `args` in the state of a real incident (`incident_id`) or an assumed one (`state`). The dry run of a write is assumed to succeed.',
  body: question,
  bodyExample: { command: 'systemctl restart mysql' },
  answer,
  example,
  status: 200,
  problems: [404],
  async run({ body, principal }, deps) {
    const { db } = deps
    const who = principal.operatorId ?? principal.tokenId
    if (!('incident_id' in body)) {
      const nowMs = Date.parse(await databaseTime(db))
      return await judgeApart({ kind: 'supposed', input: body, nowMs }, who, body)
    }
    const incident = await incidentById(db, body.incident_id)
    if (!incident) throw new Problem(404, 'NOT_FOUND', `There is no incident ${body.incident_id}.`)
    return await dryRunJudge(deps, incident, body, who)
  },
})

/** Judges a call in the current state of an incident. Runs, writes and requests nothing. */
export async function dryRunJudge(
  deps: Pick<ApiDeps, 'db' | 'environment'>,
  incident: Incident,
  call: { tool: string; args: Record<string, unknown>; callId?: string },
  who: string | null = null,
): Promise<DryRunResult> {
  const question = await deps.db.transaction().execute(async (trx) => {
    const settings = await readSettings(trx, deps.environment)
    const state = fold(await eventsOf(trx, incident.id), incident.attempt, incident.resource)
    const facts = toolFacts.get(call.tool)
    // Adds the defaults of the schema, so that an omitted field does not count as missing.
    const args = facts?.input.safeParse(call.args).data as Record<string, unknown> | undefined
    const at = Date.parse(await databaseTime(trx))
    const policy = await readPolicy(trx, incident, settings, {
      facts: facts ?? { name: call.tool, names: {} },
      targets: facts && args ? resolveArguments(facts, args, state, at).targets : [],
      approvalId: null,
      isEnding: true,
    })
    return { kind: 'call' as const, call, state, policy, nowMs: at }
  })
  return await judgeApart(question, who, call)
}

export const tag = 'approvals'
