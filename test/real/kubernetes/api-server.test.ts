import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { note } from '../facts.ts'
import { whyNot } from '../kinds.ts'
import { type RealApiServer, startApiServer } from './api-server.ts'

const lacking = whyNot('kubernetes')

/** Nothing in Nightshift speaks Kubernetes yet: what is held here is that the programs of this kind run, for what will be tested against them. */
;(lacking ? describe.skip : describe)(`a real API server of Kubernetes${lacking ? ` (${lacking})` : ''}`, () => {
  let server: RealApiServer
  beforeAll(async () => {
    const began = performance.now()
    server = await startApiServer()
    note('API server ready in', `${((performance.now() - began) / 1000).toFixed(1)} s`)
  })
  afterAll(async () => await server?.stop())

  test('starts with its etcd, says its version and lists its namespaces', async () => {
    const { gitVersion } = JSON.parse((await server.get('/version')).body) as { gitVersion: string }
    expect(gitVersion).toMatch(/^v1\.\d+/)
    const { items } = JSON.parse((await server.get('/api/v1/namespaces')).body) as {
      items: { metadata: { name: string } }[]
    }
    expect(items.map(({ metadata }) => metadata.name)).toContain('kube-system')
  })
})
