import { chmodSync, existsSync, mkdirSync, readFileSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { logReadBy, readLogTime } from '../../../../mesh/agent/capabilities/log.ts'
import { deviceLogs, journalLack } from '../../../../mesh/specs/host.ts'
import { summarizeDeviceLog } from '../../../../sources/logs/summary.ts'
import { type Device, deviceOf, done, fault } from '../../../support/device.ts'
import { temporaryDirectory } from '../../../support/directory.ts'

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

test('syslog names no year, so the year is the last one that is not in the future', () => {
  const nowMs = Date.parse('2026-01-02T00:00:00Z')
  expect(new Date(readLogTime('Dec 31 23:00:00 web-1 no', nowMs).atMs ?? 0).getFullYear()).toBe(2025)
  expect(new Date(readLogTime('Jan  1 23:00:00 web-1 no', nowMs).atMs ?? 0).getFullYear()).toBe(2026)
  for (const line of ['    at main (app.js:1)', '2026-99-99T00:00:00Z no', 'Foo 12 10:00:00 no'])
    expect(readLogTime(line).atMs).toBeNull()
})

test('a file returns its newest lines of twice the window, and a line of a stack trace belongs to the line before', async () => {
  const lines = [`${minutesAgo(200)} too old`, `${minutesAgo(90)} before`, `${minutesAgo(5)} failed`, '    at main', '']
  writeFileSync(join(root, 'app.log'), lines.join('\n'))
  const { lines: found, more } = await read({ path: join(root, 'app.log') })
  expect(found.map(([, text]) => text)).toEqual(['before', 'failed', '    at main'])
  expect(found[2]?.[0]).toBe(found[1]?.[0])
  expect(more).toBe(false)
  expect((await read({ path: join(root, 'app.log'), contains: ['fail'] })).lines).toHaveLength(1)
})

test('of a huge file the end is read, up to the limit of an answer, and the rest is reported', async () => {
  const line = `${minutesAgo(5)} ${'x'.repeat(180)}\n`
  writeFileSync(join(root, 'big.log'), line.repeat(30_000))
  const { lines, more } = await read({ path: join(root, 'big.log') })
  expect(more).toBe(true)
  expect(lines.length).toBeGreaterThan(500)
  expect(JSON.stringify(lines).length).toBeLessThan(device.manifest.limits.output_bytes)
})

test('of a directory the newest text file is read, and all are listed, the newest first', async () => {
  const write = (name: string, content: string | Buffer, minutes: number) => {
    writeFileSync(join(root, name), content)
    utimesSync(join(root, name), new Date(), new Date(Date.now() - minutes * 60_000))
  }
  write('app.log', `${minutesAgo(5)} failed\n`, 5)
  write('app.log.1', `${minutesAgo(90)} before\n`, 90)
  write('app.log.2.gz', Buffer.from([0x1f, 0x8b, 1]), 1)
  write('index.db', Buffer.from([1, 0, 2]), 2)
  write('empty.log', '', 0)
  write('id_rsa', 'x', 0)
  symlinkSync('/etc/passwd', join(root, 'link.log'))
  mkdirSync(join(root, 'jobs'))
  const { lines, among } = (await read({ path: root })) as Read & {
    among: { file: string; files: { name: string }[]; total: number }
  }
  expect(lines.map(([, text]) => text)).toEqual(['failed'])
  expect(among.file).toBe(join(root, 'app.log'))
  expect(among.files.map(({ name }) => name)).toEqual(['index.db', 'app.log', 'app.log.1'])
  expect(among.total).toBe(3)
  expect(await fault(device, logReadBy(undefined), { path: join(root, 'jobs') })).toMatchObject({ code: 'not_found' })
  const none = await fault(device, logReadBy(undefined), { path: place.path })
  expect(none).toMatchObject({ code: 'outside_roots' })
})

test('a directory without a log lists its directories', async () => {
  mkdirSync(join(root, 'web'))
  mkdirSync(join(root, 'db'))
  expect(await fault(device, logReadBy(undefined), { path: root })).toMatchObject({
    code: 'not_found',
    message: expect.stringContaining('the directories db, web'),
  })
})

test('a text that the newest of several files lacks is not reported as absent', () => {
  const log = { lines: [], untilMs: Date.now(), isMore: false, unread: 2 }
  const asked = { labels: { path: '/srv/log/app.log' }, contains: [], sinceSeconds: 3_600 }
  const { summary, isPartial } = summarizeDeviceLog(log, asked, { nowMs: Date.now(), incidentBeganMs: null })
  expect(isPartial).toBe(true)
  expect(summary).toMatchObject({ partial: ['only the newest file was read, and 2 others not'] })
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

test('the journal of a unit is read for its window, and a name cannot add options', async () => {
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

/** What systemd 252 prints on standard error, while it ends with 0. */
const notSeen = `Hint: You are currently not seeing messages from other users and the system.
      Users in groups 'adm', 'systemd-journal' can see all messages.
      Pass -q to turn off this notice.`

test.each([
  ['other users are hidden', `echo "${notSeen}" >&2; echo "-- No entries --"`],
  ['it has no files', 'echo "No journal files were found." >&2; echo "-- No entries --"'],
  ['its files cannot be opened', 'echo "No journal files were opened due to insufficient permissions." >&2; exit 1'],
])('an unreadable journal, because %s, does not count as a journal without lines', async (_, script) => {
  const program = join(place.path, 'journalctl')
  writeFileSync(program, `#!/bin/sh\n${script}\n`)
  chmodSync(program, 0o755)
  const capability = logReadBy([program])
  const refused = await fault(device, capability, { unit: 'shop.service' })
  expect(refused).toMatchObject({ code: 'capability_unavailable', message: expect.stringContaining('systemd-journal') })
  // At the start of the agent, and only for journals: a file can be read.
  expect(await capability.lacks?.()).toEqual({ [journalLack]: expect.stringContaining('systemd-journal') })
  expect(await capability.missingPrerequisite(device.manifest)).toBeNull()
})

test('a readable journal reports that it has no line, and a partly read one reports that there is more', async () => {
  const program = join(place.path, 'journalctl')
  const stands = (script: string) => {
    writeFileSync(program, `#!/bin/sh\n${script}\n`)
    chmodSync(program, 0o755)
  }
  stands('echo "-- No entries --"')
  expect(await read({ unit: 'shop.service' }, [program])).toMatchObject({ lines: [], more: false })
  expect(await logReadBy([program]).lacks?.()).toEqual({})
  stands(`echo "${notSeen}" >&2; echo "-- Boot 1c2d --"; echo "${minutesAgo(3)} web-1 shop[7]: own"`)
  expect(await read({ unit: 'shop.service' }, [program])).toMatchObject({
    lines: [[expect.any(Number), 'web-1 shop[7]: own']],
    more: true,
  })
})

test('a text in lines beyond the limit, or behind the cut of a long line, is not reported as absent', async () => {
  const program = join(place.path, 'journalctl')
  writeFileSync(program, `#!/bin/sh\nfor n in $(seq 2000); do echo "${minutesAgo(3)} web-1 shop[7]: $n"; done\n`)
  chmodSync(program, 0o755)
  // Before: no line, and nothing more.
  expect(await read({ unit: 'shop.service', contains: ['oom'] }, [program])).toMatchObject({ lines: [], more: true })
  writeFileSync(join(root, 'long.log'), `${minutesAgo(5)} ${'x'.repeat(600)} oom\n`)
  const { lines, more } = await read({ path: join(root, 'long.log'), contains: ['oom'] })
  expect([lines.length, lines[0]?.[1].endsWith('…'), more]).toEqual([1, true, false])
})

test('a huge file whose end covers the window is complete', async () => {
  const old = `${minutesAgo(600)} ${'x'.repeat(180)}\n`
  writeFileSync(join(root, 'old.log'), `${old.repeat(30_000)}${minutesAgo(5)} now\n`)
  expect(await read({ path: join(root, 'old.log') })).toMatchObject({
    lines: [[expect.any(Number), 'now']],
    more: false,
  })
})

const realJournalctl = existsSync('/usr/bin/journalctl') ? test : test.skip
realJournalctl('the real journalctl over a directory without journals is understood', async () => {
  const capability = logReadBy(['/usr/bin/journalctl', `--directory=${root}`])
  expect(await fault(device, capability, { unit: 'shop.service' })).toMatchObject({ code: 'capability_unavailable' })
  expect(await capability.lacks?.()).toHaveProperty([journalLack])
})

test('a model reads templates: what is new since the window before, in 2 kB, and the whole is stored', () => {
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
  // What stands before the first time is older than it, and not of the moment at which the file was
  // written.
  const rest = { ...log, lines: [[null, 'at shop.js:10'] as [null, string], ...lines] }
  expect(JSON.stringify(summarizeDeviceLog(rest, asked, { nowMs, incidentBeganMs: nowMs }).summary)).not.toContain(
    'shop.js',
  )
  const untimed = { lines: [[null, 'no time here']] as [null, string][], untilMs: nowMs, isMore: false }
  expect(summarizeDeviceLog(untimed, asked, { nowMs, incidentBeganMs: null }).summary).toMatchObject({
    lines: 1,
    notCompared: 'the window before',
  })
})
