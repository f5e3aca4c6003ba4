import { execFileSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { chmodSync, mkdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { incidentById } from '../../../db/incidents/incidents.ts'
import { effectByKey } from '../../../db/writes/effects.ts'
import { deviceTerms } from '../../../domain/device.ts'
import type { MeshHealth, MeshMode } from '../../../domain/mesh.ts'
import { findApprovalNeed } from '../../../effects/devices/approval-need.ts'
import type { MappedCall } from '../../../effects/devices/executor.ts'
import { specNamed } from '../../../mesh/registry.ts'
import { tools } from '../../../tools/registry.ts'
import { openedIncident } from '../../support/database.ts'
import { temporaryDirectory } from '../../support/directory.ts'
import { prepared, ran, realAgent, useMeshApi } from '../../support/mesh-api.ts'

const api = useMeshApi()
const logs = tools.get('search_logs')
const place = temporaryDirectory()
const on = 'node-osl-1'
const files = join(place.path, 'srv')
const secret = join(files, 'tls/server.key')
const key = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
beforeAll(async () => {
  mkdirSync(join(files, 'tls'), { recursive: true })
  writeFileSync(secret, `# of the web server\n${key}`)
  writeFileSync(join(files, 'app.conf'), 'port = 80\n')
  await realAgent(api, on, { terms: { capabilities: [], roots: [{ path: files, writable: false }] } })
})
afterAll(() => place.remove())

test('a file that a device holds for secret needs an approval, and is not read without one', async () => {
  const args = { on, path: secret }
  expect(await prepared(api, 'fs_read', args)).toMatchObject({
    asks: { risk: 'high', why: expect.stringContaining(`${secret} counts as secret on ${on}`) },
  })
  const { answer } = await ran(api, 'fs_read', args, 'unasked')
  expect(answer).toMatchObject({ ok: false, status: 403, problem: { code: 'approval_required' } })
})

test('after an approval it is read once, under a grant, and its secrets reach neither row nor model', async () => {
  const { answer, stepKey } = await ran(api, 'fs_read', { on, path: secret }, 'approved')
  expect(answer).toMatchObject({ ok: true, data: { approval_status: 'granted', path: secret } })
  const { content } = (answer as { data: { content: string } }).data
  expect(content).toMatch(/^# of the web server\n-----BEGIN PRIVATE KEY-----\[redacted:private_key\]/)
  const body = key.split('\n')[1] ?? ''
  expect(body.length).toBeGreaterThan(40)
  const stored = await effectByKey(api.db, stepKey)
  expect(stored).toMatchObject({ status: 'done', result: { content } })
  expect(JSON.stringify([answer, stored])).not.toContain(body)
})

test('a part of it, or a binary file, is not read even then, because secrets could not be found in it', async () => {
  writeFileSync(join(files, 'store.p12'), Buffer.from([0, 1, 2, 255]))
  for (const [args, code] of [
    [{ path: secret, offset: 40 }, 'blocked'],
    [{ path: secret, max_bytes: 60 }, 'blocked'],
    [{ path: join(files, 'store.p12') }, 'blocked'],
  ] as const) {
    const { answer } = await ran(api, 'fs_read', { on, ...args }, 'approved')
    expect(answer).toMatchObject({
      ok: false,
      status: 403,
      problem: { code, detail: expect.stringContaining('whole') },
    })
  }
  expect(await prepared(api, 'fs_read', { on, path: secret, offset: 40 })).not.toHaveProperty('asks')
})

test('a file that nobody holds for secret is read without approval', async () => {
  const args = { on, path: join(files, 'app.conf') }
  expect(await prepared(api, 'fs_read', args)).not.toHaveProperty('asks')
  const { answer } = await ran(api, 'fs_read', args, 'unasked')
  expect(answer).toMatchObject({ ok: true, data: { content: 'port = 80\n', approval_status: 'auto_approved' } })
})

test("search_logs asks for logs of a device like the device's own tool: without approval, and under a grant if an approval was needed", async () => {
  writeFileSync(join(files, 'app.log'), `${new Date().toISOString()} pool exhausted\n`)
  const args = logs?.input.parse({ on, path: join(files, 'app.log') }) as Record<string, unknown>
  expect(await prepared(api, 'search_logs', args)).toMatchObject({
    targets: [{ kind: 'node', id: on }],
    identity: args,
    dryRun: { details: { capability: 'log.read' } },
  })
  expect(await prepared(api, 'search_logs', { labels: { instance: 'web-1' } })).toMatchObject({ targets: [] })
  for (const how of ['unasked', 'approved'] as const) {
    const { answer } = await ran(api, 'search_logs', args, how)
    expect(answer).toMatchObject({ ok: true, data: { source: on, summary: { lines: 1, templatesFound: 1 } } })
    expect(logs?.output.safeParse((answer as { data: unknown }).data).success).toBe(true)
  }
})

describe('a checkout whose settings start a program', () => {
  const checkout = join(place.path, 'checkout')
  const command = { on, command: 'git status --short', cwd: checkout }
  beforeAll(() => {
    execFileSync('git', ['init', '-q', checkout])
    writeFileSync(join(checkout, 'new'), 'x')
    execFileSync('git', ['-C', checkout, 'config', 'core.fsmonitor', '/usr/bin/false'])
    // Root's own settings are believed, so they are somebody else's here.
    chmodSync(join(checkout, '.git/config'), 0o666)
  })

  test('is asked about before it is read, with what the device found, and is not read without approval', async () => {
    expect(await prepared(api, 'shell_eval', command)).toMatchObject({
      asks: {
        risk: 'medium',
        why: `${on} does not run this call without approval: git: git would use its setting core.fsmonitor in ${checkout}`,
      },
    })
    const { answer } = await ran(api, 'shell_eval', command, 'unasked')
    expect(answer).toMatchObject({ ok: false, status: 403, problem: { code: 'approval_required' } })
  })

  test('is read after an approval, with its program switched off', async () => {
    const { answer } = await ran(api, 'shell_eval', command, 'approved')
    expect(answer).toMatchObject({ ok: true, data: { approval_status: 'granted', stdout: '?? new\n', stderr: '' } })
  })

  test('is read without approval if its settings are plain', async () => {
    execFileSync('git', ['-C', checkout, 'config', '--unset', 'core.fsmonitor'])
    expect(await prepared(api, 'shell_eval', command)).not.toHaveProperty('asks')
    const { answer } = await ran(api, 'shell_eval', command, 'unasked')
    expect(answer).toMatchObject({ ok: true, data: { approval_status: 'auto_approved', stdout: '?? new\n' } })
  })
})

type Changes = { mode?: MeshMode; sandbox?: MeshHealth['sandbox']; auto_approve?: string[] }
function asked(
  tool: string,
  input: Record<string, unknown>,
  { mode = 'all', sandbox = 'bwrap', auto_approve }: Changes,
) {
  const spec = specNamed(tool)
  if (!spec) throw new Error(`no ${tool}`)
  const roots = [{ path: '/etc/', writable: false }]
  const terms = deviceTerms.parse({ capabilities: [], roots, ...(auto_approve && { auto_approve }) })
  const mapped: MappedCall = { spec, input, capability: spec.capability, args: spec.toArgs(input) }
  return (
    findApprovalNeed(
      { id: 'n1', mode, terms, health: { sandbox, unavailable: { sandbox: 'its mounts hang' } } as never },
      mapped,
    )?.why ?? null
  )
}

test.each<[string, string, Record<string, unknown>, Changes, string | null]>([
  [
    'a list of a directory of keys',
    'fs_list',
    { path: '/etc/ssl/private' },
    {},
    '/etc/ssl/private counts as secret on n1; the read shows secrets that are not recognised',
  ],
  ['a look at a key from outside', 'fs_stat', { path: '/etc/ssl/private/web.key' }, {}, null],
  ['what is outside the roots, which is refused anyway', 'fs_read', { path: '/root/.ssh/id_rsa' }, {}, null],
  [
    'a look where nothing confines it',
    'proc_list',
    {},
    { sandbox: 'none' },
    expect.stringMatching(/^n1 cannot confine what it reads \(its mounts hang\).*: install bubblewrap/) as never,
  ],
  [
    'a command where nothing confines it',
    'exec',
    { argv: ['uptime'] },
    { sandbox: 'none' },
    expect.stringContaining('n1 cannot confine what it reads') as never,
  ],
  ['a program that the manifest lists', 'exec', { argv: ['uptime'] }, { auto_approve: ['uptime'] }, null],
  [
    'one that it does not list',
    'exec',
    { argv: ['df', '-h'] },
    { auto_approve: ['uptime'] },
    'the manifest of n1 lets no df run without approval',
  ],
  [
    'what obeys files of the place, where another user is all that confines it',
    'exec',
    { argv: ['git', 'status'] },
    { sandbox: 'user' },
    'git reads settings from its directory, and n1 confines reads only by running them as another user',
  ],
  ['what obeys nothing, there', 'exec', { argv: ['uptime'] }, { sandbox: 'user' }, null],
  [
    'what obeys files of a container, which nobody can look at',
    'docker_exec',
    { container: 'web', argv: ['git', 'status'] },
    {},
    expect.stringContaining('nobody can check first') as never,
  ],
  ['what obeys nothing in a container', 'docker_exec', { container: 'web', argv: ['cat', '/etc/hosts'] }, {}, null],
  [
    'a host that the device does not know',
    'exec',
    { argv: ['curl', '-s', 'http://db-1/health'] },
    {},
    expect.stringContaining('n1') as never,
  ],
  ['a command that the judge asks about itself', 'exec', { argv: ['touch', '/x'] }, {}, null],
  ['one that is never run', 'exec', { argv: ['rm', '-rf', '/'] }, {}, null],
  [
    'a write, which is asked anyway',
    'fs_write',
    { path: '/etc/ssl/private/x', content: '' },
    { sandbox: 'none' },
    null,
  ],
  [
    'everything as root',
    'fs_stat',
    { path: '/etc/hosts' },
    { mode: 'sudo' },
    'n1 does everything as root, so everything requires approval',
  ],
])('whether a device would ask about: %s', (_, tool, input, changes, why) => {
  expect(asked(tool, input, changes)).toEqual(why)
})

test('an investigation gets the log files of its machine, newest first, without compressed, empty and other files', async () => {
  mkdirSync(join(files, 'logs'))
  const aged = (name: string, text: string, minutes: number) => {
    const path = join(files, 'logs', name)
    writeFileSync(path, text)
    const at = new Date(Date.now() - minutes * 60_000)
    utimesSync(path, at, at)
    return path
  }
  const older = aged('access.log', 'GET /\n', 9)
  const newer = aged('app.log', 'pool exhausted\n', 1)
  aged('app.log.2.gz', 'packed', 0)
  aged('empty.log', '', 0)
  symlinkSync('/etc/passwd', join(files, 'logs', 'link.log'))
  const resource = { kind: 'node', id: on } as const
  const incidentId = await openedIncident(api.db, { labels: { alertname: 'x', node: on } })
  expect((await api.get(`/incidents/${incidentId}/log-files`)).body.items).toEqual([
    { path: newer, bytes: 15, changed: expect.any(String) },
    { path: older, bytes: 6, changed: expect.any(String) },
  ])
  expect((await incidentById(api.db, incidentId))?.resource).toEqual(resource)
})
