import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals'
import { buildProgram, runCommand } from '../../cli/program.ts'
import { append } from '../../db/log/append.ts'
import { agentActor } from '../../domain/event.ts'
import { asked } from '../support/announced.ts'
import { claimedIncident } from '../support/database.ts'
import { emptyDir, harmfulIn, hostile, hostileToo, useServedApi } from '../support/run-cli.ts'

// Stored text is cleansed. Here the server is the stranger: an old one, a wrong one, or somebody
// between.
const api = useServedApi()
const evil = `${hostile} ${hostileToo}`
/** What becomes of each string of an answer. */
let change: (text: string) => string
/** Answers instead of the API, where set. */
let instead: { status: number; type: string; body: string } | null = null
let server: Server
const before = { ...process.env }
let commands: string[]

beforeAll(async () => {
  server = createServer((asking, answer) => {
    if (instead) return answer.writeHead(instead.status, { 'content-type': instead.type }).end(instead.body)
    // A command that gives up early may leave a question behind, which ends with the connections of
    // its test.
    passedOn(asking, answer).catch(() => answer.destroy())
    return answer
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  Object.assign(process.env, api.as('admin'), {
    NIGHTSHIFT_URL: url,
    NIGHTSHIFT_STATE_DIR: emptyDir,
    HOME: emptyDir,
    NO_COLOR: '1',
  })
  const incident = await claimedIncident(api.db, {
    title: 'A disk is full',
    labels: { alertname: 'disk', team: 'storage' },
  })
  await api.db.transaction().execute((trx) =>
    append(trx, incident, 1, {
      kind: 'tool_finished',
      actor: agentActor,
      detail: 'Called',
      metadata: {
        callId: 'c1_0',
        tool: 'get_host',
        arguments: { host_id: 'h1' },
        outcome: 'done',
        durationMs: 1,
        effect: 'read',
        result: { ok: true, data: { items: [{ id: 'a', status: 'critical', reason: 'full' }] }, meta: {} },
      } as never,
    }),
  )
  const approval = await asked(api.db, incident)
  const body = { value: '12', reason: 'a test' }
  expect((await api.put('/config/agent.max_turns', { body })).status).toBeLessThan(300)
  commands = [
    ...['list', `show ${incident}`, `show ${incident} --full`, `verify ${incident}`].map((each) => `incidents ${each}`),
    ...['list', `show ${approval}`, 'grants'].map((each) => `approvals ${each}`),
    'config list',
    'config history agent.max_turns',
    'config effective',
    'operators list',
    'tokens list',
    'audit list',
    'expectations list',
    'mesh devices',
    'status',
    'verify',
  ]
})
afterAll(() => {
  process.env = before
  server.close()
})

async function passedOn(asking: IncomingMessage, answer: ServerResponse): Promise<void> {
  const headers = { authorization: asking.headers.authorization ?? '', connection: 'close' }
  const real = await fetch(`${api.apiUrl}${asking.url}`, { headers })
  const type = real.headers.get('content-type') ?? ''
  const text = await real.text()
  const body = /json/.test(type) ? JSON.stringify(spoiled(JSON.parse(text))) : text
  answer.writeHead(real.status, { 'content-type': type }).end(body)
}

function spoiled(value: unknown): unknown {
  if (typeof value === 'string') return change(value)
  if (Array.isArray(value)) return value.map(spoiled)
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, spoiled(entry)]))
}

/** Runs a command in this process, and answers what it wrote to the terminal. */
async function written(command: string): Promise<string> {
  let text = ''
  const take = ((chunk: string) => {
    text += chunk
    return true
  }) as never
  const taken = [process.stdout, process.stderr].map((stream) => jest.spyOn(stream, 'write').mockImplementation(take))
  try {
    const words = command.split(' ')
    await runCommand(await buildProgram(words[0]), ['node', 'nightshift', ...words])
  } finally {
    for (const spy of taken) spy.mockRestore()
    process.stdout.removeAllListeners('error')
    process.exitCode = 0
  }
  return text
}

async function harmIn(list: string[]): Promise<unknown[]> {
  const found: unknown[] = []
  for (const command of list) {
    const text = await written(command)
    if (text === '') found.push([command, 'it says nothing'])
    const harm = harmfulIn(text)
    if (harm !== null) found.push([command, harm, text.slice(Math.max(0, text.indexOf(harm) - 80)).slice(0, 160)])
  }
  return found
}

test('no list lets text of the server act on the terminal', async () => {
  // Words and dates stay what they are, so that every command comes as far as it can.
  const isFree = (text: string) => !/^([a-z_.]+|\d{4}-\d\d-\d\dT.*|[a-z]{3}_\w+|[0-9a-f]{64})$/.test(text)
  change = (text) => (isFree(text) ? `${text}${evil}` : text)
  expect(await harmIn(commands)).toEqual([])
})

test('hostile words, dates and ids of the server do not act on the terminal either', async () => {
  change = (text) => `${text}${evil}`
  expect(await harmIn(commands)).toEqual([])
})

test('text of a refusal does not act on the terminal, in any form', async () => {
  const problem = { type: evil, title: evil, status: 409, detail: evil, code: evil, instance: evil }
  for (const each of [
    { status: 409, type: 'application/problem+json', body: JSON.stringify(problem) },
    { status: 500, type: 'text/plain', body: evil },
    { status: 200, type: 'text/html', body: evil },
    { status: 200, type: 'application/json', body: JSON.stringify(evil) },
  ]) {
    instead = each
    expect(await harmIn(['incidents list', 'status'])).toEqual([])
  }
})
