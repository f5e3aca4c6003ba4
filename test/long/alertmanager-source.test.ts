import { afterAll, beforeAll, expect, test } from '@jest/globals'
import type { Source } from '../../domain/source.ts'
import { newSourceStates } from '../../sources/ask.ts'
import { planRead, probeSource, readSource } from '../../sources/kinds.ts'
import { type RealAlertmanager, startAlertmanager } from './real-servers.ts'

let alertmanager: RealAlertmanager
let source: Source

beforeAll(async () => {
  alertmanager = await startAlertmanager({ url: 'http://127.0.0.1:9/hook', token: 'none' })
  const { url } = alertmanager
  source = {
    name: 'am',
    kind: 'alertmanager',
    url,
    credential: null,
    writeCredential: null,
    caFile: null,
    scheme: null,
    headers: {},
    certFile: null,
    keyFile: null,
    options: {},
    timeoutSeconds: 5,
    createdBy: 'anna',
    createdAt: '',
  }
  for (let n = 0; n < 40; n++)
    await alertmanager.raise({ alertname: n % 4 ? 'HighLoad' : 'DiskFull', instance: `web-${n}` }, 'It is.')
  const silence = {
    matchers: [{ name: 'instance', value: 'web-7', isRegex: false, isEqual: true }],
    startsAt: new Date(Date.now() - 1_000).toISOString(),
    endsAt: new Date(Date.now() + 3_600_000).toISOString(),
    createdBy: 'berit',
    comment: 'new disk',
  }
  const headers = { 'content-type': 'application/json' }
  const made = await fetch(`${url}/api/v2/silences`, { method: 'POST', headers, body: JSON.stringify(silence) })
  expect(made.status).toBe(200)
})
afterAll(async () => await alertmanager?.stop())

async function read(tool: string, args: Record<string, unknown>) {
  const planned = planRead([source], tool, args)
  if (!planned.ok) throw new Error(planned.reason)
  const reading = await readSource(planned, newSourceStates(), { nowMs: Date.now(), incidentBeganMs: null })
  expect(Buffer.byteLength(JSON.stringify(reading.summary))).toBeLessThanOrEqual(2_000)
  return reading
}

test('a real Alertmanager answers with its version', async () => {
  expect(await probeSource(source, newSourceStates())).toMatch(/^the source answers: Alertmanager \d/)
})

test('its alerts are counted by name, the newest are shown, and one is found by a label', async () => {
  expect((await read('list_alerts', {})).summary).toMatchObject({
    alertsFound: 40,
    byName: { HighLoad: 30, DiskFull: 10 },
  })
  const one = await read('list_alerts', { labels: { instance: 'web-8' } })
  expect(one.summary).toMatchObject({
    alertsFound: 1,
    alerts: [{ name: 'DiskFull', state: 'active', labels: { instance: 'web-8' } }],
  })
  expect((await read('list_alerts', { labels: { instance: '"} or {' } })).isEmpty).toBe(true)
})

test('its silences show their matchers, end, author and comment', async () => {
  expect((await read('list_silences', {})).summary).toMatchObject({
    silencesFound: 1,
    silences: [{ matches: ['instance="web-7"'], state: 'active', by: 'berit', why: 'new disk' }],
  })
  expect((await read('list_alerts', { labels: { instance: 'web-7' } })).summary).toMatchObject({
    alerts: [{ state: 'silenced' }],
  })
})
