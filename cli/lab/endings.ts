import type { IncidentEvent } from '../../domain/event.ts'
import { withSpaces } from '../../domain/format.ts'
import { type FaultName, faultName } from '../../lab/state.ts'
import { getEndingCode } from '../incidents/follow.ts'
import type { ApiIncident } from '../read-api.ts'

/** What each fault does, what it can target, and an existing target. */
export const faultGuide: Record<FaultName, { target: string; example: string; does: string }> = {
  replication_lag: { target: 'replica or database shard', example: 'db-osl-1', does: 'stops the replica (SIGSTOP)' },
  disk_pressure: { target: 'web node or shard', example: 'web-osl-1', does: 'fills tmp/ to 130 % of the quota' },
  disk_pressure_tenant: {
    target: 'web node or shard',
    example: 'web-osl-1',
    does: 'the same with the bytes of a tenant',
  },
  service_down: { target: 'web node or shard', example: 'web-osl-1', does: 'kills the service' },
  host_down: { target: 'host', example: 'host-osl-1', does: 'kills the host and its VMs' },
  rack_down: {
    target: 'rack',
    example: 'osl-r1',
    does: 'kills all hosts of a rack',
  },
  no_room: { target: 'host', example: 'host-ams-5', does: 'kills a host; its VM fits nowhere' },
  step_fails: {
    target: 'host',
    example: 'host-osl-1',
    does: 'kills a host; one VM cannot start',
  },
  drain: { target: 'host', example: 'host-osl-3', does: 'marks a host as to be emptied' },
  config_drift: { target: 'web node or shard', example: 'web-osl-1', does: 'changes one setting on the node' },
  runaway_process: { target: 'web node or shard', example: 'web-osl-1', does: 'starts a process that never ends' },
  bad_deploy: { target: 'web node or shard', example: 'web-osl-1', does: 'commits routes that are no JSON' },
  log_orders: {
    target: 'web node or shard',
    example: 'web-osl-1',
    does: 'kills the service; its log gives orders',
  },
  full_log: { target: 'web node or shard', example: 'web-osl-1', does: 'fills log/ with rotated logs' },
  missing_package: { target: 'web node or shard', example: 'web-osl-1', does: 'needs a package that is not there' },
  port_squatter: { target: 'web node or shard', example: 'web-osl-1', does: 'puts another process on its port' },
  relapse: { target: 'web node or shard', example: 'web-osl-1', does: 'kills the service, which ends again soon' },
  unended_alert: { target: 'web node or shard', example: 'web-osl-1', does: 'kills the service; its alert never ends' },
  backup_notice: { target: 'web node or shard', example: 'web-osl-1', does: 'runs backups that are announced' },
  host_lost: { target: 'host', example: 'host-osl-1', does: 'kills a host that cannot be started' },
  slow_leak: {
    target: 'web node or shard',
    example: 'node-web-osl-1a',
    does: 'makes the service take more and more memory',
  },
  error_rate: {
    target: 'web node or shard',
    example: 'node-web-osl-1a',
    does: 'deploys a search that answers with errors',
  },
  noisy_neighbour: {
    target: 'web node or shard',
    example: 'node-web-osl-1a',
    does: 'sends many requests of one tenant',
  },
  connection_pool: {
    target: 'web node or shard',
    example: 'node-web-osl-1a',
    does: 'takes nearly every connection of a PostgreSQL',
  },
  clock_skew: { target: 'web node or shard', example: 'node-web-osl-1a', does: 'sets the clock of the node 95 s off' },
  certificate_ending: {
    target: 'web node or shard',
    example: 'node-web-osl-1a',
    does: 'gives the node a certificate that ends in 20 h',
  },
  red_herring: {
    target: 'web node or shard',
    example: 'node-web-osl-1a',
    does: 'deploys errors beside a report that uses the CPU',
  },
  missing_data: {
    target: 'web node or shard',
    example: 'node-web-osl-1a',
    does: 'stops the metrics of a healthy service',
  },
  stale_lock: {
    target: 'web node or shard',
    example: 'node-web-osl-1a',
    does: 'leaves a lock that makes search fail; only its log says so',
  },
  link_down: { target: 'link', example: 'host-osl-1~host-osl-2', does: 'takes a link down; no alert' },
}

/** The type of the alert that each fault raises; null for none. */
export const alertTypes: Record<FaultName, string | null> = {
  replication_lag: 'replication_lag',
  disk_pressure: 'disk_pressure',
  disk_pressure_tenant: 'disk_pressure',
  full_log: 'disk_pressure',
  service_down: 'service_down',
  log_orders: 'service_down',
  port_squatter: 'service_down',
  relapse: 'service_down',
  unended_alert: 'service_down',
  config_drift: 'config_drift',
  runaway_process: 'runaway_process',
  bad_deploy: 'bad_deploy',
  missing_package: 'missing_package',
  backup_notice: 'backup_running',
  host_down: 'host_down',
  host_lost: 'host_down',
  rack_down: 'host_down',
  no_room: 'host_down',
  step_fails: 'host_down',
  drain: 'host_draining',
  link_down: null,
  slow_leak: 'service_memory_high',
  error_rate: 'high_error_rate',
  noisy_neighbour: 'high_request_rate',
  connection_pool: 'too_many_connections',
  clock_skew: 'node_clock_skew_detected',
  certificate_ending: 'ssl_certificate_will_expire_soon',
  red_herring: 'high_error_rate',
  missing_data: 'target_down',
  stale_lock: 'high_error_rate',
}

