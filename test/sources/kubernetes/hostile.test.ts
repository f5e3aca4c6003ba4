import { expect, test } from '@jest/globals'
import { planRead } from '../../../sources/kinds.ts'
import { eventually } from '../../support/directory.ts'
import { eventAbout, nowMs, putCrashLoop, useCluster } from './site.ts'

/** What odd, large and lying input gets: a reason, a row, and nothing else. */

const { stage, read, probe } = useCluster()

const sizeOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value))

test('an object with 5 MB of annotations is read, and none of them is kept or shown', async () => {
  putCrashLoop(stage.cluster)
  stage.cluster.put('Deployment', {
    metadata: { name: 'heavy', namespace: 'shop', annotations: { note: `planted${'x'.repeat(5_000_000)}` } },
    spec: { replicas: 1, template: { metadata: { annotations: { other: `planted${'y'.repeat(1_000_000)}` } } } },
    status: {},
  })
  const { summary, whole } = await read('get_kubernetes', { kind: 'Deployment', namespace: 'shop', name: 'heavy' })
  expect(summary).toMatchObject({ kind: 'Deployment', name: 'heavy', replicas: 1 })
  expect(JSON.stringify(summary) + whole).not.toContain('planted')
})

test('10,000 events are folded into 2 kB, with their number', async () => {
  putCrashLoop(stage.cluster)
  for (let at = 0; at < 10_000; at += 1)
    stage.cluster.put('Event', {
      ...eventAbout('Pod', 'shop', 'web-7fd8966c8d-8cjqz', {
        reason: 'Unhealthy',
        message: `Readiness probe failed: status ${500 + (at % 7)}`,
      }),
      metadata: { name: `unhealthy-${at}`, namespace: 'shop' },
    })
  const { summary } = await read('kubernetes_events', { namespace: 'shop' })
  expect(sizeOf(summary)).toBeLessThanOrEqual(2_000)
  expect(summary.events).toContainEqual(
    expect.objectContaining({ reason: 'Unhealthy', count: 9_999, about: 'Pod shop/web-7fd8966c8d-8cjqz' }),
  )
  // Twenty pages of 500 are read: the rest is said to be left out.
  expect(summary.partial).toEqual([expect.stringContaining('there are more: newer ones may be missing')])
})

test('the revisions of a workload are found among thousands of others, and a part of them is no answer', async () => {
  const putRevision = (name: string, revision: number, owner: string) =>
    stage.cluster.put('ControllerRevision', {
      metadata: {
        name,
        namespace: 'shop',
        ownerReferences: [{ kind: 'DaemonSet', name: owner, uid: `uid-of-DaemonSet-${owner}` }],
      },
      revision,
      data: { spec: { template: { spec: { containers: [{ name: 'app', image: `app:${revision}` }] } } } },
    })
  stage.cluster.put('DaemonSet', { metadata: { name: 'last', namespace: 'shop' }, spec: {}, status: {} })
  for (let at = 0; at < 1_200; at += 1) putRevision(`a-${at}`, at, 'other')
  putRevision('last-1', 1, 'last')
  putRevision('last-2', 2, 'last')
  const { summary } = await read('rollout_history', { namespace: 'shop', name: 'last' })
  expect(summary.revisions).toMatchObject([
    { revision: 2, changed: ['container app image: app:1 → app:2'] },
    { revision: 1 },
  ])
  for (let at = 0; at < 4_000; at += 1) putRevision(`b-${at}`, at, 'other')
  await expect(read('rollout_history', { namespace: 'shop', name: 'last' })).rejects.toThrow('more revisions in shop')
  expect((await read('pod_diagnosis', { namespace: 'shop', name: 'last' })).summary).toMatchObject({
    partial: ['rollouts: there are more revisions in shop than are read'],
  })
})

test.each(['Infinity', '1e9', '-1', '0x10'])(
  'a ReplicaSet whose revision is %j is not the newest',
  async (revision) => {
    putCrashLoop(stage.cluster)
    stage.cluster.put('ReplicaSet', {
      metadata: {
        name: 'web-liar',
        namespace: 'shop',
        annotations: { 'deployment.kubernetes.io/revision': revision },
        ownerReferences: [{ kind: 'Deployment', name: 'web', uid: 'uid-of-Deployment-web', controller: true }],
      },
      spec: { replicas: 0, template: {} },
      status: {},
    })
    const { summary } = await read('rollout_history', { namespace: 'shop', name: 'web' })
    expect(summary.revisions).toMatchObject([{ revision: 2 }, { revision: 1 }, { revision: 0 }])
  },
)

test('names of 253 characters fit into an answer', async () => {
  const name = 'n'.repeat(253)
  stage.cluster.put('Pod', {
    metadata: { name, namespace: 'shop', uid: 'u' },
    spec: { containers: [{ name: 'app', image: 'i'.repeat(3_000) }] },
    status: { phase: 'Pending' },
  })
  for (const [tool, args] of [
    ['pod_diagnosis', { namespace: 'shop', name }],
    ['get_kubernetes', { kind: 'Pod', namespace: 'shop', name }],
    ['get_kubernetes', { kind: 'Pod' }],
  ] as const)
    expect(sizeOf((await read(tool, args)).summary)).toBeLessThanOrEqual(2_000)
})

test.each(['Secret', 'secrets', 'Vault', 'ClusterRole', 'ServiceAccount', ''])(
  'the kind %j may not be shown',
  (kind) => {
    const planned = planRead([stage.source], 'get_kubernetes', { kind, namespace: 'shop' })
    expect(planned).toMatchObject({ ok: false, code: 'INVALID' })
  },
)

