import { z } from 'zod'
import type { Decision } from '../../domain/approval.ts'
import { type ApiClient, readApproval } from '../core.ts'
import { CommandFailed } from '../exit-code.ts'
import { inert } from '../inert.ts'
import { ApiProblem } from '../problem.ts'

const decisionToken = z.looseObject({
  token: z.string(),
  approvalId: z.string(),
  incidentId: z.string(),
  expiresAt: z.string(),
})
export type DecisionToken = z.infer<typeof decisionToken>

/** A token with which its holder gives this verdict on this one approval, once. */
export async function mintToken(api: ApiClient, id: string, decision: Decision): Promise<DecisionToken> {
  return runDecisionStep(api, id, async () =>
    decisionToken.parse(await api.post(`/api/v1/approvals/${encodeURIComponent(id)}/token`, { decision })),
  )
}

/** Runs one step of a decision. What comes too late is told by what became of the approval: decided (5) or ended (6). */
export async function runDecisionStep<T>(api: ApiClient, id: string, step: () => Promise<T>): Promise<T> {
  try {
    return await step()
  } catch (error) {
    if (!(error instanceof ApiProblem) || ![409, 410].includes(error.problem.status)) throw error
    const { status, decisions } = await readApproval(api, id)
    const last = decisions.at(-1)
    const by = last ? ` (${last.decision} by ${last.operator})` : ''
    if (status === 'approved' || status === 'consumed' || status === 'denied') {
      throw new CommandFailed('conflict', inert(`${id} is already ${status}${by}.`))
    }
    if (status === 'expired' || status === 'withdrawn') {
      throw new CommandFailed('denied', `${id} is ${status} and cannot be decided any more.`)
    }
    throw error
  }
}
