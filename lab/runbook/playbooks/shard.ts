import { posix } from 'node:path'
import type { Conversation, RunbookStep } from '../conversation.ts'
import {
  call,
  done,
  escalate,
  type Facts,
  healthIn,
  lastVerification,
  nothingWrong,
  number,
  type OperatorTurn,
  object,
  quoted,
  quotedOf,
  resolve,
  rows,
  stepsAfter,
  subject,
  text,
} from '../facts.ts'
import { clearLogs } from './deploy.ts'

/** The most nodes that are checked one by one after a repair. */
const maxVerifications = 3

/** Reads the shard and its nodes, converges if a node is not nominal, and reads both again. */
export function repairShard(conversation: Conversation): OperatorTurn {
  const { steps, hint } = conversation
  const shard = subject(conversation, 'shard') ?? shardOfNode(conversation)
  if (!shard) return findShard(conversation)
  if (done(steps, 'converge_shard', shard).length > 0) return verifyShard(conversation, shard)

  const looked = done(steps, 'get_shard', shard)
  const listed = done(steps, 'list_nodes_by_shard', shard).at(-1)
  const missing = [
    ...(looked.length === 0 ? [call('get_shard', { id: shard })] : []),
    ...(listed ? [] : [call('list_nodes_by_shard', { shard_id: shard })]),
  ]
  if (missing.length > 0) {
    // Requests both reads in one turn if there is a hint.
    const calls = hint ? missing : missing.slice(0, 1)
    const say = hint ? `The hint is about another shard; I read ${shard} itself first.` : `I read ${shard} first.`
    return { say, calls }
  }

  const bad = badNodes(listed!)
  if (bad.length === 0 && isSeenFromOutside(conversation))
    return {
      say: `Every node of ${shard} is nominal, and a check from outside gets no answer. A converge is reversible, and reports what it changed.`,
      calls: [
        call('converge_shard', {
          id: shard,
          reason: 'A check from outside gets no answer, and every node is nominal.',
        }),
      ],
    }
  if (bad.length === 0)
    return nothingWrong(
      conversation,
      `Every node of ${shard} is nominal`,
      quotedOf(listed!, rows(listed!.result.data)[0] ?? {}, 'status'),
    )
  const finding = describe(bad)
  const onlyDisk = bad.every(
    (node) => /disk/i.test(text(node, 'reason') ?? '') && !/behind|process/.test(text(node, 'reason')!),
  )
  // Handles the full disk by its content, because the cause differs from the one that alert and
  // hint suggest.
  if (onlyDisk) return fullDisk(conversation, text(bad[0]!, 'id')!)
  return {
    say: `${finding}. A converge of ${shard} re-applies its desired state and is reversible.`,
    calls: [call('converge_shard', { id: shard, reason: `${finding}.` })],
  }
}

/**
 * Verifies a converge. Reads each node that was not nominal again, and if needed a second time. If
 * a node is still not nominal, a person takes over.
 */
function verifyShard(conversation: Conversation, shard: string): OperatorTurn {
  const { steps } = conversation
  const write = done(steps, 'converge_shard', shard).at(-1)!
  const since = stepsAfter(steps, 'converge_shard')
  const bad = findings(steps).slice(0, maxVerifications)
  if (bad.length === 0) return afterNeedless(conversation, shard)
  const nodes = bad.map((node) => text(node, 'id')!)
  const unread = nodes.filter((id) => done(since, 'node_health', id).length === 0)
  if (unread.length > 0) {
    return { say: 'I check whether the converge helped.', calls: unread.map((node) => call('node_health', { node })) }
  }
  const unwell = nodes.filter((id) => latestHealth(since, id) !== 'nominal')
  const verification = lastVerification([write, ...since])
  const held = verification === null || verification === 'held'
  if (unwell.length === 0 && held) {
    const reads = nodes.flatMap((id) => latestRead(since, id) ?? [])
    const changed = text(object(write.result.data), 'detail') ?? `converged ${shard}`
    const what = describe(bad)
    return resolve(
      conversation,
      'repaired',
      `${what}. Converging ${shard} repaired it: ${nodes.join(', ')} nominal again.`,
      [
        { kind: 'was', text: describe(bad, 'was'), quotes: findingSteps(steps).flatMap(quotedBad) },
        { kind: 'did', text: changed, quotes: quoted(write, 'detail') },
        {
          kind: 'is',
          text: `${nodes.join(', ')} nominal after the write`,
          quotes: reads.flatMap((read) => quoted(read, 'status', 'health')),
        },
      ],
    )
  }
  const again = (unwell.length > 0 ? unwell : nodes).filter((id) => done(since, 'get_node', id).length === 0)
  if (again.length > 0) {
    return {
      say: 'The shard is not nominal yet; I read it once more.',
      calls: again.map((id) => call('get_node', { id })),
    }
  }
  const state = (unwell.length > 0 ? unwell : nodes)
    .map((id) => `${id} is ${latestHealth(since, id) ?? 'unknown'}`)
    .join(', ')
  return escalate(
    conversation,
    `${describe(bad)}. Converging ${shard} did not help: ${state}. A person must take over.`,
  )
}

