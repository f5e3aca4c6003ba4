import { randomUUID } from 'node:crypto'
import { z } from '@hono/zod-openapi'
import { recordAudit } from '../../db/audit.ts'
import { authorityOf } from '../../db/judged.ts'
import { executable } from '../../domain/device.ts'
import { actionDigest } from '../../domain/digest.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import { capability } from '../../domain/mesh.ts'
import type { Principal } from '../../domain/operator.ts'
import { resourceRef } from '../../domain/resource.ts'
import { risks } from '../../domain/tool.ts'
import { proof } from '../../domain/verification.ts'
import { specOf } from '../../mesh/registry.ts'
import { isSecretive } from '../../safety/redact.ts'
import { answerEffect } from '../answer-effect.ts'
import type { ApiDeps } from '../deps.ts'
import { runEffect } from '../effect.ts'
import { endpoint, type Router } from '../endpoint.ts'
import { Problem } from '../problem.ts'
import { deviceProblem, outputOf, statusOf, unreachable } from './answers.ts'
import { askDevice } from './ask-device.ts'
import { deadlineMs, type Mapped, mapCall, readInput } from './call.ts'
import { type Executor, requireExecutor, requireMesh } from './executor.ts'
import { observeCall } from './observe.ts'
import { askFollowed, performWrite } from './perform.ts'
import { prepareCall, requireSameState } from './prepare.ts'

const tag = 'devices'
const params = z.object({ id: z.string().min(1).max(100) })
const stepKey = z.object({ key: z.string().min(1).max(300) })
const body = z.strictObject({
  capability,
  args: z.record(z.string(), z.unknown()),
  rehearse: z.boolean().optional(),
  reason: z.string().max(500).optional(),
})

/** What devices are asked: only what a run announced, or what a person looks at. */
export function deviceCallRoutes(router: Router, deps: ApiDeps): void {
  endpoint(router, deps, {
    method: 'post',
    path: '/devices/{id}/calls',
    permission: 'act_on_platform',
    tag,
    summary: 'Asks the device of a resource for one thing',
    description:
      'The id is that of a node, host or VM, or of a device. An agent is heard only for an announced call, and a write of its run only with the approval it used up: the device grant is minted from that. People have no grants to give here: what the device does not do unasked it answers with `approval_required`.',
    params,
    headers: z.object({ 'if-match': z.string().max(100).optional() }),
    body,
    bodyExample: { capability: 'fs.read', args: { path: '/var/log/app.log' } },
    answer: z.looseObject({ on: executable, device: z.string() }),
    example: {
      ...{ on: { kind: 'node', id: 'node-osl-1' }, device: 'node-osl-1', content: '…', sha256: '…' },
      ...{ approval_status: 'auto_approved', cmd_executed: null, truncated: false, duration_ms: 3 },
    },
    problems: [404, 412, 424, 429, 502, 504],
    agent: {
      tool: ({ capability: asked, rehearse }) => {
        const known = capability.safeParse(asked)
        // A rehearsal is part of a preparation, and reads its call from rows.
        return known.success && rehearse !== true ? specOf(known.data).name : null
      },
      identity: async ({ id }, sent) => identityOf(id ?? '', sent),
      approvedWrites: true,
    },
    async run({ params: { id }, body: asked, principal, key, judged, c }) {
      requireMesh(deps)
      const spec = specOf(asked.capability)
      const input = readInput(spec, asked.args)
      if (isSecretive(input)) {
        throw new Problem(422, 'SECRET_IN_ARGUMENTS', 'The arguments hold a secret. Name it; never write its value.')
      }
      const executor = await requireExecutor(deps.db, id)
      const mapped = mapCall(executor, spec, input)
      if (judged === null || judged.metadata.effect !== 'write') {
        const own = judged?.stepKey ?? `api:${principal.tokenId}:${key ?? randomUUID()}`
        return await look(deps, executor, mapped, own, { judged, principal, rehearse: asked.rehearse ?? false })
      }
      return await write(deps, executor, mapped, judged, { principal, key, ifMatch: c.req.header('if-match') })
    },
  })

  endpoint(router, deps, {
    method: 'get',
    path: '/devices/{id}/preparation',
    permission: 'act_on_platform',
    tag,
    summary: 'What a proposed call would do: its rehearsal, and the state it rests on',
    description: 'The call is read from the log by its step key; nothing of the device changes.',
    params,
    query: stepKey,
    answer: z.object({
      resource: executable,
      device: z.string(),
      touches: z.array(resourceRef).optional(),
      stateFingerprint: z.string(),
      dryRun: z.object({
        possible: z.boolean(),
        summary: z.string(),
        details: z.record(z.string(), z.unknown()),
        proof,
      }),
      asks: z.object({ risk: z.enum(risks), why: z.string() }).optional(),
      rootReads: z.array(z.array(z.string())).optional(),
    }),
    example: {
      resource: { kind: 'node', id: 'node-osl-1' },
      device: 'node-osl-1',
      stateFingerprint: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
      dryRun: {
        ...{ possible: true, summary: 'Write 12 characters as /srv/app.conf, on node-osl-1', details: {} },
        proof: { by: 'state', text: 'the file holds exactly what was written' },
      },
    },
    problems: [404, 424],
    async run({ params: { id }, query: { key } }) {
      requireMesh(deps)
      return await prepareCall(deps, id, key)
    },
  })

  endpoint(router, deps, {
    method: 'get',
    path: '/devices/{id}/observation',
    permission: 'act_on_platform',
    tag,
    summary: 'Whether what an announced write promised is true now',
    description:
      '`holds` is null where nothing was promised: it ran, and nothing that could be looked at proves that it worked.',
    params,
    query: stepKey,
    answer: z.object({ holds: z.boolean().nullable(), observed: z.string() }),
    example: { holds: true, observed: 'the process is gone' },
    problems: [404, 424],
    async run({ params: { id }, query: { key } }) {
      requireMesh(deps)
      return await observeCall(deps, id, key)
    },
  })
}

