import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import pino from 'pino'
import { backlogOf } from '../../db/current-counts.ts'
import { systemScope } from '../../db/scope.ts'
import { startDeliveries } from '../../worker/deliver.ts'
import { moveClock, openedIncident, useDatabase } from '../support/database.ts'
import { eventually } from '../support/directory.ts'

/** A receiver that answers as it is told, and remembers what it took. */
type Took = { path: string; id: string; type: string; title: string; reason: string | null; incidents: string[] }
type Answer = { status: number; headers?: Record<string, string> }

const database = useDatabase()
let receiver: Server
let url: string
let took: Took[]
let answerOf: (path: string) => Answer
let asked: number
let stops: (() => Promise<void>)[]

const answer = async (request: IncomingMessage, response: ServerResponse) => {
  let body = ''
  for await (const chunk of request) body += chunk
  const path = request.url ?? ''
  asked += 1
  const { status, headers } = answerOf(path)
  if (status < 300) {
    const { type, data } = JSON.parse(body)
    const incidents = (data.incidents ?? []).map(({ title }: { title: string }) => title)
    const { reason } = data
    took.push({ path, id: String(request.headers['webhook-id']), type, title: data.incident.title, reason, incidents })
  }
  response.writeHead(status, headers).end()
}

beforeEach(async () => {
  took = []
  asked = 0
  stops = []
  answerOf = () => ({ status: 200 })
  receiver = createServer((request, response) => void answer(request, response))
  await new Promise<void>((done) => receiver.listen(0, '127.0.0.1', done))
  url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`
  await sql`delete from delivery`.execute(database.owner)
  await sql`delete from platform_config`.execute(database.owner)
})
afterEach(async () => {
  for (const stop of stops) await stop()
  receiver.close()
  await moveClock(database.owner, '0 seconds')
})

const start = (commandPrefix = 'nightshift') => {
  const site = { publicUrl: 'https://nightshift.example', pushServices: [], commandPrefix }
  const pace = { pollEveryMs: 50, remindEveryMs: 100, graceMs: 200 }
  const { stop } = startDeliveries(database.db, pino({ level: 'silent' }), site, pace)
  stops.push(stop)
}

const configured = async (settings: Record<string, string>) => {
  for (const [key, value] of Object.entries(settings))
    await sql`insert into platform_config (key, value) values (${key}, ${value})`.execute(database.owner)
}

/** Makes this many messages due, one after the other. */
const due = async (severity: 'critical' | 'warning', count: number) => {
  const incidentId = await openedIncident(database.db, { severity: 'critical', title: 'the first' })
  const incident = (key: string, value: string) => sql`'{incident,${sql.raw(key)}}', to_jsonb(${sql.raw(value)})`
  await sql`
    with first as (delete from delivery where incident_id = ${incidentId} returning *)
    insert into delivery (message_id, destination, incident_id, attempt, notification, created_at)
    select 'msg_' || md5(random()::text), destination, incident_id, 1,
      jsonb_set(jsonb_set(jsonb_set(notification, ${incident('severity', `'${severity}'::text`)}),
        ${incident('title', `'${severity} ' || n`)}), ${incident('id', `'inc_${severity}' || n`)}),
      created_at - interval '1 second' + n * interval '1 ms'
    from first, generate_series(0, ${count - 1}) as n`.execute(database.owner)
}

const rows = () =>
  database.db.selectFrom('delivery').select(['status', 'attempt', 'givenUpAt', 'response']).orderBy('id').execute()

/** It was answered, and its row is back among those that wait. */
const firstTryIsOver = () =>
  eventually('the first try', async () => asked > 0 && (await rows()).every(({ status }) => status === 'pending'))

/** Takes two messages, and then asks for patience, again and again. */
function twoAtATime(): (path: string) => Answer {
  let tries = 0
  return () => {
    tries += 1
    return tries % 3 === 0 ? { status: 429, headers: { 'retry-after-ms': '0' } } : { status: 200 }
  }
}

test('at a receiver that asks for a delay 60 criticals arrive before 60 older warnings, oldest first, none twice, none given up', async () => {
  await configured({ 'webhook.critical.url': `${url}/critical` })
  await due('warning', 60)
  await due('critical', 60)
  answerOf = twoAtATime()
  // Two workers share the address.
  start()
  start()
  await eventually('all of them', () => took.length >= 120)
  expect(took.map(({ title }) => title)).toEqual(
    ['critical', 'warning'].flatMap((severity) => Array.from({ length: 60 }, (_, n) => `${severity} ${n}`)),
  )
  expect(new Set(took.map(({ id }) => id)).size).toBe(120)
  expect((await rows()).filter(({ attempt }) => attempt > 1)).toEqual([])
})

test('commands in a message have the form of this site', async () => {
  await configured({ 'webhook.critical.url': `${url}/critical` })
  await due('critical', 1)
  const reason = 'No worker asks for work: "nightshift doctor" says why.'
  await sql`update delivery set notification = jsonb_set(notification, '{reason}', to_jsonb(${reason}::text))`.execute(
    database.owner,
  )
  start('docker compose exec api nightshift')
  await eventually('the message', () => took.length === 1)
  expect(took[0]?.reason).toBe('No worker asks for work: "docker compose exec api nightshift doctor" says why.')
})

test('two names of one address wait together, and another address waits for neither', async () => {
  await configured({
    'webhook.critical.url': `${url}/busy`,
    'webhook.escalated.url': `${url}/busy`,
    'webhook.approval.url': `${url}/free`,
  })
  await due('critical', 3)
  await sql`update delivery set destination = 'webhook.escalated' where id = (select min(id) from delivery)`.execute(
    database.owner,
  )
  await sql`update delivery set destination = 'webhook.approval' where id = (select max(id) from delivery)`.execute(
    database.owner,
  )
  let refused = 0
  answerOf = (path) => {
    if (path === '/free') return { status: 200 }
    refused += 1
    return { status: 503, headers: { 'retry-after': '600' } }
  }
  start()
  await eventually('the free address', () => took.length === 1)
  await eventually('the busy address', () => refused === 1)
  // Later ones have been taken up since, and the busy address was not asked again.
  await due('critical', 1)
  await sql`update delivery set destination = 'webhook.approval' where id = (select max(id) from delivery)`.execute(
    database.owner,
  )
  await eventually('the later message', () => took.length === 2)
  expect(refused).toBe(1)
})

test('messages that waited for more than two minutes are sent as one message, which lists them', async () => {
  await configured({ 'webhook.critical.url': `${url}/critical` })
  await due('critical', 12)
  answerOf = () => ({ status: 429, headers: { 'retry-after': '100' } })
  start()
  await firstTryIsOver()
  answerOf = () => ({ status: 200 })
  await moveClock(database.owner, '130 seconds')
  await eventually('the digest', () => took.length > 0)
  expect(took.map(({ type }) => type)).toEqual(['incident.late'])
  expect(took[0]?.incidents).toEqual(Array.from({ length: 12 }, (_, n) => `critical ${n}`))
  await eventually('the rows', async () => (await rows()).every(({ status }) => status === 'sent'))
  expect((await rows())[0]?.response).toContain('sent together with 11 more')
})

test('a receiver that asks for a delay of an hour is given up, and another address is told of it', async () => {
  await configured({ 'webhook.critical.url': `${url}/critical`, 'webhook.resolved.url': `${url}/other` })
  await due('critical', 2)
  answerOf = (path) => (path === '/other' ? { status: 200 } : { status: 429, headers: { 'retry-after': '60' } })
  start()
  await firstTryIsOver()
  await moveClock(database.owner, '3590 seconds')
  await eventually('the other address', () => took.length > 0)
  expect(took).toMatchObject([
    { path: '/other', type: 'incident.undelivered', incidents: ['critical 0', 'critical 1'] },
  ])
  expect((await backlogOf(systemScope(database.db))).failedDeliveries).toBe(2)
})

test('two receivers that are both gone do not report each other for ever', async () => {
  await configured({ 'webhook.critical.url': `${url}/critical`, 'webhook.resolved.url': `${url}/other` })
  await due('critical', 1)
  answerOf = () => ({ status: 410 })
  start()
  await eventually('both', async () => (await rows()).filter(({ givenUpAt }) => givenUpAt).length === 2)
  // The next look at what was given up is over when a later message has been told of.
  await due('critical', 1)
  await eventually('the later one', async () => (await rows()).filter(({ givenUpAt }) => givenUpAt).length === 4)
  expect(await rows()).toHaveLength(4)
})

test('fifty abandoned updates of Slack do not hide a page that was given up', async () => {
  await configured({ 'webhook.critical.url': `${url}/critical`, 'webhook.resolved.url': `${url}/other` })
  const incidentId = await openedIncident(database.db)
  await sql`
    insert into delivery (message_id, destination, incident_id, notification, attempt, status, given_up_at)
    select 'msg_card' || n, 'slack.card', ${incidentId}, '{"approvalId":"apr_1"}', 1, 'failed', nightshift_now()
    from generate_series(1, 50) as n`.execute(database.owner)
  await due('critical', 1)
  answerOf = (path) => ({ status: path === '/other' ? 200 : 410 })
  start()
  await eventually('the other address', () => took.length > 0)
  expect(took).toMatchObject([{ path: '/other', type: 'incident.undelivered', incidents: ['critical 0'] }])
})

test('a worker that stops returns its current message, and another sends it at once, under the same id', async () => {
  await configured({ 'webhook.critical.url': `${url}/hangs` })
  const hanging = Promise.withResolvers<void>()
  const ids: string[] = []
  receiver.removeAllListeners('request')
  receiver.on('request', (request, response) => {
    ids.push(String(request.headers['webhook-id']))
    // The first is never answered.
    if (ids.length === 1) hanging.resolve()
    else response.writeHead(200).end()
  })
  await due('critical', 1)
  start()
  await hanging.promise
  await stops.pop()?.()
  start()
  await eventually('the message', () => ids.length === 2)
  expect(ids[1]).toBe(ids[0])
  receiver.closeAllConnections()
})