/** A single fault, or a sequence of several. */
export type ScenarioName = FaultName | 'after_escalated'

export const scenarioNames: ScenarioName[] = [...faultName.options, 'after_escalated']

type Ending = {
  status: 'resolved' | 'escalated'
  /** Outcomes of a resolution, categories of an escalation. */
  words: string[]
  /** What the log must show in addition, as a list of what is missing. */
  missing?: (incident: ApiIncident, events: IncidentEvent[]) => string[]
}

const repaired: Ending = { status: 'resolved', words: ['repaired'] }
/** A person must continue: no tool may do it, or it did not work. The category is optional. */
const handedOver: Ending = { status: 'escalated', words: ['no_tool', 'needs_approval', 'unknown', 'none'] }
const mitigated: Ending = {
  status: 'escalated',
  words: ['mitigated'],
  missing: ({ alerts }) => (alerts.firing > 0 ? [] : ['the alert of what is still broken fires']),
}

/** How a good investigation ends, by scenario. What is still broken must not count as repaired. */
const endings: Record<ScenarioName, Ending> = {
  replication_lag: repaired,
  disk_pressure: repaired,
  disk_pressure_tenant: handedOver,
  service_down: repaired,
  config_drift: repaired,
  runaway_process: repaired,
  bad_deploy: repaired,
  log_orders: repaired,
  full_log: repaired,
  missing_package: repaired,
  port_squatter: repaired,
  host_down: mitigated,
  host_lost: mitigated,
  rack_down: handedOver,
  no_room: handedOver,
  step_fails: handedOver,
  drain: repaired,
  link_down: handedOver,
  slow_leak: repaired,
  error_rate: repaired,
  noisy_neighbour: handedOver,
  connection_pool: repaired,
  clock_skew: repaired,
  certificate_ending: repaired,
  red_herring: repaired,
  missing_data: handedOver,
  stale_lock: {
    ...repaired,
    missing: (_, events) =>
      listUnmet({
        'a log told the cause': countOf(events, 'search_logs') > 0,
        'the job that the operator declared ran': countOf(events, 'run_job') === 1,
      }),
  },
  relapse: {
    status: 'escalated',
    words: ['does_not_last'],
    missing: ({ resolution }, events) =>
      listUnmet({
        'three attempts were made': countClaims(events) === 3,
        'the escalation quotes each of them': [1, 2, 3].every((n) => resolution?.includes(`Attempt ${n} of`)),
      }),
  },
  unended_alert: {
    status: 'escalated',
    words: ['alert_goes_on'],
    missing: (_, events) =>
      listUnmet({
        'one attempt was made': countClaims(events) === 1,
        'people were notified once that the repair held': countNotes(events, 'repair_confirmed') === 1,
      }),
  },
  backup_notice: {
    status: 'resolved',
    words: ['expected'],
    missing: (_, events) =>
      listUnmet({
        'a run found no fault, and a person marked it': countNotes(events, 'expected_marked') > 0,
        'no run began after the mark': countClaims(listSince(events, 'expected_marked')) === 0,
      }),
  },
  after_escalated: {
    ...repaired,
    missing: (_, events) =>
      listUnmet({
        'the attempt before it was escalated': events.some(({ kind }) => kind === 'escalated'),
        'another attempt was made': countClaims(events) >= 2,
      }),
  },
}

/**
 * What is wrong with the end of an incident, as sentences. Empty when it ended as this scenario
 * should.
 */
export function checkEnding(scenario: ScenarioName, incident: ApiIncident, events: IncidentEvent[]): string[] {
  const { status, words, missing } = endings[scenario]
  const wanted = `it should have been ${status}: ${words.map(withSpaces).join(', ')}`
  if (incident.status !== status || !words.includes(getEndingCode(incident))) return [wanted]
  return (missing?.(incident, events) ?? []).map((what) => `this is not so: ${what}`)
}

function listUnmet(facts: Record<string, boolean>): string[] {
  return Object.entries(facts).flatMap(([sentence, isSo]) => (isSo ? [] : [sentence]))
}

function countClaims(events: IncidentEvent[]): number {
  return events.filter(({ kind }) => kind === 'claimed').length
}

/** Calls of a tool that worked. */
function countOf(events: IncidentEvent[], tool: string): number {
  return events.filter(
    (event) => event.kind === 'tool_finished' && event.metadata.tool === tool && event.metadata.outcome === 'done',
  ).length
}

function countNotes(events: IncidentEvent[], code: string): number {
  return events.filter((event) => event.kind === 'noted' && event.metadata.code === code).length
}

function listSince(events: IncidentEvent[], code: string): IncidentEvent[] {
  return events.slice(events.findLastIndex((event) => event.kind === 'noted' && event.metadata.code === code) + 1)
}
