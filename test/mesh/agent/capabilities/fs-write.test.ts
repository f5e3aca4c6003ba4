import { createHash } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { fsRead, fsWrite } from '../../../../mesh/agent/capabilities/fs.ts'
import { type ManifestPath, parsePlace } from '../../../../mesh/agent/manifest.ts'
import { sweepRehearsals } from '../../../../mesh/agent/rehearsal.ts'
import { replace } from '../../../../mesh/agent/replace.ts'
import { openEntry, withParentOf } from '../../../../mesh/agent/walk.ts'
import { ask, type Device, deviceOf, done, fault } from '../../../support/device.ts'
import { temporaryDirectory } from '../../../support/directory.ts'

let place: ReturnType<typeof temporaryDirectory>
let root: string
let device: Device

beforeEach(() => {
  place = temporaryDirectory()
  root = join(place.path, 'srv')
  mkdirSync(join(root, 'fixed'), { recursive: true })
  mkdirSync(join(place.path, 'state'))
  device = deviceOf(join(place.path, 'state'), {
    roots: [
      { path: root, writable: true },
      { path: join(root, 'fixed'), writable: false },
    ],
  })
})
afterEach(() => place.remove())

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
const at = (name: string) => join(root, name)

test('a write replaces the file, keeps its mode and owner, and keeps its former version', async () => {
  writeFileSync(at('app.conf'), 'port 80\n', { mode: 0o640 })
  if (process.getuid!() === 0) chownSync(at('app.conf'), 65534, 65534)
  const before = statSync(at('app.conf'))

  const result = await done(device, fsWrite, { path: at('app.conf'), content: 'port 8080\n' })

  expect(readFileSync(at('app.conf'), 'utf8')).toBe('port 8080\n')
  const after = statSync(at('app.conf'))
  expect([after.mode & 0o777, after.uid, after.gid]).toEqual([0o640, before.uid, before.gid])
  expect(after.ino).not.toBe(before.ino)
  expect(result).toMatchObject({
    created: false,
    mode: '0640',
    sha256: sha256('port 8080\n'),
    previous_sha256: sha256('port 80\n'),
  })
  expect(readFileSync(result.previous_version as string, 'utf8')).toBe('port 80\n')
  expect(readdirSync(root).sort()).toEqual(['app.conf', 'fixed'])
})

test('a new file is made with the requested mode, and has no former version', async () => {
  const result = await done(device, fsWrite, { path: at('run.sh'), content: '#!/bin/sh\n', mode: '0755' })
  expect(result).toMatchObject({ created: true, previous_version: null })
  expect(statSync(at('run.sh')).mode & 0o7777).toBe(0o755)
})

test('an append adds to the end, and bytes come as base64', async () => {
  await done(device, fsWrite, { path: at('list'), content: 'a\n' })
  await done(device, fsWrite, { path: at('list'), content: 'b\n', append: true })
  await done(device, fsWrite, { path: at('list'), content: '/wA=', encoding: 'base64', append: true })
  expect(readFileSync(at('list'))).toEqual(Buffer.from([97, 10, 98, 10, 0xff, 0]))
  expect(await fault(device, fsWrite, { path: at('list'), content: 'no base64!', encoding: 'base64' })).toMatchObject({
    code: 'invalid_arguments',
  })
})

test("a write over another person's change is a conflict, and changes nothing", async () => {
  writeFileSync(at('app.conf'), 'one')
  const read = await done(device, fsRead, { path: at('app.conf') })
  writeFileSync(at('app.conf'), 'two')
  const asked = { path: at('app.conf'), content: 'three', if_sha256: read.sha256 }
  expect(await fault(device, fsWrite, asked)).toMatchObject({ code: 'conflict' })
  expect(await fault(device, fsWrite, { ...asked, path: at('missing') })).toMatchObject({ code: 'conflict' })
  expect(readFileSync(at('app.conf'), 'utf8')).toBe('two')
  await done(device, fsWrite, { ...asked, if_sha256: sha256('two') })
  expect(readFileSync(at('app.conf'), 'utf8')).toBe('three')
})

test('of two writes with the same if_sha256 at once, one succeeds and the other is a conflict', async () => {
  for (let round = 0; round < 20; round++) {
    writeFileSync(at('app.conf'), 'start')
    const outcomes = await Promise.all(
      ['left', 'right'].map((content) =>
        ask(device, fsWrite, { path: at('app.conf'), content, if_sha256: sha256('start') }),
      ),
    )
    expect(outcomes.map((outcome) => (outcome.ok ? 'won' : outcome.code)).sort()).toEqual(['conflict', 'won'])
  }
})

