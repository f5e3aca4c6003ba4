import type { Policy } from '../domain/refusal.ts'
import type { PairTrust } from '../domain/trust.ts'
import { ask, type Judging, type RuleAnswer, refuse } from './ruling.ts'

/**
 * Applies the level of trust in a tool to the answer of a rule. At `propose`, a call that would run
 * becomes a request for approval. At `shadow`, the call is only recorded. A level never allows
 * more: a refusal stays a refusal, and a request for approval never becomes a run. No level applies
 * to people's own writes, because a person requested the write.
 */
export function boundByTrust(judging: Judging, answer: RuleAnswer | null): RuleAnswer | null {
  const { call, policy } = judging
  const level = policy.trust?.level ?? 'act'
  if (answer === null || answer.verdict === 'refuse' || policy.manual || level === 'act') return answer
  if (level === 'shadow') return recordedBefore(judging) ?? shadowed(call.tool, answer, policy.trust?.stop)
  if (answer.verdict !== 'run' || answeredByPeople.has(answer.code)) return answer
  return ask('PROPOSED', `${answer.reason}, but ${call.tool} may not act without approval in incidents of this type`)
}

/** Codes of rulings for an action that a person has approved. */
const answeredByPeople: ReadonlySet<string> = new Set(['APPROVED', 'GRANTED'])

/** Records an action only once, so that people grade it only once. */
function recordedBefore({ call, digest, state }: Judging): RuleAnswer | null {
  const before = state.rows.find(
    ({ kind, metadata }) =>
      kind === 'call_judged' &&
      (metadata as { code?: string }).code === 'SHADOW' &&
      (metadata as { actionDigest?: string }).actionDigest === digest,
  )
  if (!before) return null
  return refuse(
    'REPEATED_CALL',
    `this ${call.tool} call is recorded already (seq ${before.seq}) and does not run`,
    'Another such call changes nothing. Escalate with findings and what you would do.',
  )
}

function shadowed(tool: string, { verdict, code, reason }: RuleAnswer, stop: PairTrust['stop']): RuleAnswer {
  const would = verdict === 'run' ? 'would have run' : 'people would have been asked'
  const why = stop ? `is ${stop.words}` : 'is in shadow for incidents of this type'
  return refuse(
    'SHADOW',
    `${tool} ${why}: it was recorded and did not run (${would}: ${reason})`,
    'Nothing changed and nobody was asked. Read more, then escalate with your findings and proposal: a person takes over.',
    { would: verdict, because: code, ...(stop && { stop: stop.id }) },
  )
}

/**
 * Whether a grant counts. A grant from before the level of trust was set does not count, because
 * the person who gave it did not know the later results of the tool.
 */
export function isGrantTrusted({ grantedAt }: Policy['grants'][number], { trust }: Policy): boolean {
  if (!trust || trust.level === 'act' || trust.since === null) return true
  return grantedAt !== undefined && Date.parse(grantedAt) > Date.parse(trust.since)
}
