import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  linkSync,
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { fsList, fsRead, fsStat } from '../../../../mesh/agent/capabilities/fs.ts'
import { parsePlace } from '../../../../mesh/agent/manifest.ts'
import { ask, type Device, deviceOf, done, fault } from '../../../support/device.ts'
import { patienceMs, temporaryDirectory } from '../../../support/directory.ts'

let place: ReturnType<typeof temporaryDirectory>
let root: string
let outside: string
let device: Device
let swapper: ChildProcess | null = null
/**
 * How often a path is read while another process swaps it; `npm run test:long` reads it more often.
 */
const rounds = Number(process.env.SWAP_ROUNDS ?? 500)

beforeEach(() => {
  place = temporaryDirectory()
  root = join(place.path, 'srv')
  outside = join(place.path, 'outside')
  for (const directory of [root, outside, join(place.path, 'state')]) mkdirSync(directory)
  writeFileSync(join(outside, 'secret'), 'OUTSIDE')
  device = deviceOf(join(place.path, 'state'), { roots: [{ path: root, writable: false }] })
})
afterEach(() => {
  swapper?.kill('SIGKILL')
  swapper = null
  place.remove()
})

const at = (name: string) => join(root, name)
const isRoot = process.getuid!() === 0

test('a file is read with its size, time and digest', async () => {
  writeFileSync(at('app.log'), 'grüße\n')
  utimesSync(at('app.log'), 1_700_000_000, 1_700_000_000)
  expect(await done(device, fsRead, { path: at('app.log') })).toEqual({
    path: at('app.log'),
    content: 'grüße\n',
    encoding: 'utf8',
    offset: 0,
    next_offset: null,
    size: 8,
    mtime: '2023-11-14T22:13:20.000Z',
    sha256: execFileSync('sha256sum', [at('app.log')], { encoding: 'utf8' }).slice(0, 64),
    truncated: false,
  })
})

test('a long file is read in parts that add up to it, and no character is split', async () => {
  const text = 'größer als 界\n'.repeat(500)
  writeFileSync(at('app.log'), text)
  let read = ''
  for (let offset: number | null = 0; offset !== null; ) {
    const part = await done(device, fsRead, { path: at('app.log'), offset, max_bytes: 1_000 })
    expect(part.encoding).toBe('utf8')
    expect(part.truncated).toBe(part.next_offset !== null)
    read += part.content
    offset = part.next_offset as number | null
  }
  expect(read).toBe(text)
})

test('binary content is returned as base64, and never more than the manifest allows', async () => {
  writeFileSync(at('data'), Buffer.from([0xff, 0xfe, 0, 1]))
  expect(await done(device, fsRead, { path: at('data') })).toMatchObject({ content: '//4AAQ==', encoding: 'base64' })

  device.manifest.limits.output_bytes = 1_024
  writeFileSync(at('large'), 'x'.repeat(5_000))
  const outcome = await ask(device, fsRead, { path: at('large'), max_bytes: 1_000_000 })
  expect(outcome).toMatchObject({ ok: true, truncated: true })
  expect((outcome.result!.content as string).length).toBe(1_024)
})

test('a file too large to be written back is read in part, without a digest', async () => {
  execFileSync('truncate', ['-s', '40G', at('huge')])
  const read = await done(device, fsRead, { path: at('huge'), offset: 39 * 1024 ** 3, max_bytes: 4 })
  expect(read).toMatchObject({ size: 40 * 1024 ** 3, sha256: null, truncated: true })
})

test('links are reported, never followed, at any place of the path', async () => {
  writeFileSync(at('plain'), 'inside')
  symlinkSync('plain', at('link'))
  symlinkSync(outside, at('door'))
  for (const path of [at('link'), at('door/secret')])
    expect(await fault(device, fsRead, { path })).toMatchObject({ code: 'outside_roots' })
  expect(await fault(device, fsList, { path: at('door') })).toMatchObject({ code: 'outside_roots' })
  expect(await done(device, fsStat, { path: at('door') })).toMatchObject({ type: 'link', target: outside })
  const { entries } = (await done(device, fsList, { path: root })) as { entries: { name: string; type: string }[] }
  expect(entries.map(({ name, type }) => `${name} ${type}`)).toEqual(['door link', 'link link', 'plain file'])
})

