import { mintDecisionToken, type SaidDecision } from '../../db/approvals/tokens.ts'
import type { Db } from '../../db/connect.ts'
import type { TokenPurpose } from '../../domain/approval.ts'
import type { Principal } from '../../domain/permissions.ts'

/** A token of this person for this decision on this approval; throws what the API would answer. */
export async function mintedToken(
  db: Db,
  person: Principal,
  approvalId: string,
  said: SaidDecision,
  purpose: TokenPurpose = 'decision',
): Promise<string> {
  const minted = await mintDecisionToken(db, person, approvalId, said, purpose)
  if (minted.outcome !== 'minted') throw new Error(`${minted.outcome}: ${minted.message}`)
  return minted.token
}
