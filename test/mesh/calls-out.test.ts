import { randomInt } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { auditDevice } from '../../cli/mesh/journal.ts'
import { verifyChain } from '../../mesh/agent/chain.ts'
import {
  askThrough,
  type CallingAgent,
  callingAgent,
  type Door,
  knownToCallOut,
  openDoor,
} from '../support/calls-out.ts'
import { type CuttingRelay, startCuttingRelay } from '../support/cutting-relay.ts'
import { eventually, temporaryDirectory } from '../support/directory.ts'
import { ran, useMeshApi } from '../support/mesh-api.ts'
import { runCli, tokenFile } from '../support/run-cli.ts'

const api = useMeshApi()
const on = 'node-osl-1'
const files = temporaryDirectory()
let door: Door
let relay: CuttingRelay
let agent: CallingAgent

beforeAll(async () => {
  writeFileSync(join(files.path, 'app.conf'), 'port = 80\n')
  door = await openDoor(api)
  askThrough(api, door)
  relay = await startCuttingRelay(() => Number(new URL(door.url).port))
  agent = callingAgent()
})
afterAll(async () => {
  await relay.stop()
  files.remove()
})

const connected = () => eventually('the connection', () => door.connections.held().includes(on))

test('an agent enrols by one line, calls out, and is asked over its connection', async () => {
  const roots = [{ path: files.path, writable: true }]
  const token = await knownToCallOut(api, on, { mode: 'all', terms: { capabilities: [], roots } })
  await agent.up(['--connect', relay.url, '--token', token])
  await connected()
  const read = { capability: 'fs.read', args: { path: join(files.path, 'app.conf') } }
  const answer = await api.post(`/devices/${on}/calls`, { body: read, as: api.tokens.operator })
  expect([answer.status, answer.body.content]).toEqual([200, 'port = 80\n'])
  const { body: shown } = await api.get(`/devices/${on}`)
  expect(shown.connection).toMatchObject({ isConnected: true, process: 'api-1', address: '127.0.0.1' })
  expect((statSync(join(agent.state, 'connection.json')).mode & 0o777).toString(8)).toBe('600')
})

test('while its connection is cut again and again, in the middle of frames, each write is done once', async () => {
  const counter = join(files.path, 'counter')
  const words = ['one', 'two', 'three']
  for (const word of words) {
    const write = ran(api, 'shell_eval', { on, command: `echo ${word} >> ${counter}`, reason: 'the test' }, 'approved')
    await sleep(randomInt(30))
    if (word.length % 2) relay.cut()
    else relay.cutWithin(randomInt(1_500))
    expect((await write).answer).toMatchObject({ ok: true })
  }
  expect(readFileSync(counter, 'utf8').trim().split('\n')).toEqual(words)
  await connected()
  const audit = await auditDevice(async (path) => (await api.get(path)).body, on)
  expect(audit.problems).toEqual([])
  expect(verifyChain(join(agent.state, 'journal'))).toMatchObject({ ok: true })
})

test('a later start needs neither token nor address, and lines of a command are sent as they appear', async () => {
  await agent.kill()
  await agent.up()
  await connected()
  const command = 'for n in 1 2 3; do echo line $n; sleep 0.2; done'
  const { answer, incidentId } = await ran(api, 'shell_eval', { on, command, reason: 'the test' }, 'approved')
  expect(answer).toMatchObject({ ok: true })
  const rows = await api.db
    .selectFrom('incidentEvent')
    .select('metadata')
    .where('incidentId', '=', incidentId)
    .where('kind', '=', 'tool_output')
    .execute()
  expect(JSON.stringify(rows)).toContain('line 1')
})

test('an answer of many pieces arrives whole, also at the end of a stream', async () => {
  const command = 'for n in $(seq 20000); do echo 0123456789; done'
  const { answer } = await ran(api, 'shell_eval', { on, command, reason: 'the test' }, 'approved')
  expect(answer).toMatchObject({ ok: true })
  expect(JSON.stringify(answer).length).toBeGreaterThan(200_000)
})

