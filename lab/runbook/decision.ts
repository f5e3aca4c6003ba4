import type { Claim, Quote } from './claims.ts'
import type { Conversation } from './conversation.ts'

export type Call = { tool: string; args: Record<string, unknown> }

/** One turn of the operator: what it says, and the calls it proposes or the answer it ends with. */
export type Decision = { say: string } & (
  | { calls: Call[] }
  | { answer: { summary: string; confidence: 'high' | 'medium' | 'low' } }
)

export type Outcome = 'repaired' | 'self_resolved' | 'no_fault'

const reasonCharacters = 2000

export function call(tool: string, args: Record<string, unknown>): Call {
  return { tool, args }
}

export function resolve({ context }: Conversation, outcome: Outcome, resolution: string, claims: Claim[]): Decision {
  const args = { id: context!.incident.id, resolution, outcome, claims }
  return { say: resolution, calls: [call('resolve_incident', args)] }
}

/** A reason as long as `escalate_incident` takes, for a plan may have much to say about who stays down. */
export function escalate({ context }: Conversation, text: string): Decision {
  const reason = text.length <= reasonCharacters ? text : `${text.slice(0, reasonCharacters - 1)}…`
  return { say: reason, calls: [call('escalate_incident', { id: context!.incident.id, reason })] }
}

/** Everything is nominal at the first look: closed by itself if the alert says so, else there was no fault to find. */
export function nothingWrong(
  conversation: Conversation,
  what: string,
  quotes: Quote[],
  kind: Claim['kind'] = 'is',
): Decision {
  const ended =
    conversation.context!.alerts.length > 0 && conversation.context!.alerts.every((a) => a.status === 'resolved')
  const resolution = ended
    ? `${what}; the alert has ended by itself.`
    : `${what}; nothing was found that needs a repair.`
  return resolve(conversation, ended ? 'self_resolved' : 'no_fault', resolution, [{ kind, text: what, quotes }])
}
