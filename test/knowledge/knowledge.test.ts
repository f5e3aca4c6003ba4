import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { z } from 'zod'
import type { Runbook } from '../../domain/runbook.ts'
import { fitToSite } from '../../domain/runbook-lines.ts'
import { matchRunbooks, type Subject } from '../../knowledge/knowledge.ts'
import { readFolder } from '../../knowledge/read.ts'
import { describedTools, tools } from '../../tools/registry.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { withoutHanging } from '../support/endless.ts'

const place = temporaryDirectory()

afterAll(place.remove)

const shippedFolder = fileURLToPath(new URL('../../knowledge/', import.meta.url))

describe('the runbooks that ship with the product', () => {
  let shipped: Runbook[] = []
  beforeAll(async () => {
    const { runbooks, refused } = await readFolder('shipped', shippedFolder)
    expect(refused).toEqual([])
    shipped = runbooks
  })

  test('each is short, names its reviewer and date, and has the parts look, decide, repair, prove', () => {
    expect(shipped.length).toBeGreaterThanOrEqual(15)
    for (const { name, bytes, body, owner, reviewedAt } of shipped) {
      expect([name, bytes <= 1_536, owner, reviewedAt]).toEqual([name, true, 'nightshift', expect.any(String)])
      const places = ['Look', 'Decide', 'Repair', 'Prove'].map((word) => body.search(new RegExp(`^${word}`, 'm')))
      expect([name, places]).toEqual([name, [...places].sort((a, b) => a - b)])
      expect([name, places[0]]).toEqual([name, 0])
    }
  })

  test('every tool and every runbook that one names exists', () => {
    const names = new Set(shipped.map(({ name }) => name))
    const fields = new Set(['unplaced', 'overtakenBy', 'on', 'port', '.1', '.gz'])
    for (const { name, body } of shipped) {
      const named = [...body.matchAll(/`([^`]+)`/g)].map(([, word = '']) => word).filter((word) => !fields.has(word))
      expect([name, named.filter((word) => !tools.has(word))]).toEqual([name, []])
      const others = [...body.matchAll(/runbook ([a-z]+(?:-[a-z]+)+)/g)].map(([, other = '']) => other)
      expect([name, others.filter((other) => !names.has(other))]).toEqual([name, []])
    }
  })

  test('the arguments that one names for a tool are its fields, with values that they accept', () => {
    const valued = /\b([a-z_]+) (recover|drain|true|false|TERM|KILL|mitigated|repaired)\b/g
    for (const { name, body } of shipped)
      for (const line of body.split('\n')) {
        const named = [...line.matchAll(/`([a-z_]+)`/g)].flatMap(([, word = '']) => tools.get(word) ?? [])
        const shapes = named.map(({ input }) => (input as z.ZodObject).shape as Record<string, z.ZodType>)
        const said = [...line.matchAll(/\b[a-z]+_[a-z_]+\b/g)].map(([word]) => word).filter((word) => !tools.has(word))
        // For a plan that its own line no longer names: the paragraph before does.
        const plans = name === 'host-down' ? [tools.get('schedule_ha_proposal')?.input as z.ZodObject] : []
        const fields = [...shapes, ...plans.map(({ shape }) => shape as Record<string, z.ZodType>)]
        expect([name, said.filter((word) => !fields.some((shape) => word in shape))]).toEqual([name, []])
        for (const [whole, field = '', word = ''] of line.matchAll(valued)) {
          const value = word === 'true' || word === 'false' ? word === 'true' : word
          const takes = fields.some((shape) => shape[field]?.safeParse(value).success)
          expect([name, whole, takes]).toEqual([name, whole, true])
        }
      }
  })

  const hasAll = { changes: true, jobs: true, shards: true, hosts: true, databases: true }
  const device = { mode: 'all' as const, toolsAllowed: [], terms: { capabilities: [] }, health: null }
  const files = { ...device, terms: { capabilities: ['fs.read', 'fs.stat', 'proc.list', 'shell.exec'] } }
  test.each<[string, Parameters<typeof describedTools>]>([
    ['a plain site with agents that have neither systemd nor containers', [null, [files], [], {}]],
    ['a plain site with agents and a Prometheus', [null, [device], ['prometheus'], {}]],
    ['a site whose platform lists hosts alone', [null, [], ['loki'], { hosts: true }]],
    ['a site with nothing but an inventory', [null, [], [], {}]],
    ['a site with everything', [null, [device], ['prometheus', 'loki', 'postgresql', 'kubernetes'], hasAll]],
  ])('%s reads of no tool that it lacks', (_, site) => {
    const here = new Set(describedTools(...site).map(({ name }) => name))
    for (const { name, body } of shipped) {
      const shown = fitToSite(body, { every: tools, here })
      const named = [...shown.matchAll(/`([a-z_]+)`/g)].map(([, word = '']) => word).filter((word) => tools.has(word))
      expect([name, named.filter((word) => !here.has(word))]).toEqual([name, []])
      if (site[3] === hasAll) expect([name, shown]).toEqual([name, body])
      if (!here.has('converge_shard')) expect([name, shown]).toEqual([name, expect.not.stringMatching(/[Cc]onverge/)])
    }
  })

  test.each([
    ['replication_lag', 'shard', 'replication-lag'],
    ['service_down', 'node', 'service-down'],
    ['disk_pressure', 'node', 'disk-full'],
    ['config_drift', 'node', 'config-drift'],
    ['runaway_process', 'node', 'runaway-process'],
    ['bad_deploy', 'node', 'bad-deploy'],
    ['missing_package', 'node', 'missing-package'],
    ['host_down', 'host', 'host-down'],
    ['host_draining', 'host', 'host-draining'],
    ['HighErrorRate', 'node', 'error-rate'],
    ['ServiceMemoryHigh', 'node', 'out-of-memory'],
    ['NodeFilesystemAlmostOutOfSpace', 'host', 'disk-full'],
    ['KubeContainerOOMKilled', 'container', 'out-of-memory'],
    ['NginxProcessCpuHighFor10m', 'service_unit', 'runaway-process'],
    ['postgresql_sessions_blocked', 'database', 'database-blocked'],
    ['PostgresqlUnusedReplicationSlot', 'database', 'database-slot'],
    ['MysqlSlaveSqlThreadNotRunning', 'database', 'database-replica'],
    ['PostgresqlReplicationLag', 'node', 'database-replica'],
    ['PostgresqlTooManyConnections', 'database', 'database-connections'],
    ['PostgresqlTransactionIdWraparound', 'database', 'database-wraparound'],
    ['PostgresqlTooManyDeadTuples', 'database', 'database-space'],
    ['PostgresqlTempFilesHigh', 'database', 'database-space'],
    ['PostgresqlSlowStatement', 'database', 'database-slow'],
    ['PostgresqlHighSequentialReads', 'database', 'database-slow'],
    ['PostgresqlDeadLocks', 'database', 'database-deadlocks'],
    ['KubePodCrashLooping', 'workload', 'kubernetes-crash-loop'],
    ['KubeContainerWaiting', 'workload', 'kubernetes-container-waiting'],
    ['KubernetesContainerOomKiller', 'workload', 'kubernetes-out-of-memory'],
    ['KubeDeploymentRolloutStuck', 'workload', 'kubernetes-rollout-stuck'],
    ['KubeDeploymentReplicasMismatch', 'workload', 'kubernetes-rollout-stuck'],
    ['KubePodNotReady', 'workload', 'kubernetes-pod-pending'],
    ['KubernetesPersistentvolumeclaimPending', 'volume_claim', 'kubernetes-volume'],
    ['KubeNodeNotReady', 'node', 'kubernetes-node-not-ready'],
    ['KubeNodePressure', 'node', 'kubernetes-node-pressure'],
    ['KubeQuotaExceeded', 'namespace', 'kubernetes-quota'],
    ['KubeServiceWithoutEndpoints', 'cluster_service', 'kubernetes-service-without-endpoints'],
    ['KubeAdmissionWebhookErrors', 'cluster', 'kubernetes-webhook'],
    ['KubeJobNotCompleted', 'workload', 'kubernetes-job'],
  ] as const)('an incident %s of a %s gets %s', (type, kind, name) => {
    expect(matchRunbooks(shipped, { type, kind, words: '' }).chosen?.name).toBe(name)
  })

  test('text of a log finds other runbooks by name: one about a port in use is offered beside one about a service that is down', () => {
    const words = 'nginx does not start: bind() failed, address already in use by another process on port 80'
    const { chosen, others } = matchRunbooks(shipped, { type: 'service_down', kind: 'node', words })
    expect([chosen?.name, others.map(({ name }) => name)]).toEqual([
      'service-down',
      expect.arrayContaining(['port-in-use']),
    ])
  })

  test('an incident without a matching runbook gets none', () => {
    expect(matchRunbooks(shipped, { type: 'Fnord', kind: 'tenant', words: 'blinking lights' })).toEqual({
      chosen: null,
      others: [],
    })
  })
})

describe('a match', () => {
  const runbook = (name: string, more: Partial<Runbook> = {}): Runbook => ({
    name,
    description: '',
    incidentTypes: [],
    resourceKinds: [],
    owner: null,
    reviewedAt: null,
    origin: 'folder',
    replaces: [],
    digest: '',
    bytes: 1,
    body: 'x',
    ...more,
  })
  const nameFor = (list: Runbook[], subject: Partial<Subject> & { type: string }) =>
    matchRunbooks(list, { kind: null, words: '', ...subject }).chosen?.name ?? null

  test('is made by type, then by the longest pattern, then by kind, in any order of the files', () => {
    const list = [
      runbook('kind', { resourceKinds: ['node'] }),
      runbook('wide', { incidentTypes: ['Disk*'] }),
      runbook('narrow', { incidentTypes: ['Disk*Full'] }),
      runbook('exact', { incidentTypes: ['DiskAlmostFull'] }),
    ]
    for (const each of [list, list.toReversed()]) {
      expect(nameFor(each, { type: 'diskalmostfull', kind: 'node' })).toBe('exact')
      expect(nameFor(each, { type: 'DiskVeryFull', kind: 'node' })).toBe('narrow')
      expect(nameFor(each, { type: 'DiskSlow', kind: 'node' })).toBe('wide')
      expect(nameFor(each, { type: 'Fnord', kind: 'node' })).toBe('kind')
      expect(nameFor(each, { type: 'Fnord', kind: 'host' })).toBeNull()
    }
  })

  test('gives a runbook for hosts to no node, and one with types to no other type of its kind', () => {
    const list = [runbook('hosts', { incidentTypes: ['down', 'HostDown'], resourceKinds: ['host'] })]
    expect(nameFor(list, { type: 'down', kind: 'node' })).toBeNull()
    expect(nameFor(list, { type: 'slow', kind: 'host' })).toBeNull()
    expect(nameFor(list, { type: 'down' })).toBe('hosts')
  })

  test('by words alone adds a name and never a text, and names at most two', () => {
    const list = ['printer-jam', 'printer-toner', 'printer-paper', 'other'].map((name) =>
      runbook(name, { description: `printer trouble of ${name}` }),
    )
    const { chosen, others } = matchRunbooks(list, { type: 'x', kind: null, words: 'printer jam toner paper trouble' })
    expect([chosen, others.length, others[0]?.why]).toEqual([null, 2, 'words'])
  })

  test('with a pattern of many stars ends', () => {
    const list = [runbook('stars', { incidentTypes: [`${'*a'.repeat(45)}b`] })]
    expect(withoutHanging(() => nameFor(list, { type: 'a'.repeat(200) }))).toBeNull()
  })
})
