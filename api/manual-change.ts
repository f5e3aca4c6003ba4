import { setTimeout as sleep } from 'node:timers/promises'
import { z } from '@hono/zod-openapi'
import { refusalForRisk } from '../db/access/operators.ts'
import { pendingApprovalOf } from '../db/approvals/find.ts'
import type { Trx } from '../db/connect.ts'
import { noteOpened } from '../db/idempotency-keys.ts'
import { incidentById } from '../db/incidents/incidents.ts'
import { openManualChange } from '../db/incidents/manual-change.ts'
import { readSettings } from '../db/settings.ts'
import { isManualChangeNeeded, type ManualChange, manualChangeType } from '../domain/manual-change.ts'
import { type Principal, permissionsOf } from '../domain/permissions.ts'
import { callId, stepKey } from '../domain/step-key.ts'
import { highestRisk, type Preparation, type Risk } from '../domain/tool.ts'
import type { Undoes } from '../domain/undo.ts'
import { tools } from '../tools/registry.ts'
import { type ApiDeps, type Context, requirePerson } from './deps.ts'
import { Problem } from './http/problem.ts'

/** Fields that a person adds to the body of a direct write. */
export const directBody = {
  reason: z.string().min(3).max(500),
  /**
   * Allows a critical write without a second person, only for an admin. A page goes to the
   * receivers of escalations, and another person reviews the write.
   */
  alone: z.boolean().optional(),
}

/** Fields about a person's direct write, beside the response of the write itself. */
export const directAnswer = {
  incidentId: z.string().optional(),
  approvalId: z.string().nullish(),
  status: z.enum(['done', 'awaiting_approval', 'under_way']).optional(),
}

type DirectAct = {
  principal: Principal
  actor: string
  c: Context
  tool: string
  args: Record<string, unknown> & { reason: string }
  alone: boolean | undefined
  /** Hosts that the person states to be off. */
  hostIsOff?: string[]
  /**
   * The write that this write undoes. `before` and `after` run in the transaction that opens the
   * incident.
   */
  undo?: { undoes: Undoes; before(trx: Trx): Promise<void>; after(trx: Trx, incidentId: string): Promise<void> }
  /**
   * Reads the targets of the write and their state. Called once an incident is known to be needed.
   */
  prepare(): Promise<Pick<Preparation, 'targets' | 'stateFingerprint' | 'asks'> & { summary: string }>
}

type DirectOutcome = {
  detail: string
  key: string
  incidentId: string
  approvalId: string | null
  status: 'done' | 'awaiting_approval' | 'under_way'
}

/**
 * Carries out a person's direct write of medium risk or more with an incident, approval, lease, log
 * and verification, like a write of the agent. Null for a write of lower risk, which the caller
 * makes at once. Returns when the write is done or waits for an approval, after 20 s at the latest.
 */
export async function actDirectly(deps: ApiDeps, act: DirectAct): Promise<DirectOutcome | null> {
  const once = act.c.get('once')
  if (once?.opened) return await outcomeOf(deps, once.opened)
  const settings = await readSettings(deps.db, deps.environment)
  const raised = settings.value<Risk | null>('approval.risk', act.tool)
  const own = highestRisk(tools.get(act.tool)?.risk, raised, act.undo?.undoes.risk)
  const person = requirePerson(act.principal, act.actor)
  if (!act.undo && !isManualChangeNeeded(own)) {
    if (act.alone)
      throw new Problem(
        422,
        'NOT_CRITICAL',
        'Only a critical write can be done without a second person. Leave "alone" out.',
      )
    return null
  }
  const { summary, asks, targets, stateFingerprint } = await act.prepare()
  const risk = highestRisk(own, asks?.risk)
  if (act.alone) await requireAdminFor(deps, act.principal, person.operatorId, { risk, targets })
  const paused = settings.value<boolean>('agent.paused') ? ' (the agent is paused)' : ''
  const { reason } = act.args
  const change = {
    tool: act.tool,
    arguments: act.args,
    targets,
    stateFingerprint,
    risk,
    reason,
    alone: act.alone === true,
    ...(act.hostIsOff && act.hostIsOff.length > 0 && { hostIsOff: act.hostIsOff }),
    ...(act.undo && { undoes: act.undo.undoes }),
    mayVote: permissionsOf(act.principal).includes('decide'),
  }
  const opened = await deps.db.transaction().execute(async (trx) => {
    await act.undo?.before(trx)
    const incident = await openManualChange(trx, person, { ...change, summary: `${summary}${paused}` })
    if (once && !(await noteOpened(trx, once.place, incident.id)))
      // Throws a 5xx, because a 5xx is not stored under the key.
      throw new Problem(
        503,
        'IN_PROGRESS',
        'Another request with this Idempotency-Key has opened the incident. Send this request again.',
      )
    await act.undo?.after(trx, incident.id)
    return incident
  })
  return await outcomeOf(deps, opened.id)
}

const answerWithinMs = 20_000
const lookEveryMs = 200

async function requireAdminFor(
  deps: ApiDeps,
  principal: Principal,
  operatorId: string,
  { risk, targets }: Pick<ManualChange, 'risk' | 'targets'>,
): Promise<void> {
  if (risk !== 'critical') {
    throw new Problem(
      422,
      'NOT_CRITICAL',
      `This write has ${risk} risk. Only a critical write can be done without a second person: leave "alone" out.`,
    )
  }
  const { role, name } = principal
  const refused =
    role === 'admin' && permissionsOf(principal).includes('decide')
      ? await refusalForRisk(deps.db, operatorId, { risk, incidentType: manualChangeType, targets })
      : `${name} (${role}) may not act without a second person: only an admin may`
  if (refused) throw new Problem(403, 'FORBIDDEN', `${refused}.`)
}

async function outcomeOf({ db, runs }: ApiDeps, incidentId: string): Promise<DirectOutcome> {
  const isStarted = await runs.startManualChange(incidentId)
  const run = { incidentId, attempt: 1 }
  const base = { key: stepKey(run, 1, 'tool_started', 0), incidentId, approvalId: null }
  const untilMs = Date.now() + answerWithinMs
  while (isStarted && Date.now() < untilMs) {
    const incident = await incidentById(db, incidentId)
    if (incident?.status === 'resolved') return { ...base, status: 'done', detail: incident.resolution ?? 'done' }
    const fields = { incidentId, key: base.key }
    if (incident?.status === 'cancelled') throw new Problem(409, 'NOT_DONE', incident.resolution ?? '', { fields })
    // Throws no 5xx: a 5xx would release the key, and a repeat with the key would run the write
    // again.
    if (incident?.status === 'escalated') throw new Problem(409, 'EFFECT_FAILED', incident.resolution ?? '', { fields })
    const approvalId = await pendingApprovalOf(db, run, callId(1, 0))
    if (approvalId) {
      const detail = `Nothing was done yet. ${approvalId} waits for a person who may decide it.`
      return { ...base, status: 'awaiting_approval', approvalId, detail }
    }
    await sleep(lookEveryMs)
  }
  const detail = isStarted
    ? `The write is under way. ${incidentId} shows its result.`
    : `Nothing was done yet, because Temporal does not answer. ${incidentId} begins within a minute after Temporal answers again.`
  return { ...base, status: 'under_way', detail }
}
