import { randomUUID } from 'node:crypto'
import { z } from '@hono/zod-openapi'
import { findBegan } from '../../db/incidents/began.ts'
import { incidentById } from '../../db/incidents/incidents.ts'
import { storeReading } from '../../db/inventory/sources.ts'
import { recordAudit } from '../../db/log/audit.ts'
import type { WriteRecord } from '../../db/writes/effects.ts'
import { executable } from '../../domain/device.ts'
import { proof } from '../../domain/envelope.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import type { MeshErrorCode } from '../../domain/mesh.ts'
import type { Principal } from '../../domain/permissions.ts'
import { resourceRef } from '../../domain/registry.ts'
import { markPart } from '../../domain/source.ts'
import { risks } from '../../domain/tool.ts'
import {
  askDevice,
  buildOutput,
  refuseByDevice,
  refuseUnreachable,
  toRefusalKind,
} from '../../effects/devices/ask-device.ts'
import {
  type Executor,
  getDeadlineMs,
  type MappedCall,
  mapCall,
  readInput,
  requireExecutor,
  requireMesh,
} from '../../effects/devices/executor.ts'
import { askFollowed } from '../../effects/devices/perform.ts'
import { prepareCall } from '../../effects/devices/prepare.ts'
import { namesVouched } from '../../effects/devices/vouch.ts'
import { observeCall, runDeviceWrite } from '../../effects/devices/write.ts'
import { EffectRefused } from '../../effects/effect.ts'
import { knownCapability, specOf } from '../../mesh/registry.ts'
import { logReadArgs, readLines } from '../../mesh/specs/host.ts'
import { isSecretive } from '../../safety/redact.ts'
import { summarizeDeviceLog } from '../../sources/logs/summary.ts'
import { tools } from '../../tools/registry.ts'
import type { ApiDeps } from '../deps.ts'
import { endpoint } from '../http/endpoint.ts'
import { Problem } from '../http/problem.ts'
import { answerEffect } from './effects.ts'

const tag = 'devices'
const params = z.object({ id: z.string().min(1).max(100) })
const stepKey = z.object({ key: z.string().min(1).max(300) })
const body = z.strictObject({
  capability: knownCapability,
  args: z.record(z.string(), z.unknown()),
  rehearse: z.boolean().optional(),
  /** The tool of the call, if it is not the device tool of the capability. */
  tool: z.string().max(60).optional(),
  reason: z.string().max(500).optional(),
})

const callDeviceEndpoint = endpoint({
  method: 'post',
  path: '/devices/{id}/calls',
  permission: 'act_on_platform',
  tag,
  summary: 'Calls one tool of the device of a resource',
  description:
    'The id is that of a node, host, VM or device. An agent may only make a call that its run announced, and a write only with the approval that its run has used; the device grant is minted from that approval. A person has no grant, so a device that needs a grant answers `approval_required`.',
  params,
  headers: z.object({ 'if-match': z.string().max(100).optional() }),
  body,
  bodyExample: { capability: 'fs.read', args: { path: '/var/log/app.log' } },
  answer: z.looseObject({ on: executable, device: z.string() }),
  example: {
    on: { kind: 'node', id: 'node-osl-1' },
    device: 'node-osl-1',
    content: '…',
    sha256: '…',
    approval_status: 'auto_approved',
    cmd_executed: null,
    truncated: false,
    duration_ms: 3,
  },
  problems: [404, 412, 424, 429, 502, 504],
  agent: {
    tools: 'the device tool of its capability, or `search_logs`',
    // Names no tool for a dry run, which is a part of a preparation and reads its call from rows.
    tool: (sent) => (sent.rehearse === true ? null : toolOf(sent)),
    identity: async ({ id }, sent) => identityOf(id ?? '', sent),
    approvedWrites: true,
  },
  async run({ params: { id }, body: asked, principal, key, judged, c }, deps) {
    requireMesh(deps)
    const spec = specOf(asked.capability)
    const input = readInput(spec, asked.args)
    if (isSecretive(input)) {
      throw new Problem(
        422,
        'SECRET_IN_ARGUMENTS',
        'The arguments contain a secret value. Send the name of the secret instead.',
      )
    }
    const executor = await requireExecutor(deps.db, id)
    const mapped = mapCall(executor, spec, input)
    if (judged === null || judged.metadata.effect !== 'write') {
      const by = { judged, principal, key, rehearse: asked.rehearse ?? false }
      return c.json(await askRead(deps, executor, mapped, by))
    }
    const ifMatch = c.req.header('if-match')
    const effect = await runDeviceWrite(deps, { executor, mapped, judged, principal, key, ifMatch })
    const answer = answerDeviceEffect(effect)
    return c.json(spec.readsLog ? await toReading(deps, executor, mapped, judged, answer) : answer)
  },
})

const preparationEndpoint = endpoint({
  method: 'get',
  path: '/devices/{id}/preparation',
  permission: 'act_on_platform',
  tag,
  summary: 'The dry run of a proposed call, and the state on which the call depends',
  description: 'The call is read from the log by its step key. Nothing on the device changes.',
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
      possible: true,
      summary: 'Write 12 characters as /srv/app.conf, on node-osl-1',
      details: {},
      proof: { by: 'state', text: 'the file holds exactly what was written' },
    },
  },
  problems: [404, 424],
  async run({ params: { id }, query: { key } }, deps) {
    requireMesh(deps)
    return await prepareCall(deps, id, key)
  },
})

