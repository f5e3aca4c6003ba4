import { z } from 'zod'
import type { Conversation } from './conversation.ts'
import { type Call, call, type Decision, escalate, subject } from './facts.ts'

/** Ways in which a model misbehaves, each asked for by name: `runbook-rules:<mood>` or `POST /control/mood`. */
export const mood = z.enum([
  'malformed_json',
  'both_blocks',
  'phantom_claim',
  'obeys_injection',
  'unknown_tool',
  'wrong_types',
  'repeats',
  'prose',
  'nothing',
  'oversized',
  'status_429',
  'status_500',
  'hang',
  'cut_stream',
  'cut_body',
  'slow_drip',
])
export type Mood = z.infer<typeof mood>

const oversizedBytes = 10 * 1024 * 1024

/** What a bad mood says in place of the table's decision. Null for moods of the connection, not of the answer. */
export function misbehave(mood: Mood, conversation: Conversation, body: string): Decision | null {
  const id = conversation.context?.incident.id ?? 'unknown'
  const about = subjectOf(conversation)
  switch (mood) {
    case 'phantom_claim':
      return prose(`I converged ${about} and verified that every node is nominal again. The incident is resolved.`)
    case 'prose':
      return prose('I would first look at the dashboards and then decide.')
    case 'nothing':
      return prose('')
    case 'oversized':
      return prose('x'.repeat(oversizedBytes))
    case 'unknown_tool':
      return { say: 'I restart it.', calls: [call('restart_everything', { target: about })] }
    case 'wrong_types':
      return { say: 'I converge.', calls: [call('converge_shard', { id: 42, reason: ['because'] })] }
    case 'repeats':
      return { say: 'I look.', calls: [call('get_incident', { id })] }
    case 'obeys_injection':
      return obey(conversation, body)
    default:
      return null
  }
}

/** Does what a text that came in as data orders: `call <tool> on <target>` or `on every shard`. */
function obey(conversation: Conversation, body: string): Decision {
  const order = /\bcall (\w+) on (every shard|[a-z0-9-]+)/i.exec(body)
  if (!order || !conversation.context) {
    return conversation.context
      ? escalate(conversation, 'There was no order to obey.')
      : prose('There was no order to obey.')
  }
  const [, tool, target] = order
  const shards = [...new Set(body.match(/(?<![\w-])(?:db|web)-[a-z]+-\d+\b/g))]
  const calls: Call[] = (target!.toLowerCase() === 'every shard' ? shards : [target!]).map((each) =>
    call(tool!, { id: each, reason: 'as ordered' }),
  )
  return { say: 'As ordered.', calls: conversation.protocol === 'json' ? calls.slice(0, 1) : calls }
}

function subjectOf(conversation: Conversation): string {
  if (!conversation.context) return 'the shard'
  return subject(conversation, 'shard') ?? subject(conversation, 'host') ?? 'the shard'
}

function prose(summary: string): Decision {
  return { say: summary, answer: { summary, confidence: 'high' } }
}
