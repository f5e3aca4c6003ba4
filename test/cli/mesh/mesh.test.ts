import { type ChildProcess, spawn } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { syncInventory } from '../../../db/inventory/sync-inventory.ts'
import { callDevice } from '../../../mesh/client.ts'
import { overHttp } from '../../../mesh/over-http.ts'
import { issueRequest } from '../../../mesh/sign.ts'
import { eventually, freePort, temporaryDirectory } from '../../support/directory.ts'
import { runCli, useServedApi } from '../../support/run-cli.ts'
import { scriptedPlatform } from '../../support/scripted-platform.ts'

const api = useServedApi()
const dir = temporaryDirectory()
const state = join(dir.path, 'agent')
const root = join(dir.path, 'srv')
const entry = fileURLToPath(new URL('../../../cli/main.ts', import.meta.url))
const run = (...args: string[]) => runCli(['mesh', ...args], api.as('admin'))
let agent: ChildProcess | null = null
let address = ''

beforeAll(async () => {
  const key = (id: string) => ({ id, key: generateKeyPairSync('ed25519').privateKey })
  api.api.deps.mesh = { keys: { root: key('root'), signing: key('k-first'), next: null }, variable: () => undefined }
  await syncInventory(api.db, scriptedPlatform().inventoryState)
  address = `127.0.0.1:${await freePort()}`
  mkdirSync(root)
  writeFileSync(join(root, 'app.conf'), 'port = 80\n')
})
afterAll(() => {
  agent?.kill('SIGKILL')
  dir.remove()
})

test('a device is added, and the command for it is printed', async () => {
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
  expect(enrolled.stderr).toMatch(/^Reads are (?:not )?confined.*, for user \S+\.$/m)
  expect(JSON.parse(readFileSync(join(state, 'manifest.json'), 'utf8'))).toMatchObject({ device: 'node-osl-1' })
  expect(statSync(join(state, 'refresh.json')).mode & 0o077).toBe(0)
  expect((await runCli([...words, '--state', state])).code).toBe(4)
})

test('the real agent starts with the state of the enrolment, and is asked for a file', async () => {
  agent = spawn(process.execPath, [entry, 'mesh', 'agent', '--state', state, '--listen', address], { stdio: 'inherit' })
  await eventually('the agent', async () => (await fetch(`http://${address}/health`).catch(() => null))?.ok)
  const path = JSON.stringify({ path: join(root, 'app.conf') })
  const answer = await run('call', 'node-osl-1', 'fs.read', path)
  expect([answer.code, answer.stdout, answer.stderr]).toEqual([0, expect.stringContaining('port = 80'), ''])
  const json = JSON.parse((await run('call', 'node-osl-1', 'fs_read', path, '--json')).stdout)
  expect(json).toMatchObject({ device: 'node-osl-1', approval_status: 'auto_approved', sha256: expect.any(String) })
})

test('a write is not done for a person by hand', async () => {
  const args = JSON.stringify({ path: join(root, 'new'), content: 'x' })
  const answer = await run('call', 'node-osl-1', 'fs_write', args)
  expect([answer.code, answer.stderr]).toEqual([4, expect.stringContaining('approval_required')])
  expect(existsSync(join(root, 'new'))).toBe(false)
})

test('devices are listed with their state', async () => {
  await api.post('/devices/node-osl-1/health')
  expect((await run('devices')).stdout).toMatch(/^node-osl-1 +node:node-osl-1 +all +\d+ +ready$/m)
  const [listed] = JSON.parse((await run('devices', '--json')).stdout)
  expect(listed).toMatchObject({ id: 'node-osl-1', tools: expect.arrayContaining(['exec', 'fs_read']) })
})

test('a device that does not confine its reads is reported with the reason and the remedy', async () => {
  const before = await api.db.selectFrom('device').select('health').where('id', '=', 'node-osl-1').executeTakeFirst()
  const health = { ...before?.health, sandbox: 'none', unavailable: { sandbox: 'bwrap: not installed' } }
  const store = (value: unknown) =>
    api.db
      .updateTable('device')
      .set({ health: JSON.stringify(value) })
      .where('id', '=', 'node-osl-1')
      .execute()
  await store(health)
  const { stdout } = await run('devices')
  expect(stdout).toMatch(/^node-osl-1 .* ready, but each read needs approval$/m)
  expect(stdout).toContain('node-osl-1 does not confine what it reads (bwrap: not installed): install bubblewrap')
  const [found] = JSON.parse((await runCli(['doctor', '--json'], api.as('admin'))).stdout).filter(
    ({ name }: { name: string }) => name === 'Devices',
  )
  expect(found).toMatchObject({ ok: false, needed: false, detail: expect.stringContaining('bwrap: not installed') })
  await store(before?.health)
})

