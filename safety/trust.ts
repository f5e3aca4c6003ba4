import type { Policy } from '../domain/refusal.ts'
import type { PairTrust } from '../domain/trust.ts'
import { ask, type Judging, type RuleAnswer, refuse } from './ruling.ts'

/**
 * A tool's level, applied to an answer: it makes a run a question, and either of them a record. It
 * allows nothing: a refusal stays one, and a question is never a run. People trusted their own
 * writes when they asked.
 */
export function boundByTrust(judging: Judging, answer: RuleAnswer | null): RuleAnswer | null {
  const { call, policy } = judging
  const level = policy.trust?.level ?? 'act'
  if (answer === null || answer.verdict === 'refuse' || policy.manual || level === 'act') return answer
  if (level === 'shadow') return recordedBefore(judging) ?? shadowed(call.tool, answer, policy.trust?.stop)
  if (answer.verdict !== 'run' || answeredByPeople.has(answer.code)) return answer
  return ask('PROPOSED', `${answer.reason}, but ${call.tool} is not trusted to act unasked in incidents of this type`)
}

/** A person has said yes to this very action. */
const answeredByPeople: ReadonlySet<string> = new Set(['APPROVED', 'GRANTED'])

/** One action is one record: people grade it once. */
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
    `${call.tool} was recorded for exactly this already (seq ${before.seq}), and is not carried out`,
    'Asking again changes nothing. Escalate with what you found and what you would do.',
  )
}

function shadowed(tool: string, { verdict, code, reason }: RuleAnswer, stop: PairTrust['stop']): RuleAnswer {
  const would = verdict === 'run' ? 'would have run' : 'people would have been asked'
  const why = stop ? `is ${stop.words}` : 'is in shadow for incidents of this type'
  return refuse(
    'SHADOW',
    `${tool} ${why}: it was recorded and not carried out (${would}: ${reason})`,
    'Nothing was changed and nobody was asked. Look on, then escalate with what you found and what you would do: the incident is a person’s.',
    { would: verdict, because: code, ...(stop && { stop: stop.id }) },
  )
}

/** A grant from before the level was set says nothing about what was learned since. */
export function isGrantTrusted({ grantedAt }: Policy['grants'][number], { trust }: Policy): boolean {
  if (!trust || trust.level === 'act' || trust.since === null) return true
  return grantedAt !== undefined && Date.parse(grantedAt) > Date.parse(trust.since)
}
