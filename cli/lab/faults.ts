import type { FaultName } from '../../lab/state.ts'

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
}