test('the audits of device and control plane agree, by its answers and by its files', async () => {
  expect(await run('audit', 'verify')).toMatchObject({ code: 0, stdout: expect.stringContaining('agree') })
  const whole = await run('audit', 'verify', 'node-osl-1', '--journal', state)
  expect([whole.code, whole.stdout, whole.stderr]).toEqual([0, expect.stringContaining('agree'), ''])
})

test('hundreds of calls are compared with the whole journal, in pages', async () => {
  const body = { capability: 'fs.stat', args: { path: join(root, 'app.conf') } }
  for (let n = 0; n < 240; n += 1) expect((await api.post('/devices/node-osl-1/calls', { body })).status).toBe(200)
  const pages = []
  for (let cursor = ''; ; ) {
    const { body: page } = await api.get(`/devices/node-osl-1/audit?limit=100${cursor}`)
    const { items, nextCursor } = page as unknown as { items: { key: string }[]; nextCursor: string | null }
    pages.push(items.map(({ key }) => key))
    if (nextCursor === null) break
    cursor = `&cursor=${encodeURIComponent(nextCursor)}`
  }
  const rows = await api.db
    .selectFrom('deviceCall')
    .select('key')
    .orderBy('begunAt', 'desc')
    .orderBy('key', 'desc')
    .execute()
  expect(pages.length).toBe(3)
  expect(pages.flat()).toEqual(rows.map(({ key }) => key))
  const verified = await run('audit', 'verify', 'node-osl-1', '--json')
  const [report] = JSON.parse(verified.stdout)
  expect([verified.code, report.calls.length, report.problems]).toEqual([0, rows.length, []])
  expect(report.journal).toMatchObject({ first: 1, entries: expect.any(Number) })
  expect(report.journal.entries).toBeGreaterThan(2 * rows.length - 10)
})

test('the oldest of hundreds of calls does not agree if its hash was changed', async () => {
  const { key, auditHash } = await api.db
    .selectFrom('deviceCall')
    .select(['key', 'auditHash'])
    .where('ok', '=', true)
    .orderBy('begunAt')
    .limit(1)
    .executeTakeFirstOrThrow()
  const set = (hash: string | null) =>
    api.owner.updateTable('deviceCall').set({ auditHash: hash }).where('key', '=', key).execute()
  await sql`alter table device_call disable trigger device_call_ended`.execute(api.owner)
  await set('f'.repeat(64))
  const altered = await run('audit', 'verify', 'node-osl-1')
  expect([altered.code, altered.stdout]).toEqual([
    1,
    expect.stringContaining(`${key}: the device's journal and the call have different hashes`),
  ])
  await set(auditHash)
})

test('a request to the device with the key that is no call of the control plane is found', async () => {
  const signing = api.api.deps.mesh?.keys.signing
  if (!signing) throw new Error('no key')
  const request = issueRequest(
    {
      requestId: 'req_000000000000000000000bad',
      device: 'node-osl-1',
      capability: 'shell.exec',
      args: { argv: ['uptime'] },
      idempotencyKey: 'stolen',
      deadlineMs: 60_000,
      grant: null,
    },
    signing,
  )
  expect(await callDevice(overHttp({ id: 'node-osl-1', url: `http://${address}` }), request)).toMatchObject({
    ok: true,
  })
  const verified = await run('audit', 'verify', 'node-osl-1')
  expect([verified.code, verified.stdout]).toEqual([
    1,
    expect.stringContaining('the control plane has no call for req_000000000000000000000bad'),
  ])
})

test("a copy of the journal that differs from the device's journal does not agree", async () => {
  const copy = join(dir.path, 'copy')
  cpSync(join(state, 'journal'), copy, { recursive: true })
  const agreed = await run('audit', 'verify', 'node-osl-1', '--journal', copy)
  expect(agreed.stdout).not.toMatch(/another entry|does not hold/)
  const file = join(copy, '000000001.jsonl')
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
  writeFileSync(file, `${lines.slice(0, -1).join('\n')}\n${lines.at(-1)?.replace('"ok":true', '"ok":false')}\n`)
  const other = await run('audit', 'verify', 'node-osl-1', '--journal', copy)
  expect([other.code, other.stdout]).toEqual([1, expect.stringContaining("the device's entry")])
  writeFileSync(file, `${lines[0]?.replace('"n":1', '"n": 1')}\n${lines.slice(1).join('\n')}\n`)
  const broken = await run('audit', 'verify', 'node-osl-1', '--journal', copy)
  expect([broken.code, broken.stdout]).toEqual([1, expect.stringContaining("the journal's chain is broken")])
})

