import type { Conversation } from '../conversation.ts'
import { call, type Decision, escalate, nothingWrong, resolve } from '../decision.ts'
import { after, done, lastVerification, number, object, rows, seqs, subject, text } from '../facts.ts'

/** Find the process that the alert names on the node, ask to end it by pid and start time, and look whether it is gone. */
export function endRunaway(conversation: Conversation): Decision {
  const { steps } = conversation
  const node = subject(conversation, 'node')
  const name = conversation.context!.alerts.map(({ labels }) => labels.process).find(Boolean)
  if (!node || !name) return escalate(conversation, 'The alert names no node, or no process on it.')
  const look = call('proc_list', { on: node, name })
  if (done(steps, 'get_node', node).length === 0)
    return { say: `I look up ${node}.`, calls: [call('get_node', { id: node })] }
  const seen = done(steps, 'proc_list', node)
  const killed = done(steps, 'proc_kill', node).at(-1)
  if (killed) {
    const since = done(after(steps, 'proc_kill'), 'proc_list', node)
    if (since.length === 0) return { say: `I look whether ${name} is gone.`, calls: [look] }
    if (processesIn(since.at(-1)!.result.data).length > 0 || lastVerification([killed, ...since]) === 'not_held') {
      return escalate(conversation, `${name} on ${node} was told to end, and still runs.`)
    }
    return resolve(conversation, 'repaired', `${name} on ${node} used up the CPU; it was ended and is gone.`, [
      { text: `${name} ran on ${node}`, evidence: seqs(seen.slice(0, 1)) },
      { text: 'it was ended with approval', evidence: seqs([killed]).slice(0, 1) },
      { text: `no ${name} runs any more`, evidence: seqs(since.slice(-1)) },
    ])
  }
  if (seen.length === 0) return { say: `I look for ${name} on ${node}.`, calls: [look] }
  const [found, ...others] = processesIn(seen.at(-1)!.result.data)
  if (!found) return nothingWrong(conversation, `No ${name} runs on ${node} any more`, seqs(seen.slice(-1)))
  if (others.length > 0)
    return escalate(
      conversation,
      `${others.length + 1} processes named ${name} run on ${node}: a person must say which.`,
    )
  const cpu = Math.round(number(found, 'cpu_seconds') ?? 0)
  return {
    say: `${name} on ${node} has used ${cpu} s of CPU; I ask to end it.`,
    calls: [
      call('proc_kill', {
        ...{ on: node, pid: number(found, 'pid'), start_time: String(found.start_time), signal: 'TERM' },
        reason: `${name} uses up the CPU of ${node}: ${cpu} s so far.`,
      }),
    ],
  }
}

/** A kernel lists who has ended for a moment more. */
function processesIn(data: unknown) {
  return rows(object(data).processes).filter((process) => text(process, 'state') !== 'Z')
}
