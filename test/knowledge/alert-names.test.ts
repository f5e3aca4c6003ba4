import { expect, test } from '@jest/globals'
import { incidentTypeOf } from '../../domain/incident-type.ts'
import type { InventoryKind } from '../../domain/kinds.ts'
import { matchRunbooks } from '../../knowledge/knowledge.ts'
import { readFolder } from '../../knowledge/read.ts'

// Names of the rules that most sites have: node exporter's and Kubernetes' mixins
// (https://monitoring.mixins.dev), Awesome Prometheus Alerts
// (https://samber.github.io/awesome-prometheus-alerts), and what people write by hand.
const names: [name: string, kind: InventoryKind, runbook: string | null][] = [
  ['ServiceMemoryHigh', 'node', 'out-of-memory'],
  ['service-memory-high', 'node', 'out-of-memory'],
  ['Service memory high', 'node', 'out-of-memory'],
  ['NodeMemoryHighUtilization', 'host', 'out-of-memory'],
  ['HostOutOfMemory', 'host', 'out-of-memory'],
  ['HostOomKillDetected', 'host', 'out-of-memory'],
  ['ContainerHighMemoryUsage', 'host', 'out-of-memory'],
  ['TargetDown', 'node', 'service-down'],
  ['InstanceDown', 'node', 'service-down'],
  ['PrometheusTargetMissing', 'node', 'service-down'],
  ['BlackboxProbeFailed', 'node', 'service-down'],
  ['NodeSystemdServiceFailed', 'host', 'service-down'],
  ['HostSystemdServiceCrashed', 'host', 'service-down'],
  ['HighErrorRate', 'node', 'error-rate'],
  ['NginxHighHttp5xxErrorRate', 'node', 'error-rate'],
  ['ProcessCpuHigh', 'node', 'runaway-process'],
  ['NodeCPUHighUsage', 'host', 'runaway-process'],
  ['HostHighCpuLoad', 'host', 'runaway-process'],
  ['NodeFilesystemAlmostOutOfSpace', 'host', 'disk-full'],
  ['NodeFilesystemSpaceFillingUp', 'host', 'disk-full'],
  ['NodeFilesystemFilesFillingUp', 'host', 'disk-full'],
  ['HostOutOfDiskSpace', 'host', 'disk-full'],
  ['HostDiskWillFillIn24Hours', 'host', 'disk-full'],
  ['TooManyConnections', 'node', 'database-connections'],
  ['PostgresqlTooManyConnections', 'database', 'database-connections'],
  ['PostgresqlDeadLocks', 'database', 'database-deadlocks'],
  ['PostgresqlReplicationLag', 'database', 'database-replica'],
  ['MySQLReplicationLag', 'database', 'replication-lag'],
  ['MysqlSlowQueries', 'database', 'database-slow'],
  ['KubePodCrashLooping', 'workload', 'kubernetes-crash-loop'],
  ['KubePodNotReady', 'workload', 'kubernetes-pod-pending'],
  ['KubeContainerWaiting', 'workload', 'kubernetes-container-waiting'],
  ['KubeDeploymentReplicasMismatch', 'workload', 'kubernetes-rollout-stuck'],
  ['KubeJobFailed', 'workload', 'kubernetes-job'],
  ['KubePersistentVolumeFillingUp', 'volume_claim', 'kubernetes-volume'],
  ['KubeQuotaExceeded', 'namespace', 'kubernetes-quota'],
  ['KubeNodeNotReady', 'node', 'kubernetes-node-not-ready'],
  ['VMDown', 'vm', 'vm-stopped'],
  ['NodeDown', 'host', 'host-down'],
  ['HostUnreachable', 'host', 'host-down'],
  // About other things, whatever letters they share.
  ['BathroomLightOn', 'node', null],
  ['RoomTemperatureHigh', 'host', null],
  ['NodeClockSkewDetected', 'host', 'clock-skew'],
  ['CertificateExpiry', 'node', 'certificate-ending'],
  ['BackupFailed', 'node', null],
]

test.each(names)('%s of a %s comes with the runbook %s', async (name, kind, runbook) => {
  const { runbooks } = await readFolder('shipped', new URL('../../knowledge', import.meta.url).pathname)
  const { chosen } = matchRunbooks(runbooks, { type: incidentTypeOf({}, name), kind, words: '' })
  expect(chosen?.name ?? null).toBe(runbook)
})
