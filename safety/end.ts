import { resourceKey } from '../domain/resource.ts'
import { categoryRule, outcomeRule } from './ending.ts'
import type { State } from './fold.ts'
import { phantomOf } from './phantom.ts'
import { type Policy, quote, type Rule, refuse, run } from './ruling.ts'
import { blockedByVerification } from './write.ts'

export type Claim = { text: string; evidence: number[] }

/** An escalation needs one look; a resolution needs evidence, closed verifications and, for a repair, one that held. */
export function terminalRule(args: Record<string, unknown>, state: State, policy: Policy): Rule {
  if (state.diagnostics === 0) {
    return refuse('NO_DIAGNOSTIC', 'nothing was looked at yet', 'Make at least one diagnostic call first.')
  }
  const claims = args.claims as Claim[] | undefined
  if (claims === undefined) {
    return categoryRule(args.category, state, policy) ?? run('TERMINAL', 'a person takes over')
  }
  return (
    (state.open ? blockedByVerification(state.open) : null) ??
    ownTargetRule(state, policy) ??
    evidenceRule(claims, state) ??
    outcomeRule(args.outcome, state, policy) ??
    phantomRule([String(args.resolution ?? ''), ...claims.map((claim) => claim.text)], state) ??
    run('TERMINAL', 'every claim cites rows of this incident')
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
export function evidenceRule(claims: readonly Claim[], state: State): Rule | null {
  for (const claim of claims) {
    const missing = claim.evidence.filter((seq) => !state.evidence.has(seq))
    if (missing.length === 0) continue
    return refuse(
      'EVIDENCE_MISSING',
      `the claim ${quote(claim.text)} cites ${missing.join(', ')}, which is no successful row of this incident`,
      `Cite meta.seq of successful results: ${[...state.evidence].slice(-20).join(', ')}`,
      { missing },
    )
  }
  return null
}

/** Words are weighed last and only once: structure decides, and an honest text that sounds wrong gets through the second time. */
function phantomRule(texts: readonly string[], state: State): Rule | null {
  if (state.phantoms > 0) return null
  for (const text of texts) {
    const phantom = phantomOf(text, { writes: state.writes.length, reads: state.reads })
    if (!phantom) continue
    return refuse(
      'PHANTOM_CLAIM',
      `${quote(phantom.phrase)} claims what no row of this attempt shows (${phantom.category})`,
      'Say only what results show, then send the call again.',
      { category: phantom.category },
    )
  }
  return null
}
