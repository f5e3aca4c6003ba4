import { sql } from 'kysely'
import { newId } from '../../domain/id.ts'
import type { ResourceRef } from '../../domain/resource.ts'
import type { Preparation, Risk } from '../../domain/tool.ts'
import { cleanse } from '../../safety/cleanse.ts'
import { append } from '../append.ts'
import type { Trx } from '../connect.ts'

export type ApprovalRequest = {
  incidentId: string
  attempt: number
  turn: number
  callId: string
  tool: string
  args: Record<string, unknown>
  targets: ResourceRef[]
  reason: string
  actionDigest: string
  stateFingerprint: string
  risk: Risk
  reversible: boolean
  required: number
  dryRun: Preparation['dryRun']
  expirySeconds: number
  stepKey: string
  replaces: string | null
  actor: string
}

/** Asks: the approval, its row in the log and the incident's status, in the caller's transaction. */
export async function requestApproval(trx: Trx, request: ApprovalRequest): Promise<{ id: string; expiresAt: string }> {
  const { id, expiresAt } = await trx
    .insertInto('approval')
    .values({
      id: newId('apr'),
      incidentId: request.incidentId,
      attempt: request.attempt,
      callId: request.callId,
      tool: request.tool,
      args: JSON.stringify(request.args),
      targets: JSON.stringify(request.targets),
      reason: cleanse(request.reason),
      actionDigest: request.actionDigest,
      stateFingerprint: request.stateFingerprint,
      risk: request.risk,
      reversible: request.reversible,
      required: request.required,
      dryRun: JSON.stringify(cleanse(request.dryRun)),
      expiresAt: sql`nightshift_now() + make_interval(secs => ${request.expirySeconds})`,
    })
    .returning(['id', 'expiresAt'])
    .executeTakeFirstOrThrow()
  await trx
    .updateTable('incident')
    .set({ status: 'awaiting_approval' })
    .where('id', '=', request.incidentId)
    .where('status', '=', 'investigating')
    .execute()
  await append(trx, request.incidentId, request.attempt, {
    kind: 'approval_requested',
    actor: request.actor,
    turn: request.turn,
    stepKey: request.stepKey,
    detail: `Asked for approval: ${request.dryRun.summary}`,
    metadata: {
      approvalId: id,
      callId: request.callId,
      tool: request.tool,
      actionDigest: request.actionDigest,
      risk: request.risk,
      required: request.required,
      targets: request.targets,
      summary: request.dryRun.summary,
      expiresAt,
      replaces: request.replaces,
    },
  })
  return { id, expiresAt }
}