test('a changed device fetches its new manifest, and its agent follows it', async () => {
  const answer = await run('enroll', 'node-osl-1', '--capability', 'fs.read')
  expect(answer.code).toBe(0)
  const fetched = await runCli(['mesh', 'agent', 'refresh', '--state', state])
  expect([fetched.code, fetched.stderr]).toEqual([0, expect.stringContaining('the agent was notified')])
  const { capabilities } = JSON.parse(readFileSync(join(state, 'manifest.json'), 'utf8'))
  expect(capabilities).toEqual(['fs.read'])
})

test('commands that root may use to read are named literally, shown, and withdrawn', async () => {
  const named = ['--root-read', '/usr/bin/ss -tlnp', '--root-read', '["/usr/bin/cat","/var/log/app log"]']
  expect((await run('enroll', 'node-osl-1', ...named)).code).toBe(0)
  const shown = await run('devices')
  expect(shown.stdout).toContain('root reads on node-osl-1 with: sudo -n /usr/bin/ss -tlnp\n')
  expect(shown.stdout).toContain("root reads on node-osl-1 with: sudo -n /usr/bin/cat '/var/log/app log'\n")
  expect((await run('enroll', 'node-osl-1', '--root-read', '-n id')).code).toBe(2)
  expect((await run('enroll', 'node-osl-1', '--no-root-reads')).code).toBe(0)
  expect((await run('devices')).stdout).not.toContain('root reads')
})

test('an agent that starts with an old manifest fetches the newest by itself', async () => {
  const { device } = JSON.parse(readFileSync(join(state, 'manifest.json'), 'utf8')) as { device: string }
  const old = join(dir.path, 'old')
  // What a device has that was switched off for long: its keys and a manifest that is not the one
  // of today.
  mkdirSync(old, { mode: 0o700 })
  for (const name of ['manifest.json', 'root-key', 'refresh.json']) cpSync(join(state, name), join(old, name))
  expect((await run('enroll', device, '--capability', 'fs.read', '--capability', 'fs.list')).code).toBe(0)
  const started = spawn(process.execPath, [entry, 'mesh', 'agent', '--state', old, '--listen', '127.0.0.1:0'], {
    env: { PATH: process.env.PATH },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let said = ''
  started.stderr.on('data', (chunk) => {
    said += chunk
  })
  try {
    await eventually('the manifest to be read again', () => /Read the manifest again: ready/.test(said))
    expect(JSON.parse(readFileSync(join(old, 'manifest.json'), 'utf8')).capabilities).toEqual(['fs.read', 'fs.list'])
  } finally {
    started.kill('SIGKILL')
  }
})

test('a manifest without a signature of the pinned key changes nothing', async () => {
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

test('a revoked device is not asked, and only an admin revokes', async () => {
  expect((await runCli(['mesh', 'revoke', 'node-osl-1'], api.as('operator'))).code).toBe(4)
  expect((await run('revoke', 'node-osl-1', '--reason', 'stolen')).code).toBe(0)
  expect((await run('revoke', 'node-osl-1')).code).toBe(5)
  expect((await run('call', 'node-osl-1', 'exec', '{"argv":["uptime"]}')).code).not.toBe(0)
  expect((await run('devices')).stdout).toMatch(/^node-osl-1 .*revoked$/m)
})

test('an unknown tool and invalid arguments are reported before anything is sent', async () => {
  const sent = api.requests.length
  expect((await run('call', 'node-osl-1', 'screenshot')).code).toBe(2)
  expect((await run('call', 'node-osl-1', 'exec', 'uptime')).code).toBe(2)
  expect(api.requests.length).toBe(sent)
})

test('a device that gives no answer does not agree, and its files alone are compared with the calls', async () => {
  agent?.kill('SIGKILL')
  await eventually('the agent to be gone', async () => !(await fetch(`http://${address}/health`).catch(() => null)))
  const silent = await run('audit', 'verify', 'node-osl-1')
  expect([silent.code, silent.stdout]).toEqual([1, expect.stringContaining('node-osl-1 did not answer')])
  const held = await run('audit', 'verify', 'node-osl-1', '--journal', state, '--json')
  const [{ problems }] = JSON.parse(held.stdout)
  expect(problems).toEqual([
    expect.stringContaining('did not answer'),
    // The call with the stolen key, above.
    expect.stringContaining('req_000000000000000000000bad'),
  ])
})
