import type { Conversation } from '../conversation.ts'
import { type Call, call, type Decision, done, escalate, healthIn, object, rows, seqs, text } from '../facts.ts'

const resourceId = /\b(?:node-)?(?:db|web)-[a-z]+-\d+[a-z]?\b|\bhost-[a-z]+-\d+\b|\bvm-\d+\b|\btenant-\d+\b/

/** A question: find what it is about, read it, and answer in prose. */
export function answerQuestion(conversation: Conversation): Decision {
  const { incident } = conversation.context!
  const id = incident.resource?.id ?? resourceId.exec(incident.title)?.[0] ?? null
  if (!id) return prose('The question names nothing that I could look up.', 'low')
  const found = done(conversation.steps, 'find_resource', id).at(-1)
  if (!found) return { say: `I look up ${id}.`, calls: [call('find_resource', { text: id })] }
  const look = lookAt(id)
  const read = look && done(conversation.steps, look.tool, id).at(-1)
  if (look && !read) return { say: `I read ${id}.`, calls: [look] }
  const data = read ? read.result.data : rows(found.result.data)[0]
  const facts = object(data)
  const state = healthIn(data) ?? text(facts, 'state', 'host') ?? 'known, but its state is not told'
  const reason = text(facts, 'reason')
  const evidence = seqs(read ? [read] : [found]).join(', ')
  return prose(`${id}: ${state}${reason ? `, ${reason}` : ''} (evidence: ${evidence}).`, 'high')
}

/** A type without a playbook: find what can be found, read the incident, and hand it to a person. */
export function lookAndEscalate(conversation: Conversation): Decision {
  const { incident } = conversation.context!
  const id = incident.resource?.id
  if (id && conversation.steps.every(({ tool }) => tool !== 'find_resource')) {
    return { say: `I look up ${id}.`, calls: [call('find_resource', { text: id })] }
  }
  if (done(conversation.steps, 'get_incident').length === 0) {
    return { say: 'I read the incident.', calls: [call('get_incident', { id: incident.id })] }
  }
  return escalate(
    conversation,
    `There is no runbook for incidents of type ${incident.type}; a person must look at "${incident.title}".`,
    { category: 'no_tool' },
  )
}

function lookAt(id: string): Call | null {
  if (id.startsWith('node-')) return call('get_node', { id })
  if (id.startsWith('vm-')) return call('current_vm_host', { vm: id })
  if (id.startsWith('tenant-')) return call('get_tenant', { id })
  if (id.startsWith('host-')) return null
  return call('get_shard', { id })
}

function prose(summary: string, confidence: 'high' | 'low'): Decision {
  return { say: summary, answer: { summary, confidence } }
}
