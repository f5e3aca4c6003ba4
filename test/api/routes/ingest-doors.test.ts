import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { request } from '../../../clients/http.ts'
import { incidentById } from '../../../db/incidents/incidents.ts'
import { useApi } from '../../support/api.ts'
import { temporaryDirectory } from '../../support/directory.ts'
import { bodiesOf, pagerdutySignature, snsMessage, topicArn } from '../../support/senders.ts'

const directory = temporaryDirectory().path
const [keyFile, certFile] = [join(directory, 'key.pem'), join(directory, 'cert.pem')]

/**
 * What stands for SNS: its certificate and what it was asked, over TLS that this certificate
 * proves.
 */
const sns = {
  server: undefined as Server | undefined,
  port: 0,
  asked: [] as string[],
  status: 200,
  meanwhile: async () => {},
}

const api = useApi(() => ({
  askSns: async (url) => {
    const { pathname, search, host } = new URL(url)
    sns.asked.push(host)
    await sns.meanwhile()
    const { status, body } = await request({
      method: 'GET',
      url: `https://localhost:${sns.port}${pathname}${search}`,
      timeoutMs: 30_000,
      maxBytes: 64_000,
      allow: 'loopback',
      ca: readFileSync(certFile, 'utf8'),
    })
    return { status, text: status === 200 ? Buffer.from(body).toString() : null }
  },
}))

beforeAll(async () => {
  const names = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost']
  const files = ['-keyout', keyFile, '-out', certFile]
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', ...names, ...files], {
    stdio: 'pipe',
  })
  const [key, cert] = [readFileSync(keyFile), readFileSync(certFile)]
  sns.server = createServer({ key, cert }, (incoming, answer) => {
    if (incoming.url?.endsWith('.pem')) answer.end(cert)
    else answer.writeHead(sns.status, { location: 'https://evil.example/' }).end('<ConfirmSubscriptionResponse/>')
  })
  await new Promise<void>((resolve) => sns.server?.listen(0, '127.0.0.1', resolve))
  sns.port = (sns.server.address() as AddressInfo).port
  await sql`insert into platform_config (key, value) values ('alert.quiet', '0')`.execute(api.db)
})
afterAll(() => void sns.server?.close())

type Taken = { alerts: { outcome: string; incidentId: string }[]; ignored?: string }
async function send(
  dialect: string,
  raw: string,
  { headers, as = api.tokens.ingest }: { headers?: Record<string, string>; as?: string } = {},
) {
  const answer = await api.post(`/ingest/${dialect}`, { raw, as, ...(headers && { headers }) })
  return { ...answer, taken: answer.body as unknown as Taken }
}
const statusOf = async (id: string | undefined) => (await incidentById(api.db, id ?? ''))?.status
const refusals = async () =>
  await api.db.selectFrom('refusedBody').select(['sender', 'dialect', 'code', 'reason', 'count']).execute()

test.each(Object.entries(bodiesOf))(
  'an alert of %s opens an incident, and its end closes it',
  async (dialect, body) => {
    const opened = await send(dialect, body())
    expect([opened.status, opened.taken.alerts]).toMatchObject([202, [{ outcome: 'opened' }]])
    const id = opened.taken.alerts[0]?.incidentId
    expect(await statusOf(id)).toBe('open')
    expect((await send(dialect, body())).taken.alerts).toMatchObject([{ outcome: 'repeated', incidentId: id }])
    expect((await send(dialect, body({ isOver: true }))).taken.alerts).toMatchObject([{ outcome: 'resolved' }])
    expect(await statusOf(id)).toBe('resolved')
  },
)

test('a body that does not fit its dialect is a row with the nearest dialect and the missing fields', async () => {
  const { msg: _, ...less } = JSON.parse(bodiesOf['uptime-kuma']())
  const { status, body } = await send('zabbix', JSON.stringify(less))
  expect([status, body.code]).toEqual([400, 'UNPARSABLE'])
  expect(body.detail).toContain('the request has no "event_id", "event_value", "event_name"')
  expect(body.detail).toContain('The nearest dialect is uptime-kuma: the body has heartbeat, monitor, but no msg.')
  expect(await refusals()).toContainEqual(
    expect.objectContaining({
      dialect: 'zabbix',
      code: 'UNPARSABLE',
      reason: expect.stringContaining('The nearest dialect is uptime-kuma'),
    }),
  )
})

