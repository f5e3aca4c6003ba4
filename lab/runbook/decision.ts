import type { EscalationCategory } from '../../domain/incident.ts'
import type { Conversation } from './conversation.ts'
import { type Claim, done, number, object, type Quote } from './facts.ts'

export type Call = { tool: string; args: Record<string, unknown> }

/** One turn of the operator: what it says, and the calls it proposes or the answer it ends with. */
export type Decision = { say: string } & (
  | { calls: Call[] }
  | { answer: { summary: string; confidence: 'high' | 'medium' | 'low' } }
)

export type Outcome = 'repaired' | 'self_resolved' | 'no_fault'

const reasonCharacters = 2000
const nextStepCharacters = 1000

export function call(tool: string, args: Record<string, unknown>): Call {
  return { tool, args }
}

export function resolve({ context }: Conversation, outcome: Outcome, resolution: string, claims: Claim[]): Decision {
  const args = { id: context!.incident.id, resolution, outcome, claims }
  return { say: resolution, calls: [call('resolve_incident', args)] }
}

/** Why it goes to a person, and what that person does first: advice is no finding, so no row has to show it. */
export type Handover = { category?: EscalationCategory; nextStep?: string }

/** A reason as long as `escalate_incident` takes, for a plan may have much to say about who stays down. */
export function escalate(
  { context }: Conversation,
  text: string,
  { category, nextStep }: Handover = {},
): Decision & { calls: Call[] } {
  const args = {
    id: context!.incident.id,
    reason: cut(text, reasonCharacters),
    ...(category && { category }),
    ...(nextStep && { next_step: cut(nextStep, nextStepCharacters) }),
  }
  return { say: args.reason, calls: [call('escalate_incident', args)] }
}

function cut(text: string, characters: number): string {
  return text.length <= characters ? text : `${text.slice(0, characters - 1)}…`
}

/**
 * Everything is nominal at the first look. What its alerts do decides: all over, it ended by itself; one that fires is no fault
 * that was found, and for a person; without an alert there was no fault.
 */
export function nothingWrong(
  conversation: Conversation,
  what: string,
  quotes: Quote[],
  kind: Claim['kind'] = 'is',
): Decision {
  const { alerts, incident } = conversation.context!
  const claims = [{ kind, text: what, quotes }]
  if (alerts.length === 0) {
    return resolve(conversation, 'no_fault', `${what}; nothing was found that needs a repair.`, claims)
  }
  const firing = firingNow(conversation)
  if (firing === null) {
    return { say: `${what}. I look whether its alert still fires.`, calls: [call('get_incident', { id: incident.id })] }
  }
  if (firing === 0) return resolve(conversation, 'self_resolved', `${what}; the alert has ended by itself.`, claims)
  return escalate(conversation, `${what}, and its alert fires.`, {
    category: 'no_fault_found',
    nextStep: 'Look at the rule of this alert; mark it as expected if it is, or say what it should have found.',
  })
}

/** How many alerts of the incident fire, by the last read of it; by the context where all had ended. Null: it was not read. */
function firingNow({ context, steps }: Conversation): number | null {
  if (context!.alerts.every(({ status }) => status === 'resolved')) return 0
  const read = done(steps, 'get_incident').at(-1)
  return read ? (number(object(object(read.result.data).alerts), 'firing') ?? context!.alerts.length) : null
}