const observationEndpoint = endpoint({
  method: 'get',
  path: '/devices/{id}/observation',
  permission: 'act_on_platform',
  tag,
  summary: 'Whether the postcondition of an announced write is true now',
  description:
    '`holds` is null if the write has no postcondition: the write ran, and no check can prove that it worked.',
  params,
  query: stepKey,
  answer: z.object({ holds: z.boolean().nullable(), observed: z.string() }),
  example: { holds: true, observed: 'the process is gone' },
  problems: [404, 424],
  async run({ params: { id }, query: { key } }, deps) {
    requireMesh(deps)
    return await observeCall(deps, id, key)
  },
})

/** Finds the tool whose calls make this request. Null if no tool makes it. */
function toolOf(sent: Record<string, unknown>): string | null {
  const known = knownCapability.safeParse(sent.capability)
  if (!known.success) return null
  const { name, calledBy } = specOf(known.data)
  return sent.tool === undefined || sent.tool === name ? name : sent.tool === calledBy ? calledBy : null
}

/** Returns exactly the arguments of the tool over which the judge computed the digest. */
function identityOf(id: string, sent: Record<string, unknown>): Record<string, unknown> | null {
  const tool = tools.get(toolOf(sent) ?? '')
  if (!tool || typeof sent.args !== 'object') return null
  const parsed = tool.input.safeParse({ ...sent.args, on: id, ...(tool.effect !== 'read' && { reason: unsaid }) })
  if (!parsed.success) return null
  const { reason: _, ...identity } = parsed.data
  return identity
}

/** A placeholder for the reason of a write, which is for people and does not change the action. */
const unsaid = 'no part of it'

/**
 * Carries out a read or dry run. The device ensures that nothing changes, and may respond that the
 * call needs approval.
 */
async function askRead(
  deps: ApiDeps,
  executor: Executor,
  mapped: MappedCall,
  by: { judged: IncidentEvent<'tool_started'> | null; principal: Principal; key: string | null; rehearse: boolean },
): Promise<Record<string, unknown>> {
  const { capability, args, spec, input } = mapped
  const { judged, principal, rehearse } = by
  const key = judged?.stepKey ?? `api:${principal.tokenId}:${by.key ?? randomUUID()}`
  const names = await namesVouched(deps, executor, mapped, judged)
  const request = { key, capability, args, names, deadlineMs: getDeadlineMs(executor, true) }
  if (!judged) {
    const { id } = executor.device
    const detail = `${rehearse ? 'Rehearsed' : 'Asked'}: ${spec.summary(input, null)}, on ${executor.resource.id}`
    await recordAudit(deps.db, { who: principal.name, what: 'device.called', subject: id, detail })
  }
  const reply = judged
    ? await askFollowed(deps, { executor, mapped, judged, key }, request)
    : await askDevice(deps, executor.device, { ...request, rehearse })
  if (reply.kind !== 'answer') throw refuseUnreachable(executor.device.id, capability, reply.reason)
  if (!reply.answer.ok) throw refuseByDevice(capability, reply.answer)
  const output = buildOutput(executor, reply.answer, mapped)
  return spec.readsLog && judged ? await toReading(deps, executor, mapped, judged, output) : output
}

/**
 * Summarizes a log as templates for a model. The complete text is stored under its digest, like the
 * response of a source.
 */
async function toReading(
  deps: ApiDeps,
  { device }: Executor,
  { args }: MappedCall,
  { incidentId, metadata: { tool } }: IncidentEvent<'tool_started'>,
  output: Record<string, unknown>,
): Promise<Record<string, unknown>> {
  const { lines, until_ms: untilMs, more, among, ...rest } = { ...output, ...readLines.parse(output) }
  const { unit, path, since_seconds: sinceSeconds, contains } = logReadArgs.parse(args)
  const incident = await incidentById(deps.db, incidentId)
  const { summary, whole, isEmpty, isPartial, isCut } = summarizeDeviceLog(
    { lines, untilMs, isMore: more === true, unread: among ? among.total - 1 : 0 },
    { labels: unit === undefined ? { path: among?.file ?? path ?? '' } : { unit }, contains, sinceSeconds },
    { nowMs: Date.now(), incidentBeganMs: incident ? await findBegan(deps.db, incident) : null },
  )
  const stored = isCut || more === true ? markPart(whole) : whole
  const digest = await storeReading(deps.db, { incidentId, source: device.id, tool, whole: stored })
  return {
    ...rest,
    source: device.id,
    isEmpty,
    ...(isPartial && { isPartial }),
    summary,
    digest,
    ...(among && { files: among.files }),
  }
}

/** Returns the response to a write on a device. A failure has the code that the device reported. */
function answerDeviceEffect(effect: WriteRecord): Record<string, unknown> {
  const { key, status, detail, result } = effect
  if (status === 'failed' && typeof result.error === 'string') {
    const code = result.error
    const kind = code === 'device_unreachable' ? 'device_failed' : toRefusalKind(code as MeshErrorCode)
    throw new EffectRefused(kind, code, detail, { fields: { key, result } })
  }
  return answerEffect(effect)
}

/** Routes for requests to devices: only calls that a run announced, or reads by a person. */
export const deviceCallRoutes = [callDeviceEndpoint, preparationEndpoint, observationEndpoint]