test('with its secret PagerDuty needs no token, and events without a valid signature are refused', async () => {
  const secret = 'a-secret-of-pagerduty'
  await sql`insert into platform_config (key, value) values ('alert.pagerduty_secret', ${secret})`.execute(api.db)
  const body = bodiesOf.pagerduty({ id: 'Q2SIGNED' })
  const signed = (text: string, by = secret) => ({ 'x-pagerduty-signature': pagerdutySignature(by, text) })
  const opened = await send('pagerduty', body, { headers: signed(body), as: '' })
  expect([opened.status, opened.taken.alerts]).toMatchObject([202, [{ outcome: 'opened' }]])
  for (const headers of [
    {},
    signed(body, 'another-secret-of-us'),
    signed(`${body} `),
    { 'x-pagerduty-signature': 'v1=' },
  ]) {
    const refused = await send('pagerduty', body, { headers })
    expect([refused.status, refused.body.code]).toEqual([401, 'NOT_PROVEN'])
    expect(JSON.stringify(refused.body)).not.toContain(secret)
  }
  expect(await refusals()).toContainEqual(
    expect.objectContaining({ sender: 'pagerduty', code: 'NOT_PROVEN', count: 4 }),
  )
  const ended = bodiesOf.pagerduty({ id: 'Q2SIGNED', isOver: true })
  const both = { 'x-pagerduty-signature': `v1=00, ${pagerdutySignature(secret, ended)}` }
  expect((await send('pagerduty', ended, { headers: both, as: '' })).taken.alerts).toMatchObject([
    { outcome: 'resolved' },
  ])
  const own = bodiesOf.pagerduty({ key: 'inc_01kam3x0q2v8d5t7w9y1b3c5e7' })
  const back = await send('pagerduty', own, { headers: signed(own), as: '' })
  expect([back.status, back.taken]).toEqual([202, { alerts: [], ignored: 'Nightshift itself opened this incident' }])
  await sql`delete from platform_config where key = 'alert.pagerduty_secret'`.execute(api.owner)
})

const message = (text: string, shape: Parameters<typeof snsMessage>[2] = {}) =>
  snsMessage(readFileSync(keyFile, 'utf8'), text, shape)
const deliver = async (raw: string, type = 'Notification') =>
  await send('cloudwatch', raw, {
    as: '',
    headers: { 'x-amz-sns-message-type': type, 'content-type': 'text/plain; charset=UTF-8' },
  })
const topics = async () =>
  (await api.get('/sns/topics')).body.items as unknown as {
    id: string
    arn: string
    isWaiting: boolean
    confirmedBy: string | null
  }[]

test('alarms by SNS are accepted only after a person confirmed their topic', async () => {
  const alarm = bodiesOf.cloudwatch({ id: 'by-sns' })
  const early = await deliver(message(alarm))
  expect([early.status, early.body.code, sns.asked]).toEqual([401, 'UNCONFIRMED', []])

  const ask = message('You have chosen to subscribe to the topic', { type: 'SubscriptionConfirmation' })
  const waits = await deliver(ask, 'SubscriptionConfirmation')
  expect([waits.status, waits.taken]).toEqual([
    202,
    { alerts: [], ignored: expect.stringContaining('waits for a person') },
  ])
  expect(sns.asked).toEqual(['sns.eu-north-1.amazonaws.com'])
  expect(await refusals()).toContainEqual(
    expect.objectContaining({ sender: 'Amazon SNS', code: 'UNCONFIRMED', reason: expect.stringContaining(topicArn) }),
  )
  const [topic] = await topics()
  expect(topic).toMatchObject({ arn: topicArn, isWaiting: true, confirmedBy: null })
  expect(JSON.stringify(await topics())).not.toContain('Token')
  expect((await deliver(message(alarm))).status).toBe(401)

  const confirm = `/sns/topics/${topic?.id}/confirm`
  for (const role of ['viewer', 'operator', 'ingest', 'agent'] as const)
    expect((await api.post(confirm, { as: api.tokens[role] })).status).toBe(403)
  for (const status of [302, 403]) {
    sns.status = status
    expect((await api.post(confirm)).body.code).toBe('SNS_FAILED')
  }
  sns.status = 200
  expect((await api.post(confirm)).body).toMatchObject({ isWaiting: false, confirmedBy: 'admin' })
  expect((await api.post(confirm)).status).toBe(404)
  // The certificate is asked for once.
  expect(sns.asked).toEqual(Array(4).fill('sns.eu-north-1.amazonaws.com'))
  const audit = await api.db
    .selectFrom('audit')
    .select(['who', 'subject'])
    .where('what', '=', 'source.topic_confirmed')
    .execute()
  expect(audit).toEqual([{ who: 'admin', subject: topicArn }])

  const opened = await deliver(message(alarm))
  expect([opened.status, opened.taken.alerts]).toMatchObject([202, [{ outcome: 'opened' }]])
  const over = message(bodiesOf.cloudwatch({ id: 'by-sns', isOver: true, at: new Date().toISOString() }), {
    version: '2',
  })
  expect((await deliver(over)).taken.alerts).toMatchObject([{ outcome: 'resolved' }])
})