test('a root that is itself reached through a link is not entered', async () => {
  symlinkSync(root, join(place.path, 'alias'))
  const alias = deviceOf(device.state, { roots: [{ path: join(place.path, 'alias'), writable: false }] })
  writeFileSync(at('plain'), 'inside')
  expect(await fault(alias, fsRead, { path: join(place.path, 'alias/plain') })).toMatchObject({
    code: 'outside_roots',
    message: expect.stringContaining('is a symbolic link'),
  })
})

test('a hard link to a file from outside is not read, and one among files of the same owner is', async () => {
  writeFileSync(at('own'), 'inside')
  linkSync(at('own'), at('other name'))
  expect(await done(device, fsRead, { path: at('other name') })).toMatchObject({ content: 'inside' })

  mkdirSync(at('shared'))
  linkSync(join(outside, 'secret'), at('shared/hard'))
  chmodSync(at('shared'), 0o1777)
  expect(await fault(device, fsRead, { path: at('shared/hard') })).toMatchObject({ code: 'outside_roots' })

  if (!isRoot) return
  chmodSync(at('shared'), 0o755)
  chownSync(at('shared'), 65534, 65534)
  expect(await fault(device, fsRead, { path: at('shared/hard') })).toMatchObject({ code: 'outside_roots' })
})

test('FIFOs, sockets and devices are refused at once and never opened', async () => {
  execFileSync('mkfifo', [at('fifo')])
  const server = createServer().listen(at('socket'))
  await new Promise((resolve) => server.once('listening', resolve))
  const odd = ['fifo', 'socket']
  if (isRoot) {
    // Character device 1:5 is /dev/zero, which does not end.
    execFileSync('mknod', [at('device'), 'c', '1', '5'])
    odd.push('device')
  }
  for (const name of odd) {
    expect(await fault(device, fsRead, { path: at(name) })).toMatchObject({
      code: 'invalid_arguments',
      message: expect.stringContaining(`is a ${name}`),
    })
    expect(await done(device, fsStat, { path: at(name) })).toMatchObject({ type: name })
  }
  await new Promise((resolve) => server.close(resolve))
})

test('no path through /proc leads anywhere, even if the roots are everything', async () => {
  const everything = deviceOf(device.state, { roots: [{ path: '/', writable: true }] })
  for (const path of [
    '/proc/self/root/etc/hostname',
    '/proc/self/cwd/package.json',
    `/proc/${process.pid}/root/etc/hostname`,
    '/proc/self/fd/0',
    '/proc//self/environ',
    '/proc/1/mem',
    '/dev/fd/0',
    '/dev/stdin',
  ]) {
    const { code } = await fault(everything, fsRead, { path })
    expect([path, code]).toEqual([path, 'outside_roots'])
  }
  expect(await done(everything, fsStat, { path: '/' })).toMatchObject({ type: 'directory' })
})

test("nobody can read the agent's own directory", async () => {
  const everything = deviceOf(device.state, { roots: [{ path: '/', writable: true }] })
  writeFileSync(join(device.state, 'journal'), '')
  expect(await fault(everything, fsRead, { path: join(device.state, 'journal') })).toMatchObject({
    code: 'outside_roots',
  })
})