/** Exactly what the tool's own arguments are: the judge digested those. */
function identityOf(id: string, sent: Record<string, unknown>): Record<string, unknown> | null {
  const known = capability.safeParse(sent.capability)
  if (!known.success) return null
  const parsed = specOf(known.data).input.safeParse(sent.args)
  return parsed.success ? { ...parsed.data, on: id } : null
}

/** Something that changes nothing: the device itself sees to that, and may say that it would need a person's leave. */
async function look(
  deps: ApiDeps,
  executor: Executor,
  mapped: Mapped,
  key: string,
  by: { judged: IncidentEvent<'tool_started'> | null; principal: Principal; rehearse: boolean },
) {
  const { capability, args, spec, input } = mapped
  const { judged, principal, rehearse } = by
  const asking = { key, capability, args, deadlineMs: deadlineMs(executor, true) }
  if (!judged) {
    const { id } = executor.device
    const detail = `${rehearse ? 'Rehearsed' : 'Asked'}: ${spec.summary(input)}, on ${executor.resource.id}`
    await recordAudit(deps.db, { who: principal.name, what: 'device.called', subject: id, detail })
  }
  const heard = judged
    ? await askFollowed(deps, { executor, mapped, judged, key }, asking)
    : await askDevice(deps, executor.device, { ...asking, rehearse })
  if (heard.kind !== 'answer') throw unreachable(executor.device.id, capability, heard.reason)
  if (!heard.answer.ok) throw deviceProblem(capability, heard.answer)
  return outputOf(executor, heard.answer, spec.toOutput) as never
}

type Request = {
  principal: Principal
  key: string | null
  ifMatch: string | undefined
}

async function write(
  deps: ApiDeps,
  executor: Executor,
  mapped: Mapped,
  judged: IncidentEvent<'tool_started'>,
  { principal, key, ifMatch }: Request,
) {
  const authority = await authorityOf(deps.db, judged)
  // The guard before this route has seen it; without it nothing is minted.
  if (authority === null)
    throw new Problem(403, 'UNJUDGED', 'No approval stands behind this request. Nothing was done.')
  const { spec, input } = mapped
  const on = executor.resource.id
  const effect = await runEffect(
    deps,
    {
      ...{ principal, key, judged, tool: spec.name, incidentId: judged.incidentId },
      actionDigest: actionDigest(spec.name, { ...input, on }),
    },
    {
      before: () =>
        requireSameState(deps, executor, mapped, { key: judged.stepKey ?? '', incidentId: judged.incidentId, ifMatch }),
      perform: (effectKey) => performWrite(deps, { executor, mapped, key: effectKey, judged, authority }),
    },
  )
  if (effect.status === 'failed' && typeof effect.result.error === 'string') {
    const code = effect.result.error
    const status = code === 'device_unreachable' ? 424 : statusOf(code as never)
    throw new Problem(status, code, effect.detail, { fields: { key: effect.key, result: effect.result } })
  }
  return answerEffect(effect) as never
}
