import type { Claim } from '../domain/claim.ts'
import { resourceKey } from '../domain/resource.ts'
import { rowsOf, type StoredClaim } from '../domain/stored-claim.ts'
import { claimsRule } from './claims/ending.ts'
import type { Bodies } from './claims/rows.ts'
import { categoryRule, outcomeRule } from './ending.ts'
import type { State } from './fold.ts'
import { type Policy, quote, type Rule, refuse, run } from './ruling.ts'
import { blockedByVerification } from './write.ts'

/** An escalation needs one look; a resolution needs evidence, closed verifications and, for a repair, one that held. */
export function terminalRule(
  args: Record<string, unknown>,
  state: State,
  policy: Policy,
  bodies: Bodies = new Map(),
): Rule {
  if (state.diagnostics === 0) {
    return refuse('NO_DIAGNOSTIC', 'nothing was looked at yet', 'Make at least one diagnostic call first.')
  }
  const claims = args.claims as Claim[] | undefined
  const { rule: unshown, marks } = wordsRule(args, state, policy, bodies)
  if (claims === undefined) {
    const handOver = { ...run('TERMINAL', 'a person takes over'), details: marks }
    return categoryRule(args.category, state, policy) ?? unshown ?? handOver
  }
  return (
    (state.open ? blockedByVerification(state.open) : null) ??
    ownTargetRule(state, policy) ??
    evidenceRule(claims, state) ??
    outcomeRule(args.outcome, state, policy) ??
    unshown ?? { ...run('TERMINAL', 'every claim cites rows of this incident'), details: marks }
  )
}

function ownTargetRule(state: State, { resource, role }: Policy): Rule | null {
  if (!resource || state.lookedAt.has(resourceKey(resource))) return null
  return refuse(
    'OWN_TARGET_UNSEEN',
    role === 'follower'
      ? 'a hint from another incident proves nothing about this one'
      : "the incident's own resource was not looked at",
    `Look at ${resource.kind} ${resource.id} first.`,
    { target: resourceKey(resource) },
  )
}

/** Refuses the first claim that cites what is no successful row; an answer to a question passes here too. */
export function evidenceRule(claims: readonly StoredClaim[], state: State): Rule | null {
  for (const claim of claims) {
    const missing = rowsOf(claim).filter((seq) => !state.evidence.has(seq))
    if (missing.length === 0) continue
    return refuse(
      'EVIDENCE_MISSING',
      `the claim ${quote(claim.text)} cites ${missing.join(', ')}, which is no successful row of this incident`,
      `Quote successful results by meta.seq: ${[...state.evidence].slice(-20).join(', ')}`,
      { missing },
    )
  }
  return null
}

/** Endings that say that all is well without a repair: their claims have to be shown. */
const unshownNever = ['no_fault', 'answered']

/** Words are weighed last: corrected once, then marked, for wording alone keeps no repair from being recorded. */
function wordsRule(args: Record<string, unknown>, state: State, { incidentId }: Policy, bodies: Bodies) {
  const text = String(args.resolution ?? args.reason ?? '')
  const said = { text, claims: (args.claims as Claim[] | undefined) ?? [] }
  return claimsRule(said, state, incidentId, bodies, unshownNever.includes(String(args.outcome)))
}