test.each<[string, 'read' | 'write' | 'refused']>([
  ['/srv/app/app.conf', 'read'],
  ['/srv/app/.env', 'write'],
  ['/srv/app/tls/server.key', 'write'],
  ['/srv/app/.ssh/id_ed25519', 'write'],
  ['/srv/../etc/shadow', 'refused'],
  ['/etc/hostname', 'refused'],
  ['/srv/a\0b', 'refused'],
  ['srv/app', 'refused'],
])('a read of %j is classified as %s', (path, effect) => {
  const { manifest } = deviceOf('/nowhere', { roots: [{ path: '/srv', writable: true }] })
  for (const weigh of [fsRead, fsList].map((one) => () => one.weigh(one.args.parse({ path }) as never, manifest)))
    expect(weigh().effect).toBe(effect)
  // From outside nothing is seen of what is in it.
  expect(fsStat.weigh({ path }, manifest).effect).toBe(effect === 'write' ? 'read' : effect)
})

test('of a secret file a read from outside returns size, owner and times, and neither content nor the target of a link', async () => {
  writeFileSync(at('.env'), 'PASSWORD=x')
  symlinkSync('s3cret-in-a-link', at('id_rsa'))
  const found = await done(device, fsStat, { path: at('.env') })
  expect(found).toMatchObject({ type: 'file', size: 10 })
  expect(JSON.stringify(found)).not.toContain('PASSWORD')
  expect(await done(device, fsStat, { path: at('id_rsa') })).toMatchObject({ type: 'link', target: null })
})

test('a directory of many is listed in part, in order, and says so', async () => {
  for (let index = 0; index < 30; index++) writeFileSync(at(`file-${String(index).padStart(2, '0')}`), '')
  writeFileSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0xff, 0x41])]), '')
  const outcome = await ask(device, fsList, { path: `${root}/`, limit: 5 })
  expect(outcome).toMatchObject({ ok: true, truncated: true, result: { total: 31, total_is_more: false } })
  const whole = (await done(device, fsList, { path: root })).entries as { name: string; mode: string }[]
  expect(whole[0]).toMatchObject({ name: 'file-00', mode: '0644', type: 'file', size: 0 })
  const { uid, gid, username: owner } = userInfo()
  expect(whole[0]).toMatchObject({ uid, owner })
  expect(await done(device, fsStat, { path: at('file-00') })).toMatchObject({
    uid,
    owner,
    gid,
    group: expect.any(String),
  })
  // A name that is no UTF-8 is shown as far as it can be.
  expect(whole.at(-1)!.name).toBe('\ufffdA')
})

test('no hostile name leads out of the root', async () => {
  writeFileSync(at('a'), 'INSIDE')
  mkdirSync(at('d'))
  writeFileSync(at('d/a'), 'INSIDE')
  symlinkSync('/', at('up'))
  symlinkSync('..', at('d/up'))
  symlinkSync(join(outside, 'secret'), at('d/s'))
  symlinkSync('/proc/self/root', at('r'))
  const pieces = [
    'a',
    'd',
    'up',
    's',
    'r',
    '..',
    '.',
    '',
    '...',
    ' ',
    'secret',
    'outside',
    'srv',
    'proc',
    'self',
    'root',
  ]
  const segment = fc.oneof(
    fc.constantFrom(...pieces, '%2e%2e', '..\\', '\u2024\u2024', '\uff0e\uff0e', '~', '$HOME', '*', '\0', '\ud800'),
    fc.string({ unit: 'binary', maxLength: 6 }),
  )
  const start = fc.constantFrom(root, `${root}/`, `${root}/d`, outside, '', '/', '/proc/self/cwd', `${root}/up${root}`)
  await fc.assert(
    fc.asyncProperty(start, fc.array(segment, { maxLength: 6 }), async (start, segments) => {
      const path = [start, ...segments].join('/')
      if (path === '') return
      const outcome = await ask(device, fsRead, { path })
      if (outcome.ok) expect([`${root}/a`, `${root}/d/a`]).toContain(outcome.result.path)
      if (outcome.ok) expect(outcome.result.content).toBe('INSIDE')
      const where = parsePlace(path, device.manifest)
      if (!('code' in where)) expect(where.path === root || where.path.startsWith(`${root}/`)).toBe(true)
    }),
    { numRuns: 500 },
  )
})

