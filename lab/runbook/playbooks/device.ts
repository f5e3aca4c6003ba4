import type { Conversation, RunbookStep, ToolResult } from '../conversation.ts'
import {
  call,
  claimAbsent,
  done,
  escalate,
  type Facts,
  lastVerification,
  nothingWrong,
  number,
  type OperatorTurn,
  object,
  quoted,
  quotedOf,
  type RunbookClaim,
  resolve,
  rows,
  stepsAfter,
  subject,
  text,
  words,
} from '../facts.ts'
import { repairShard } from './shard.ts'

/**
 * Finds the last address in a log on which the service could not listen, for example
 * `127.0.0.1:8080`. Null for no address.
 */
export function takenAddress(log: string): string | null {
  const all = [...log.matchAll(/address already in use (127\.0\.0\.1:\d{1,5})\b/g)]
  return all.at(-1)?.[1] ?? null
}

/**
 * Handles another process on a service's port. Finds the process that listens on the address, or
 * whose command line names the address. Asks to end this process, and only then converges the
 * shard. The log shows only where to look. The kernel names the listener, and a person approves.
 */
export function freePort(conversation: Conversation, node: string, address: string): OperatorTurn {
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
  if (!listening || !listed)
    return { say: `${node} could not listen on ${address}; I check which process does.`, calls: missing }
  const sockets = text(object(listening.result.data), 'stdout') ?? ''
  // Repairs only the service if the other process is gone.
  if (!sockets.includes(address)) return repairShard(conversation)
  const [found, ...others] = naming(address, listed.result.data)
  const pid = found && number(found, 'pid')
  // Requires the socket's owner to be the found process, if the command sees the owner. A sandboxed
  // command does not see it.
  const told = /pid=(\d+)/.exec(sockets)?.[1]
  if (!found || !pid || others.length > 0 || (told !== undefined && told !== String(pid)))
    return escalate(
      conversation,
      `An unknown process listens on ${address} in place of ${node}, and a person must find that process.`,
    )
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

function bringBack(conversation: Conversation, node: string, address: string, killed: RunbookStep): OperatorTurn {
  const { steps } = conversation
  if (lastVerification([killed, ...stepsAfter(steps, 'proc_kill')]) === 'not_held')
    return escalate(conversation, `The process that listens on ${address} received a signal to end, and still runs.`)
  const next = repairShard(conversation)
  const [ending] = 'calls' in next ? next.calls : []
  // Requests both reads in one turn, to save turns.
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
      ...(ending.args.claims as RunbookClaim[]),
    ],
  )
}

function isListening({ args }: RunbookStep): boolean {
  return (args.argv as string[])[0] === 'ss'
}

/**
 * Lists processes whose command line contains the address as a word. Ignores an ended process,
 * which the kernel lists for a moment longer.
 */
function naming(address: string, data: unknown): Facts[] {
  return rows(object(data).processes).filter(
    (process) => text(process, 'state') !== 'Z' && text(process, 'cmdline')?.split(' ').includes(address),
  )
}

/**
 * Reads which package the node lacks, checks that a repository has the package, asks to install the
 * package, and checks that the node is nominal.
 */
export function installMissing(conversation: Conversation): OperatorTurn {
  const { steps } = conversation
  const node = subject(conversation, 'node')
  const name = conversation.context!.alerts.map(({ labels }) => labels.package).find(Boolean)
  if (!node || !name) return escalate(conversation, 'The alert names no node, or no missing package.')
  const read = done(steps, 'get_node', node)
  if (read.length === 0) return { say: `I look up ${node}.`, calls: [call('get_node', { id: node })] }

  const installed = done(steps, 'pkg_install', node).at(-1)
  if (!installed) {
    const facts = object(read.at(-1)!.result.data)
    if (text(facts, 'status') === 'nominal')
      return nothingWrong(conversation, `${node} is nominal`, quoted(read.at(-1)!, 'status'))
    // Escalates if the package is no longer missing, which the alert cannot show.
    if (!text(facts, 'reason')?.includes(name))
      return escalate(conversation, `${node} is ${text(facts, 'status')}, and does not report that ${name} is missing.`)
    const found = done(steps, 'pkg_search', node).at(-1)
    if (!found)
      return {
        say: `${node} reports that ${name} is missing; I check whether a repository has it.`,
        calls: [call('pkg_search', { on: node, text: name })],
      }
    if (!rows(object(found.result.data).packages).some((each) => text(each, 'name') === name))
      return escalate(conversation, `No repository of ${node} has ${name}.`)
    return {
      say: `The repository of ${node} has ${name}; I ask to install it.`,
      calls: [
        call('pkg_install', {
          on: node,
          packages: [name],
          reason: `The newest release on ${node} needs ${name}, which is not installed.`,
        }),
      ],
    }
  }

  const since = stepsAfter(steps, 'pkg_install')
  const [looked] = done(since, 'node_health', node).slice(-1)
  if (!looked) return { say: `I check whether ${node} is healthy.`, calls: [call('node_health', { node })] }
  const status = text(object(looked.result.data), 'status')
  if (status !== 'nominal' || lastVerification([installed, ...since]) === 'not_held')
    return escalate(conversation, `${name} was installed on ${node}, and ${node} is ${status}.`)
  const found = done(steps, 'pkg_search', node).slice(-1)
  return resolve(conversation, 'repaired', `${node} lacked ${name}; it was installed, and ${node} is nominal.`, [
    {
      kind: 'was',
      text: `${node} said that it lacks ${name}`,
      quotes: read.slice(-1).flatMap((step) => quoted(step, 'reason')),
    },
    {
      kind: 'was',
      text: `its repository has ${name}`,
      quotes: found.flatMap((step) => words(step, `"name":"${name}"`)),
    },
    { kind: 'did', text: `${name} was installed with approval`, quotes: quoted(installed, 'detail') },
    { kind: 'is', text: `${node} is nominal`, quotes: quoted(looked, 'status') },
  ])
}

/**
 * Finds the process that the alert names on the node, asks to end it by pid and start time, and
 * checks that it has ended.
 */
export function endRunaway(conversation: Conversation): OperatorTurn {
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
    const since = done(stepsAfter(steps, 'proc_kill'), 'proc_list', node)
    if (since.length === 0) return { say: `I check whether ${name} is gone.`, calls: [look] }
    if (processesIn(since.at(-1)!.result.data).length > 0 || lastVerification([killed, ...since]) === 'not_held') {
      return escalate(conversation, `${name} on ${node} received a signal to end, and still runs.`)
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
        reason: `${name} uses all CPU of ${node}: ${cpu} s so far.`,
      }),
    ],
  }
}

/** Claims that no process of this name runs, although an ended process may still be listed. */
function goneFrom(step: RunbookStep & { result: ToolResult }, name: string, when: string): RunbookClaim {
  const [ended] = rows(object(step.result.data).processes)
  return ended
    ? { kind: 'is', text: `no ${name} runs ${when}`.trim(), quotes: quotedOf(step, ended, 'state') }
    : claimAbsent(`no ${name} runs ${when}`.trim(), [step], name)
}

/** Lists the processes that have not ended. The kernel still lists ended processes for a moment. */
function processesIn(data: unknown) {
  return rows(object(data).processes).filter((process) => text(process, 'state') !== 'Z')
}
