import { request } from 'node:https'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { eventually } from '../../support/directory.ts'
import { note } from '../facts.ts'
import { lacking, type RealCluster, startRealCluster } from './site.ts'

/**
 * Under the role that is printed everything works, and nothing else does: by the API server's own
 * word.
 */
;(lacking ? describe.skip : describe)(`a role on a real API server${lacking ? ` (${lacking})` : ''}`, () => {
  let cluster: RealCluster
  let token: string
  beforeAll(async () => {
    cluster = await startRealCluster()
    token = await cluster.giveRights()
  })
  afterAll(async () => await cluster?.stop())

  const post = (path: string, body: object, as: string): Promise<Record<string, unknown>> =>
    new Promise((resolve, reject) => {
      const source = cluster.sourceWith()
      const headers = { authorization: `Bearer ${as}`, 'content-type': 'application/json' }
      const asked = request(
        new URL(path, source.url),
        { method: 'POST', headers, rejectUnauthorized: false },
        (answer) => text(answer).then((said) => resolve(JSON.parse(said)), reject),
      )
      asked.on('error', reject)
      asked.end(JSON.stringify(body))
    })

  /** What the API server says of a verb on a resource. */
  async function may(verb: string, group: string, resource: string, namespace?: string): Promise<boolean> {
    const [plural = '', subresource] = resource.split('/')
    const attributes = {
      verb,
      group,
      resource: plural,
      ...(subresource && { subresource }),
      ...(namespace && { namespace }),
    }
    const body = {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: { resourceAttributes: attributes },
    }
    const { status } = await post('/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', body, token)
    return (status as { allowed: boolean }).allowed
  }

  const calls: [string, Record<string, unknown>][] = [
    ...['Pod', 'Node', 'Namespace', 'Deployment', 'ReplicaSet', 'StatefulSet', 'DaemonSet', 'Job', 'CronJob'].map(
      (kind): [string, Record<string, unknown>] => ['get_kubernetes', { kind }],
    ),
    ...['PersistentVolumeClaim', 'Service', 'Ingress', 'ConfigMap', 'ResourceQuota'].map(
      (kind): [string, Record<string, unknown>] => ['get_kubernetes', { kind }],
    ),
    ['get_kubernetes', { kind: 'Deployment', namespace: 'shop', name: 'cart' }],
    ['get_kubernetes', { kind: 'Node', name: 'node-1' }],
    ['kubernetes_events', { namespace: 'shop' }],
    ['kubernetes_events', { kind: 'Node', name: 'node-1' }],
    ['kubernetes_logs', { namespace: 'shop', name: 'cart' }],
    ['rollout_history', { namespace: 'shop', name: 'cart' }],
    ['pod_diagnosis', { namespace: 'shop', name: 'cart' }],
  ]

  test('every tool answers, and nothing is missing', async () => {
    const source = cluster.sourceWith()
    expect(await cluster.probe(source)).toMatch(
      /^the cluster answers: Kubernetes v1\.\d+\.\d+, 2 nodes, \d+ pods; last response \d+ s ago$/,
    )
    for (const [tool, args] of calls) {
      const { isPartial, summary } = await cluster.read(source, tool, args)
      expect([tool, args, isPartial ?? false]).toEqual([tool, args, false])
      expect(Buffer.byteLength(JSON.stringify(summary))).toBeLessThanOrEqual(2_000)
    }
    cluster.forget()
  })

  test('of all resources and verbs of the server those of the role are allowed, and no other', async () => {
    const groups: string[] = [
      '/api/v1',
      ...(await cluster.api.get('/apis')).groups.map(
        (each: { preferredVersion: { groupVersion: string } }) => `/apis/${each.preferredVersion.groupVersion}`,
      ),
    ]
    const allowed: string[] = []
    let asked = 0
    for (const path of groups) {
      const { resources } = await cluster.api.get(path)
      const group = path === '/api/v1' ? '' : (path.split('/')[2] ?? '')
      const pairs = (resources as { name: string; verbs: string[] }[]).flatMap(({ name }) =>
        [
          'get',
          'list',
          'watch',
          'create',
          'update',
          'patch',
          'delete',
          'deletecollection',
          'impersonate',
          'escalate',
          'bind',
        ].map((verb) => [verb, name] as const),
      )
      const answers = await Promise.all(
        pairs.map(async ([verb, name]) => ((await may(verb, group, name)) ? [`${verb} ${group}/${name}`] : [])),
      )
      asked += pairs.length
      allowed.push(...answers.flat())
    }
    const three = (group: string, ...names: string[]) =>
      names.flatMap((name) => ['get', 'list', 'watch'].map((verb) => `${verb} ${group}/${name}`))
    // What each account of a cluster may ask about itself.
    const ofAll = [
      'create authentication.k8s.io/selfsubjectreviews',
      'create authorization.k8s.io/selfsubjectaccessreviews',
      'create authorization.k8s.io/selfsubjectrulesreviews',
    ]
    expect(allowed.sort()).toEqual(
      [
        ...three(
          '',
          'nodes',
          'namespaces',
          'pods',
          'services',
          'persistentvolumeclaims',
          'persistentvolumes',
          'configmaps',
          'resourcequotas',
          'events',
        ),
        'get /pods/log',
        ...three('apps', 'deployments', 'replicasets', 'statefulsets', 'daemonsets', 'controllerrevisions'),
        ...three('batch', 'jobs', 'cronjobs'),
        ...three('networking.k8s.io', 'ingresses'),
        ...three('policy', 'poddisruptionbudgets'),
        ...ofAll,
      ].sort(),
    )
    note('pairs of verb and resource asked of RBAC', `${asked}, allowed ${allowed.length}`)
  })

  test('a missing rule is named by the answer that needed it', async () => {
    const path = '/apis/rbac.authorization.k8s.io/v1/clusterroles/nightshift-read'
    const whole = await cluster.api.get(path)
    const without = async (resource: string) =>
      await cluster.api.change(path, (role) => {
        for (const rule of role.rules) rule.resources = rule.resources.filter((each: string) => each !== resource)
        role.rules = role.rules.filter((rule: { resources: string[] }) => rule.resources.length > 0)
      })
    const restore = async () => await cluster.api.change(path, (role) => Object.assign(role, { rules: whole.rules }))
    for (const [resource, tool, args, lack] of [
      [
        'pods/log',
        'kubernetes_logs',
        { namespace: 'shop', name: 'cart' },
        '{ apiGroups: [""], resources: ["pods/log"], verbs: ["get"] }',
      ],
      [
        'events',
        'kubernetes_events',
        { namespace: 'shop' },
        '{ apiGroups: [""], resources: ["events"], verbs: ["get", "list", "watch"] }',
      ],
      [
        'configmaps',
        'get_kubernetes',
        { kind: 'ConfigMap', namespace: 'shop', name: 'cart-settings-1' },
        '{ apiGroups: [""], resources: ["configmaps"], verbs: ["get", "list", "watch"] }',
      ],
    ] as const) {
      await without(resource)
      // A server takes a moment to know it.
      const said = await eventually(`${resource} to be refused`, async () => {
        const answer = await cluster.read(cluster.sourceWith(), tool, args).catch((error: Error) => error.message)
        return typeof answer === 'string' ? answer : null
      })
      expect(said).toContain(`the role lacks the rule ${lack}`)
      await restore()
    }
    await without('ingresses')
    await eventually('ingresses to be refused', async () => {
      cluster.forget()
      return (await cluster.probe(cluster.sourceWith())).includes(
        'Nightshift may not list Ingress: its role lacks { apiGroups: ["networking.k8s.io"], resources: ["ingresses"]',
      )
    })
    await restore()
    cluster.forget()
  })

  test('rights to a namespace show that namespace, and nothing of the others', async () => {
    await cluster.api.remove('/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/nightshift-read')
    await cluster.giveRights(['shop'])
    const source = cluster.sourceWith({ options: { namespaces: 'shop' } })
    expect(await cluster.probe(source)).toMatch(
      /^the cluster answers: Kubernetes v[\d.]+, \d+ pods; last response \d+ s ago$/,
    )
    const { summary } = await cluster.read(source, 'get_kubernetes', { kind: 'Pod' })
    expect((summary.items as string[]).every((line) => line.startsWith('shop/'))).toBe(true)
    expect((await cluster.read(source, 'pod_diagnosis', { namespace: 'shop', name: 'cart' })).isPartial).toBe(false)
    await expect(cluster.read(source, 'kubernetes_events', { namespace: 'payments' })).rejects.toThrow(
      'the role lacks the rule',
    )
    cluster.forget()
  })

  test('a kubeconfig with a client certificate is another way in', async () => {
    const credential = `file:${cluster.write('kubeconfig', cluster.admin)}`
    const source = cluster.sourceWith({ credential, caFile: null })
    expect(await cluster.probe(source)).toContain('2 nodes')
    cluster.forget()
  })
})
