import { type Claim, quoted, words } from '../claims.ts'
import type { Conversation, Step } from '../conversation.ts'
import { call, type Decision, escalate, resolve } from '../decision.ts'
import { after, done, type Facts, lastVerification, number, object, rows, text } from '../facts.ts'
import { repairShard } from './shard.ts'

/** The last address that a service says it could not listen on, as `127.0.0.1:8080`; null where it says nothing of that. */
export function takenAddress(log: string): string | null {
  const all = [...log.matchAll(/address already in use (127\.0\.0\.1:\d{1,5})\b/g)]
  return all.at(-1)?.[1] ?? null
}

/**
 * Another process has a service's port: look who listens there and whose command line names the address, ask to end it, and only then
 * converge. The log only says where to look; the kernel says that somebody listens, and a person says yes.
 */
export function freePort(conversation: Conversation, node: string, address: string): Decision {
  const { steps } = conversation
  const killed = done(steps, 'proc_kill', node).at(-1)
  if (killed) return bringBack(conversation, node, address, killed)
  const listening = done(steps, 'exec', node).filter(isListening).at(-1)
  const listed = done(steps, 'proc_list', node).at(-1)
  const argv = ['ss', '-ltnpH', 'sport', '=', `:${address.split(':')[1]}`]
  const missing = [
    ...(listening ? [] : [call('exec', { on: node, argv })]),
    ...(listed ? [] : [call('proc_list', { on: node, name: address })]),
  ]
  if (!listening || !listed) return { say: `${node} could not listen on ${address}; I look who does.`, calls: missing }
  const sockets = text(object(listening.result.data), 'stdout') ?? ''
  // That process has gone: what is left is a service that is down.
  if (!sockets.includes(address)) return repairShard(conversation)
  const [found, ...others] = naming(address, listed.result.data)
  const pid = found && number(found, 'pid')
  // A sandboxed look does not see whose socket it is; where it does, both must agree.
  const told = /pid=(\d+)/.exec(sockets)?.[1]
  if (!found || !pid || others.length > 0 || (told !== undefined && told !== String(pid)))
    return escalate(conversation, `Somebody listens on ${address} in place of ${node}: a person must say who.`)
  const name = (text(found, 'cmdline') ?? '').split(' ')[0]!.slice(0, 60)
  return {
    say: `${name} (${pid}) listens on ${address}; I ask to end it.`,
    calls: [
      call('proc_kill', {
        on: node,
        pid,
        start_time: String(found.start_time),
        signal: 'TERM',
        reason: `${name} listens on ${address}, so ${node} cannot come back.`,
      }),
    ],
  }
}

function bringBack(conversation: Conversation, node: string, address: string, killed: Step): Decision {
  const { steps } = conversation
  if (lastVerification([killed, ...after(steps, 'proc_kill')]) === 'not_held')
    return escalate(conversation, `What listens on ${address} was told to end, and still runs.`)
  const next = repairShard(conversation)
  const [ending] = 'calls' in next ? next.calls : []
  // Many turns are gone already: both looks at once.
  if (ending?.tool === 'get_shard')
    return { say: next.say, calls: [ending, call('list_nodes_by_shard', { shard_id: ending.args.id })] }
  if (ending?.tool !== 'resolve_incident' || ending.args.outcome !== 'repaired') return next
  const looks = done(steps, 'exec', node).filter(isListening).slice(0, 1)
  return resolve(
    conversation,
    'repaired',
    `Another process listened on ${address} in place of ${node}; it was ended, and a converge brought ${node} back.`,
    [
      {
        kind: 'was',
        text: `another process listened on ${address}`,
        quotes: looks.flatMap((step) => words(step, address)),
      },
      { kind: 'did', text: 'the other process was ended with approval', quotes: quoted(killed, 'detail') },
      ...(ending.args.claims as Claim[]),
    ],
  )
}

function isListening({ args }: Step): boolean {
  return (args.argv as string[])[0] === 'ss'
}

/** Those that have the address as a word of their command line. A kernel lists who has ended for a moment more. */
function naming(address: string, data: unknown): Facts[] {
  return rows(object(data).processes).filter(
    (process) => text(process, 'state') !== 'Z' && text(process, 'cmdline')?.split(' ').includes(address),
  )
}
