import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { eventually } from '../../support/directory.ts'
import { nodeOf, putCrashLoop, useCluster } from './site.ts'

const { stage, read, probe } = useCluster()

const pod = (name: string, more: Record<string, unknown> = {}) => ({
  metadata: { name, namespace: 'shop', ...more },
  spec: {},
  status: { phase: 'Running' },
})

const lists = (plural: string) =>
  stage.cluster.asked.filter(({ path, query }) => path.endsWith(`/${plural}`) && query.get('watch') === null)

test('a cluster is listed in pages and shows how much of it there is', async () => {
  stage.cluster.put('Node', nodeOf('node-1', '10.0.0.1'))
  for (let at = 0; at < 1_201; at += 1) stage.cluster.put('Pod', pod(`web-${at}`))
  expect(await probe()).toMatch(/^the cluster answers: Kubernetes v1\.34\.4, 1 node, 1201 pods; last response 0 s ago$/)
  expect(lists('pods').map(({ query }) => query.get('continue'))).toEqual([
    null,
    '200',
    '400',
    '600',
    '800',
    '1000',
    '1200',
  ])
  expect(stage.cluster.asked.every(({ authorization }) => authorization === 'Bearer token-of-a-test')).toBe(true)
})

test('changes after the list are known by the watch, without another list', async () => {
  await probe()
  stage.cluster.put('Pod', pod('late'))
  await eventually('1 pod;', async () => (await probe()).includes('1 pod;'))
  stage.cluster.remove('Pod', 'shop', 'late')
  await eventually('no pod;', async () => (await probe()).includes('no pod;'))
  expect(lists('pods')).toHaveLength(1)
})

test('a watch that breaks off continues from where it was', async () => {
  await probe()
  await eventually('a watch', () => stage.cluster.watching('Pod') === 1)
  stage.cluster.endWatches()
  stage.cluster.put('Pod', pod('between'))
  await eventually('1 pod;', async () => (await probe()).includes('1 pod;'))
  expect(lists('pods')).toHaveLength(1)
})

test('a version that the server no longer keeps (410) is answered by another list', async () => {
  stage.cluster.put('Pod', pod('old'))
  await probe()
  stage.cluster.remove('Pod', 'shop', 'old')
  stage.cluster.put('Pod', pod('new-1'))
  stage.cluster.put('Pod', pod('new-2'))
  stage.cluster.compact()
  await eventually('2 pods;', async () => (await probe()).includes('2 pods;'))
  await eventually('a second list', () => lists('pods').length === 2)
})

test('a restored or replaced server is listed again', async () => {
  stage.cluster.put('Pod', pod('old'))
  await probe()
  await eventually('a watch', () => stage.cluster.watching('Pod') === 1)
  stage.cluster.clear()
  stage.cluster.restore()
  stage.cluster.put('Pod', pod('new-1'))
  stage.cluster.put('Pod', pod('new-2'))
  await eventually('2 pods;', async () => (await probe().catch(() => '')).includes('2 pods;'))
})

test('a watch whose versions go back is a reason to list again', async () => {
  await probe()
  await eventually('a watch', () => stage.cluster.watching('Pod') === 1)
  stage.cluster.say('Pod', '{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}}')
  await eventually('a second list', () => lists('pods').length === 2)
})

test.each([
  ['none', {}],
  ['the one of before', { resourceVersion: '' }],
])('a bookmark that gives %s as its version changes nothing', async (_, metadata) => {
  await probe()
  await eventually('a watch', () => stage.cluster.watching('Pod') === 1)
  stage.cluster.say('Pod', JSON.stringify({ type: 'BOOKMARK', object: { metadata } }))
  stage.cluster.put('Pod', pod('late'))
  await eventually('1 pod;', async () => (await probe()).includes('1 pod;'))
  expect(lists('pods')).toHaveLength(1)
})

test('a list that returns to one of its pages ends with a reason, and does not delay the others', async () => {
  stage.cluster.put('Pod', pod('web-0'))
  stage.cluster.refuse('Ingress', {
    status: 200,
    body: JSON.stringify({ kind: 'IngressList', metadata: { continue: 'again' }, items: [] }),
  })
  expect(await probe()).toContain('1 pod;')
  expect(lists('ingresses').length).toBeLessThan(5)
  await expect(read('get_kubernetes', { kind: 'Ingress' })).rejects.toThrow('does not list ingresses')
})

test('a server that forgets each list during its reading is asked again after a pause', async () => {
  stage.cluster.refuse('Pod', { status: 410 }, 3)
  await expect(probe()).rejects.toThrow('prod refused the request')
  await eventually('the pods', async () => (await probe().catch(() => '')).includes('no pod;'))
  const times = lists('pods').map(({ atMs }) => atMs)
  expect(times).toHaveLength(4)
  expect((times[2] ?? 0) - (times[1] ?? 0)).toBeGreaterThan(400)
})

test('an unreadable event is a reason to list again, and no end', async () => {
  await probe()
  await eventually('a watch', () => stage.cluster.watching('Pod') === 1)
  stage.cluster.say('Pod', '{"type":"ADDED","object":{"metadata":')
  stage.cluster.put('Pod', pod('after'))
  await eventually('1 pod;', async () => (await probe()).includes('1 pod;'))
})