/**
 * Handles a converge of a shard that was nominal. The converge repaired nothing, whatever the alert
 * does.
 */
function afterNeedless(conversation: Conversation, shard: string): OperatorTurn {
  const { steps } = conversation
  const [look] = done(stepsAfter(steps, 'converge_shard'), 'get_shard', shard)
  if (!look) return { say: 'I read its state now.', calls: [call('get_shard', { id: shard })] }
  const detail = text(object(done(steps, 'converge_shard', shard).at(-1)!.result.data), 'detail') ?? 'no answer'
  return escalate(
    conversation,
    `${shard} was ${healthIn(look.result.data)} before it was converged and still is (${detail}); its alert still fires.`,
    {
      category: 'alert_goes_on',
      nextStep: 'Examine the check that raises this alert: which address it asks, and from where.',
    },
  )
}

/** Lists all nodes that were not nominal before the first write. */
function findings(steps: RunbookStep[]): Facts[] {
  const nodes = findingSteps(steps).flatMap(badNodes)
  return [...new Map(nodes.map((node) => [text(node, 'id'), node])).values()]
}

function findingSteps(steps: RunbookStep[]): RunbookStep[] {
  const write = steps.findIndex(({ tool, result }) => tool === 'converge_shard' && result?.ok)
  return steps
    .slice(0, write)
    .filter(({ tool, result }) => ['list_nodes_by_shard', 'get_node'].includes(tool) && result?.ok)
    .filter((step) => badNodes(step).length > 0)
}

function badNodes({ result }: RunbookStep): Facts[] {
  const data = result?.data
  // Finds the nodes in a result. A result about one node also contains arrays and objects; an
  // object with a role is a node itself.
  const nodes = text(object(data), 'role') ? [object(data)] : rows(data)
  return nodes.filter((node) => text(node, 'id') && ['degraded', 'critical'].includes(text(node, 'status') ?? ''))
}

function latestRead(since: RunbookStep[], node: string): RunbookStep | undefined {
  return since.findLast(
    ({ tool, args, result }) =>
      ['node_health', 'get_node'].includes(tool) && result?.ok && Object.values(args).includes(node),
  )
}

function latestHealth(since: RunbookStep[], node: string): string | null {
  return healthIn(latestRead(since, node)?.result?.data)
}

/** Quotes the status and reason of each node that was not nominal, as evidence. */
function quotedBad(step: RunbookStep) {
  return badNodes(step).flatMap((node) => quotedOf(step, node, 'status', 'reason'))
}

function describe(nodes: Facts[], verb: 'is' | 'was' = 'is'): string {
  return nodes
    .map((node) => `${text(node, 'id')} ${verb} ${text(node, 'status')}: ${text(node, 'reason') ?? 'no reason given'}`)
    .join('; ')
}

/** Returns whether an outside check fires, which may see faults that the platform does not see. */
const isSeenFromOutside = ({ context }: Conversation): boolean =>
  context!.alerts.some(({ labels, status }) => labels.monitor === 'edge-check' && status === 'firing')

function shardOfNode(conversation: Conversation): string | null {
  const node = subject(conversation, 'node')
  const read = node && done(conversation.steps, 'get_node', node).at(-1)
  return read ? text(object(read.result.data), 'shard', 'shardId', 'shard_id') : null
}

function findShard(conversation: Conversation): OperatorTurn {
  const node = subject(conversation, 'node')
  if (node && conversation.steps.every(({ tool }) => tool !== 'get_node')) {
    return { say: `I look up the shard of ${node}.`, calls: [call('get_node', { id: node })] }
  }
  if (done(conversation.steps, 'get_incident').length === 0) {
    return {
      say: 'The alert names no shard; I read the incident.',
      calls: [call('get_incident', { id: conversation.context!.incident.id })],
    }
  }
  return escalate(conversation, 'The alert names no known shard or node, so I have nothing to check.')
}

/** The only directories on a node in which a converge frees space. */
const clearable = ['tmp', 'logs']
/** The fraction of the quota from which a disk counts as full. */
const fullFraction = 0.9