/** A second process that swaps names as fast as it can, until it is killed. */
function swapping(script: string): Promise<void> {
  swapper = spawn('python3', ['-c', `import os, ctypes, sys\nprint('on', flush=True)\nwhile True:\n${script}`], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  return new Promise((resolve) => swapper!.stdout!.once('data', () => resolve()))
}

test('while a second process swaps a file for a link, no byte from outside is ever read', async () => {
  writeFileSync(at('file'), 'INSIDE')
  symlinkSync(join(outside, 'secret'), at('.link'))
  writeFileSync(at('.file'), 'INSIDE')
  await swapping(`
  os.link(${JSON.stringify(at('.file'))}, ${JSON.stringify(at('.t'))})
  os.rename(${JSON.stringify(at('.t'))}, ${JSON.stringify(at('file'))})
  os.symlink(${JSON.stringify(join(outside, 'secret'))}, ${JSON.stringify(at('.t'))})
  os.rename(${JSON.stringify(at('.t'))}, ${JSON.stringify(at('file'))})
`)
  const seen = await manyReads(at('file'), ['outside_roots'])
  expect(Object.keys(seen).filter((outcome) => outcome.includes('OUTSIDE'))).toEqual([])
  expect(seen.INSIDE).toBeGreaterThan(0)
  expect(seen.outside_roots).toBeGreaterThan(0)
})

test('while a second process swaps a directory for a link, no byte from outside is ever read', async () => {
  mkdirSync(at('dir'))
  writeFileSync(at('dir/secret'), 'INSIDE')
  await swapping(`
  os.rename(${JSON.stringify(at('dir'))}, ${JSON.stringify(at('.kept'))})
  os.symlink(${JSON.stringify(outside)}, ${JSON.stringify(at('dir'))})
  os.unlink(${JSON.stringify(at('dir'))})
  os.rename(${JSON.stringify(at('.kept'))}, ${JSON.stringify(at('dir'))})
`)
  const seen = await manyReads(at('dir/secret'), ['outside_roots', 'not_found', 'conflict'])
  expect(Object.keys(seen).filter((outcome) => outcome.includes('OUTSIDE'))).toEqual([])
  expect(seen.INSIDE).toBeGreaterThan(0)
  expect((seen.outside_roots ?? 0) + (seen.not_found ?? 0) + (seen.conflict ?? 0)).toBeGreaterThan(0)
})

/**
 * Reads a path many times, and on a busy machine until it was met inside and outside; counts what
 * came of it.
 */
async function manyReads(path: string, outside: string[]): Promise<Record<string, number>> {
  const seen: Record<string, number> = {}
  const wereBothMet = () => seen.INSIDE && outside.some((code) => seen[code])
  const until = Date.now() + patienceMs
  for (let round = 0; round < rounds || (!wereBothMet() && Date.now() < until); round++) {
    const outcome = await ask(device, fsRead, { path })
    const what = outcome.ok ? String(outcome.result.content) : outcome.code
    seen[what] = (seen[what] ?? 0) + 1
  }
  return seen
}

test('a file that was replaced is read anew, and one that was removed is not found', async () => {
  writeFileSync(at('file'), 'old')
  writeFileSync(at('.new'), 'new')
  renameSync(at('.new'), at('file'))
  expect(await done(device, fsRead, { path: at('file') })).toMatchObject({ content: 'new' })
  rmSync(at('file'))
  expect(await fault(device, fsRead, { path: at('file') })).toMatchObject({ code: 'not_found' })
})

test('a cancelled read is reported, and so is one after its time limit', async () => {
  writeFileSync(at('file'), 'x')
  const cancelled = AbortSignal.abort()
  expect(await fault(device, fsRead, { path: at('file') }, { signal: cancelled })).toMatchObject({ code: 'cancelled' })
  const late = AbortSignal.timeout(0)
  await new Promise((resolve) => late.addEventListener('abort', resolve))
  expect(await fault(device, fsRead, { path: at('file') }, { signal: late })).toMatchObject({ code: 'timeout' })
})
