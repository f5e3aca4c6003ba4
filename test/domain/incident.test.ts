import { expect, test } from '@jest/globals'
import { incidentType, incidentTypeOf } from '../../domain/incident.ts'

test.each([
  ['HighReplicationLag', {}, 'high_replication_lag'],
  ['disk-pressure on host', {}, 'disk_pressure_on_host'],
  ['Host out of memory (>80%)', {}, 'host_out_of_memory_80'],
  ['Kafka/consumer: lag', {}, 'kafka_consumer_lag'],
  ['x', { incident_type: 'Given Type!' }, 'given_type'],
  ['x', { incident_type: '  ' }, 'x'],
  ['', {}, 'unknown'],
])('an alert of the name %p is of type %3$p', (name, labels, type) => {
  expect(incidentTypeOf(labels as Record<string, string>, name)).toBe(type)
})

test('long names and names in other scripts keep a type of their own', () => {
  const long = (end: string) => `KubeControllerManagerWorkQueueDepthIsFarTooHighFor${end}`
  const types = [long('A'), long('B'), 'диск заполнен', 'ディスクフル', '🔥'].map((name) => incidentTypeOf({}, name))
  expect(new Set(types).size).toBe(5)
  for (const type of types) expect(incidentType.safeParse(type).success).toBe(true)
  expect(types[0]).toMatch(/^kube_controller_manager_work_queue_depth_/)
  expect(incidentTypeOf({}, long('A'))).toBe(types[0])
})
