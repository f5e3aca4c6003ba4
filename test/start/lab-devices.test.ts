import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals'
import { enrolLab } from '../../start/lab-devices.ts'

/** As much of the core API as enrolling needs, with the devices that it knows. */
const known = new Map<string, { id: string; enrolledAt: string | null; revokedAt: string | null }>()
const server = createServer((request, response) => {
  const [, id = '', what] = /^\/api\/v1\/devices(?:\/([^/]+))?(?:\/(\w+))?$/.exec(request.url ?? '') ?? []
  if (request.method === 'PUT') known.set(id, { id, enrolledAt: null, revokedAt: null })
  const body =
    request.method === 'GET' ? { items: [...known.values()] } : what === 'enrolment' ? { token: `t-${id}` } : {}
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify(body))
})
let url: string

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => void server.close())
beforeEach(() => known.clear())

const enrolledNow: string[] = []
const lab = {
  devices: async () =>
    ['web-1', 'web-2', 'web-3'].map((id) => ({ id, url: 'http://127.0.0.1:1', root: '/srv', state: 'running' })),
  async enrol(id: string) {
    enrolledNow.push(id)
    const at = '2026-11-23T00:00:00Z'
    known.set(id, { id, enrolledAt: at, revokedAt: null })
    return { id, url: '', root: '', state: 'running' }
  },
}

test('a lab whose database is gone is enrolled again, and devices that the core API knows are left alone', async () => {
  known.set('web-2', { id: 'web-2', enrolledAt: '2026-11-22T00:00:00Z', revokedAt: null })
  known.set('web-3', { id: 'web-3', enrolledAt: null, revokedAt: '2026-11-22T00:00:00Z' })
  expect(await enrolLab(url, 'admin', lab)).toBe(1)
  expect(enrolledNow).toEqual(['web-1'])
  expect(await enrolLab(url, 'admin', lab)).toBe(0)
})
