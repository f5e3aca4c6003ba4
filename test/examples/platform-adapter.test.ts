import { type ChildProcess, spawn } from 'node:child_process'
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { createPlatformClient, type PlatformClient } from '../../clients/platform.ts'
import { approvedWrite } from '../support/announced.ts'
import { useApi } from '../support/api.ts'
import { eventually, temporaryDirectory } from '../support/directory.ts'

const directory = temporaryDirectory()
const [inventoryFile, journalFile] = [join(directory.path, 'inventory.json'), join(directory.path, 'journal.json')]
const token = 'token-of-the-adapter'
let adapter: ChildProcess
let port = 0

async function start(): Promise<void> {
  adapter = spawn(
    process.execPath,
    ['examples/platform-adapter/adapter.js', inventoryFile, journalFile, String(port)],
    {
      env: { PLATFORM_TOKEN: token },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  port = await new Promise((resolve) => {
    adapter.stdout!.on('data', (text) => resolve(Number(/listening on (\d+)/.exec(String(text))?.[1])))
  })
}
async function kill(): Promise<void> {
  const ended = new Promise((resolve) => adapter.once('exit', resolve))
  adapter.kill('SIGKILL')
  await ended
}

// The port is known once it listens: the client asks then.
const client = (given = token) => createPlatformClient({ baseUrl: `http://127.0.0.1:${port}`, token: given })
const platform = new Proxy({} as PlatformClient, {
  get: (_, name) => client()[name as keyof PlatformClient],
})
const api = useApi(() => ({ platform }))

beforeAll(async () => {
  copyFileSync('examples/platform-adapter/inventory.json', inventoryFile)
  await start()
})
afterAll(async () => {
  await kill()
  directory.remove()
})

test('what the adapter lists is in the registry, with its state', async () => {
  expect((await api.get('/shards/web-osl/nodes')).body.items).toMatchObject([{ id: 'web-1' }, { status: 'degraded' }])
  const { body } = await api.get('/inventory/resources/node/web-2')
  expect(body).toMatchObject({ name: 'web-2.example.com', state: { health: 'degraded' } })
  expect((await api.get('/vms/vm-1')).body).toMatchObject({ host: 'host-1', running: false })
})

test('a convergence is rehearsed, runs once per key, and is known after the adapter was killed', async () => {
  expect((await api.get('/shards/web-osl/converge?dry_run=true')).body).toMatchObject({
    detail: '1 of 2 nodes would change',
  })
  const body = { reason: 'a node has drifted' }
  const first = await api.post('/shards/web-osl/converge', { body, key: 'converge-1' })
  expect([first.status, first.body.detail]).toEqual([200, '1 nodes of web-osl were changed'])
  expect((await api.get('/nodes/web-2/health')).body.status).toBe('nominal')

  await kill()
  await start()
  const key = String(first.body.key)
  expect(await client().effect(key)).toMatchObject({
    status: 'done',
    detail: '1 nodes of web-osl were changed',
    changed: [expect.stringContaining('configuration written')],
  })
  expect(await client().converge('web-osl', `${key}-again`)).toMatchObject({ key: `${key}-again` })
  await eventually('an answer to the second', async () => {
    const again = await client().effect(`${key}-again`)
    return again?.status === 'done' && again.changed?.length === 0
  })
  expect(await client().converge('web-osl', key)).toMatchObject({ detail: '1 nodes of web-osl were changed' })
  expect(Object.keys(JSON.parse(readFileSync(journalFile, 'utf8')))).toEqual([key, `${key}-again`])
})

test('a write that began before a crash is completed', async () => {
  const journal = JSON.parse(readFileSync(journalFile, 'utf8'))
  await kill()
  journal['start-1'] = { action: 'start', id: 'vm-1', body: { host: 'host-2' }, status: 'running', detail: 'at work' }
  writeFileSync(journalFile, JSON.stringify(journal))
  await start()
  expect(await client().effect('start-1')).toMatchObject({ status: 'done', detail: 'vm-1 runs on host-2' })
  expect((await client().inventory()).vms).toMatchObject([{ host: 'host-2', running: true }])
})

test('a repair that the adapter does not support is a failure with this reason, and nothing begins', async () => {
  const dryRun = await api.get('/vms/vm-1/restart?dry_run=true')
  const headers = { 'if-match': String(dryRun.body.stateFingerprint) }
  const sent = await approvedWrite(api, 'vm_restart', { id: 'vm-1' })
  const answer = await api.post('/vms/vm-1/restart', { ...sent, body: { reason: 'it hangs' }, headers })
  expect([answer.status, answer.body.detail]).toEqual([
    502,
    'this platform cannot restart a VM: it answered 501 to POST /v1/vms/vm-1/restart (add it to `actions`)',
  ])
})

test('another token, another body under one key, and an unknown resource are refused, and nothing begins', async () => {
  await expect(client('wrong').inventory()).rejects.toMatchObject({ status: 401 })
  await client().migrateVm('vm-1', { from: 'host-2', to: 'host-1' }, 'migrate-1')
  await expect(client().migrateVm('vm-1', { from: 'host-1', to: 'host-2' }, 'migrate-1')).rejects.toMatchObject({
    status: 422,
  })
  await expect(client().startVm('vm-9', 'host-1', 'start-9')).rejects.toMatchObject({ status: 404 })
  expect(await client().effect('start-9')).toBeNull()
})
