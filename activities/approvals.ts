import { StaleRunError } from '../db/append.ts'
import { decide } from '../db/approvals/decide.ts'
import { readDecision } from '../db/approvals/settle.ts'
import type { Db } from '../db/connect.ts'
import { lockIncident, setWaiting } from '../db/incidents.ts'
import type { DecideAnswer, DecideMessage } from '../workflows/messages.ts'
import type { DecisionStatus } from '../workflows/outcome.ts'

const joinedLookMs = 5_000

export function approvalActivities({ db }: { db: Db }) {
  return {
    /** Judges a decision that came through Temporal, by the same function as every other door. `by` is not even read. */
    async decide(incidentId: string, message: DecideMessage & { via: string }): Promise<DecideAnswer> {
      const { token, decision, approvalId, reason, via } = message
      const outcome = await decide(db, {
        approvalId: typeof approvalId === 'string' ? approvalId : null,
        incidentId,
        token: typeof token === 'string' ? token : '',
        decision,
        reason: typeof reason === 'string' ? reason.slice(0, 2000) : null,
        via,
      })
      return {
        outcome: outcome.outcome,
        status: 'status' in outcome ? outcome.status : null,
        message: 'message' in outcome ? outcome.message : null,
      }
    },

    /** The row a waiting run goes by. A settled one puts the incident back to work. */
    async readDecision(
      incidentId: string,
      attempt: number,
      approvalId: string,
    ): Promise<{ status: DecisionStatus; remainingMs: number }> {
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