test('a message of SNS that was changed, is old or has a foreign signature is refused', async () => {
  const alarm = bodiesOf.cloudwatch({ id: 'forged' })
  const old = new Date(Date.now() - 3 * 3_600_000).toISOString()
  const refused: [string, string][] = [
    [message(alarm, { change: { Message: bodiesOf.cloudwatch({ id: 'other' }) } }), 'NOT_PROVEN'],
    [message(alarm, { change: { SignatureVersion: '2' } }), 'NOT_PROVEN'],
    [message(alarm, { change: { SignatureVersion: '3' } }), 'NOT_PROVEN'],
    [message(alarm, { change: { Signature: '' } }), 'NOT_PROVEN'],
    [
      message(alarm, { change: { SigningCertURL: 'https://sns.us-east-1.amazonaws.com.evil.example/a.pem' } }),
      'UNPARSABLE',
    ],
    [message(alarm, { at: old }), 'TOO_OLD'],
    [message('a text of somebody', {}), 'UNPARSABLE'],
  ]
  for (const [raw, code] of refused) {
    const { status, body } = await deliver(raw)
    expect([code, body.code, status < 500]).toEqual([code, code, true])
  }
})

test('a topic that was unsubscribed waits for a person again, and a removed topic is refused', async () => {
  const ended = message('You have chosen to deactivate', { type: 'UnsubscribeConfirmation' })
  expect((await deliver(ended, 'UnsubscribeConfirmation')).status).toBe(202)
  const [topic] = await topics()
  expect(topic).toMatchObject({ isWaiting: true, confirmedBy: 'admin' })
  expect((await api.post(`/sns/topics/${topic?.id}/confirm`)).status).toBe(200)
  expect((await api.post(`/sns/topics/${topic?.id}/remove`)).status).toBe(200)
  expect((await api.post(`/sns/topics/${topic?.id}/remove`)).status).toBe(404)
  expect((await deliver(message(bodiesOf.cloudwatch()))).body.code).toBe('UNCONFIRMED')
  const audit = await api.db.selectFrom('audit').select('subject').where('what', '=', 'source.topic_removed').execute()
  expect(audit).toEqual([{ subject: topicArn }])
})

/** Confirms a topic of this ARN, and answers its row. */
async function confirmTopic(topic: string) {
  const ask = message('You have chosen to subscribe', { type: 'SubscriptionConfirmation', topic })
  expect((await deliver(ask, 'SubscriptionConfirmation')).status).toBe(202)
  const row = (await topics()).find(({ arn }) => arn === topic)
  expect((await api.post(`/sns/topics/${row?.id}/confirm`)).status).toBe(200)
  return row
}
const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString()

