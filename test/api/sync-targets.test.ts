import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { syncTargets } from '../../api/sync-targets.ts'
import { leaseKeys } from '../../db/inventory/registry.ts'
import { findAlertResources, neighboursOf } from '../../db/inventory/resources.ts'
import { targetsToDeclared } from '../../domain/source.ts'
import { useApi } from '../support/api.ts'

const api = useApi()

let answer: (response: ServerResponse) => void = () => {}
const server = createServer((_, response) => answer(response))
let url = ''
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  await api.put('/inventory', { body: { nodes: [{ id: 'web-1', hostname: 'web-1.example.com', ip: '10.0.0.1' }] } })
  await api.put('/sources/main', { body: { kind: 'prometheus', url } })
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

const list = (...targets: Record<string, string>[]) => {
  const activeTargets = targets.map((labels) => ({ labels, health: 'up', lastScrape: new Date().toISOString() }))
  answer = (response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ status: 'success', data: { activeTargets, droppedTargets: [] } }))
  }
}
const fail = (status: number) => {
  answer = (response) => void response.writeHead(status).end()
}
const sync = () => syncTargets(api.api.deps)
const known = async () => {
  const { body } = await api.get('/inventory/resources?kind=target')
  return (body.items as unknown as { id: string }[]).map(({ id }) => id)
}

test('the targets of a source are in the registry, alerts find them, and each names its machine', async () => {
  list(
    { instance: '10.0.0.1:9100', job: 'node', env: 'prod' },
    { instance: '10.0.0.1:9100', job: 'cadvisor' },
    { instance: 'web-1.example.com:9187', job: 'postgres' },
    { instance: '10.9.9.9:9100', job: 'node' },
    { instance: 'https://shop.example.com/health?token=sesame', job: 'blackbox' },
    { instance: 'localhost:9090', job: 'prometheus' },
  )
  await sync()
  expect(await known()).toEqual([
    '10.0.0.1:9100',
    '10.9.9.9:9100',
    'localhost:9090',
    expect.stringMatching(/^shop\.example\.com-health-[0-9a-f]{8}$/),
    'web-1.example.com:9187',
  ])
  const shown = await api.get('/inventory/resources/target/10.0.0.1:9100')
  expect(shown.body).toMatchObject({
    sources: ['prometheus:main'],
    said: [{ attributes: { job: 'cadvisor, node' } }],
    relations: [{ kind: 'same_as', to: 'node:web-1', hasAuthority: false }],
    sameAs: [],
  })
  const about = async (instance: string) => {
    const [found] = await findAlertResources(api.db, [{ instance, job: 'node' }], [])
    return found?.resource
  }
  expect(await about('10.9.9.9:9100')).toEqual({ kind: 'target', id: '10.9.9.9:9100' })
  expect(await about('10.0.0.1:9100')).toEqual({ kind: 'node', id: 'web-1' })
})

test('a target takes the lease of its machine, and adds no neighbours', async () => {
  const target = (id: string) => ({ kind: 'target' as const, id })
  expect(
    await leaseKeys(api.db, [target('10.0.0.1:9100'), target('web-1.example.com:9187'), { kind: 'node', id: 'web-1' }]),
  ).toEqual(['node:web-1'])
  expect(await leaseKeys(api.db, [target('localhost:9090')])).toEqual(['target:localhost:9090'])
  expect(await neighboursOf(api.db, target('10.0.0.1:9100'))).toEqual([])
  // Its own group, and nothing besides.
  expect(await neighboursOf(api.db, { kind: 'node', id: 'web-1' })).toEqual([{ kind: 'shard', id: 'hosts' }])
})

test('a source that is away or has no list yet leaves its rows, and a source with fewer targets removes the others', async () => {
  const before = await known()
  const breakOff = () => {
    answer = (response) => response.destroy()
  }
  const fails = [() => fail(500), () => fail(404), () => list(), breakOff]
  for (const failing of fails) {
    failing()
    await sync()
    expect(await known()).toEqual(before)
  }
  // That a server of this family has no targets is no failure of it.
  fail(404)
  await sync()
  expect((await api.get('/status')).body.sources).toMatchObject([{ status: 'ok' }])
  list({ instance: 'b:1' }, { instance: 'a:1' }, { job: 'without an instance' }, { instance: '///' })
  await sync()
  expect(await known()).toEqual(['a:1', 'b:1'])
})

test('too many targets are refused as a whole, and the earlier list stays', async () => {
  const before = await known()
  list(...Array.from({ length: 100_001 }, (_, at) => ({ instance: `h-${at}:1` })))
  await sync()
  expect(await known()).toEqual(before)
})

test('a source that moves or is removed takes its targets with it', async () => {
  list({ instance: 'a:1' })
  await sync()
  await api.put('/sources/main', { body: { kind: 'prometheus', url: `${url}/other` } })
  expect(await known()).toEqual([])
  await sync()
  expect(await known()).toEqual(['a:1'])
  await api.post('/sources/main/remove')
  expect(await known()).toEqual([])
  await sync()
  expect(await known()).toEqual([])
})

test('the same targets in another order are the same list, and two addresses are never one target', () => {
  const labels: Record<string, string>[] = [
    { instance: 'https://x.example/a', job: 'p' },
    { instance: 'https://x.example-a', job: 'p' },
    { instance: 'x:1', job: 'b', zone: '2' },
    { instance: 'x:1', job: 'a', zone: '1' },
  ]
  const declare = (all: typeof labels) =>
    targetsToDeclared(
      all.map((each) => ({ labels: each })),
      () => null,
    )
  const declared = declare(labels)
  expect(declare(labels.toReversed())).toEqual(declared)
  expect(new Set(declared.resources.map(({ id }) => id)).size).toBe(3)
})