test('a server that asks for a delay (429) is asked again after that time, and not before', async () => {
  stage.cluster.refuse('Pod', { status: 429, headers: { 'retry-after': '2' } }, 1)
  await expect(probe()).rejects.toThrow('prod asks Nightshift to wait, for 2 s (429)')
  const [first] = lists('pods')
  await eventually('a second list', () => lists('pods').length === 2)
  const second = lists('pods').at(-1)
  expect((second?.atMs ?? 0) - (first?.atMs ?? 0)).toBeGreaterThanOrEqual(1_900)
  await eventually('the pods', async () => (await probe().catch(() => '')).includes('no pod;'))
})

test('a question that gets a short delay is asked once more', async () => {
  putCrashLoop(stage.cluster)
  await probe()
  stage.cluster.refuse('Event', { status: 429, headers: { 'retry-after': '0' } }, 1)
  expect((await read('pod_diagnosis', { namespace: 'shop', name: 'web' })).isPartial).toBe(false)
})

test('a kind that the role does not allow is named with the missing rule, and the others are read', async () => {
  stage.cluster.refuse('Ingress', { status: 403, message: 'ingresses is forbidden: User "x" cannot list' })
  stage.cluster.put('Pod', pod('web-0'))
  const said = await probe()
  expect(said).toContain('1 pod')
  expect(said).toContain(
    'Nightshift may not list Ingress: its role lacks { apiGroups: ["networking.k8s.io"], resources: ["ingresses"], verbs: ["get", "list", "watch"] }',
  )
})

test('without a right to pods nothing of the cluster is shown, and the rule is named', async () => {
  stage.cluster.refuse('Pod', { status: 403 })
  await expect(probe()).rejects.toThrow(
    'prod does not let the account of Nightshift read pods: the role lacks the rule { apiGroups: [""], resources: ["pods"], verbs: ["get", "list", "watch"] }; nightshift sources rights prod prints all',
  )
})

test('a rotated token is read again', async () => {
  await probe()
  writeFileSync(join(stage.directory, 'token'), 'the-next-token')
  await probe()
  expect(stage.cluster.asked.at(-1)?.authorization).toBe('Bearer the-next-token')
})

test('rights by namespace read only these namespaces, and nothing of the cluster itself', async () => {
  stage.source = { ...stage.source, options: { namespaces: 'shop,pay' } }
  stage.cluster.put('Pod', pod('web-0'))
  stage.cluster.put('Pod', { ...pod('elsewhere'), metadata: { name: 'elsewhere', namespace: 'other' } })
  expect(await probe()).toContain('1 pod;')
  const paths = stage.cluster.asked.map(({ path }) => path).filter((path) => path !== '/version')
  expect(paths.every((path) => /\/namespaces\/(?:shop|pay)\//.test(path))).toBe(true)
})

test('a page that is too large is requested in smaller pages', async () => {
  const heavy = { annotations: { note: 'x'.repeat(5_000_000) } }
  for (let at = 0; at < 8; at += 1) stage.cluster.put('Pod', pod(`heavy-${at}`, heavy))
  expect(await probe()).toContain('8 pods;')
  expect([...new Set(lists('pods').map(({ query }) => query.get('limit')))]).toEqual(['200', '50', '10', '1'])
})

test("a crashing pod is shown with its conditions, its earlier end, the newest rollout and the rollout's changes", async () => {
  putCrashLoop(stage.cluster)
  const { summary } = await read('pod_diagnosis', { namespace: 'shop', name: 'web' })
  expect(summary).toMatchObject({
    workload: 'Deployment shop/web',
    ready: 0,
    pod: 'web-7fd8966c8d-8cjqz',
    state: 'CrashLoopBackOff',
    conditions: [{ type: 'Ready', is: 'False', reason: 'ContainersNotReady' }],
    containers: [
      { name: 'app', restarts: 9, before: { reason: 'Error', exitCode: 3, finished: '2026-11-21T11:55:02Z' } },
    ],
    newestRollout: {
      revision: 2,
      at: '2026-11-21T11:30:00Z',
      changed: ['container app image: web:1 → web:2', 'container app env MODE changed'],
      configMaps: ['web-config changed 2026-11-21T11:20:00Z by kubectl-edit'],
    },
    events: [{ reason: 'BackOff', count: 40, first: '2026-11-21T11:30:05Z', last: '2026-11-21T11:59:00Z' }],
  })
})

test('values of the environment, of arguments and of ConfigMaps are in no answer', async () => {
  putCrashLoop(stage.cluster)
  const { summary, whole } = await read('pod_diagnosis', { namespace: 'shop', name: 'web' })
  expect(JSON.stringify(summary) + whole).not.toContain('planted')
})

test('a deleted pod is answered by its workload', async () => {
  putCrashLoop(stage.cluster)
  await probe()
  stage.cluster.remove('Pod', 'shop', 'web-7fd8966c8d-8cjqz')
  await eventually('no pod;', async () => (await probe()).includes('no pod;'))
  const { summary } = await read('pod_diagnosis', { namespace: 'shop', name: 'web-7fd8966c8d-8cjqz' })
  expect(summary).toMatchObject({ workload: 'Deployment shop/web', pods: 0 })
  expect(String(summary.gone)).toMatch(/^the named object has not existed since/)
})

test('an unknown name is answered with the known names', async () => {
  putCrashLoop(stage.cluster)
  await expect(read('pod_diagnosis', { namespace: 'shop', name: 'wbe' })).rejects.toThrow(
    'prod has no pod and no workload wbe in shop: there is Deployment web',
  )
})
