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
  reason: 'restart is not a sub-command that is known to only look',
}

/** What would happen if: the judge over a command or a call, with nothing run, written or asked. */
export const judgeRoutes = endpoint({
  method: 'post',
  path: '/judge',
  permission: 'read',
  tag: 'safety',
  summary: 'What would become of a command or a call',
  description:
    'One at a time for a person, 64,000 characters, ten seconds. Judges without doing: a `command` by itself, or a `tool` with `args` in the state of a real incident (`incident_id`) or of a supposed one (`state`). The dry run of a write is taken to succeed.',
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

/** A call's fate in an incident's present state. Runs, writes and asks nothing. */
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
    // With the defaults of its schema: what a caller leaves out is not missing.
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
