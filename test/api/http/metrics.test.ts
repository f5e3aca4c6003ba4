import { readFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { parse } from 'yaml'
import { createApi } from '../../../api/app.ts'
import { noteProvider } from '../../../db/event-counters.ts'
import { append } from '../../../db/log/append.ts'
import { agentActor, type NewEvent } from '../../../domain/event.ts'
import { healthApp } from '../../../worker/health.ts'
import { asked } from '../../support/announced.ts'
import { useApi } from '../../support/api.ts'
import { allAtOnce, claimedIncident, openedIncident } from '../../support/database.ts'
import { eventually } from '../../support/directory.ts'

const api = useApi()

type Answering = { request(path: string): Response | Promise<Response> }

async function scrape(app: Answering = api.api.app): Promise<string[]> {
  const text = await (await app.request('/metrics')).text()
  return text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
}

const sumOf = (lines: string[]) => lines.reduce((total, line) => total + Number(line.split(' ').at(-1)), 0)
const ofLog = (lines: string[]) =>
  lines.filter((line) => /^nightshift_(agentic|phantom|security|approval_dec)/.test(line))

async function answered(incidentId: string, model: string): Promise<void> {
  const event = {
    kind: 'model_answered',
    actor: agentActor,
    turn: 1,
    detail: 'said something',
    metadata: {
      content: '',
      body: null,
      calls: [],
      final: null,
      problem: null,
      model,
      finishReason: 'native:stop',
      usage: { promptTokens: 1, completionTokens: 1 },
      durationMs: 1,
    },
  } as NewEvent
  await api.db.transaction().execute((trx) => append(trx, incidentId, 1, event))
}

test('the API has each metric that the example rules use', async () => {
  const { groups } = parse(readFileSync('examples/nightshift-rules.yaml', 'utf8'))
  const asked = groups.flatMap(({ rules }: { rules: { expr: string }[] }) =>
    rules.flatMap(({ expr }) => expr.match(/nightshift_\w+/g) ?? []),
  )
  const answered = await (await api.api.app.request('/metrics')).text()
  expect(asked).toHaveLength(4)
  for (const name of asked) expect(answered).toContain(`# TYPE ${name} `)
})

test('three hundred alert types make fifty series and one series for the rest, and no alert is lost', async () => {
  const types = Array.from({ length: 300 }, (_, type) => `type_${type}`)
  await allAtOnce(types, (name) => openedIncident(api.db, { labels: { incident_type: name }, name }))
  const lines = (await scrape()).filter((line) => line.startsWith('nightshift_incidents_open'))
  expect(lines).toHaveLength(51)
  expect(sumOf(lines)).toBe(300)
  const again = (await scrape()).filter((line) => line.startsWith('nightshift_incidents_open'))
  expect(again.sort()).toEqual(lines.sort())
})

test('a row is counted once, however many API processes run and after one restarts', async () => {
  const incident = await claimedIncident(api.db)
  await noteProvider(api.db, 'models.example:8000')
  const other = createApi({ db: api.db }).app
  for (let turn = 0; turn < 5; turn += 1) await answered(incident, 'Qwen/Qwen2.5-72B')
  const counted =
    'nightshift_agentic_iterations_total{provider="models.example:8000",model="Qwen/Qwen2.5-72B",protocol="native"} 5'
  const [one, two] = await eventually('the counts', async () => {
    const both = await Promise.all([scrape(), scrape(other)])
    return both.every((lines) => lines.includes(counted)) ? both : null
  })
  expect(ofLog(two as string[])).toEqual(ofLog(one as string[]))
  const started = createApi({ db: api.db }).app
  expect(ofLog(await scrape(started))).toEqual(ofLog(one as string[]))
  // What a worker answers is the same.
  const worker = healthApp(api.db, () => ['RUNNING'])
  expect(ofLog(await scrape(worker))).toEqual(ofLog(one as string[]))
  const refused = await worker.request('/metrics', { method: 'POST' })
  expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
})

test('a model server that changes its name makes at most fifty series, and no name breaks a line', async () => {
  const incident = await claimedIncident(api.db)
  for (let model = 0; model < 70; model += 1) await answered(incident, `model-${model}"} 1\n{x="`)
  const lines = await eventually('the counts', async () => {
    const found = (await scrape()).filter((line) => line.startsWith('nightshift_agentic_iterations'))
    return sumOf(found) === 75 ? found : null
  })
  expect(lines).toHaveLength(51)
  expect(lines.filter((line) => line.includes('model="other"'))).toEqual([expect.stringMatching(/ 21$/)])
})

test('decisions are counted from their rows, by the channel that they came through', async () => {
  const approval = await asked(api.db, await claimedIncident(api.db))
  const { body } = await api.post(`/approvals/${approval}/token`, {
    as: api.tokens.approver,
    body: { decision: 'approve' },
  })
  const decision = { decision: 'approve', token: body.token }
  await api.post(`/approvals/${approval}/decision`, { body: decision, as: api.tokens.approver })
  const other = createApi({ db: api.db }).app
  const counted = 'nightshift_approval_decisions_total{decision="approve",via="api"} 1'
  await eventually('the count', async () => ((await scrape(other)).includes(counted) ? true : null))
})

test('a request with any method and path is counted under a known route', async () => {
  for (let asking = 0; asking < 30; asking += 1) {
    await api.api.app.request(`/made-up-${asking}`, { method: 'PROPFIND' })
    await api.get(`/incidents/made-up-${asking}`)
    await api.get(`/made-up-${asking}`)
  }
  const lines = (await scrape()).filter((line) => line.startsWith('nightshift_http_requests_total'))
  expect(lines.filter((line) => line.includes('made-up'))).toEqual([])
  expect(lines.some((line) => line.includes('method="other"'))).toBe(true)
})
