import { once } from 'node:events'
import { createServer, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { serve } from '@hono/node-server'
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals'
import { createApi } from '../../../api/app.ts'
import { createSlackClient } from '../../../notify/slack/client.ts'
import { buttonValue } from '../../../notify/slack/interaction.ts'
import { asked } from '../../support/announced.ts'
import { useApi } from '../../support/api.ts'
import { claimedIncident } from '../../support/database.ts'
import { eventually } from '../../support/directory.ts'
import { type ScriptedSlack, startScriptedSlack } from '../../support/scripted-slack.ts'

// Two servers of ours on one database, over HTTP, and a host of a stranger that wants to be called.
const publicUrl = 'https://nightshift.example'
let slack: ScriptedSlack
let trap: Server
let trapUrl: string
const trapped: string[] = []
const servers: Server[] = []
const ports: number[] = []

beforeAll(async () => {
  slack = await startScriptedSlack()
  trap = createServer((asking, answer) => {
    trapped.push(`${asking.method} ${asking.url}`)
    answer.end('{}')
  })
  trap.listen(0, '127.0.0.1')
  await once(trap, 'listening')
  trapUrl = `http://127.0.0.1:${portOf(trap)}`
})
const api = useApi(() => ({ slack: createSlackClient(slack.settings), publicUrl }))
beforeAll(async () => {
  for (const _ of [1, 2]) {
    const { app } = createApi({ db: api.db, slack: createSlackClient(slack.settings), publicUrl })
    const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }) as Server
    if (!server.listening) await once(server, 'listening')
    servers.push(server)
    ports.push(portOf(server))
  }
  for (const name of ['anna', 'bert']) {
    const slackUserId = `U0${name.toUpperCase()}`
    const body = { role: 'approver', maxRisk: 'critical', incidentTypes: null, disabled: false, slackUserId }
    expect((await api.put(`/operators/${name}`, { body })).status).toBe(200)
  }
})
beforeEach(() => {
  slack.calls.length = 0
})
afterAll(async () => {
  for (const server of [...servers, trap]) server?.close()
  await slack?.stop()
  expect(trapped).toEqual([])
})

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port
}

let kept: Promise<{ id: string; button: string }> | null = null
/** One that no test decides. */
function undecided(): Promise<{ id: string; button: string }> {
  kept ??= approvalAsked()
  return kept
}

async function approvalAsked(): Promise<{ id: string; button: string }> {
  const id = await asked(api.db, await claimedIncident(api.db))
  const { actionDigest } = (await api.get(`/approvals/${id}`)).body
  return { id, button: buttonValue(slack.settings.signingSecret, { id, actionDigest: String(actionDigest) }) }
}

/** A press as Slack would send it, with whatever else it is said to hold. */
function press(user: string, button: string, more: { action?: string; [key: string]: unknown } = {}): string {
  const { action = 'approve', ...rest } = more
  const payload = {
    type: 'block_actions',
    user: { id: user },
    trigger_id: 't',
    channel: { id: 'C0OPS' },
    container: { message_ts: '1.1' },
    actions: [{ action_id: action, value: button }],
    ...rest,
  }
  return new URLSearchParams({ payload: JSON.stringify(payload) }).toString()
}

type Headers = Record<string, string | string[]>

function send(body: string | Buffer, headers: Headers, at = 0): Promise<number> {
  return new Promise((resolve, reject) => {
    const options = { port: ports[at], host: '127.0.0.1', path: '/slack/interactions', method: 'POST', headers }
    const asking = request(options, (answer) => {
      answer.resume()
      answer.on('end', () => resolve(answer.statusCode ?? 0))
    })
    asking.on('error', reject)
    asking.end(body)
  })
}

const approval = async (id: string) => (await api.get(`/approvals/${id}`)).body
const decisions = async (id: string) => (await approval(id)).decisions as unknown as object[]

test('one signed request that reaches two processes many times at once is accepted once', async () => {
  const { id, button } = await approvalAsked()
  const body = press('U0ANNA', button)
  const headers = slack.signed(body)
  const answers = await Promise.all(Array.from({ length: 8 }, (_, index) => send(body, headers, index % 2)))
  expect(answers.toSorted()).toEqual([200, ...Array(7).fill(401)])
  await eventually('the decision', async () => (await approval(id)).status === 'approved')
  expect(await decisions(id)).toHaveLength(1)
})

test('of many presses of two people at two processes, each in its own request, each person counts once', async () => {
  const { id, button } = await approvalAsked()
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, index) => {
      const body = press(index % 4 < 2 ? 'U0ANNA' : 'U0BERT', button, { trigger_id: `t${index}` })
      return send(body, slack.signed(body), index % 2)
    }),
  )
  expect(new Set(answers)).toEqual(new Set([200]))
  await eventually('every press to be answered', () => slack.calls.length === 12)
  expect(await approval(id)).toMatchObject({ status: 'approved', decisions: [{ decision: 'approve' }] })
})

