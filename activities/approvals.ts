import { decide } from '../db/approvals/decide.ts'
import { tellJoined } from '../db/approvals/join.ts'
import { readDecision } from '../db/approvals/settle.ts'
import { tokensAmong, voidToken } from '../db/approvals/tokens.ts'
import { withdrawAtTemporal } from '../db/approvals/withdraw-at-temporal.ts'
import type { Db } from '../db/connect.ts'
import { lockIncident, setWaiting } from '../db/incidents/incidents.ts'
import { stopRequest } from '../db/incidents/stop-requests.ts'
import { StaleRunError } from '../db/log/append.ts'
import { recordSecurityEvent } from '../db/log/audit.ts'
import type { RunRef } from '../domain/step-key.ts'
import type { DecideAnswer, DecideMessage, DecisionStatus, ReceivedDecision } from '../workflows/outcome.ts'
import { assertOwnRun, ownRunOf } from './own-run.ts'

const joinedLookMs = 5_000

/** Activities by which a run in Temporal handles decisions and reads approvals. */
export function approvalActivities({ db }: { db: Db }) {
  return {
    /**
     * Handles one decision from Temporal, for runs of version 0.1.0, which send decisions one by
     * one.
     */
    async decide(incidentId: string, message: DecideMessage & { via: string }): Promise<DecideAnswer> {
      await assertOwnRun(db, await ownRunOf(db, incidentId))
      return await decideByToken(db, incidentId, message, message.via === 'update' ? 'update' : 'signal')
    },

    /** Handles decisions from Temporal in order, and returns an answer for each. */
    async decideAll(incidentId: string, attempt: number, batch: ReceivedDecision[]): Promise<DecideAnswer[]> {
      await assertOwnRun(db, { incidentId, attempt })
      return await weighAll(db, { incidentId, attempt }, batch)
    },

    /**
     * Whether a person wants this run to stop. Reads a row, because a signal does not show its
     * sender.
     */
    async isStopWanted(incidentId: string, attempt: number): Promise<boolean> {
      if ((await assertOwnRun(db, { incidentId, attempt })) === 'closed') return true
      return (await stopRequest(db, incidentId, attempt)) !== null
    },

    /**
     * Reads the approval for which a run waits. The run also continues after a denial or a
     * withdrawal.
     */
    async readDecision(
      incidentId: string,
      attempt: number,
      approvalId: string,
    ): Promise<{ status: DecisionStatus; remainingMs: number }> {
      await assertOwnRun(db, { incidentId, attempt })
      const read = await readDecision(db, approvalId)
      if (!read) return { status: 'withdrawn', remainingMs: 0 }
      const isJoined = read.incidentId !== incidentId
      if (isJoined) await tellJoined(db, { incidentId, attempt }, { id: approvalId, ...read })
      if (read.status === 'denied' || read.status === 'withdrawn') await returnToWork(db, incidentId, attempt)
      // Limits the wait of a run that joined another incident's approval. No signal wakes that run,
      // so it reads the approval again after this time.
      return {
        status: read.status,
        remainingMs: isJoined ? Math.min(read.remainingMs, joinedLookMs) : read.remainingMs,
      }
    },
  }
}

export type ApprovalActivities = ReturnType<typeof approvalActivities>

/**
 * Decides with the function that all ways of deciding share. Ignores `by` in a message, because the
 * token identifies the person.
 */
async function decideByToken(
  db: Db,
  incidentId: string,
  message: DecideMessage,
  via: 'signal' | 'update',
): Promise<DecideAnswer> {
  const { token, decision, approvalId, reason } = message
  const outcome = await decide(db, {
    approvalId: typeof approvalId === 'string' ? approvalId : null,
    incidentId,
    token: typeof token === 'string' ? token : '',
    decision: decision === 'approve' ? 'approve' : 'deny',
    reason: typeof reason === 'string' ? reason.slice(0, 2000) : null,
    caller: null,
    via,
  })
  return {
    outcome: outcome.outcome,
    status: 'status' in outcome ? outcome.status : null,
    message: 'message' in outcome ? outcome.message : null,
  }
}

/**
 * Finds the messages without a valid token by one query, so that forgeries cost little. Voids a
 * valid token that decided nothing, because readers of the workflow's history can see the token.
 */
async function weighAll(db: Db, run: RunRef, batch: ReceivedDecision[]): Promise<DecideAnswer[]> {
  const { incidentId } = run
  const isWithdrawn = batch.some(({ bare }) => bare === 'deny') && (await withdrawAtTemporal(db, run))
  const valid = await tokensAmong(db, [...new Set(batch.flatMap(getTokenTexts))])
  const isHeard = ({ bare }: ReceivedDecision) => bare === 'deny' && isWithdrawn
  const forged = batch.filter((each) => !isHeard(each) && !getTokenTexts(each).some((text) => valid.has(text)))
  if (forged.length > 0) await recordForgeries(db, incidentId, forged)
  const answers: DecideAnswer[] = []
  for (const each of batch) {
    const { message, door } = each
    if (isHeard(each)) {
      answers.push({ outcome: 'recorded', status: 'withdrawn', message: 'withdrawn at Temporal' })
      continue
    }
    answers.push(message && valid.has(message.token) ? await decideByToken(db, incidentId, message, door) : noDecision)
    // Voids each valid token of the message. A token that was spent for this decision stays
    // unchanged.
    for (const text of getTokenTexts(each)) if (valid.has(text)) await voidToken(db, text, door)
  }
  return answers
}

async function returnToWork(db: Db, incidentId: string, attempt: number): Promise<void> {
  await db.transaction().execute(async (trx) => {
    const row = await lockIncident(trx, incidentId)
    if (row?.attempt !== attempt) throw new StaleRunError(incidentId, attempt, row?.attempt ?? 0)
    await setWaiting(trx, incidentId, false)
  })
}

const noDecision: DecideAnswer = {
  outcome: 'forbidden',
  status: null,
  message: 'this is not a decision with a valid token',
}

function getTokenTexts({ message, texts }: ReceivedDecision): string[] {
  return message ? [message.token, ...texts] : texts
}

const bareApprovalText =
  'an approval without a decision token does not count: decide on the card, or sign with "nightshift approvals token ID approve"'

async function recordForgeries(db: Db, incidentId: string, forged: readonly ReceivedDecision[]): Promise<void> {
  const [first] = forged
  await db.transaction().execute(async (trx) => {
    if (!(await lockIncident(trx, incidentId))) return
    const isBareYes = forged.every(({ bare }) => bare === 'approve')
    await recordSecurityEvent(trx, incidentId, {
      code: isBareYes ? 'BARE_APPROVAL' : 'UNKNOWN_TOKEN',
      door: first?.door ?? 'signal',
      subject: 'unknown',
      detail: isBareYes
        ? bareApprovalText
        : `${forged.length === 1 ? '1 message was' : `${forged.length} messages were`} refused: no valid decision token`,
    })
  })
}
