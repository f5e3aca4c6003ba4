import { absent, type Claim, quoted, quotedOf } from '../claims.ts'
import type { Conversation, Result, Step } from '../conversation.ts'
import { call, type Decision, escalate, nothingWrong, resolve } from '../decision.ts'
import { after, done, lastVerification, number, object, rows, subject, text } from '../facts.ts'

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
      {
        kind: 'was',
        text: `${name} ran on ${node}`,
        quotes: seen
          .slice(0, 1)
          .flatMap((step) => quotedOf(step, processesIn(step.result.data)[0] ?? {}, 'name', 'pid')),
      },
      { kind: 'did', text: `${name} was ended with approval`, quotes: quoted(killed, 'detail') },
      goneFrom(since.at(-1)!, name, 'any more'),
    ])
  }
  if (seen.length === 0) return { say: `I look for ${name} on ${node}.`, calls: [look] }
  const [found, ...others] = processesIn(seen.at(-1)!.result.data)
  if (!found)
    return nothingWrong(
      conversation,
      `No ${name} runs on ${node} any more`,
      goneFrom(seen.at(-1)!, name, '').quotes,
      goneFrom(seen.at(-1)!, name, '').kind,
    )
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
        on: node,
        pid: number(found, 'pid'),
        start_time: String(found.start_time),
        signal: 'TERM',
        reason: `${name} uses up the CPU of ${node}: ${cpu} s so far.`,
      }),
    ],
  }
}

/** Nobody of that name is listed; or, as a kernel does for a moment, one that has ended is. */
function goneFrom(step: Step & { result: Result }, name: string, when: string): Claim {
  const [ended] = rows(object(step.result.data).processes)
  return ended
    ? { kind: 'is', text: `no ${name} runs ${when}`.trim(), quotes: quotedOf(step, ended, 'state') }
    : absent(`no ${name} runs ${when}`.trim(), [step], name)
}

/** A kernel lists who has ended for a moment more. */
function processesIn(data: unknown) {
  return rows(object(data).processes).filter((process) => text(process, 'state') !== 'Z')
}