test('a change by others during a write is not lost', async () => {
  const where = parsePlace(at('app.conf'), device.manifest) as ManifestPath
  const race = (meanwhile: () => void) =>
    withParentOf(where, async (directory, name) => {
      const former = await openEntry(directory, name)
      await former?.handle.close()
      meanwhile()
      await replace(directory, name, Buffer.from('ours'), 0o644, former?.stat ?? null)
    })
  await expect(race(() => writeFileSync(at('app.conf'), 'theirs'))).rejects.toMatchObject({ code: 'conflict' })
  await expect(race(() => writeFileSync(at('app.conf'), 'THEIRS'))).rejects.toMatchObject({ code: 'conflict' })
  await expect(race(() => renameSync(at('app.conf'), at('moved')))).rejects.toMatchObject({ code: 'conflict' })
  await race(() => undefined)
  expect(readdirSync(root).sort()).toEqual(['app.conf', 'fixed', 'moved'])
  expect(readFileSync(at('moved'), 'utf8')).toBe('THEIRS')
})

test('only the last ten versions of a file are kept', async () => {
  for (let round = 0; round < 14; round++) await done(device, fsWrite, { path: at('busy'), content: `${round}` })
  const [folder] = readdirSync(join(device.state, 'versions'))
  const names = readdirSync(join(device.state, 'versions', folder!)).sort()
  const kept = names.filter((name) => name !== 'path')
  expect(kept.map((name) => readFileSync(join(device.state, 'versions', folder!, name), 'utf8'))).toEqual(
    Array.from({ length: 10 }, (_, index) => `${index + 3}`),
  )
  expect(readFileSync(join(device.state, 'versions', folder!, 'path'), 'utf8')).toBe(`${at('busy')}\n`)
})

test('nothing is written outside the writable roots, through links, to hard links, or to anything but a file', async () => {
  const outside = join(place.path, 'outside')
  mkdirSync(outside)
  writeFileSync(join(outside, 'secret'), 'kept')
  symlinkSync(join(outside, 'secret'), at('link'))
  symlinkSync(outside, at('door'))
  linkSync(join(outside, 'secret'), at('hard'))
  mkdirSync(at('plain'))
  writeFileSync(at('suid'), '')
  chmodSync(at('suid'), 0o4755)

  const cases: [string, string][] = [
    [join(outside, 'secret'), 'outside_roots'],
    [at('fixed/x'), 'outside_roots'],
    [`${root}/../outside/secret`, 'invalid_arguments'],
    ['relative', 'invalid_arguments'],
    [at('link'), 'outside_roots'],
    [at('door/secret'), 'outside_roots'],
    [at('hard'), 'outside_roots'],
    [at('suid'), 'failed'],
    [at('fixed'), 'outside_roots'],
    [at('plain'), 'invalid_arguments'],
    [at('missing/x'), 'not_found'],
    [`/proc/self/root${join(outside, 'secret')}`, 'outside_roots'],
    [join(device.state, 'journal'), 'outside_roots'],
  ]
  for (const [path, code] of cases) {
    expect([path, (await fault(device, fsWrite, { path, content: 'lost' })).code]).toEqual([path, code])
  }
  expect(readFileSync(join(outside, 'secret'), 'utf8')).toBe('kept')
})

test('a path that no command may overwrite is not written either, whatever the roots say', () => {
  const everything = deviceOf('/nowhere', { roots: [{ path: '/', writable: true }] })
  const weigh = (path: string) => fsWrite.weigh(fsWrite.args.parse({ path, content: '' }), everything.manifest)
  for (const path of ['/etc/passwd', '/etc/sudoers.d/me', '/dev/sda', '/usr/bin/ls'])
    expect([path, weigh(path).effect]).toEqual([path, 'refused'])
  expect(weigh('/etc/nginx/nginx.conf').effect).toBe('write')
})

