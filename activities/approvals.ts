import { StaleRunError } from '../db/append.ts'
import { decide } from '../db/approvals/decide.ts'
import { readDecision } from '../db/approvals/settle.ts'
import { tokensAmong, voidToken } from '../db/approvals/tokens.ts'
import type { Db } from '../db/connect.ts'
import { lockIncident, setWaiting } from '../db/incidents.ts'
import { recordSecurityEvent } from '../db/security-events.ts'
import { stopWish } from '../db/taker.ts'
import type { DecideAnswer, DecideMessage, Heard } from '../workflows/messages.ts'
import type { DecisionStatus } from '../workflows/outcome.ts'
import { assertOwnRun, ownRunOf } from './own-run.ts'

const joinedLookMs = 5_000

export function approvalActivities({ db }: { db: Db }) {
  /** Judges one decision by the same function as every other door. `by` is not even read. */
  async function weigh(incidentId: string, message: DecideMessage, via: 'signal' | 'update'): Promise<DecideAnswer> {
    const { token, decision, approvalId, reason } = message
    const outcome = await decide(db, {
      approvalId: typeof approvalId === 'string' ? approvalId : null,
      incidentId,
      token: typeof token === 'string' ? token : '',
      decision: decision === 'approve' ? 'approve' : 'deny',
      reason: typeof reason === 'string' ? reason.slice(0, 2000) : null,
      via,
    })
    return {
      outcome: outcome.outcome,
      status: 'status' in outcome ? outcome.status : null,
      message: 'message' in outcome ? outcome.message : null,
    }
  }

  return {
    /** One decision that came through Temporal: runs that began with version 0.1.0 send them one by one. */
    async decide(incidentId: string, message: DecideMessage & { via: string }): Promise<DecideAnswer> {
      await assertOwnRun(db, await ownRunOf(db, incidentId))
      return await weigh(incidentId, message, message.via === 'update' ? 'update' : 'signal')
    },

    /**
     * Judges decisions that came through Temporal, in their order, and answers each. One query finds those without a valid token, so that
     * a flood of forgeries costs little. A token that decided nothing is void afterwards: everyone who may read the workflow's
     * history can read it.
     */
    async decideAll(incidentId: string, attempt: number, heard: Heard[]): Promise<DecideAnswer[]> {
      await assertOwnRun(db, { incidentId, attempt })
      const known = await tokensAmong(db, [...new Set(heard.flatMap(textsOf))])
      const forged = heard.filter((each) => !textsOf(each).some((text) => known.has(text)))
      if (forged.length > 0) await recordForgeries(db, incidentId, forged)
      const answers: DecideAnswer[] = []
      for (const each of heard) {
        const { message, door } = each
        const answer = message && known.has(message.token) ? await weigh(incidentId, message, door) : noDecision
        answers.push(answer)
        // One that was spent for this very decision stays as it is.
        for (const text of textsOf(each)) if (known.has(text)) await voidToken(db, text, door)
      }
      return answers
    },

    /** Does a person want this run to stop? A signal alone says nothing about who sent it. */
    async isStopWanted(incidentId: string, attempt: number): Promise<boolean> {
      if ((await assertOwnRun(db, { incidentId, attempt })) === 'closed') return true
      return (await stopWish(db, incidentId, attempt)) !== null
    },

    /** The row a waiting run goes by. A settled one puts the incident back to work. */
    async readDecision(
      incidentId: string,
      attempt: number,
      approvalId: string,
    ): Promise<{ status: DecisionStatus; remainingMs: number }> {
      await assertOwnRun(db, { incidentId, attempt })
      const read = await readDecision(db, approvalId)
      if (!read) return { status: 'withdrawn', remainingMs: 0 }
      if (read.status === 'denied' || read.status === 'withdrawn') {
        await db.transaction().execute(async (trx) => {
          const row = await lockIncident(trx, incidentId)
          if (row?.attempt !== attempt) throw new StaleRunError(incidentId, attempt, row?.attempt ?? 0)
          await setWaiting(trx, incidentId, false)
        })
      }
      // Nobody wakes a run that joined another incident's approval: it looks by itself.
      const joined = read.incidentId !== incidentId
      return { status: read.status, remainingMs: joined ? Math.min(read.remainingMs, joinedLookMs) : read.remainingMs }
    },
  }
}

export type ApprovalActivities = ReturnType<typeof approvalActivities>

const noDecision: DecideAnswer = {
  outcome: 'forbidden',
  status: null,
  message: 'this holds no decision with a valid token',
}

function textsOf({ message, texts }: Heard): string[] {
  return message ? [message.token, ...texts] : texts
}

async function recordForgeries(db: Db, incidentId: string, forged: readonly Heard[]): Promise<void> {
  const [first] = forged
  await db.transaction().execute(async (trx) => {
    if (!(await lockIncident(trx, incidentId))) return
    await recordSecurityEvent(trx, incidentId, {
      code: 'UNKNOWN_TOKEN',
      door: first?.door ?? 'signal',
      subject: 'unknown',
      detail: `${forged.length === 1 ? '1 message was' : `${forged.length} messages were`} refused: no valid decision token`,
    })
  })
}
