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

/** The activities by which a run in Temporal weighs decisions and reads what was decided. */
export function approvalActivities({ db }: { db: Db }) {
  return {
    /** One decision by Temporal: runs that began with version 0.1.0 send them one by one. */
    async decide(incidentId: string, message: DecideMessage & { via: string }): Promise<DecideAnswer> {
      await assertOwnRun(db, await ownRunOf(db, incidentId))
      return await decideByToken(db, incidentId, message, message.via === 'update' ? 'update' : 'signal')
    },

    /** Weighs decisions that came through Temporal, in their order, and answers each. */
    async decideAll(incidentId: string, attempt: number, batch: ReceivedDecision[]): Promise<DecideAnswer[]> {
      await assertOwnRun(db, { incidentId, attempt })
      return await weighAll(db, { incidentId, attempt }, batch)
    },

    /** Does a person want this run to stop? A signal alone says nothing about who sent it. */
    async isStopWanted(incidentId: string, attempt: number): Promise<boolean> {
      if ((await assertOwnRun(db, { incidentId, attempt })) === 'closed') return true
      return (await stopRequest(db, incidentId, attempt)) !== null
    },

    /** The row that a waiting run goes by. A denied or withdrawn one lets the incident work on. */
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
      // No signal wakes a run that joined another incident's approval: it looks by itself.
      return {
        status: read.status,
        remainingMs: isJoined ? Math.min(read.remainingMs, joinedLookMs) : read.remainingMs,
      }
    },
  }
}

export type ApprovalActivities = ReturnType<typeof approvalActivities>

/**
 * Decides by the function of every other door. `by` in a message is ignored: the token says who
 * decides.
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
 * One query finds messages without a valid token, so that a flood of forgeries costs little. A
 * token that decided nothing is void then: everybody who may read the workflow's history can read
 * it.
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
    // One that was spent for this very decision stays as it is.
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
  message: 'this holds no decision with a valid token',
}

function getTokenTexts({ message, texts }: ReceivedDecision): string[] {
  return message ? [message.token, ...texts] : texts
}

const bareApprovalText =
  'an approval without a decision token decides nothing: decide on the card, or sign with "nightshift approvals token ID approve"'

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
