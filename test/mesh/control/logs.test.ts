import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { tools } from '../../../tools/registry.ts'
import { announced } from '../../support/announced.ts'
import { claimedIncident } from '../../support/database.ts'
import { temporaryDirectory } from '../../support/directory.ts'
import { realAgent, useMeshApi } from '../../support/mesh-api.ts'

const api = useMeshApi()
const place = temporaryDirectory()
const on = 'node-osl-1'
const file = join(place.path, 'log/app.log')

beforeAll(async () => {
  mkdirSync(join(place.path, 'log'))
  const at = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString()
  const quiet = Array.from({ length: 300 }, (_, n) => `${at(119 - n / 3)} GET /page/${n} 200`)
  const loud = Array.from({ length: 5 }, (_, n) => `${at(4)} cannot reach 10.0.0.${n}: password=hunter2hunter2`)
  writeFileSync(file, [...quiet, ...loud].join('\n'))
  await realAgent(api, on, {
    terms: { capabilities: [], roots: [{ path: join(place.path, 'log'), writable: false }] },
  })
})
afterAll(() => place.remove())

test('search_logs asks a device like device_logs, announced under its own name and arguments', async () => {
  const id = await claimedIncident(api.db)
  const given = { on, path: file, window: '1h', contains: ['cannot'] }
  const announcedArgs = tools.get('search_logs')?.input.parse(given) as Record<string, unknown>
  const key = await announced(api.db, id, 'search_logs', announcedArgs, null, 'read')
  const { on: _, ...args } = given
  const sent = { capability: 'log.read', args, tool: 'search_logs' }
  const { status, body } = await api.post(`/devices/${on}/calls`, { body: sent, key, as: api.tokens.agent })
  expect([status, body.source, body.on]).toEqual([200, on, { kind: 'node', id: on }])
  expect(body.summary).toMatchObject({ window: '1h', asked: { labels: { path: file }, contains: ['cannot'] } })
  // Under another name, with other arguments, or as another tool it was never announced.
  for (const other of [
    { ...sent, tool: undefined },
    { ...sent, args: { ...args, window: '2h' } },
    { ...sent, tool: 'exec' },
  ]) {
    const again = await announced(api.db, id, 'search_logs', { ...announcedArgs, contains: ['x'] }, null, 'read')
    const refused = await api.post(`/devices/${on}/calls`, { body: other, key: again, as: api.tokens.agent })
    expect([refused.status, refused.body.code]).toEqual([403, 'UNJUDGED'])
  }
})

test('a run reads a log of a device as templates, and lines of the whole by its digest, and no secret of it is kept', async () => {
  const id = await claimedIncident(api.db, { startsAt: new Date().toISOString() })
  const key = await announced(api.db, id, 'device_logs', { on, path: file }, null, 'read')
  const body = { capability: 'log.read', args: { path: file } }
  const { status, body: answer } = await api.post(`/devices/${on}/calls`, { body, key, as: api.tokens.agent })
  expect([status, answer.source, answer.isEmpty]).toEqual([200, on, false])
  expect(answer).not.toHaveProperty('lines')
  const { templates } = answer.summary as unknown as {
    templates: { template: string; count: number; isNew?: boolean }[]
  }
  expect(templates[0]).toMatchObject({ count: 5, isNew: true })
  expect(JSON.stringify(answer.summary).length).toBeLessThanOrEqual(2_000)
  const lines = await api.get(`/incidents/${id}/bodies/${answer.digest}/lines?match=cannot`)
  expect(lines.body.lines as unknown as string[]).toHaveLength(5)
  expect(JSON.stringify(lines.body)).not.toContain('hunter2')
})
