import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { mayDecide } from '../../domain/approvers.ts'
import { incidentType } from '../../domain/incident.ts'
import { formerTypes, incidentTypeOf, isType } from '../../domain/incident-type.ts'
import { isRouted } from '../../domain/route.ts'
import type { Runbook } from '../../domain/runbook.ts'
import { effectiveSetting } from '../../domain/setting.ts'
import { matchRunbooks } from '../../knowledge/knowledge.ts'

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

test('long names and names in other scripts have a type of their own', () => {
  const long = (end: string) => `KubeControllerManagerWorkQueueDepthIsFarTooHighFor${end}`
  const types = [long('A'), long('B'), 'диск заполнен', 'ディスクフル', '🔥'].map((name) => incidentTypeOf({}, name))
  expect(new Set(types).size).toBe(5)
  for (const type of types) expect(incidentType.safeParse(type).success).toBe(true)
  expect(types[0]).toMatch(/^kube_controller_manager_work_queue_depth_/)
  expect(incidentTypeOf({}, long('A'))).toBe(types[0])
})

test.each([
  ['MySQLDown', 'mysql_down', 'my_sqldown'],
  ['WindowsCPUHighUsage', 'windows_cpu_high_usage', 'windows_cpuhigh_usage'],
  ['SNMPNodeHasRebooted', 'snmp_node_has_rebooted', 'snmpnode_has_rebooted'],
  ['TraefikTLSCertificatesExpiring', 'traefik_tls_certificates_expiring', 'traefik_tlscertificates_expiring'],
  ['PostgreSQLReplicationLag', 'postgresql_replication_lag', 'postgre_sqlreplication_lag'],
  ['RabbitMQNodeDown', 'rabbitmq_node_down', 'rabbit_mqnode_down'],
  ['OpenSearchRed', 'opensearch_red', 'open_search_red'],
  ['GitLabDown', 'gitlab_down', 'git_lab_down'],
  ['KubeAPIDown', 'kube_api_down', 'kube_apidown'],
  ['OOMKilled', 'oom_killed', 'oomkilled'],
  ['ESXiHostDown', 'esxi_host_down', 'esxi_host_down'],
  ['MySQL8Down', 'mysql8_down', 'my_sql8_down'],
  ['MySQLInnoDBLogWaits', 'mysql_innodb_log_waits', 'my_sqlinno_dblog_waits'],
  [
    'OpenStackNovaTooManyVMsNotRunning',
    'openstack_nova_too_many_vms_not_running',
    'open_stack_nova_too_many_vms_not_running',
  ],
  ['CephPGsUnclean', 'ceph_pgs_unclean', 'ceph_pgs_unclean'],
  ['NTPdDown', 'ntpd_down', 'ntpd_down'],
  ['IPv6Unreachable', 'ipv6_unreachable', 'ipv6_unreachable'],
  ['OSPFv3Down', 'ospfv3_down', 'ospfv3_down'],
  ['NginxHighHttp5xxErrorRate', 'nginx_high_http5xx_error_rate', 'nginx_high_http5xx_error_rate'],
  ['MySQL down', 'mysql_down', 'my_sql_down'],
  ['mysql_down', 'mysql_down', 'mysql_down'],
  ['HighReplicationLag', 'high_replication_lag', 'high_replication_lag'],
])('%s is %s, and what applies to %s applies to it', (name, type, before) => {
  expect(incidentTypeOf({}, name)).toBe(type)
  expect(incidentTypeOf({ incident_type: name }, 'x')).toBe(type)
  expect(isType(before, type)).toBe(true)
})

test('a different type is not an old spelling, however similar it is', () => {
  for (const other of ['my_sql_up', 'm_ysql_down', 'mysql_dow_n', 'mysql', 'down_mysql', '', 'mysql_down_2'])
    expect([other, isType(other, 'mysql_down')]).toEqual([other, false])
  expect(isType('no_dedown', 'node_down')).toBe(false)
  for (const former of formerTypes('mysql_down')) expect(former.replaceAll('_', '')).toBe('mysqldown')
})

test('every name gives a type of letters and digits, the same each time', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 80 }), (name) => {
      const type = incidentTypeOf({}, name)
      expect(incidentType.safeParse(type).success).toBe(true)
      expect(incidentTypeOf({}, name)).toBe(type)
      expect(formerTypes(type).length).toBeLessThan(2_000)
    }),
  )
})

test('people, routes, settings, models and runbooks with the old spelling keep working, and exact ones have priority', () => {
  const person = { name: 'anna', role: 'approver', maxRisk: 'high', rights: [], disabled: false } as const
  const approval = { risk: 'medium', incidentType: 'mysql_down', targets: [], at: '2026-11-25T09:00:00Z' }
  expect(mayDecide({ ...person, incidentTypes: ['my_sqldown'] }, approval)).toBeNull()
  expect(mayDecide({ ...person, incidentTypes: ['my_sql_up'] }, approval)).not.toBeNull()

  const told = { severity: 'warning', incidentType: 'mysql_down', page: true } as const
  const goes = (types: string[]) =>
    isRouted(
      { kind: 'webhook', route: { severities: null, types, triggers: null, hours: null, wakes: null } },
      'escalated',
      told,
      {
        hasHeard: false,
        at: '2026-11-25T09:00:00Z',
      },
    )
  expect([['my_sql*'], ['my_sqldown'], ['mysql_*'], ['node_*']].map(goes)).toEqual([true, true, true, false])

  const stored = new Map([
    ['agent.max_turns.my_sqldown', '7'],
    ['agent.model.type.my_sqldown', 'small'],
    ['approval.risk.git_revert', 'critical'],
  ])
  const value = (name: string, type: string) => effectiveSetting(name, type, stored, {}).value
  expect([value('agent.max_turns', 'mysql_down'), value('agent.model.type', 'mysql_down')]).toEqual([7, 'small'])
  expect(value('agent.max_turns', 'mysql_up')).toBe(10)
  expect(value('approval.risk', 'gitrevert')).toBeNull()
  stored.set('agent.max_turns.mysql_down', '9')
  expect(value('agent.max_turns', 'mysql_down')).toBe(9)

  const runbook = (name: string, incidentTypes: string[]) =>
    ({ name, description: name, incidentTypes, resourceKinds: [] }) as unknown as Runbook
  const chosen = (...types: string[]) =>
    matchRunbooks([runbook('other', ['node_*']), runbook('own', types)], { type: 'mysql_down', kind: null, words: '' })
      .chosen?.name
  expect([chosen('my_sqldown'), chosen('my_sql*'), chosen('my_sql_up')]).toEqual(['own', 'own', undefined])
})
