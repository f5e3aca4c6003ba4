import { z } from '@hono/zod-openapi'
import type { Db } from '../../db/connect.ts'
import { registeredResource } from '../../db/inventory/registry.ts'
import { readSettings } from '../../db/settings.ts'
import { resumeStop, setStop, standingStops, withdrawStopped } from '../../db/trust/stops.ts'
import { incidentType } from '../../domain/incident.ts'
import { manualChangeType } from '../../domain/manual-change.ts'
import { resourceKey } from '../../domain/registry.ts'
import type { KindStop, StopScope } from '../../domain/stop.ts'
import { stopAnswer, stopList, stoppable } from '../../domain/stop-answer.ts'
import { highestRisk, type Risk } from '../../domain/tool.ts'
import { toolFacts } from '../../tools/registry.ts'
import { type ApiDeps, requirePerson } from '../deps.ts'
import { writtenText } from '../http/body.ts'
import { endpoint } from '../http/endpoint.ts'
import { moment } from '../http/moments.ts'
import { Problem } from '../http/problem.ts'
import { missingHere, requireType } from '../known-types.ts'

const tag = 'trust'
const tellWithinMs = 1_000
const example: KindStop = {
  id: 'stp_01k2m3n4p5q6r7s8t9v0w1x2y3',
  type: 'vm_stopped',
  tool: 'vm_start',
  resource: null,
  at: '2026-11-29T03:00:00.000000Z',
  until: '2026-11-29T18:00:00Z',
  by: 'anna',
  reason: 'The hypervisors are being upgraded.',
}

type AskedStop = StopScope & { resource: z.infer<typeof stoppable> | null }

/** Refuses a stop for a type, tool or resource that does not exist, which blocks nothing. */
async function requireScope({ db, knowledge }: ApiDeps, { type, tool, resource }: AskedStop): Promise<void> {
  if (type === manualChangeType)
    throw new Problem(
      409,
      'CONFLICT',
      'A stop never covers writes that people request themselves. To stop such a write, cancel it where it was requested.',
    )
  const facts = tool === null ? null : toolFacts.get(tool)
  if (tool !== null && facts?.effect !== 'write' && !facts?.command) {
    const writing = [...toolFacts.values()].filter(({ effect, command }) => effect === 'write' || command)
    const names = writing.map(({ name }) => name)
    throw missingHere(
      'tool that writes',
      tool,
      names,
      '"nightshift trust" lists the types and tools that were proposed.',
    )
  }
  await requireType({ db, knowledge }, type, 'stopped')
  if (resource && !(await registeredResource(db, resource)))
    throw missingHere('resource', resourceKey(resource), [], `"nightshift resources list" lists all resources.`)
}

/**
 * Returns a function that gives the risk of a stopped tool, as settings raised it. Critical if all
 * tools are stopped.
 */
async function riskOfStop(db: Db): Promise<(tool: string | null) => Risk> {
  const settings = await readSettings(db)
  return (tool) =>
    tool === null
      ? 'critical'
      : highestRisk(toolFacts.get(tool)?.risk ?? 'critical', settings.value<Risk | null>('approval.risk', tool))
}

const setEndpoint = endpoint({
  method: 'post',
  path: '/stops',
  permission: 'decide',
  tag,
  summary:
    'Stops a kind of write for the whole site: in incidents of a type, by one tool or all, on one resource or all',
  description:
    'From this moment no write of this kind is requested or begun: it is recorded as in shadow mode, and the agent continues without it. A write that has begun is finished and verified. Waiting approvals, and approved writes that have not begun, are withdrawn. Writes by people are not affected. 409 if an equal stop already lasts at least as long.',
  body: z.strictObject({
    type: incidentType,
    tool: z.string().max(100).nullable().default(null),
    resource: stoppable.nullable().default(null),
    until: moment.nullable().default(null),
    reason: writtenText(3, 1_000),
  }),
  bodyExample: { type: example.type, tool: example.tool, until: example.until, reason: example.reason },
  answer: stopAnswer,
  example: { stop: example, withdrawn: 1 },
  status: 201,
  problems: [404, 409],
  async run({ body, principal, actor }, deps) {
    const person = requirePerson(principal, actor)
    await requireScope(deps, body)
    const set = await setStop(deps.db, person, body)
    if (set.outcome !== 'stopped') {
      const status = { forbidden: 403, conflict: 409, late: 422 }[set.outcome]
      throw new Problem(status, set.outcome === 'late' ? 'UNTIL_OVER' : set.outcome.toUpperCase(), `${set.message}.`)
    }
    // Ignores a failure: the worker repeats the withdrawal within a minute, and the writes are
    // already blocked.
    const runs = await withdrawStopped(deps.db).catch((error: unknown) => {
      deps.log.error({ err: error }, 'the approvals of a stop could not be withdrawn: the worker withdraws them')
      return []
    })
    await Promise.allSettled(runs.map((run) => deps.runs.tell(run, 'decided', tellWithinMs)))
    return { stop: set.stop, withdrawn: runs.length }
  },
})

const resumeEndpoint = endpoint({
  method: 'post',
  path: '/stops/{id}/resume',
  permission: 'decide',
  tag,
  summary: 'Allows a stopped kind of write again',
  description:
    'The caller must currently be allowed to decide about such a write; for a stop of all tools, about every write. Trust levels, grants and the policy apply as before. A withdrawn approval is requested again when the agent proposes the write again.',
  params: z.object({ id: z.string().max(100) }),
  body: z.strictObject({ reason: writtenText(3, 1_000) }),
  bodyExample: { reason: 'The upgrade is done.' },
  answer: stopList,
  example: { items: [] },
  problems: [404, 409],
  async run({ params: { id }, body: { reason }, principal, actor }, { db }) {
    const person = requirePerson(principal, actor)
    const resumed = await resumeStop(db, person, id, { reason, risk: await riskOfStop(db) })
    if (resumed.outcome !== 'resumed') {
      const status = { not_found: 404, forbidden: 403, conflict: 409 }[resumed.outcome]
      throw new Problem(status, resumed.outcome.toUpperCase(), `${resumed.message}.`)
    }
    return { items: await standingStops(db) }
  },
})

export const stopRoutes = [
  endpoint({
    method: 'get',
    path: '/stops',
    permission: 'read',
    tag,
    summary: 'Kinds of write that people have stopped for the whole site, the oldest first',
    answer: stopList,
    example: { items: [example] },
    run: async ({ scope }) => ({ items: await standingStops(scope.db) }),
  }),
  setEndpoint,
  resumeEndpoint,
]
