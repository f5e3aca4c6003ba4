import { beforeAll, expect, test } from '@jest/globals'
import { createToken, ensureOperator } from '../../../db/access/tokens.ts'
import { operatorNotes } from '../../../db/incidents/operator-notes.ts'
import { declareResources } from '../../../db/inventory/registry.ts'
import { eventsOf } from '../../../db/log/events.ts'
import { platformSource } from '../../../domain/declared-resources.ts'
import { foldHypotheses } from '../../../domain/hypothesis.ts'
import { unreadOf } from '../../../domain/message.ts'
import { type Asking, useApi } from '../../support/api.ts'
import { claimedIncident, openedIncident } from '../../support/database.ts'

const api = useApi()
const say = (id: string, text: unknown, more: Asking = {}) =>
  api.post(`/incidents/${id}/messages`, { body: { text }, as: api.tokens.operator, ...more })

beforeAll(() =>
  api.db.transaction().execute((trx) =>
    declareResources(trx, platformSource, {
      resources: [
        { kind: 'node', id: 'node-web-osl-1b', aliases: ['10.1.0.7'] },
        { kind: 'vm', id: 'vm-1', name: 'twin' },
        { kind: 'vm', id: 'vm-2', name: 'twin' },
      ],
      relations: [],
    }),
  ),
)

test('a message to a running investigation is a row with its person and what it names, once per key', async () => {
  const id = await claimedIncident(api.db)
  const text = 'Look at node:node-web-osl-1b, at 10.1.0.7 and at twin.'
  const answer = await say(id, text, { key: 'm1' })
  expect(answer).toMatchObject({
    status: 201,
    body: {
      kind: 'commented',
      actor: 'user:operator',
      detail: text,
      attempt: 1,
      metadata: { action: 'told', named: [{ kind: 'node', id: 'node-web-osl-1b' }] },
    },
  })
  expect((await say(id, text, { key: 'm1' })).body).toEqual(answer.body)
  expect(unreadOf(await eventsOf(api.db, id))).toMatchObject([{ by: 'operator', text, readIn: null }])
  expect(await operatorNotes(api.db, id)).toEqual([])
})

test('a secret in a message is stored nowhere', async () => {
  const id = await claimedIncident(api.db)
  const secret = `AKIA${'ABCDEFGH2345'.repeat(2).slice(0, 16)}`
  await say(id, `use aws_secret_access_key=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY and ${secret}`)
  expect(JSON.stringify(await eventsOf(api.db, id))).not.toContain('wJalrXUtnFEMI')
})

test('an incident without a run refuses a message and names the alternative', async () => {
  const open = await openedIncident(api.db, { name: 'told_open', labels: { alertname: 'told_open' } })
  const closed = await claimedIncident(api.db, { name: 'told_shut', labels: { alertname: 'told_shut' } })
  await api.post(`/incidents/${closed}/escalate`, { body: { reason: 'I take it' } })
  for (const [id, status] of [
    [open, 'open'],
    [closed, 'escalated'],
  ] as const) {
    const answer = await say(id, 'look at vm-1')
    expect(answer).toMatchObject({ status: 409, body: { code: 'NOT_INVESTIGATED' } })
    expect(answer.body.detail).toMatch(new RegExp(`is ${status}.*Add a note.*investigated again`))
    expect(unreadOf(await eventsOf(api.db, id))).toEqual([])
  }
  expect((await say('inc_00000000000000000000000000', 'x y z')).status).toBe(404)
})

test('viewers, machines, and tokens or people for other types cannot send a message to the run', async () => {
  const id = await claimedIncident(api.db)
  const operatorId = await ensureOperator(api.db, 'nora', 'operator')
  const tokenFor = (scopes: string[]) =>
    createToken(api.db, { name: `nora ${scopes}`, role: 'operator', operatorId, scopes })
  const typed = await tokenFor(['type:host_down'])
  const whole = await tokenFor([])
  const nora = { role: 'operator', maxRisk: 'low', incidentTypes: ['host_down'], disabled: false }
  expect((await api.put('/operators/nora', { body: nora })).status).toBe(200)
  for (const as of [api.tokens.viewer, api.tokens.agent, api.tokens.ingest, typed, whole]) {
    expect((await say(id, 'go ahead', { as })).status).toBe(403)
  }
  expect(unreadOf(await eventsOf(api.db, id))).toEqual([])
})

test.each(['', '   ', 'x'.repeat(2_001)])(
  'an empty message and a message that is too long are refused',
  async (text) => {
    expect((await say(await claimedIncident(api.db), text)).status).toBe(422)
  },
)

test('at most ten messages wait to be read', async () => {
  const id = await claimedIncident(api.db)
  for (let n = 0; n < 10; n++) expect((await say(id, `hint ${n}`)).status).toBe(201)
  expect(await say(id, 'one more')).toMatchObject({ status: 409, body: { code: 'TOO_MANY_UNREAD' } })
})

test('a hypothesis of a person gets a number, and is found by its number or its text', async () => {
  const id = await claimedIncident(api.db)
  const record = (more: object) =>
    api.post(`/incidents/${id}/events`, { body: { action: 'investigated', detail: 'The disk is full', ...more } })
  await record({ hypothesis: 'proposed' })
  await record({ hypothesis: 'proposed', detail: 'The replica stopped' })
  await record({ hypothesis: 'refuted', detail: 'the  disk is FULL', quotes: [{ seq: 1, text: 'firing' }] })
  await record({ hypothesis: 'supported', hypothesis_id: 'h2', detail: 'Its log says so' })
  expect(foldHypotheses(await eventsOf(api.db, id))).toMatchObject([
    { id: 'h1', text: 'The disk is full', state: 'refuted', refutes: [{ seq: 1 }], supports: [], by: 'admin' },
    { id: 'h2', text: 'The replica stopped', state: 'supported' },
  ])
  await api.post(`/incidents/${id}/escalate`, { body: { reason: 'A person has to look', certainty: 'likely' } })
  const last = (await eventsOf(api.db, id)).findLast((event) => event.kind === 'escalated')
  expect(last?.metadata).toMatchObject({
    certainty: 'likely',
    report: { certainty: 'likely', ruledOut: ['h1 refuted: The disk is full (#1)'] },
  })
})