test('the list of devices shows since when a device is connected, from where and to what', async () => {
  const env = { NIGHTSHIFT_URL: door.url, NIGHTSHIFT_TOKEN_FILE: tokenFile(api.tokens.admin) }
  const { stdout } = await runCli(['mesh', 'devices'], env)
  expect(stdout).toMatch(/^node-osl-1 is connected since .*, from 127\.0\.0\.1, to api-1 \(agent /m)
})

test('a new device calls out unless an address is given, and enrolment says which and why', async () => {
  const env = { NIGHTSHIFT_URL: door.url, NIGHTSHIFT_TOKEN_FILE: tokenFile(api.tokens.admin) }
  const out = await runCli(['mesh', 'enroll', 'node-osl-2', '--mode', 'user'], env)
  expect(out.stdout).toMatch(/^nightshift agent --connect http:\/\/127\.0\.0\.1:\d+ --token nst_/)
  expect(out.stderr).toContain('node-osl-2 calls out, because no address is set')
  expect(out.stderr).toContain('Only this machine reaches that address. For another host, set PUBLIC_URL')
  const listens = await runCli(['mesh', 'enroll', 'node-osl-2', '--address', 'http://10.0.0.2:7474'], env)
  expect(listens.stdout).toMatch(/^nightshift mesh agent enroll --api /)
  expect(listens.stderr).toContain('listens at http://10.0.0.2:7474, because an address is set')
})

test.each([
  [['--connect', 'http://192.0.2.7', '--token', 'nst_x'], 'is plain http to another machine'],
  [['--token', 'nst_x'], '--token needs the address of the control plane too: --connect.'],
  [[], 'This host is not enrolled to call out'],
  [['--connect', 'https://127.0.0.1:1', '--token', 'nst_x'], 'was not reached'],
])('a start that cannot work is one sentence (%j)', async (words, sentence) => {
  const state = join(files.path, 'none')
  const { code, stderr } = await runCli(['agent', '--state', state, ...words], {})
  expect(code).not.toBe(0)
  expect(stderr).toContain(sentence)
  expect(existsSync(join(state, 'connection.json'))).toBe(false)
})

test('in a folder of another user no token is used up, and nothing is written', async () => {
  const token = await knownToCallOut(api, 'node-osl-4')
  const state = join(files.path, 'of-another')
  mkdirSync(state, { mode: 0o500 })
  if (process.getuid?.() === 0) chownSync(state, 65_534, 65_534)
  const words = ['--connect', door.url, '--token', token, '--only-enrol']
  const { code, stderr } = await runCli(['agent', '--state', state, ...words], {})
  expect([code, stderr]).toEqual([1, expect.stringContaining('Nothing was changed, and the token stays valid.')])
  expect(readdirSync(state)).toEqual([])
  chmodSync(state, 0o700)
  expect((await runCli(['agent', '--state', join(files.path, 'own'), ...words], {})).code).toBe(0)
})

test('a copied host that enrols under its own name is connected, with its own journal', async () => {
  await agent.kill()
  const copy = callingAgent()
  cpSync(agent.state, copy.state, { recursive: true })
  await agent.up()
  await connected()
  const token = await knownToCallOut(api, 'node-osl-5')
  await copy.up(['--connect', door.url, '--token', token])
  await eventually('both', () => ['node-osl-5', on].every((name) => door.connections.held().includes(name)))
  expect(readFileSync(join(copy.state, 'device'), 'utf8')).toBe('node-osl-5\n')
  expect((await auditDevice(async (path) => (await api.get(path)).body, 'node-osl-5')).problems).toEqual([])
  const [aside = ''] = readdirSync(copy.state).filter((name) => name.startsWith('before-'))
  expect(readFileSync(join(copy.state, aside, 'device.before'), 'utf8')).toBe(`${on}\n`)
})

test.each(['http://10.evil.invalid', 'http://[2001:db8::1]:8080'])(
  'no token is sent unencrypted to %s, which only resembles a private network',
  async (address) => {
    const state = join(files.path, 'none')
    const words = ['--state', state, '--api', address, '--token', 'nst_x']
    const { code, stderr } = await runCli(['mesh', 'agent', 'enroll', ...words], {})
    expect([code, stderr]).toEqual([2, expect.stringContaining('over https or a private network')])
  },
)

test('a host can ask its agent for its state, although the agent listens on no port', async () => {
  const ready = () => runCli(['mesh', 'agent', 'ready', '--state', agent.state], {})
  await eventually('it to be ready', async () => (await ready()).code === 0)
  await agent.kill()
  expect(await ready()).toMatchObject({ code: 1, stderr: expect.stringContaining(`no agent runs in ${agent.state}`) })
  await agent.up()
  await connected()
  await eventually('it to be ready again', async () => (await ready()).code === 0)
})

test('a token of a listening device enrols no agent that calls out, and stays valid', async () => {
  const body = { url: 'http://10.0.0.3:7474', mode: 'user', terms: { capabilities: [], roots: [] } }
  await api.put('/devices/node-osl-3', { body })
  const { body: minted } = await api.post('/devices/node-osl-3/enrolment')
  const words = ['agent', '--state', join(files.path, 'third'), '--connect', door.url, '--token', String(minted.token)]
  const refused = await runCli([...words, '--only-enrol'], {})
  expect(refused.stderr).toContain('node-osl-3 has an address, so its agent must listen')
  await api.put('/devices/node-osl-3', { body: { ...body, url: null } })
  expect((await runCli([...words, '--only-enrol'], {})).stderr).toContain('node-osl-3 is enrolled')
})

test('a control plane that is too old for agents that call out is reported as such', async () => {
  const older = createServer((request, response) => {
    // It takes no field but the token.
    response.statusCode = request.url === '/mesh/enrolments' ? 422 : 404
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ detail: 'Send { "token": … }.' }))
  })
  await new Promise<void>((resolve) => older.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(older.address() as AddressInfo).port}`
  const fresh = join(files.path, 'fourth')
  const enrolling = await runCli(['agent', '--state', fresh, '--connect', url, '--token', 'nst_x', '--only-enrol'], {})
  expect(enrolling.stderr).toContain('does not accept agents that call out')
  await agent.kill()
  await agent.up(['--connect', url])
  await eventually('what it says', () => /it is too old \(upgrade it\)/.test(agent.said()))
  const asked = await eventually('what it wrote', async () => {
    const { code, stderr } = await runCli(['mesh', 'agent', 'ready', '--state', agent.state], {})
    return /it is too old/.test(stderr) && { code, stderr }
  })
  expect(asked).toMatchObject({ code: 1, stderr: expect.stringContaining('has not been connected since') })
  older.close()
})