export function diskPressure(conversation: Conversation): OperatorTurn {
  const node = subject(conversation, 'node')
  // Finds the node by the shard's nodes if the alert names none.
  return node ? fullDisk(conversation, node) : repairShard(conversation)
}

/** Reads what fills the disk. A converge clears temporary files; tenant data needs a person. */
function fullDisk(conversation: Conversation, node: string): OperatorTurn {
  const { steps, hint } = conversation
  const read = done(steps, 'get_node', node)[0]
  const shard = read ? text(object(read.result.data), 'shard', 'shardId', 'shard_id') : subject(conversation, 'shard')
  const lookUpShard = shard && done(steps, 'get_shard', shard).length === 0 ? [call('get_shard', { id: shard })] : []
  if (!read) {
    const calls = [call('get_node', { id: node }), ...(hint ? lookUpShard : [])]
    return { say: `I check what fills the disk of ${node}.`, calls }
  }
  const facts = object(read.result.data)
  const { used, quota, byDirectory } = disk(facts)
  if (shard && done(steps, 'converge_shard', shard).length > 0) return verifyShard(conversation, shard)
  if (text(facts, 'status') === 'nominal')
    return nothingWrong(conversation, `${node} is nominal`, quoted(read, 'status'))
  if (used === null || quota === null || !shard) {
    return escalate(
      conversation,
      `${node} is ${text(facts, 'status')}, and its disk figures are missing: I cannot see what fills the disk.`,
    )
  }
  const freed = clearable.reduce((sum, name) => sum + (byDirectory[name] ?? 0), 0)
  const figures = `${node} uses ${used} of ${quota} bytes: ${describeDirectories(byDirectory)}`
  if (used - freed >= fullFraction * quota) {
    const directory = logsOn(conversation, byDirectory)
    const cleared = directory && clearLogs(conversation, { node, directory, used, quota, figures })
    return cleared || notOurs(conversation, figures)
  }
  if (lookUpShard.length > 0) return { say: `${figures}. I look up its shard.`, calls: lookUpShard }
  return {
    say: `${figures}. Most of this is temporary, and a converge clears temporary files.`,
    calls: [call('converge_shard', { id: shard, reason: `${figures}; a converge clears tmp and rotated logs.` })],
  }
}

/**
 * Returns the absolute path of a node's `log` directory. Null unless this directory uses most of
 * the disk and the alert names the disk.
 */
function logsOn({ context, steps }: Conversation, byDirectory: Record<string, number>): string | null {
  const mountpoint = context!.alerts.map(({ annotations }) => annotations.mountpoint).find(Boolean)
  const isMost = Object.values(byDirectory).every((bytes) => bytes <= (byDirectory.log ?? 0))
  const isOutOfReach = steps.some(({ tool, result }) => tool === 'fs_list' && result?.ok === false)
  return mountpoint && isMost && !isOutOfReach ? posix.join(mountpoint, 'log') : null
}

function notOurs(conversation: Conversation, figures: string): OperatorTurn {
  const { steps, hint, context } = conversation
  const id = context!.incident.id
  const finding = `${figures}. A converge cannot clear enough; the rest is data of tenants.`
  if (steps.every(({ tool }) => tool !== 'report_capability_gap')) {
    const noted = steps.some(({ tool, args }) => tool === 'add_incident_event' && args.hypothesis === undefined)
    return {
      say: hint ? `The hint does not fit here. ${finding}` : finding,
      calls: [
        ...(noted ? [] : [call('add_incident_event', { incident_id: id, action: 'investigated', detail: finding })]),
        call('report_capability_gap', {
          incident_id: id,
          category: 'remediation',
          description: 'Tenant data fills the disk, and no tool can free or extend it.',
        }),
      ],
    }
  }
  return escalate(conversation, finding, {
    category: 'no_tool',
    nextStep: 'Raise the quota, or ask the tenant to free space.',
  })
}

function disk(facts: Facts): { used: number | null; quota: number | null; byDirectory: Record<string, number> } {
  return {
    used: number(facts, 'diskUsedBytes', 'disk_used_bytes'),
    quota: number(facts, 'diskQuotaBytes', 'disk_quota_bytes'),
    byDirectory: object(facts.diskByDirectory ?? facts.disk_by_directory) as Record<string, number>,
  }
}

function describeDirectories(byDirectory: Record<string, number>): string {
  const largestFirst = Object.entries(byDirectory).sort(([, a], [, b]) => b - a)
  return largestFirst.map(([name, bytes]) => `${name} ${bytes}`).join(', ')
}
