import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { eventually } from '../support/directory.ts'
import { type RealAlertmanager, startAlertmanager } from './real-servers.ts'

/**
 * The two routes of docs/how-to/page-gate.md at a real Alertmanager, word for word but for
 * addresses, and minutes that are seconds here.
 */

type Took = { status: string; name: string }
const page = readFileSync('docs/how-to/page-gate.md', 'utf8')
const documented = /```yaml\n([\s\S]*?)```/.exec(page)?.[1] ?? ''

let alertmanager: RealAlertmanager
let pager: { url: string; took: Took[]; close(): void }
let nightshift: { url: string; took: Took[]; close(): void }

async function receiver() {
  const took: Took[] = []
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    for (const { status, labels } of JSON.parse(body).alerts) took.push({ status, name: labels.alertname })
    response.writeHead(200).end()
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, took, close: () => server.close() }
}

beforeAll(async () => {
  pager = await receiver()
  nightshift = await receiver()
  const configuration = documented
    .replace(/http:\/\/nightshift\S+/, nightshift.url)
    .replace(/http:\/\/pager\S+/, pager.url)
    .replace('group_wait: 7m', 'group_wait: 8s')
    .replaceAll(/group_interval: \dm/g, 'group_interval: 1s')
  expect(configuration).toContain('group_wait: 8s')
  alertmanager = await startAlertmanager({ configuration })
})
afterAll(async () => {
  await alertmanager?.stop()
  pager?.close()
  nightshift?.close()
})

test('a repair before the end of the hold never reaches the pager, and with Nightshift dead a lasting alert does', async () => {
  await alertmanager.raise({ alertname: 'repaired', severity: 'critical' }, 'It is.')
  await eventually('Nightshift hears at once', () => nightshift.took.some(({ name }) => name === 'repaired'))
  await alertmanager.end({ alertname: 'repaired', severity: 'critical' })
  // Every part of Nightshift dies: nobody listens there any more.
  nightshift.close()
  await alertmanager.raise({ alertname: 'warned', severity: 'warning' }, 'It is.')
  await alertmanager.raise({ alertname: 'fires_on', severity: 'critical' }, 'It is.')
  await eventually('the pager hears of what fires on', () => pager.took.length > 0)
  expect(pager.took).toEqual([{ status: 'firing', name: 'fires_on' }])
  await alertmanager.end({ alertname: 'fires_on', severity: 'critical' })
  await eventually('and of its end', () => pager.took.length > 1)
  expect(pager.took).toEqual([
    { status: 'firing', name: 'fires_on' },
    { status: 'resolved', name: 'fires_on' },
  ])
})
