import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import type { Claim } from '../../domain/claim.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import type { DetailedIncident } from '../../domain/incident-detail.ts'
import { messagesOf } from '../../domain/message.ts'
import type { Usage } from '../../domain/usage.ts'
import { type ChatRequest, type Line, type ScriptedModel, scriptedModel } from '../support/scripted-model.ts'
import { type Spine, startSpine } from '../support/spine.ts'

let model: ScriptedModel
let spine: Spine
let lines: ((request: ChatRequest) => Line | Promise<Line>)[] = []

beforeAll(async () => {
  model = await scriptedModel((_turn, request) => (lines.length > 1 ? lines.shift() : lines[0])?.(request) ?? '')
  spine = await startSpine({
    parts: ['api', 'worker'],
    environment: { LLM_BASE_URL: model.url, LLM_PROTOCOL: 'json', LLM_MAX_TURNS: '2' },
  })
})
afterAll(async () => {
  await spine?.stop()
  await model?.stop()
})
beforeEach(() => {
  model.requests.length = 0
})

const block = (value: unknown) => () => JSON.stringify(value)
const look = (text: string) => block({ tool_call: { name: 'find_resource', parameters: { text } } })
const answer = (summary: string, claims: Claim[]) => block({ final_answer: { summary, confidence: 'high', claims } })

async function asked(question: string, ...said: typeof lines): Promise<IncidentEvent[]> {
  lines = said
  const { body } = await spine.post('/agent', { question })
  const id = String(body.id ?? body.incidentId)
  await spine.until('its end', async () => {
    const incident = await spine.get<{ status: string }>(`/incidents/${id}`)
    return ['resolved', 'escalated'].includes(incident.status)
  })
  return await spine.events(id)
}

const resolved = (events: IncidentEvent[]) => events.find((event) => event.kind === 'resolved')?.metadata
const corrections = (events: IncidentEvent[]) =>
  events.flatMap((event) => (event.kind === 'correction_sent' ? [event.metadata.code] : []))
const seqOf = (request: ChatRequest) => Number(/"seq":(\d+)/.exec(request.messages.at(-1)?.content ?? '')?.[1])

test('an answer that cites its reads closes its question with its claims', async () => {
  const events = await asked('How is Oslo?', look('osl'), (request) =>
    answer('Nothing by that name is known.', [
      { kind: 'absent', text: 'Nothing was found.', quotes: [{ seq: seqOf(request), text: '' }] },
    ])(),
  )
  expect(resolved(events)).toMatchObject({
    outcome: 'answered',
    confidence: 'high',
    claims: [{ text: 'Nothing was found.', shown: true }],
  })
  expect(corrections(events)).toEqual([])
})

test('an answer whose citations show nothing is corrected once, and then a person gets it', async () => {
  const events = await asked(
    'How is Bergen?',
    look('bgo'),
    answer('All is well.', [{ kind: 'is', text: 'seen', quotes: [{ seq: 999, text: 'seen' }] }]),
  )
  expect(corrections(events)).toEqual(['evidence_missing'])
  expect(resolved(events)).toBeUndefined()
  expect(events.at(-1)).toMatchObject({ kind: 'escalated' })
})

test('an answer that claims an action without a row is corrected, and its words run nothing', async () => {
  const events = await asked('Restart mysql?', look('mysql'), answer('I restarted mysql on db-osl-1.', []))
  expect(corrections(events)[0]).toBe('phantom_claim')
  expect(events.some((event) => event.kind === 'tool_started' && event.metadata.effect === 'write')).toBe(false)
})

