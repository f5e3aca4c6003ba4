import { faultRows } from '../cli/lab/endings.ts'
import type { InventoryKind } from '../domain/kinds.ts'
import { type Knowledge, openKnowledge } from '../knowledge/knowledge.ts'
import { databaseFaultRows } from '../lab/databases/faults.ts'
import { describedTools, splitTools } from '../tools/registry.ts'

/**
 * Checks that a first turn offers the tool that repairs the fault: for the lab's faults, and for
 * faults of hosts without a runbook.
 */

const device = { mode: 'all' as const, toolsAllowed: [], terms: { capabilities: [] }, health: null }

type Trouble = { type: string; kind: InventoryKind; says?: string }

/**
 * Lists the tools of a first turn for an incident about this trouble, in the lab or in an
 * installation with only hosts.
 */
export function offeredFirst(knowledge: Knowledge, { type, kind, says = '' }: Trouble, isLab: boolean) {
  const described = describedTools(null, [device], isLab ? ['prometheus'] : [], {
    jobs: isLab,
    databases: kind === 'database',
    ...(isLab ? { shards: true, hosts: true } : {}),
  })
  const { chosen } = knowledge.match({ type, kind, words: says })
  const lacks = type === 'high_error_rate' ? [] : (['jobs'] as const)
  const { first } = splitTools(described, kind, { lacks, runbook: chosen?.body ?? null, words: `${type} ${says}` })
  return { names: first.map(({ name }) => name), runbook: chosen?.name ?? null, first }
}

/**
 * The writes that repair each fault, as the playbook or an operator does. A fault that needs a
 * person has no write.
 */
export const repairsOfLab: Readonly<Record<string, { kind: InventoryKind; by: readonly string[] }>> = {
  replication_lag: { kind: 'shard', by: ['converge_shard'] },
  disk_pressure: { kind: 'node', by: ['converge_shard'] },
  service_down: { kind: 'node', by: ['converge_shard'] },
  host_down: { kind: 'host', by: ['execute_migration'] },
  host_lost: { kind: 'host', by: ['execute_migration'] },
  drain: { kind: 'host', by: ['execute_migration'] },
  config_drift: { kind: 'node', by: ['converge_shard'] },
  runaway_process: { kind: 'node', by: ['proc_kill'] },
  bad_deploy: { kind: 'node', by: ['git_revert'] },
  log_orders: { kind: 'node', by: ['converge_shard'] },
  full_log: { kind: 'node', by: ['exec'] },
  missing_package: { kind: 'node', by: ['pkg_install'] },
  port_squatter: { kind: 'node', by: ['proc_kill'] },
  relapse: { kind: 'node', by: ['converge_shard'] },
  unended_alert: { kind: 'node', by: ['converge_shard'] },
  slow_leak: { kind: 'node', by: ['converge_shard'] },
  error_rate: { kind: 'node', by: ['git_revert'] },
  red_herring: { kind: 'node', by: ['git_revert'] },
  connection_pool: { kind: 'node', by: ['proc_kill'] },
  clock_skew: { kind: 'node', by: ['converge_shard'] },
  certificate_ending: { kind: 'node', by: ['converge_shard'] },
  stale_lock: { kind: 'node', by: ['run_job'] },
  ...Object.fromEntries(
    Object.entries(databaseFaultRows).flatMap(([name, { repairedBy }]) =>
      repairedBy.length > 0 ? [[name, { kind: 'database' as const, by: [...repairedBy] }]] : [],
    ),
  ),
}

/** Returns the type of a fault's alert. */
export const typeOfFault = (fault: string): string => faultRows[fault as keyof typeof faultRows].alert ?? ''

/** Faults that no runbook fits, each with the tool that repairs it. */
export const withoutRunbook = [
  ['NodeFileDescriptorLimit', 'node', 'nginx on web-1 has used 97 % of its file descriptors', 'service_restart'],
  ['LogForwarderBacklog', 'node', 'the backlog of fluent-bit on web-1 grows', 'service_restart'],
  ['HostZombieProcesses', 'node', 'web-1 has 214 zombie processes', 'proc_kill'],
  ['ContainerUnhealthy', 'container', 'container web fails its health check', 'container_restart'],
  ['BackupTimerMissed', 'node', 'the timer of the backup is inactive', 'service_start'],
  ['NginxConfigTestFailed', 'node', 'nginx config test fails since the deploy', 'git_revert'],
  ['WorkerQueueDepthHigh', 'node', 'the queue of mail-worker grows, the worker seems stuck', 'service_restart'],
  ['PythonModuleNotFound', 'node', 'report.service: module pandas is not there', 'pkg_install'],
  ['SshdSessionsHigh', 'node', '340 sessions of one user on web-1', 'proc_kill'],
  ['VmGuestAgentDown', 'vm', 'the guest agent of vm-101 does not answer', 'vm_restart'],
] as const

/** Lists the lab's faults whose first turn lacks the tool that repairs them. */
export const lackingAtLab = (knowledge: Knowledge): string[] =>
  Object.entries(repairsOfLab).flatMap(([fault, { kind, by }]) => {
    const { names } = offeredFirst(knowledge, { type: typeOfFault(fault), kind }, true)
    return by.some((tool) => names.includes(tool)) ? [] : [fault]
  })

/** Counts the faults whose repair a first turn offers or lacks, for the bench. */
export async function countRepairingFirst(): Promise<Record<string, string>> {
  const knowledge = openKnowledge({})
  await knowledge.refresh()
  const lacking = lackingAtLab(knowledge)
  const all = Object.keys(repairsOfLab).length
  const has = withoutRunbook.filter(([type, kind, says, tool]) =>
    offeredFirst(knowledge, { type, kind, says }, kind === 'vm').names.includes(tool),
  )
  return {
    'faults of the lab that a tool repairs: it is offered first': `${all - lacking.length} of ${all}${lacking.length > 0 ? ` (not: ${lacking.join(', ')})` : ''}`,
    'troubles that no runbook fits: what repairs them is offered first': `${has.length} of ${withoutRunbook.length}`,
  }
}