test.each([['../secrets'], ['a/../../secrets/b'], ['web?x=1'], ['web%2f..'], ['WEB'], ['-web'], ['a'.repeat(254)]])(
  'the name %j leads nowhere else',
  (name) => {
    expect(planRead([stage.source], 'get_kubernetes', { kind: 'Pod', namespace: 'shop', name })).toMatchObject({
      ok: false,
    })
    expect(planRead([stage.source], 'pod_diagnosis', { namespace: name, name: 'web' })).toMatchObject({ ok: false })
  },
)

test('fields of a wrong type are ignored, and the rest is read', async () => {
  stage.cluster.put('Pod', {
    metadata: {
      name: 'odd',
      namespace: 'shop',
      uid: 'u',
      labels: [1, 2],
      ownerReferences: { kind: 'Deployment' },
      creationTimestamp: 12,
    },
    spec: { nodeName: { a: 1 }, containers: 'none', volumes: [null, 3] },
    status: {
      phase: ['Running'],
      conditions: [{ type: 7 }, null, { type: 'Ready', status: 'False', message: { a: 1 } }],
      containerStatuses: [{ restartCount: 'many', state: 'x' }],
    },
  } as never)
  const { summary } = await read('pod_diagnosis', { namespace: 'shop', name: 'odd' })
  expect(summary).toMatchObject({
    pod: 'odd',
    state: 'Unknown',
    node: null,
    conditions: [{ type: 'Ready', is: 'False' }],
    containers: [],
  })
})

test('a pod that claims an owner by a label, or by another uid, belongs to no workload', async () => {
  putCrashLoop(stage.cluster)
  stage.cluster.put('Pod', {
    metadata: {
      name: 'liar',
      namespace: 'shop',
      labels: { app: 'web', 'app.kubernetes.io/managed-by': 'web', 'controller-uid': 'uid-of-Deployment-web' },
      ownerReferences: [{ kind: 'Deployment', name: 'web', uid: 'made-up', controller: true }],
    },
    spec: {},
    status: { phase: 'Running' },
  })
  const { summary } = await read('pod_diagnosis', { namespace: 'shop', name: 'liar' })
  expect(summary.workload).toBeUndefined()
  expect((await read('pod_diagnosis', { namespace: 'shop', name: 'web' })).summary).toMatchObject({ pods: 1 })
})

test('a log of bytes that are no text is shown as such, and does not act on a terminal', async () => {
  putCrashLoop(stage.cluster)
  const bytes = Buffer.from(Array.from({ length: 4_000 }, (_, at) => (at * 37) % 256))
  stage.cluster.logs.set(
    'shop/web-7fd8966c8d-8cjqz',
    Buffer.concat([Buffer.from('2026-11-21T11:59:00Z \u001b[2J\u0007 begin '), bytes]),
  )
  const { summary, whole } = await read('kubernetes_logs', { namespace: 'shop', name: 'web' })
  expect(sizeOf(summary)).toBeLessThanOrEqual(2_000)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be there
  expect(JSON.stringify(summary) + whole).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]|\\u001b/)
})

test('a cluster whose clock is ahead, or behind, is read by its own times', async () => {
  putCrashLoop(stage.cluster)
  const ahead = new Date(nowMs + 3 * 3_600_000).toISOString()
  stage.cluster.put(
    'Event',
    eventAbout('Pod', 'shop', 'web-7fd8966c8d-8cjqz', {
      reason: 'Ahead',
      message: 'from tomorrow',
      firstTimestamp: ahead,
      lastTimestamp: ahead,
    }),
  )
  const { summary } = await read('kubernetes_events', { namespace: 'shop' })
  expect(JSON.stringify(summary)).toContain('Ahead')
  expect((await read('get_kubernetes', { kind: 'Pod', namespace: 'shop' })).summary).toMatchObject({ found: 1 })
})

test('a watch that repeats itself changes nothing', async () => {
  putCrashLoop(stage.cluster)
  await probe()
  await eventually('a watch', () => stage.cluster.watching('Pod') === 1)
  const pod = {
    metadata: { name: 'again', namespace: 'shop', uid: 'again', resourceVersion: '2000' },
    spec: {},
    status: { phase: 'Running' },
  }
  for (let at = 0; at < 500; at += 1)
    stage.cluster.say('Pod', JSON.stringify({ type: at % 2 === 0 ? 'ADDED' : 'MODIFIED', object: pod }))
  await eventually('it', async () => (await probe()).includes('2 pods;'))
  stage.cluster.say('Pod', JSON.stringify({ type: 'DELETED', object: pod }))
  stage.cluster.say('Pod', JSON.stringify({ type: 'DELETED', object: pod }))
  await eventually('its end', async () => (await probe()).includes('1 pod;'))
})

test('a server with another version after an upgrade is read on, and what it no longer serves is reported', async () => {
  putCrashLoop(stage.cluster)
  stage.cluster.refuse('CronJob', { status: 404, message: 'the server could not find the requested resource' })
  expect(await probe()).toContain('1 pod')
  expect((await read('pod_diagnosis', { namespace: 'shop', name: 'web' })).summary).toMatchObject({
    workload: 'Deployment shop/web',
  })
  await expect(read('get_kubernetes', { kind: 'CronJob' })).rejects.toThrow('prod does not list cronjobs')
})

test('a server that is gone is a failing source, with its reason', async () => {
  await stage.cluster.stop()
  await expect(probe()).rejects.toThrow('prod cannot be reached')
})

test('an answer that is no list, or no JSON, is a bad answer', async () => {
  stage.source = { ...stage.source, options: {} }
  stage.cluster.refuse('Pod', { status: 200, message: 'hello' })
  await expect(probe()).rejects.toThrow('the response is not a list: is this the address of an API server?')
})