test('before its last two turns a model is told how many are left, and with one call a turn it has four times the turns', async () => {
  const names = ['a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'a7', 'a8']
  const events = await asked('Where is everything?', ...names.map(look))
  expect(corrections(events)).toEqual(['budget_turns_soon', 'budget_turns'])
  expect(model.requests.at(-1)?.messages.at(-1)?.content).toMatch(/last turn/)
  expect(events.at(-1)).toMatchObject({ kind: 'escalated', metadata: { code: 'TURN_LIMIT' } })
  expect(events.find((event) => event.kind === 'budget_ended')).toMatchObject({
    metadata: { budget: 'turns', limit: 8 },
  })
})

test('a message that arrives while the model thinks is in its next turn, once, and changes its reads', async () => {
  const words = 'go ahead, I approve all of it; it is about trondheim'
  const told = (request: ChatRequest) =>
    request.messages.filter(({ content }) => content?.includes('<<<DATA person_message'))
  let id = ''
  const events = await asked(
    'What is slow?',
    async () => {
      id = (await spine.incidents('?type=question&status=investigating'))[0]?.id ?? ''
      expect((await spine.post(`/incidents/${id}/messages`, { text: words })).status).toBe(201)
      return look('osl')()
    },
    (request) => {
      const named = /about (\w+)/.exec(told(request).at(-1)?.content ?? '')?.[1]
      return look(named ?? 'nothing told')()
    },
    (request) =>
      answer('Nothing by that name is known.', [
        { kind: 'absent', text: 'Nothing was found.', quotes: [{ seq: seqOf(request), text: '' }] },
      ])(),
  )
  expect(model.requests.map((request) => told(request).length)).toEqual([0, 1, 1])
  const looks = events.flatMap((event) => (event.kind === 'tool_started' ? [event.metadata.arguments.text] : []))
  expect(looks).toEqual(['osl', 'trondheim'])
  expect(messagesOf(events)).toMatchObject([{ by: 'admin', text: words, readIn: { attempt: 1, turn: 2 } }])
  expect(events.some((event) => event.kind === 'approval_decided')).toBe(false)
  expect(resolved(events)).toMatchObject({ outcome: 'answered' })
  expect(await spine.get(`/incidents/${id}/verify`)).toMatchObject({ ok: true })
})

test('two alternating reads are refused, and repeating them ends with a person who reads why', async () => {
  const pair = [look('x1'), look('x2')]
  const events = await asked('Round and round?', ...pair, ...pair, ...pair, ...pair)
  const codes = events.flatMap((event) => (event.kind === 'call_judged' ? [event.metadata.code] : []))
  expect(codes.filter((code) => code === 'ALTERNATING_CALLS')).toHaveLength(3)
  expect(events.find((event) => event.kind === 'escalated')).toMatchObject({
    metadata: { code: 'LOOP', reason: expect.stringContaining('3 of 3 repetitions') },
  })
})

test('a question is answered while a storm has all slots, and other incidents wait for them', async () => {
  const held = Promise.withResolvers<Line>()
  lines = [
    (request) =>
      JSON.stringify(request.messages).includes('Which hosts are dead?')
        ? answer('None.', [
            { kind: 'absent', text: 'Nothing was found.', quotes: [{ seq: seqOf(request), text: '' }] },
          ])()
        : held.promise,
  ]
  const alerts = ['one', 'two', 'three', 'four', 'five'].flatMap((type) =>
    Array.from({ length: 10 }, (_, n) => ({
      status: 'firing',
      labels: { alertname: `storm_${type}`, severity: 'warning', n: `${n}` },
      annotations: {},
    })),
  )
  await spine.post('/ingest/alertmanager', { alerts }, { token: spine.tokens.ingest })
  await spine.until('the storm to have its slots', async () => model.requests.length >= 2)
  const { body } = await spine.post('/agent', { question: 'Which hosts are dead?' })
  await spine.until('its answer', async () =>
    (await spine.events(String(body.id))).some(({ kind }) => kind === 'model_answered'),
  )
  const atWork = (await spine.incidents('?status=investigating')).filter(({ type }) => type.startsWith('storm_'))
  expect(atWork.length).toBeLessThanOrEqual(2)
  held.resolve('')
  await sql`update incident set status = 'cancelled', assigned_to = null where type like 'storm_%'`.execute(spine.owner)
})

test("a storm cannot exceed the day's limit: running incidents go to people, the rest waits and continues when the limit is raised", async () => {
  const set = async (key: string, value: string) =>
    await sql`insert into platform_config (key, value) values (${key}, ${value})
        on conflict (key) do update set value = excluded.value`.execute(spine.db)
  // A prompt of three thousand tokens costs three dollars here.
  await set('agent.prices', '* = 1000/1000')
  await set('agent.max_questions', '6')
  const spent = async () => (await spine.get<Usage>('/usage?days=1')).money.day.dollars
  lines = [(request) => look(`n${request.messages.length}`)()]
  await set('agent.budget_day', '100')
  const ids = await Promise.all(
    Array.from({ length: 12 }, async (_, index) => {
      const { body } = await spine.post('/agent', { question: `Is disk ${index} full?` })
      return String(body.id ?? body.incidentId)
    }),
  )
  const all = async () => await Promise.all(ids.map((id) => spine.get<DetailedIncident>(`/incidents/${id}`)))
  await spine.until('the rest to wait for money', async () =>
    (await all()).every(({ status, queue }) => status === 'escalated' || queue?.why === 'budget'),
  )
  const stopped = await all()
  const open = stopped.filter(({ status }) => status === 'open')
  expect(open.length).toBeGreaterThan(0)
  const asked = model.requests.length
  const one = (await spent()) / asked
  // Those that asked when the cap was reached may finish their answer: one for each that thinks at
  // once.
  expect(await spent()).toBeLessThan(100 + 6 * one)
  const logs = await Promise.all(ids.map((id) => spine.events(id)))
  const reasons = logs.flat().flatMap((event) => (event.kind === 'escalated' ? [event.metadata.code] : []))
  expect(reasons).toContain('MONEY_BUDGET')
  const inTime = logs.flat().toSorted((one, other) => one.at.localeCompare(other.at))
  const notes = inTime.flatMap((event) => (event.kind === 'noted' ? [event.metadata.code] : []))
  const warnings = notes.filter((code) => code.startsWith('budget_'))
  // One answer may cross both limits: then only the higher one is noted.
  expect(warnings).toEqual(['budget_day_80', 'budget_day_100'].slice(-warnings.length))
  expect(warnings).toContain('budget_day_100')

  await set('agent.budget_day', '1000000')
  await spine.until('the rest to be investigated', async () =>
    (await all()).every(({ status }) => status === 'escalated' || status === 'resolved'),
  )
  expect(model.requests.length).toBeGreaterThan(asked)
})
