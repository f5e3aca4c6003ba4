import { ensureOperator } from '../../db/access/tokens.ts'
import { markCardLead, requestApproval } from '../../db/approvals/ask.ts'
import { consumeApproval } from '../../db/approvals/settle.ts'
import type { Db } from '../../db/connect.ts'
import { setWaiting } from '../../db/incidents/incidents.ts'
import { append } from '../../db/log/append.ts'
import { actionDigest } from '../../domain/digest.ts'
import { agentActor, type EventKind, type NewEvent } from '../../domain/event.ts'
import type { ResourceRef } from '../../domain/registry.ts'
import type { Preparation, Risk } from '../../domain/tool.ts'

let calls = 0

/** A call as a run announces it before it sends it: answers the step key. */
export async function announced(
  db: Db,
  incidentId: string,
  tool: string,
  identity: Record<string, unknown>,
  approvalId: string | null = null,
  effect: 'read' | 'write' = 'write',
): Promise<string> {
  calls += 1
  const stepKey = `${incidentId}.1:${calls}:tool_started:0`
  await db.transaction().execute((trx) =>
    append(trx, incidentId, 1, {
      kind: 'tool_started',
      actor: agentActor,
      turn: calls,
      stepKey,
      detail: `Calling tool: ${tool}`,
      metadata: {
        callId: `c${calls}_0`,
        tool,
        arguments: identity,
        effect,
        risk: 'low',
        targets: [],
        actionDigest: actionDigest(tool, identity),
        approvalId,
      },
    }),
  )
  return stepKey
}

/** An approval that is asked, as a run does it. */
export async function asked(
  db: Db,
  incidentId: string,
  more: {
    tool?: string
    identity?: Record<string, unknown>
    targets?: ResourceRef[]
    expirySeconds?: number
    required?: number
    summary?: string
    risk?: Risk
    /** The first approval of a card, for another call of the same answer. */
    askedWith?: string
    dryRun?: Preparation['dryRun']
  } = {},
): Promise<string> {
  calls += 1
  const tool = more.tool ?? 'execute_migration'
  const turn = more.askedWith === undefined ? calls : 1
  const callId = more.askedWith === undefined ? `c${calls}_0` : `c1_${calls}`
  const { id } = await db.transaction().execute((trx) =>
    requestApproval(trx, {
      incidentId,
      attempt: 1,
      turn,
      callId,
      tool,
      args: more.identity ?? {},
      targets: more.targets ?? [],
      reason: 'the host is dead',
      actionDigest: actionDigest(tool, more.identity ?? {}),
      stateFingerprint: '',
      risk: more.risk ?? 'high',
      reversible: true,
      required: more.required ?? 1,
      replaces: null,
      actor: agentActor,
      dryRun: more.dryRun ?? { possible: true, summary: more.summary ?? 'Start 2 VMs', details: {} },
      expirySeconds: more.expirySeconds ?? 600,
      askedWith: more.askedWith ?? null,
      isAnnounced: more.askedWith === undefined,
      stepKey: `${incidentId}.1:${calls}:approval_requested:0`,
    }),
  )
  if (more.askedWith !== undefined) await db.transaction().execute((trx) => markCardLead(trx, more.askedWith as string))
  return id
}

/** A person approves what is asked, without the doors that lead there. */
export async function approvedBySomebody(db: Db, approvalId: string): Promise<void> {
  const operatorId = await ensureOperator(db, 'approver of a test', 'admin')
  await db
    .insertInto('approvalDecision')
    .values({ approvalId, operatorId, decision: 'approve', reason: null, category: null, via: 'api' })
    .execute()
  const now = { status: 'approved', useBy: '2099-01-01T00:00:00Z' } as const
  await db.updateTable('approval').set(now).where('id', '=', approvalId).execute()
}

/** What a run does with an approval just before it announces the action. */
export async function consumed(db: Db, incidentId: string, approvalId: string): Promise<void> {
  await db.transaction().execute(async (trx) => {
    if (!(await consumeApproval(trx, approvalId))) throw new Error('the approval cannot be used')
    await setWaiting(trx, incidentId, false)
  })
}

/** Rows of the call that an approval is about, as they are written while it runs. */
export async function wroteRows(
  db: Db,
  approvalId: string,
  rows: readonly { kind: EventKind; [field: string]: unknown }[],
): Promise<void> {
  const { incidentId, callId, tool } = await db
    .selectFrom('approval')
    .select(['incidentId', 'callId', 'tool'])
    .where('id', '=', approvalId)
    .executeTakeFirstOrThrow()
  for (const { kind, ...more } of rows) {
    calls += 1
    const common = {
      callId,
      tool,
      arguments: {},
      effect: 'write',
      risk: 'high',
      targets: [],
      actionDigest: '',
      approvalId,
    }
    const result = {
      result: { ok: true, data: {}, meta: {} },
      body: null,
      discovered: [],
      durationMs: 2_000,
      outcome: 'done',
    }
    const event = {
      kind,
      actor: agentActor,
      turn: 1,
      detail: `${kind} of ${tool}`,
      stepKey: `${incidentId}.1:1:${kind}:${calls}`,
      metadata: { ...common, ...(kind === 'tool_finished' ? result : {}), ...more },
    } as unknown as NewEvent
    await db.transaction().execute((trx) => append(trx, incidentId, 1, event))
  }
}

/**
 * A write as a run sends it after a person approved it: answers what its request needs beside its
 * body.
 */
export async function approvedWrite(
  api: { db: Db; tokens: { agent: string } },
  tool: string,
  identity: Record<string, unknown>,
  ofIncident: string | null = null,
): Promise<{ as: string; key: string }> {
  // A bench announces as well, and has no jest.
  const { claimedIncident } = await import('./database.ts')
  const incidentId = ofIncident ?? (await claimedIncident(api.db))
  const approval = await asked(api.db, incidentId, { tool, identity })
  await approvedBySomebody(api.db, approval)
  await consumed(api.db, incidentId, approval)
  return { as: api.tokens.agent, key: await announced(api.db, incidentId, tool, identity, approval) }
}
