import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { startCluster } from '../support/cluster-server.ts'
import { runCli, useServedApi } from '../support/run-cli.ts'

const api = useServedApi()
const run = (...args: string[]) => runCli(args, api.as('admin'))

/** Loki with tenants, as it answers a list of labels. */
const loki = createServer((request, response) => {
  if (request.headers['x-scope-orgid'] === undefined) return void response.writeHead(401).end('no org id\n')
  response.setHeader('content-type', 'application/json')
  return void response.end('{"status":"success","data":["host"]}')
})
let at = ''
beforeAll(async () => {
  await new Promise<void>((resolve) => loki.listen(0, '127.0.0.1', resolve))
  at = `http://127.0.0.1:${(loki.address() as AddressInfo).port}`
})
afterAll(() => {
  loki.closeAllConnections()
  loki.close()
})

test('the command in the refusal connects a Loki with tenants, and the list shows the tenant', async () => {
  const without = await run('sources', 'add', 'logs', '--kind', 'loki', '--at', at)
  expect(without.code).toBe(1)
  const named = /nightshift (sources add .*=)TENANT/.exec(without.stderr)?.[1] ?? ''
  const added = await run(...`${named}tenant-a`.split(' '))
  expect([added.code, added.stdout]).toEqual([0, '✔ logs: the source answers queries; 1 labels\n'])
  expect((await run('sources', 'list')).stdout).toContain(`${at} X-Scope-OrgID=tenant-a`)
})

test('a source is shown with its settings and its state, and an unknown name with the known names', async () => {
  const args = ['--header', 'X-Scope-OrgID=tenant-a', '--timeout', '5']
  await run('sources', 'add', 'logs', '--kind', 'loki', '--at', at, ...args)
  const { stdout } = await run('sources', 'show', 'logs')
  for (const fact of ['kind:         loki', `address:      ${at}`, 'tenant:       X-Scope-OrgID=tenant-a', '5 s'])
    expect(stdout).toContain(fact)
  expect(stdout).toMatch(/credential: +none\n.*health: +ok, .*connected by: +admin/s)
  expect(JSON.parse((await run('sources', 'show', 'logs', '--json')).stdout)).toMatchObject({ kind: 'loki' })
  const unknown = await run('sources', 'show', 'metrics')
  expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringContaining('There are: logs.')])
})

test('a header that is not a tenant header is refused by name', async () => {
  const refused = await run('sources', 'add', 'logs', '--kind', 'loki', '--at', at, '--header', 'Authorization=Bearer')
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('X-Scope-OrgID')])
})

test('the rights of a cluster are printed as manifests, for the whole cluster and by namespace', async () => {
  const whole = await run('sources', 'rights', 'kubernetes')
  expect([whole.code, whole.stdout.trim()]).toEqual([
    0,
    readFileSync('examples/kubernetes/read-cluster.yaml', 'utf8').trim(),
  ])
  const named = await run('sources', 'rights', 'kubernetes', '--namespaces', 'shop,payments')
  expect(named.stdout.trim()).toBe(readFileSync('examples/kubernetes/read-namespaces.yaml', 'utf8').trim())
})

test('a cluster is added with its role, and the command for its token is printed', async () => {
  const cluster = await startCluster()
  process.env.NIGHTSHIFT_SOURCE_CLUSTER = 'token-of-a-test'
  try {
    const added = await run(
      'sources',
      'add',
      'prod',
      '--kind',
      'kubernetes',
      '--at',
      cluster.url,
      '--credential',
      'env:NIGHTSHIFT_SOURCE_CLUSTER',
    )
    expect([added.code, added.stdout]).toEqual([
      0,
      expect.stringMatching(
        /^✔ prod: the cluster answers: Kubernetes v1\.34\.4, no node, no pod; last response \d+ s ago\n$/,
      ),
    ])
    for (const part of [
      'kind: ClusterRole',
      'resources: ["pods/log"], verbs: ["get"]',
      'kubectl -n nightshift create token nightshift-read',
    ])
      expect(added.stderr).toContain(part)
    expect((await run('sources', 'remove', 'prod')).code).toBe(0)
  } finally {
    await cluster.stop()
  }
})

test('a kubeconfig that would run a program is refused before any request, with the alternative', async () => {
  process.env.NIGHTSHIFT_SOURCE_KUBECONFIG = `
clusters: [{ name: c, cluster: { server: "https://api.example.com" } }]
users: [{ name: u, user: { exec: { command: aws } } }]
contexts: [{ name: x, context: { cluster: c, user: u } }]
current-context: x`
  const refused = await run(
    'sources',
    'add',
    'eks',
    '--kind',
    'kubernetes',
    '--at',
    'https://api.example.com',
    '--credential',
    'env:NIGHTSHIFT_SOURCE_KUBECONFIG',
  )
  expect(refused.code).toBe(2)
  expect(refused.stderr).toContain('by running aws, as kubeconfigs of EKS do, and Nightshift runs no such program')
  expect(refused.stderr).toContain('kubectl -n nightshift create token nightshift-read')
  expect((await run('sources', 'list')).stdout).not.toContain('eks')
})