test('a late or repeated state of an alarm changes no newer state', async () => {
  await confirmTopic(topicArn)
  const [began, ended, again] = [
    message(bodiesOf.cloudwatch({ id: 'replayed', at: minutesAgo(30) })),
    message(bodiesOf.cloudwatch({ id: 'replayed', at: minutesAgo(20), isOver: true })),
    message(bodiesOf.cloudwatch({ id: 'replayed', at: minutesAgo(10) })),
  ] as const
  const opened = (await deliver(began)).taken.alerts[0]
  expect(opened).toMatchObject({ outcome: 'opened' })
  expect((await deliver(ended)).taken.alerts).toMatchObject([{ outcome: 'resolved' }])
  // Over is over: the beginning of it opens nothing again.
  expect((await deliver(began)).taken).toMatchObject({ alerts: [], ignored: expect.stringContaining('already knows') })
  expect(await statusOf(opened?.incidentId)).toBe('resolved')
  const next = (await deliver(again)).taken.alerts[0]
  for (const late of [began, ended, began, ended]) expect((await deliver(late)).taken.alerts).toEqual([])
  const rows = await api.db
    .selectFrom('alert')
    .select('status')
    .where('incidentId', '=', next?.incidentId ?? '')
    .execute()
  expect(rows.map(({ status }) => status)).toContain('firing')
  const over = message(bodiesOf.cloudwatch({ id: 'replayed', at: minutesAgo(1), isOver: true }))
  expect((await deliver(over)).taken.alerts).toMatchObject([{ outcome: 'resolved' }])
})

test('a topic of another account ends only alarms of its own account, and its alarms are separate', async () => {
  const foreign = 'arn:aws:sns:eu-north-1:999999999999:alarms'
  await confirmTopic(foreign)
  const opened = (await deliver(message(bodiesOf.cloudwatch({ id: 'theirs', at: minutesAgo(9) })))).taken.alerts[0]
  const over = { ...JSON.parse(bodiesOf.cloudwatch({ id: 'theirs', at: minutesAgo(5), isOver: true })) }
  const forms = [over, { ...over, AWSAccountId: '999999999999' }, { ...over, AWSAccountId: undefined }]
  for (const each of forms) {
    const { taken } = await deliver(message(JSON.stringify(each), { topic: foreign }))
    expect(taken.alerts).toMatchObject([{ outcome: 'orphan', incidentId: null }])
  }
  expect(await statusOf(opened?.incidentId)).toBe('open')
  const told = message(bodiesOf.cloudwatch({ id: 'theirs', at: minutesAgo(3) }), { topic: foreign })
  const apart = (await deliver(told)).taken.alerts[0]
  expect(apart).toMatchObject({ outcome: 'opened' })
  expect(apart?.incidentId).not.toBe(opened?.incidentId)
  const row = await api.db
    .selectFrom('alert')
    .select(['labels', 'annotations'])
    .where('incidentId', '=', apart?.incidentId ?? '')
    .executeTakeFirstOrThrow()
  expect(row.labels).toMatchObject({ sns_topic: foreign, aws_account: '123456789012' })
  expect(JSON.stringify(row.annotations)).toContain('A topic of the account 999999999999')
})

test('a subscription that arrives while another one is confirmed also waits for a person', async () => {
  const topic = 'arn:aws:sns:eu-north-1:123456789012:renewed'
  const ask = message('You have chosen to subscribe', { type: 'SubscriptionConfirmation', topic })
  await deliver(ask, 'SubscriptionConfirmation')
  const row = (await topics()).find(({ arn }) => arn === topic)
  const newer = 'https://sns.eu-north-1.amazonaws.com/?Action=ConfirmSubscription&Token=newer'
  const sent = sns.asked.length
  sns.meanwhile = async () =>
    void (await sql`update sns_topic set subscribe_url = ${newer} where arn = ${topic}`.execute(api.owner))
  const first = await api.post(`/sns/topics/${row?.id}/confirm`)
  sns.meanwhile = async () => {}
  expect([first.status, first.body.isWaiting, first.body.confirmedBy]).toEqual([200, true, 'admin'])
  expect((await api.post(`/sns/topics/${row?.id}/confirm`)).body.isWaiting).toBe(false)
  expect(sns.asked.length).toBe(sent + 2)
})

test('a topic waits until a person decides, also after its confirmation has expired', async () => {
  const arns = ['a', 'b'].map((name) => `arn:aws:sns:eu-north-1:123456789012:waits-${name}`)
  for (const topic of arns) {
    await deliver(message('Subscribe', { type: 'SubscriptionConfirmation', topic }), 'SubscriptionConfirmation')
    await sql`update sns_topic set asked_at = now() - interval '9 days' where arn = ${topic}`.execute(api.owner)
  }
  const waiting = (await topics()).filter(({ isWaiting }) => isWaiting).map(({ arn }) => arn)
  expect(waiting).toEqual(expect.arrayContaining(arns))
})