test.each<[string, (body: string) => [string | Buffer, Headers]]>([
  ['another person in it', (body) => [body.replace('U0BERT', 'U0ANNA'), slack.signed(body)]],
  ['a byte more', (body) => [`${body}&`, slack.signed(body)]],
  ['a second payload before the first', (body) => [`payload=%7B%7D&${body}`, slack.signed(body)]],
  ['no body', (body) => ['', slack.signed(body)]],
  ['its time written otherwise', (body) => [body, changed(body, 'x-slack-request-timestamp', (text) => `0${text}`)]],
  ['its time in other digits', (body) => [body, changed(body, 'x-slack-request-timestamp', (text) => `${text}.0`)]],
  ['two times', (body) => [body, changed(body, 'x-slack-request-timestamp', (text) => [text, '1'])]],
  ['two signatures', (body) => [body, changed(body, 'x-slack-signature', (text) => [`v0=${'0'.repeat(64)}`, text])]],
  ['two signatures, the good one first', (body) => [body, changed(body, 'x-slack-signature', (text) => [text, text])]],
  [
    'a signature of another version',
    (body) => [body, changed(body, 'x-slack-signature', (text) => text.replace('v0', 'v1'))],
  ],
  ['half a signature', (body) => [body, changed(body, 'x-slack-signature', (text) => text.slice(0, 40))]],
  ['the signature of nothing', (body) => [body, slack.signed('')]],
  ['a time of the last hour, signed', (body) => [body, slack.signed(body, { atSeconds: now() - 3_600 })]],
  ['a time of the next hour, signed', (body) => [body, slack.signed(body, { atSeconds: now() + 3_600 })]],
  ['an empty secret', (body) => [body, slack.signed(body, { secret: '' })]],
])('a request with %s after it was signed decides nothing, whatever type it claims', async (_, change) => {
  const { id, button } = await undecided()
  const [body, headers] = change(press('U0BERT', button))
  const types = ['application/x-www-form-urlencoded', 'application/json', 'multipart/form-data; boundary=x']
  const answers = await Promise.all(types.map((type, at) => send(body, { ...headers, 'content-type': type }, at % 2)))
  expect(answers).toEqual(types.map(() => 401))
  expect(await approval(id)).toMatchObject({ status: 'pending', decisions: [] })
})

const now = () => Math.floor(Date.now() / 1000)
function changed(body: string, name: string, change: (text: string) => string | string[]): Headers {
  const headers: Record<string, string> = slack.signed(body)
  return { ...headers, [name]: change(headers[name] as string) }
}

test("a person's identity is their Slack id, and names, look-alikes and prototypes are not accepted", async () => {
  const { id, button } = await approvalAsked()
  const bodies = [
    press('U0STRANGER', button, { user: { id: 'U0STRANGER', name: 'anna', username: 'anna' } }),
    // A Cyrillic capital A.
    press('U0\u0410NNA', button),
    press('u0anna', button),
    press('U0ANNA\u200b', button),
    press('U0ANNA', button, { user: { id: ['U0ANNA'] } }),
    press('', button).replace('%22id%22%3A%22%22', '%22__proto__%22%3A%7B%22id%22%3A%22U0ANNA%22%7D'),
    press('U0ANNA', button, {
      actions: [
        { action_id: 'approve', value: button },
        { action_id: 'deny', value: button },
      ],
    }),
    press('U0ANNA', `${button}\u200b`),
    press('U0ANNA', button, { action: '\u0430pprove' }),
  ]
  for (const body of bodies) expect(await send(body, slack.signed(body))).toBe(200)
  expect(await approval(id)).toMatchObject({ status: 'pending', decisions: [] })
})

test('no address in a request is called, and a channel in it is used only as a channel', async () => {
  const { button } = await approvalAsked()
  const addresses = { response_url: `${trapUrl}/respond`, response_urls: [{ response_url: `${trapUrl}/urls` }] }
  const bodies = [
    press('U0ANNA', button, { ...addresses, action: 'deny' }),
    press('U0STRANGER', button, { ...addresses, api_app_id: trapUrl, team: { domain: trapUrl } }),
    press('U0ANNA', `${trapUrl}/button`, addresses),
    press('U0ANNA', button, { ...addresses, channel: { id: `${trapUrl}/channel` } }),
    press('U0ANNA', button, { ...addresses, trigger_id: `${trapUrl}/trigger` }),
  ]
  for (const body of bodies) expect(await send(body, slack.signed(body))).toBe(200)
  await eventually('members to be told', () => slack.whispers('U0ANNA').length >= 2)
  expect(trapped).toEqual([])
  expect(JSON.stringify(slack.calls.map(({ body }) => body.channel))).not.toContain(trapUrl)
})

test('a huge or endlessly nested request gets a response and has no other effect', async () => {
  const huge = Buffer.alloc(1_100_000, 'a')
  expect(await send(huge, { ...slack.signed(huge.toString()), 'transfer-encoding': 'chunked' })).toBe(413)
  for (const payload of ['['.repeat(900_000), `{"a":${'{"a":'.repeat(150_000)}1`, '"'.repeat(300_000)]) {
    const body = `payload=${payload}`
    expect(await send(body, slack.signed(body))).toBe(200)
  }
  const { id, button } = await approvalAsked()
  const body = press('U0ANNA', button)
  expect(await send(body, slack.signed(body))).toBe(200)
  await eventually('the decision', async () => (await approval(id)).status === 'approved')
})
