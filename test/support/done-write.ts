import type { Db } from '../../db/connect.ts'
import { append } from '../../db/log/append.ts'
import { actionDigest } from '../../domain/digest.ts'
import { agentActor, type EventMetadata } from '../../domain/event.ts'
import type { RecordedUndo } from '../../domain/undo.ts'
import { claimedIncident } from './database.ts'

type Done = {
  tool: string
  arguments: Record<string, unknown>
  targets: EventMetadata['tool_started']['targets']
  risk: EventMetadata['tool_started']['risk']
  outcome?: EventMetadata['tool_finished']['outcome']
  /** Absent: a row of a version that recorded none. */
  undo?: RecordedUndo
  said: string
}

let writes = 0

/**
 * A write of the agent, as its run leaves it in the log of an incident. Without an outcome it goes
 * on.
 */
export async function doneWrite(
  db: Db,
  { tool, arguments: args, targets, risk, outcome, undo, said }: Done,
  incidentId?: string,
): Promise<{ key: string; incidentId: string }> {
  writes += 1
  const id = incidentId ?? (await claimedIncident(db))
  const key = `${id}.1:${writes}:tool_started:0`
  const call = { callId: `c${writes}_0`, tool, arguments: args, effect: 'write' as const, targets }
  const base = { actor: agentActor, turn: writes, detail: tool }
  await db.transaction().execute(async (trx) => {
    await append(trx, id, 1, {
      ...base,
      kind: 'tool_started',
      stepKey: key,
      metadata: { ...call, risk, actionDigest: actionDigest(tool, args), approvalId: null },
    })
    if (outcome)
      await append(trx, id, 1, {
        ...base,
        kind: 'tool_finished',
        stepKey: key.replace('started', 'finished'),
        metadata: {
          ...call,
          outcome,
          result: outcome === 'done' ? { ok: true, meta: {} } : { ok: false, error: failed, meta: {} },
          body: null,
          discovered: [],
          durationMs: 1,
          said,
          changed: outcome === 'done' ? [said] : null,
          ...(undo && { undo }),
        },
      })
  })
  return { key, incidentId: id }
}

const failed = {
  code: 'EXECUTION_FAILED',
  message: 'the platform said no',
  blocked: false,
  failed: true,
  retryable: false,
  details: {},
}
