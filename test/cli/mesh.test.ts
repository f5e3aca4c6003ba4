import { type ChildProcess, spawn } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { syncInventory } from '../../db/inventory.ts'
import { freePort } from '../../start/port.ts'
import { scriptedPlatform } from '../api/scripted-platform.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { eventually } from '../support/eventually.ts'
import { runCli } from './run-cli.ts'
import { useServedApi } from './served-api.ts'

const api = useServedApi()
const dir = temporaryDirectory()
const state = join(dir.path, 'agent')
const root = join(dir.path, 'srv')
const entry = fileURLToPath(new URL('../../cli/main.ts', import.meta.url))
const run = (...args: string[]) => runCli(['mesh', ...args], api.as('admin'))
let agent: ChildProcess | null = null
let address = ''

beforeAll(async () => {
  const key = (id: string) => ({ id, key: generateKeyPairSync('ed25519').privateKey })
  api.api.deps.mesh = { keys: { root: key('root'), signing: key('k-first'), next: null }, variable: () => undefined }
  await syncInventory(api.db, scriptedPlatform().inventoryState)
  address = `127.0.0.1:${await freePort(17_474)}`
  mkdirSync(root)
  writeFileSync(join(root, 'app.conf'), 'port = 80\n')
})
afterAll(() => {
  agent?.kill('SIGKILL')
  dir.remove()
})

test('a device is made known, and the command for it is printed', async () => {
  const made = await run(
    'enroll',
    'node-osl-1',
    '--address',
    `http://${address}`,
    '--mode',
    'all',
    '--root',
    `${root}:rw`,
  )
  expect([made.code, made.stderr]).toEqual([0, expect.stringContaining('works once')])
  expect(made.stdout.trim()).toBe(
    `nightshift mesh agent enroll --api ${api.apiUrl} --token ${made.stdout.trim().split(' ').at(-1)}`,
  )

  const words = made.stdout.trim().split(' ').slice(1)
  const enrolled = await runCli([...words, '--state', state])
  expect([enrolled.code, enrolled.stderr]).toEqual([0, expect.stringContaining('node-osl-1 is enrolled')])
  expect(JSON.parse(readFileSync(join(state, 'manifest.json'), 'utf8'))).toMatchObject({ device: 'node-osl-1' })
  expect(statSync(join(state, 'refresh.json')).mode & 0o077).toBe(0)
  expect((await runCli([...words, '--state', state])).code).toBe(4)
})

test('the real agent starts with what the enrolment left, and is asked for a file', async () => {
  agent = spawn(process.execPath, [entry, 'mesh', 'agent', '--state', state, '--listen', address], { stdio: 'inherit' })
  await eventually('the agent', async () => (await fetch(`http://${address}/health`).catch(() => null))?.ok, 60_000)
  const path = JSON.stringify({ path: join(root, 'app.conf') })
  const answer = await run('call', 'node-osl-1', 'fs.read', path)
  expect([answer.code, answer.stdout, answer.stderr]).toEqual([0, expect.stringContaining('port = 80'), ''])
  const json = JSON.parse((await run('call', 'node-osl-1', 'fs_read', path, '--json')).stdout)
  expect(json).toMatchObject({ device: 'node-osl-1', approval_status: 'auto_approved', sha256: expect.any(String) })
})

test('what changes something is not done for a person by hand', async () => {
  const args = JSON.stringify({ path: join(root, 'new'), content: 'x' })
  const answer = await run('call', 'node-osl-1', 'fs_write', args)
  expect([answer.code, answer.stderr]).toEqual([4, expect.stringContaining('approval_required')])
  expect(existsSync(join(root, 'new'))).toBe(false)
})

test('devices are listed with how they are', async () => {
  await api.post('/devices/node-osl-1/health')
  expect((await run('devices')).stdout).toMatch(/^node-osl-1 +node:node-osl-1 +all +\d+ +ready$/m)
  const [listed] = JSON.parse((await run('devices', '--json')).stdout)
  expect(listed).toMatchObject({ id: 'node-osl-1', tools: expect.arrayContaining(['exec', 'fs_read']) })
})

test('the audits of device and control plane agree, by its answers and by its files', async () => {
  expect(await run('audit', 'verify')).toMatchObject({ code: 0, stdout: expect.stringContaining('agree') })
  const whole = await run('audit', 'verify', 'node-osl-1', '--journal', state)
  expect([whole.code, whole.stdout, whole.stderr]).toEqual([0, expect.stringContaining('agree'), ''])
})

test('a call whose hash somebody changed does not agree', async () => {
  const { key, auditHash } = await api.db
    .selectFrom('deviceCall')
    .select(['key', 'auditHash'])
    .where('ok', '=', true)
    .limit(1)
    .executeTakeFirstOrThrow()
  await api.db
    .updateTable('deviceCall')
    .set({ auditHash: 'f'.repeat(64) })
    .where('key', '=', key)
    .execute()
  const altered = await run('audit', 'verify', 'node-osl-1', '--journal', state)
  expect([altered.code, altered.stdout]).toEqual([1, expect.stringContaining('another hash')])
  expect(altered.stdout).toContain('its hash is not in the journal')
  await api.db.updateTable('deviceCall').set({ auditHash }).where('key', '=', key).execute()
})

test('a changed device fetches its new manifest, and its agent heeds it', async () => {
  const answer = await run('enroll', 'node-osl-1', '--capability', 'fs.read')
  expect(answer.code).toBe(0)
  const fetched = await runCli(['mesh', 'agent', 'refresh', '--state', state])
  expect([fetched.code, fetched.stderr]).toEqual([0, expect.stringContaining('the agent was told')])
  const { capabilities } = JSON.parse(readFileSync(join(state, 'manifest.json'), 'utf8'))
  expect(capabilities).toEqual(['fs.read'])
})

test('a manifest that the pinned key did not sign changes nothing', async () => {
  const before = readFileSync(join(state, 'manifest.json'), 'utf8')
  const deps = api.api.deps as { mesh: NonNullable<typeof api.api.deps.mesh> }
  const { root: own } = deps.mesh.keys
  deps.mesh.keys.root = { id: 'root', key: generateKeyPairSync('ed25519').privateKey }
  await run('enroll', 'node-osl-1', '--days', '30')
  const fetched = await runCli(['mesh', 'agent', 'refresh', '--state', state])
  deps.mesh.keys.root = own
  expect([fetched.code, fetched.stderr]).toEqual([1, expect.stringContaining('Nothing was changed')])
  expect(readFileSync(join(state, 'manifest.json'), 'utf8')).toBe(before)
})

test('a revoked device is asked nothing, and only an admin revokes', async () => {
  expect((await runCli(['mesh', 'revoke', 'node-osl-1'], api.as('operator'))).code).toBe(4)
  expect((await run('revoke', 'node-osl-1', '--reason', 'stolen')).code).toBe(0)
  expect((await run('revoke', 'node-osl-1')).code).toBe(5)
  expect((await run('call', 'node-osl-1', 'exec', '{"argv":["uptime"]}')).code).not.toBe(0)
  expect((await run('devices')).stdout).toMatch(/^node-osl-1 .*revoked$/m)
})

test('a tool that there is not, and arguments that are none, are said before anything is sent', async () => {
  const sent = api.requests.length
  expect((await run('call', 'node-osl-1', 'screenshot')).code).toBe(2)
  expect((await run('call', 'node-osl-1', 'exec', 'uptime')).code).toBe(2)
  expect(api.requests.length).toBe(sent)
})