test('a rehearsal shows the diff and the output of the checks, changes nothing and leaves nothing', async () => {
  writeFileSync(at('app.json'), '{\n  "port": 80\n}\n')
  device.manifest.checks = [
    { path: `${root}/**/*.json`, argv: ['python3', '-m', 'json.tool', '{path}'] },
    { path: '/elsewhere/*', argv: ['false'] },
  ]
  const rehearse = (content: string) => done(device, fsWrite, { path: at('app.json'), content }, { rehearse: true })

  const bad = await rehearse('{\n  "port": 8080,\n}\n')
  expect(bad.would_change).toBe(true)
  expect(bad.diff).toContain('-  "port": 80\n+  "port": 8080,\n')
  expect(bad.diff).toContain(`--- a${at('app.json')}`)
  const [check] = bad.checks as { argv: string[]; exit_code: number; output: string }[]
  expect(bad.checks).toHaveLength(1)
  expect(check!.exit_code).toBe(1)
  expect(check!.output).toMatch(/Illegal trailing comma|Expecting property name/)
  expect(check!.argv[3]).toContain(join(device.state, 'rehearsals'))

  const good = await rehearse('{\n  "port": 8080\n}\n')
  expect((good.checks as { exit_code: number }[])[0]!.exit_code).toBe(0)
  expect(await rehearse('{\n  "port": 80\n}\n')).toMatchObject({ diff: '', would_change: false })

  expect(readFileSync(at('app.json'), 'utf8')).toBe('{\n  "port": 80\n}\n')
  expect(readdirSync(join(device.state, 'rehearsals'))).toEqual([])
  expect(existsSync(join(device.state, 'versions'))).toBe(false)
})

test('a rehearsal follows the same rules as the write, and reports binary content', async () => {
  writeFileSync(at('data'), Buffer.from([0, 1, 2]))
  const shown = await done(device, fsWrite, { path: at('data'), content: 'text' }, { rehearse: true })
  expect(shown).toMatchObject({ would_change: true, diff: `Binary content of ${at('data')} differs\n` })
  expect(await fault(device, fsWrite, { path: at('fixed/x'), content: '' }, { rehearse: true })).toMatchObject({
    code: 'outside_roots',
  })
})

test('a rehearsal, which runs without approval, does not show the content of a file with secrets', async () => {
  writeFileSync(at('.env'), 'TOKEN=topsecret\n')
  device.manifest.checks = [{ path: `${root}/.env`, argv: ['cat', '{path}'] }]
  const asked = { path: at('.env'), content: 'PORT=80\n', append: true }
  const shown = await done(device, fsWrite, asked, { rehearse: true })
  expect(JSON.stringify(shown)).not.toContain('topsecret')
  expect(shown).toMatchObject({ would_change: true, sha256: null, checks: [{ exit_code: 0 }] })
  expect(shown.diff).toContain('not shown')
})

test('a check that prints a secret of the device prints it redacted', async () => {
  writeFileSync(
    join(place.path, 'shadow'),
    'root:$6$saltsalt$Zx0yZx0yZx0yZx0yZx0yZx0yZx0yZx0yZx0yZx0yZx0yZx0yZx0yZx0yZx0yZx0yZx0yZx0yZx0yZx0yZx0yZ1:1:0:::::\n',
  )
  device.manifest.checks = [{ path: `${root}/list`, argv: ['sh', '-c', 'cat "$(cat "$0")"', '{path}'] }]
  const asked = { path: at('list'), content: join(place.path, 'shadow') }
  const { checks } = await done(device, fsWrite, asked, { rehearse: true })
  expect(checks).toEqual([expect.objectContaining({ exit_code: 0, output: expect.stringContaining('[redacted:') })])
  expect(JSON.stringify(checks)).not.toContain('Zx0yZx0y')
})

test('a rehearsal reports hidden characters in a change', async () => {
  const content = 'allow = true # \u202e eslaf = wolla\n'
  const shown = await done(device, fsWrite, { path: at('policy'), content }, { rehearse: true })
  expect(shown.diff).toContain('[the new content has invisible characters]')
})

test("leftovers of a killed agent's rehearsal are deleted by age", async () => {
  const left = (name: string) => join(device.state, 'rehearsals', name)
  mkdirSync(left('r-old/deep'), { recursive: true })
  mkdirSync(left('r-new'))
  const hourAgo = Date.now() / 1000 - 3_600
  utimesSync(left('r-old'), hourAgo, hourAgo)
  expect(await sweepRehearsals(device.state, 600)).toBe(1)
  expect(readdirSync(join(device.state, 'rehearsals'))).toEqual(['r-new'])
})
