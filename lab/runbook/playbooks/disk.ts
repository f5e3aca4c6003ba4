import { posix } from 'node:path'
import { quoted } from '../claims.ts'
import type { Conversation } from '../conversation.ts'
import { call, type Decision, escalate, nothingWrong } from '../decision.ts'
import { done, type Facts, number, object, subject, text } from '../facts.ts'
import { clearLogs } from './full-log.ts'
import { repairShard, verifyShard } from './shard.ts'

/** A converge frees these and nothing else. */
const clearable = ['tmp', 'logs']
/** From this part of the quota on a disk counts as full. */
const fullFraction = 0.9

export function diskPressure(conversation: Conversation): Decision {
  const node = subject(conversation, 'node')
  // Without a node's name the shard's nodes tell which one it is.
  return node ? fullDisk(conversation, node) : repairShard(conversation)
}

/** What fills the disk decides: temporary files go with a converge, a tenant's bytes are for a person. */
export function fullDisk(conversation: Conversation, node: string): Decision {
  const { steps, hint } = conversation
  const read = done(steps, 'get_node', node)[0]
  const shard = read ? text(object(read.result.data), 'shard', 'shardId', 'shard_id') : subject(conversation, 'shard')
  const lookUpShard = shard && done(steps, 'get_shard', shard).length === 0 ? [call('get_shard', { id: shard })] : []
  if (!read) {
    const calls = [call('get_node', { id: node }), ...(hint ? lookUpShard : [])]
    return { say: `I look what fills the disk of ${node}.`, calls }
  }
  const facts = object(read.result.data)
  const { used, quota, byDirectory } = disk(facts)
  if (shard && done(steps, 'converge_shard', shard).length > 0) return verifyShard(conversation, shard)
  if (text(facts, 'status') === 'nominal')
    return nothingWrong(conversation, `${node} is nominal`, quoted(read, 'status'))
  if (used === null || quota === null || !shard) {
    return escalate(
      conversation,
      `${node} is ${text(facts, 'status')} and its disk figures are missing, so what fills it is unknown.`,
    )
  }
  const freed = clearable.reduce((sum, name) => sum + (byDirectory[name] ?? 0), 0)
  const figures = `${node} uses ${used} of ${quota} bytes: ${describe(byDirectory)}`
  if (used - freed >= fullFraction * quota) {
    const directory = logsOn(conversation, byDirectory)
    const cleared = directory && clearLogs(conversation, { node, directory, used, quota, figures })
    return cleared || notOurs(conversation, figures)
  }
  if (lookUpShard.length > 0) return { say: `${figures}. I look up its shard.`, calls: lookUpShard }
  return {
    say: `${figures}. Most of it is temporary, which a converge clears.`,
    calls: [call('converge_shard', { id: shard, reason: `${figures}; a converge clears tmp and rotated logs.` })],
  }
}

/** The absolute path of a node's directory `log`, where most of its disk is used there and the alert says where the disk is. */
function logsOn({ context, steps }: Conversation, byDirectory: Record<string, number>): string | null {
  const mountpoint = context!.alerts.map(({ annotations }) => annotations.mountpoint).find(Boolean)
  const isMost = Object.values(byDirectory).every((bytes) => bytes <= (byDirectory.log ?? 0))
  const isOutOfReach = steps.some(({ tool, result }) => tool === 'fs_list' && result?.ok === false)
  return mountpoint && isMost && !isOutOfReach ? posix.join(mountpoint, 'log') : null
}

function notOurs(conversation: Conversation, figures: string): Decision {
  const { steps, hint, context } = conversation
  const id = context!.incident.id
  const finding = `${figures}. What a converge may clear is not enough; the rest is data that somebody owns.`
  if (steps.every(({ tool }) => tool !== 'report_capability_gap')) {
    const noted = steps.some(({ tool }) => tool === 'add_incident_event')
    return {
      say: hint ? `The hint does not fit here. ${finding}` : finding,
      calls: [
        ...(noted ? [] : [call('add_incident_event', { incident_id: id, action: 'investigated', detail: finding })]),
        call('report_capability_gap', {
          incident_id: id,
          category: 'remediation',
          description: 'No tool can free or extend a disk that tenant data fills.',
        }),
      ],
    }
  }
  return escalate(conversation, finding, {
    category: 'no_tool',
    nextStep: 'Decide between a larger quota and talking to the tenant.',
  })
}

function disk(facts: Facts): { used: number | null; quota: number | null; byDirectory: Record<string, number> } {
  return {
    used: number(facts, 'diskUsedBytes', 'disk_used_bytes'),
    quota: number(facts, 'diskQuotaBytes', 'disk_quota_bytes'),
    byDirectory: object(facts.diskByDirectory ?? facts.disk_by_directory) as Record<string, number>,
  }
}

function describe(byDirectory: Record<string, number>): string {
  const largestFirst = Object.entries(byDirectory).sort(([, a], [, b]) => b - a)
  return largestFirst.map(([name, bytes]) => `${name} ${bytes}`).join(', ')
}
