import { expect, test } from '@jest/globals'
import { readStateOf } from '../../../sources/kinds.ts'
import { eventually } from '../../support/directory.ts'
import { putCrashLoop, useCluster } from './site.ts'

/** An unseen thing is said, and never told as absent or as of now. */

const { stage, read, probe } = useCluster()

const said = async (tool: string, args: Record<string, unknown>) =>
  await read(tool, args).then(
    ({ summary }) => JSON.stringify(summary),
    (error: Error) => error.message,
  )
const rule = 'its role lacks { apiGroups: [\\"apps\\"], resources: [\\"deployments\\"]'

/** The list was allowed, and what comes after it is not. */
async function takeRightAway() {
  await probe()
  await eventually('a watch', () => stage.cluster.watching('Deployment') === 1)
  stage.cluster.refuse('Deployment', { status: 403 })
  stage.cluster.endWatches()
  await eventually('it', async () => (await probe()).includes('may not list Deployment'))
}

test.each(['get_kubernetes', 'pod_diagnosis', 'rollout_history', 'kubernetes_logs'])(
  '%s of an unread namespace says that it is not read, and nothing of what is there',
  async (tool) => {
    stage.source = { ...stage.source, options: { namespaces: 'shop' } }
    putCrashLoop(stage.cluster)
    const asked = tool === 'get_kubernetes' ? { kind: 'Deployment' } : { name: 'web' }
    expect(await said(tool, { ...asked, namespace: 'pay' })).toContain('prod is read only in shop, and not in pay')
  },
)

test('a list of all namespaces, if rights are by namespace, names the namespaces that it covers', async () => {
  stage.source = { ...stage.source, options: { namespaces: 'shop,pay' } }
  putCrashLoop(stage.cluster)
  const { summary, isEmpty, isPartial } = await read('get_kubernetes', { kind: 'StatefulSet' })
  expect(summary).toMatchObject({ found: 0, partial: ['prod is read only in shop, pay'] })
  expect([isEmpty, isPartial]).toEqual([false, true])
})

test('a workload of a kind that may not be listed is not reported as missing without this fact', async () => {
  putCrashLoop(stage.cluster)
  stage.cluster.refuse('Deployment', { status: 403 })
  expect(await said('pod_diagnosis', { namespace: 'shop', name: 'web' })).toContain(
    'Nightshift may not list Deployment',
  )
  const pod = await read('pod_diagnosis', { namespace: 'shop', name: 'web-7fd8966c8d-8cjqz' })
  expect(JSON.stringify(pod.summary.partial)).toContain(rule)
})

test('a withdrawn right makes no list, diagnosis or state of what was read before', async () => {
  putCrashLoop(stage.cluster)
  await takeRightAway()
  expect(await said('get_kubernetes', { kind: 'Deployment' })).toContain(rule)
  expect(await said('pod_diagnosis', { namespace: 'shop', name: 'web' })).toContain(rule)
  const workload = { kind: 'workload' as const, id: 'prod:shop:deployment:web', name: 'web' }
  expect(await readStateOf(stage.source, workload, stage.states)).toMatchObject({
    health: 'unknown',
    observed: expect.stringContaining('Nightshift may not list Deployment'),
  })
})

test.each([
  ['whose new pod crashes', { replicas: 2, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1 }],
  ['whose old pod is not gone yet', { replicas: 2, updatedReplicas: 1, readyReplicas: 2, availableReplicas: 2 }],
  ['whose change was not taken up yet', { replicas: 1, updatedReplicas: 1, readyReplicas: 1, observedGeneration: 1 }],
])('a Deployment with as many ready as wanted, %s, is not well before its rollout is over', async (_, status) => {
  putCrashLoop(stage.cluster)
  const healthy = { replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1, observedGeneration: 2 }
  const metadata = { name: 'web', namespace: 'shop', generation: 2 }
  stage.cluster.put('Pod', {
    metadata: {
      name: 'web-5cd6c546f7-aaaaa',
      namespace: 'shop',
      ownerReferences: [
        { kind: 'ReplicaSet', name: 'web-5cd6c546f7', uid: 'uid-of-ReplicaSet-web-5cd6c546f7', controller: true },
      ],
    },
    spec: {},
    status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
  })
  stage.cluster.put('Deployment', { metadata, spec: { replicas: 1 }, status: { observedGeneration: 2, ...status } })
  const workload = { kind: 'workload' as const, id: 'prod:shop:deployment:web', name: 'web' }
  const stateOf = async () => await readStateOf(stage.source, workload, stage.states)
  expect(await stateOf()).toMatchObject({
    health: 'degraded',
    observed: expect.stringContaining('1 of 1 updated, the rollout is not over'),
  })
  expect((await read('get_kubernetes', { kind: 'Deployment' })).summary).toMatchObject({ ill: 1 })
  stage.cluster.put('Deployment', { metadata, spec: { replicas: 1 }, status: healthy })
  await eventually('its end', async () => (await stateOf())?.observed.includes('the rollout is not over') === false)
})

test.each([
  ['rights are by namespace', { options: { namespaces: 'shop' } }, null],
  ['nodes may not be listed', {}, 403],
])('a cluster with unread nodes, because %s, is not reported as well', async (_, more, status) => {
  stage.source = { ...stage.source, ...more }
  putCrashLoop(stage.cluster)
  if (status !== null) stage.cluster.refuse('Node', { status })
  const cluster = { kind: 'cluster' as const, id: 'prod', name: 'prod' }
  expect(await readStateOf(stage.source, cluster, stage.states)).toMatchObject({ health: 'unknown' })
})
