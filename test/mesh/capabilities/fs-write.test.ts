import { type ChildProcess, spawn } from 'node:child_process'
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
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { type DeletedFiles, diskUsage, type FileSystem, mountsIn } from '../../../mesh/agent/capabilities/disk.ts'
import { fsRead, fsWrite } from '../../../mesh/agent/capabilities/fs.ts'
import { logReadBy, readLogTime } from '../../../mesh/agent/capabilities/log.ts'
import { findLargest, type Largest } from '../../../mesh/agent/largest.ts'
import { type Place, parsePlace } from '../../../mesh/agent/manifest.ts'
import { sweepRehearsals } from '../../../mesh/agent/rehearsal.ts'
import { replace } from '../../../mesh/agent/replace.ts'
import { beside, entry, at as walkTo } from '../../../mesh/agent/walk.ts'
import { deviceLogs } from '../../../mesh/specs/host.ts'
import { summarizeDeviceLog } from '../../../sources/logs/logs.ts'
import { ask, type Device, deviceOf, done, fault } from '../../support/device.ts'
import { temporaryDirectory } from '../../support/directory.ts'

describe('fs write', () => {
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

  test('a write replaces the file, keeps its mode and owner, and keeps what it held before', async () => {
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

  test('a new file is made with the mode that is asked for, and has no former version', async () => {
    const result = await done(device, fsWrite, { path: at('run.sh'), content: '#!/bin/sh\n', mode: '0755' })
    expect(result).toMatchObject({ created: true, previous_version: null })
    expect(statSync(at('run.sh')).mode & 0o7777).toBe(0o755)
  })

  test('an append adds to the end, and bytes come as base64', async () => {
    await done(device, fsWrite, { path: at('list'), content: 'a\n' })
    await done(device, fsWrite, { path: at('list'), content: 'b\n', append: true })
    await done(device, fsWrite, { path: at('list'), content: '/wA=', encoding: 'base64', append: true })
    expect(readFileSync(at('list'))).toEqual(Buffer.from([97, 10, 98, 10, 0xff, 0]))
    expect(await fault(device, fsWrite, { path: at('list'), content: 'no base64!', encoding: 'base64' })).toMatchObject(
      {
        code: 'invalid_arguments',
      },
    )
  })

  test('a write on top of what somebody else changed is a conflict, and changes nothing', async () => {
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

  test('of two writes with the same if_sha256 at once, one wins and the other is told', async () => {
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

  test('what somebody else writes while a write is made up is not lost', async () => {
    const where = parsePlace(at('app.conf'), device.manifest) as Place
    const race = (meanwhile: () => void) =>
      beside(where, async (directory, name) => {
        const former = await entry(directory, name)
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

  test('nothing is written outside the writable roots, through links, to hard links, or to what is no file', async () => {
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

  test('what no command may overwrite is not written either, whatever the roots say', () => {
    const everything = deviceOf('/nowhere', { roots: [{ path: '/', writable: true }] })
    const weigh = (path: string) => fsWrite.weigh(fsWrite.args.parse({ path, content: '' }), everything.manifest)
    for (const path of ['/etc/passwd', '/etc/sudoers.d/me', '/dev/sda', '/usr/bin/ls'])
      expect([path, weigh(path).effect]).toEqual([path, 'refused'])
    expect(weigh('/etc/nginx/nginx.conf').effect).toBe('write')
  })

  test('a rehearsal shows the diff and what the checks say, changes nothing and leaves nothing', async () => {
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

  test('a rehearsal keeps to the same rules as the write, and says so of binary content', async () => {
    writeFileSync(at('data'), Buffer.from([0, 1, 2]))
    const shown = await done(device, fsWrite, { path: at('data'), content: 'text' }, { rehearse: true })
    expect(shown).toMatchObject({ would_change: true, diff: `Binary content of ${at('data')} differs\n` })
    expect(await fault(device, fsWrite, { path: at('fixed/x'), content: '' }, { rehearse: true })).toMatchObject({
      code: 'outside_roots',
    })
  })

  test('a rehearsal, which nobody is asked about, does not show what a file with secrets holds', async () => {
    writeFileSync(at('.env'), 'TOKEN=topsecret\n')
    device.manifest.checks = [{ path: `${root}/.env`, argv: ['cat', '{path}'] }]
    const asked = { path: at('.env'), content: 'PORT=80\n', append: true }
    const shown = await done(device, fsWrite, asked, { rehearse: true })
    expect(JSON.stringify(shown)).not.toContain('topsecret')
    expect(shown).toMatchObject({ would_change: true, sha256: null, checks: [{ exit_code: 0 }] })
    expect(shown.diff).toContain('not shown')
  })

  test('a check that is made to print a secret of the device prints it redacted', async () => {
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

  test('a rehearsal says when a change holds what nobody would see', async () => {
    const content = 'allow = true # \u202e eslaf = wolla\n'
    const shown = await done(device, fsWrite, { path: at('policy'), content }, { rehearse: true })
    expect(shown.diff).toContain('[the new content holds characters that cannot be seen]')
  })

  test('what a killed agent left of a rehearsal is swept by age', async () => {
    const left = (name: string) => join(device.state, 'rehearsals', name)
    mkdirSync(left('r-old/deep'), { recursive: true })
    mkdirSync(left('r-new'))
    const hourAgo = Date.now() / 1000 - 3_600
    utimesSync(left('r-old'), hourAgo, hourAgo)
    expect(await sweepRehearsals(device.state, 600)).toBe(1)
    expect(readdirSync(join(device.state, 'rehearsals'))).toEqual(['r-new'])
  })
})

describe('disk', () => {
  describe('disk', () => {
    let place: ReturnType<typeof temporaryDirectory>
    let root: string
    let device: Device
    let holder: ChildProcess | null = null

    beforeEach(() => {
      place = temporaryDirectory()
      root = join(place.path, 'srv')
      for (const name of ['srv/app/log', 'srv/app/bin', 'srv/.ssh', 'srv/agent', 'outside'])
        mkdirSync(join(place.path, name), { recursive: true })
      device = deviceOf(join(root, 'agent'), { roots: [{ path: root, writable: false }] })
    })
    afterEach(() => {
      holder?.kill('SIGKILL')
      holder = null
      place.remove()
    })

    const at = (name: string) => join(root, name)
    const kib = (count: number) => Buffer.alloc(count * 1_024, 'x')
    const usage = async (path?: string) =>
      (await done(device, diskUsage, path === undefined ? {} : { path })) as {
        file_systems: FileSystem[]
        not_asked: unknown[]
        deleted_but_open: DeletedFiles
        below: Largest | null
      }

    test('the file systems are listed with what is left, the fullest first', async () => {
      const { file_systems, below } = await usage()
      const root = file_systems.find(({ mount }) => mount === '/')
      expect(root).toMatchObject({ type: expect.any(String), used_percent: expect.any(Number) })
      expect(root!.used_bytes).toBeLessThanOrEqual(root!.size_bytes)
      const fullness = file_systems.map((one) => Math.max(one.used_percent, one.inodes_used_percent ?? 0))
      expect(fullness).toEqual(fullness.toSorted((a, b) => b - a))
      expect(file_systems.map(({ type }) => type)).not.toContain('proc')
      expect(below).toBeNull()
    })

    test('a device is listed once, layers of containers and images not at all', () => {
      const mounts = mountsIn(
        [
          '22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw',
          '30 22 8:1 /srv /srv/bound rw - ext4 /dev/sda1 rw',
          '31 22 0:50 / /var/lib/docker/overlay2/abc/merged rw - overlay overlay rw',
          '32 22 7:1 / /snap/core/1 ro - squashfs /dev/loop1 ro',
          '33 22 8:2 / /srv/with\\040space ro - xfs /dev/sdb rw',
        ].join('\n'),
      )
      expect(mounts.map(({ mount, isReadOnly }) => [mount, isReadOnly])).toEqual([
        ['/', false],
        ['/srv/with space', true],
      ])
    })

    test('what takes the space below a path is found, file and directories above it', async () => {
      writeFileSync(at('app/log/huge.log'), kib(400))
      writeFileSync(at('app/bin/app'), kib(40))
      const { below } = await usage(root)
      expect(below!.files[0]).toMatchObject({ path: at('app/log/huge.log'), bytes: 400 * 1_024 })
      expect(below!.directories.slice(0, 3).map(({ path }) => path)).toEqual([at('app'), at('app/log'), at('app/bin')])
      expect(below!.directories[0]!.bytes).toBeGreaterThanOrEqual(440 * 1_024)
      expect(below).toMatchObject({ path: root, partial: null, not_counted: [] })
    })

    test('a file with two names counts once, a link is not followed, and holes take no space', async () => {
      writeFileSync(at('app/one'), kib(200))
      linkSync(at('app/one'), at('app/two'))
      writeFileSync(join(place.path, 'outside/far'), kib(800))
      symlinkSync(join(place.path, 'outside'), at('app/away'))
      const { below } = await usage(root)
      expect(below!.bytes).toBeGreaterThanOrEqual(200 * 1_024)
      expect(below!.bytes).toBeLessThan(400 * 1_024)
      expect(JSON.stringify(below)).not.toContain('far')
    })

    test('what is held for secret and what belongs to the agent is neither entered nor named', async () => {
      writeFileSync(at('.ssh/id_ed25519'), kib(100))
      writeFileSync(at('agent/journal'), kib(100))
      const { below } = await usage(root)
      expect(JSON.stringify(below)).not.toMatch(/id_ed25519|journal/)
      expect(below!.left_out.secret).toBe(2)
    })

    test("paths go by the rules of fs_list: outside the roots and the agent's own are refused", async () => {
      expect(await fault(device, diskUsage, { path: join(place.path, 'outside') })).toMatchObject({
        code: 'outside_roots',
      })
      expect(await fault(device, diskUsage, { path: at('agent') })).toMatchObject({ code: 'outside_roots' })
      expect(await fault(device, diskUsage, { path: at('nothing') })).toMatchObject({ code: 'not_found' })
      expect(diskUsage.weigh({ path: at('.ssh/id_ed25519') }, device.manifest).effect).toBe('write')
    })

    test('a count that ends early says so, and names what it did not reach', async () => {
      for (const name of ['a', 'b', 'c']) {
        mkdirSync(at(name))
        for (let file = 0; file < 100; file++) writeFileSync(at(`${name}/${file}`), '')
      }
      const there = parsePlace(root, device.manifest)
      if ('code' in there) throw new Error(there.message)
      const bounds = { entries: 120, milliseconds: 60_000, depth: 10 }
      const signal = new AbortController().signal
      const found = await walkTo(there, (held) => findLargest(held, { signal, isOwn: () => false, bounds }))
      expect(found.partial).toBe('stopped after 120 entries')
      expect(found.not_counted.length).toBeGreaterThan(0)
    })

    test('a count that ends early has seen what lies beside deep directories before what lies in them', async () => {
      const deep = Array.from({ length: 8 }, (_, level) => `level-${level}`).join('/')
      for (const name of ['a-deep', 'm-deep', 'z-deep']) {
        mkdirSync(at(`${name}/${deep}`), { recursive: true })
        for (let file = 0; file < 300; file++) writeFileSync(at(`${name}/${deep}/${file}`), '')
      }
      const beside = ['b', 'c', 'd', 'e', 'f', 'g'].map((letter) => at(`${letter}-beside`))
      for (const directory of beside) {
        mkdirSync(directory)
        writeFileSync(join(directory, 'large'), kib(100))
      }
      const there = parsePlace(root, device.manifest)
      if ('code' in there) throw new Error(there.message)
      const bounds = { entries: 100, milliseconds: 60_000, depth: 100 }
      const signal = new AbortController().signal
      const found = await walkTo(there, (held) => findLargest(held, { signal, isOwn: () => false, bounds }))
      expect(found.partial).toBe('stopped after 100 entries')
      for (const directory of beside)
        expect(found.directories.find(({ path }) => path === directory)?.bytes).toBeGreaterThanOrEqual(100 * 1_024)
      for (const name of found.not_counted) expect(name).toMatch(/-deep$/)
    })

    test('a deleted file that a process holds open is found with its process', async () => {
      const script = 'exec 3>"$0"; head -c 300000 /dev/zero >&3; rm "$0"; echo on; sleep 60; :'
      holder = spawn('bash', ['-c', script, at('app/log/gone.log')], { stdio: ['ignore', 'pipe', 'ignore'] })
      await new Promise((resolve) => holder!.stdout!.once('data', resolve))
      const { deleted_but_open: deleted } = await usage()
      const file = deleted.files.find(({ path }) => path === at('app/log/gone.log'))
      expect(file?.bytes).toBeGreaterThanOrEqual(300_000)
      expect(file?.processes).toContainEqual(expect.objectContaining({ pid: holder.pid, name: 'bash', fd: 3 }))
    })
  })

  describe('log', () => {
    let place: ReturnType<typeof temporaryDirectory>
    let device: Device
    let root: string

    beforeEach(() => {
      place = temporaryDirectory()
      root = join(place.path, 'log')
      mkdirSync(root)
      device = deviceOf(join(place.path, 'state'), { roots: [{ path: root, writable: false }] })
    })
    afterEach(() => place.remove())

    type Read = { lines: [number | null, string][]; until_ms: number; more: boolean }
    const read = async (args: object, journalctl?: string[]) =>
      (await done(device, logReadBy(journalctl), { ...args })) as unknown as Read
    const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString()

    test.each([
      ['2026-11-23T16:43:06+0000 web-1 shop[7]: no', '2026-11-23T16:43:06.000Z', 'web-1 shop[7]: no'],
      ['2026-11-23 16:43:06.123456Z no', '2026-11-23T16:43:06.123Z', 'no'],
      ['[2026-11-23T17:43:06,5+01:00]: no', '2026-11-23T16:43:06.500Z', 'no'],
      ['2026/11/23 16:43:06 UTC [error] no', '2026-11-23T16:43:06.000Z', '[error] no'],
      [
        '10.0.0.1 - - [23/Nov/2026:16:43:06 +0000] "GET / HTTP/1.1" 500',
        '2026-11-23T16:43:06.000Z',
        '10.0.0.1 - - "GET / HTTP/1.1" 500',
      ],
    ])('the time of a line is read and left out of it: %s', (line, at, rest) => {
      const found = readLogTime(line)
      expect([new Date(found.atMs ?? 0).toISOString(), found.rest]).toEqual([at, rest])
    })

    test('syslog tells no year: it is the last one that is not ahead', () => {
      const nowMs = Date.parse('2026-01-02T00:00:00Z')
      expect(new Date(readLogTime('Dec 31 23:00:00 web-1 no', nowMs).atMs ?? 0).getFullYear()).toBe(2025)
      expect(new Date(readLogTime('Jan  1 23:00:00 web-1 no', nowMs).atMs ?? 0).getFullYear()).toBe(2026)
      for (const line of ['    at main (app.js:1)', '2026-99-99T00:00:00Z no', 'Foo 12 10:00:00 no'])
        expect(readLogTime(line).atMs).toBeNull()
    })

    test('a file gives its newest lines of twice the time, and a line of a stack belongs to the one before it', async () => {
      const lines = [
        `${minutesAgo(200)} too old`,
        `${minutesAgo(90)} before`,
        `${minutesAgo(5)} failed`,
        '    at main',
        '',
      ]
      writeFileSync(join(root, 'app.log'), lines.join('\n'))
      const { lines: found, more } = await read({ path: join(root, 'app.log') })
      expect(found.map(([, text]) => text)).toEqual(['before', 'failed', '    at main'])
      expect(found[2]?.[0]).toBe(found[1]?.[0])
      expect(more).toBe(false)
      expect((await read({ path: join(root, 'app.log'), contains: ['fail'] })).lines).toHaveLength(1)
    })

    test('of a huge file the end is read, as much as an answer may hold, and that there is more is said', async () => {
      const line = `${minutesAgo(5)} ${'x'.repeat(180)}\n`
      writeFileSync(join(root, 'big.log'), line.repeat(30_000))
      const { lines, more } = await read({ path: join(root, 'big.log') })
      expect(more).toBe(true)
      expect(lines.length).toBeGreaterThan(500)
      expect(JSON.stringify(lines).length).toBeLessThan(device.manifest.limits.output_bytes)
    })

    test('a file outside of the roots, a link out of them and a secret are no logs', async () => {
      symlinkSync('/etc/passwd', join(root, 'link.log'))
      writeFileSync(join(root, 'id_rsa'), 'x')
      expect(await fault(device, logReadBy(undefined), { path: '/etc/passwd' })).toMatchObject({
        code: 'outside_roots',
      })
      expect((await fault(device, logReadBy(undefined), { path: join(root, 'link.log') })).code).not.toBe('done')
      expect(await fault(device, logReadBy(undefined), { path: join(root, 'id_rsa') })).toMatchObject({
        code: 'blocked',
      })
      for (const bad of [{}, { unit: 'a.service', path: join(root, 'x') }])
        expect(await fault(device, logReadBy(undefined), bad)).toMatchObject({ code: 'invalid_arguments' })
    })

    test('the journal of a unit is asked for its time, and nothing rides in a name', async () => {
      const asked = join(root, 'asked')
      writeFileSync(asked, '')
      chmodSync(asked, 0o666)
      const program = join(place.path, 'journalctl')
      writeFileSync(program, `#!/bin/sh\necho "${minutesAgo(3)} web-1 shop[7]: $*"\n`)
      chmodSync(program, 0o755)
      const { lines } = await read({ unit: 'shop.service', since_seconds: 600 }, [program])
      expect(lines).toHaveLength(1)
      expect(lines[0]?.[1]).toMatch(/--since=@\d+ --unit=shop\.service$/)
      expect(deviceLogs.args.safeParse({ unit: '--file=/etc/shadow' }).success).toBe(false)
      expect(deviceLogs.toArgs({ unit: 'shop' })).toMatchObject({ unit: 'shop.service' })
      expect(readFileSync(asked, 'utf8')).toBe('')
    })

    test('a model reads templates: what is new since the time before, in 2 kB, and the whole is there', () => {
      const nowMs = Date.now()
      const at = (minutes: number, text: string): [number, string] => [nowMs - minutes * 60_000, text]
      const lines = [
        ...Array.from({ length: 500 }, (_, n) => at(119 - n / 5, `GET /page/${n} 200`)),
        ...Array.from({ length: 20 }, (_, n) => at(9 - n / 10, `cannot reach database 10.0.0.${n}: timed out`)),
      ]
      const asked = { labels: { unit: 'shop.service' }, contains: [], sinceSeconds: 3_600 }
      const log = { lines, untilMs: nowMs, isMore: false }
      const { summary, whole } = summarizeDeviceLog(log, asked, { nowMs, incidentBeganMs: nowMs })
      const { templates } = summary as { templates: { template: string; count: number; isNew?: boolean }[] }
      expect(templates[0]).toMatchObject({ template: 'cannot reach database <*>: timed out', count: 20, isNew: true })
      expect(templates[1]?.isNew).toBeUndefined()
      expect(JSON.stringify(summary).length).toBeLessThanOrEqual(2_000)
      expect(whole.split('\n').length).toBeGreaterThan(100)
      const untimed = { lines: [[null, 'no time here']] as [null, string][], untilMs: nowMs, isMore: false }
      expect(summarizeDeviceLog(untimed, asked, { nowMs, incidentBeganMs: null }).summary).toMatchObject({
        lines: 1,
        notCompared: 'the window before',
      })
    })
  })
})
