import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import type { IncidentEvent } from '../../domain/event.ts'
import type { Incident } from '../../domain/incident.ts'
import { type ChatRequest, type Line, type ScriptedModel, scriptedModel } from '../support/scripted-model.ts'
import { type Spine, startSpine } from '../support/spine.ts'

let model: ScriptedModel
let spine: Spine
let lines: ((request: ChatRequest) => Line | Promise<Line>)[] = []
let raised = 0

beforeAll(async () => {
  model = await scriptedModel((_turn, request) => {
    const line = lines.length > 1 ? lines.shift() : lines[0]
    return line?.(request) ?? ''
  })
  spine = await startSpine({
    parts: ['api', 'worker'],
    environment: { LLM_BASE_URL: model.url, LLM_MODEL: 'scripted', WATCHDOG_INTERVAL_SECONDS: '0.5' },
  })
})
afterAll(async () => {
  await spine?.stop()
  await model?.stop()
})
beforeEach(async () => {
  model.requests.length = 0
  await sql`delete from platform_config`.execute(spine.owner)
  await sql`insert into platform_config (key, value) values ('alert.quiet', '4')`.execute(spine.owner)
})

const seqOf = (request: ChatRequest) => Number(/"seq":(\d+)/.exec(request.messages.at(-1)?.content ?? '')?.[1])
const idOf = (request: ChatRequest) => /inc_[0-9a-z]{26}/.exec(JSON.stringify(request.messages))?.[0] ?? ''
const look = () => [{ tool: 'find_resource', arguments: { text: 'backup' } }]
const resolve = (outcome: string) => (request: ChatRequest) => [
  {
    tool: 'resolve_incident',
    arguments: {
      id: idOf(request),
      resolution: 'Nothing was found.',
      outcome,
      claims: [{ kind: 'absent', text: 'Nothing was found.', quotes: [{ seq: seqOf(request), text: '' }] }],
    },
  },
]
const handOver = (request: ChatRequest) => [
  {
    tool: 'escalate_incident',
    arguments: {
      id: idOf(request),
      reason: 'Nothing was found and the alert fires on.',
      category: 'no_fault_found',
      next_step: 'Look at the alert rule.',
    },
  },
]

async function alert(name: string, status: 'firing' | 'resolved'): Promise<void> {
  const body = {
    version: '4',
    status,
    alerts: [
      { status, labels: { alertname: name, severity: 'warning' }, annotations: { summary: `${name} happened` } },
    ],
  }
  await spine.post('/ingest/alertmanager', body, { token: spine.tokens.ingest })
}

/** A type of its own, so that no test waits for the group of another. */
function aName(): string {
  raised += 1
  return `ending_${raised}`
}

const closed = (name: string) => spine.incident(name, 'resolved|escalated')
const codes = (events: IncidentEvent[]) =>
  events.flatMap((event) => (event.kind === 'call_judged' ? [event.metadata.code] : []))

test('a model that ends a firing incident after one read as no fault is refused, and people get the incident', async () => {
  const name = aName()
  lines = [look, resolve('no_fault'), handOver]
  await alert(name, 'firing')
  const incident = await closed(name)
  const events = await spine.events(incident.id)
  expect(codes(events)).toEqual(['READ', 'STILL_FIRING', 'TERMINAL'])
  expect(incident).toMatchObject({ status: 'escalated', category: 'no_fault_found', alerts: { firing: 1 } })
  const escalated = events.find(({ kind }) => kind === 'escalated')
  expect(escalated?.kind === 'escalated' && escalated.metadata.report).toMatchObject({
    name: `${name} happened`,
    nextStep: 'Look at the alert rule.',
    changed: [],
  })
})

/** The model looks, and says that it is over only after its alert ended: the ending is kept. */
async function keptEnding(name: string, quietSeconds: number): Promise<Incident> {
  await sql`update platform_config set value = ${String(quietSeconds)} where key = 'alert.quiet'`.execute(spine.owner)
  const over = Promise.withResolvers<void>()
  lines = [
    look,
    async (request) => {
      await over.promise
      return resolve('self_resolved')(request)
    },
    handOver,
  ]
  await alert(name, 'firing')
  await spine.until('its second turn', async () => model.requests.length === 2)
  await alert(name, 'resolved')
  over.resolve()
  return await spine.until('the ending to be kept', async () => {
    const incident = (await spine.incidents(`?type=${name}`))[0]
    const events = incident ? await spine.events(incident.id) : []
    return events.some((event) => event.kind === 'noted' && event.metadata.code === 'ending_kept') && incident
  })
}

test('an ending that arrives just after the alert ended is kept, and closes in its own words if the alert stays quiet', async () => {
  const name = aName()
  const { id, status } = await keptEnding(name, 4)
  expect(status).toBe('investigating')
  const incident = await closed(name)
  expect(incident).toMatchObject({
    id,
    status: 'resolved',
    outcome: 'self_resolved',
    resolution: 'Nothing was found.',
  })
  expect(codes(await spine.events(id))).toEqual(['READ', 'TERMINAL'])
  expect(model.requests).toHaveLength(2)
})

test('a kept ending whose alert fires again is refused, and the run continues with the firing alert', async () => {
  const name = aName()
  const { id } = await keptEnding(name, 3)
  await alert(name, 'firing')
  const incident = await closed(name)
  expect(incident).toMatchObject({ id, status: 'escalated', category: 'no_fault_found' })
  expect(codes(await spine.events(id))).toEqual(['READ', 'STILL_FIRING', 'TERMINAL'])
})

test('a person who takes a running incident ends its attempt, and owns the incident', async () => {
  const name = aName()
  // A model that never answers: what it would have said is not awaited.
  lines = [() => new Promise<Line>(() => {})]
  await alert(name, 'firing')
  const { id } = await spine.incident(name, 'investigating')
  await spine.until('the model to be asked', async () => model.requests.length > 0)
  await spine.post(`/incidents/${id}/take`, {})
  const taken = await spine.until('the hand-over', async () => {
    const incident = await spine.get<Incident>(`/incidents/${id}`)
    return incident.status === 'escalated' && incident
  })
  expect(taken).toMatchObject({ owner: { name: 'admin' }, attempt: 1 })
  await alert(name, 'resolved')
  await alert(name, 'firing')
  expect(await spine.get<Incident>(`/incidents/${id}`)).toMatchObject({
    status: 'escalated',
    attempt: 1,
    reopened: 0,
  })
  const given = await spine.post(`/incidents/${id}/give-back`, {})
  expect(given.body).toMatchObject({ status: 'escalated', owner: null })
})

test('all stored rows agree with the log', async () => {
  expect(await spine.get('/verify?limit=100')).toMatchObject({ differences: [], nextCursor: null })
  expect(await spine.get('/audit/verify')).toMatchObject({ ok: true })
})
