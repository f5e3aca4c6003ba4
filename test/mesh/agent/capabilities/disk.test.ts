import { type ChildProcess, spawn } from 'node:child_process'
import { linkSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { type DeletedFiles, diskUsage, type FileSystem, mountsIn } from '../../../../mesh/agent/capabilities/disk.ts'
import { findLargest, type Largest } from '../../../../mesh/agent/largest.ts'
import { parsePlace } from '../../../../mesh/agent/manifest.ts'
import { withEntryAt as walkTo } from '../../../../mesh/agent/walk.ts'
import { redactJson } from '../../../../safety/redact.ts'
import { type Device, deviceOf, done, fault } from '../../../support/device.ts'
import { temporaryDirectory } from '../../../support/directory.ts'

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
    nearly_empty: string[]
    not_asked: unknown[]
    deleted_but_open: DeletedFiles
    below: Largest | null
  }

test('the file systems are listed with their free space, the fullest first', async () => {
  const { file_systems, below } = await usage()
  const root = file_systems.find(({ mount }) => mount === '/')
  expect(root).toMatchObject({ type: expect.any(String), used_percent: expect.any(Number) })
  expect(root!.used_bytes).toBeLessThanOrEqual(root!.size_bytes)
  const fullness = file_systems.map((one) => Math.max(one.used_percent, one.inodes_used_percent ?? 0))
  expect(fullness).toEqual(fullness.toSorted((a, b) => b - a))
  expect(file_systems.map(({ type }) => type)).not.toContain('proc')
  expect(below).toBeNull()
})

test('an almost empty file system is only named', async () => {
  const { file_systems, nearly_empty } = await usage()
  expect(nearly_empty.length + file_systems.length).toBeGreaterThan(0)
  for (const { mount, used_percent, inodes_used_percent } of file_systems)
    expect(mount === '/' || Math.max(used_percent, inodes_used_percent ?? 0) > 1).toBe(true)
  expect(file_systems.map(({ mount }) => mount).filter((mount) => nearly_empty.includes(mount))).toEqual([])
})

test('the number of entries that were left out below a path is not redacted', async () => {
  writeFileSync(at('.ssh/id_ed25519'), kib(100))
  const { below } = await usage(root)
  expect(redactJson(below, (text) => text)).toEqual(below)
})

test('a device is listed once, and layers of containers and images are not listed', () => {
  const mounts = mountsIn(
    [
      '22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw',
      '30 22 8:1 /srv /srv/bound rw - ext4 /dev/sda1 rw',
      '31 22 0:50 / /var/lib/docker/overlay2/abc/merged rw - overlay overlay rw',
      '32 22 7:1 / /snap/core/1 ro - squashfs /dev/loop1 ro',
      '34 22 0:44 /@home /home rw - btrfs /dev/sdc rw',
      '35 22 0:45 /@log /var/log rw - btrfs /dev/sdc rw',
      '33 22 8:2 / /srv/with\\040space ro - xfs /dev/sdb rw',
    ].join('\n'),
  )
  expect(mounts.map(({ mount, isReadOnly }) => [mount, isReadOnly])).toEqual([
    ['/', false],
    ['/home', false],
    ['/srv/with space', true],
  ])
})

test('the largest files below a path are found, with the directories above them', async () => {
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

test("secret files and the agent's own files are neither entered nor named", async () => {
  writeFileSync(at('.ssh/id_ed25519'), kib(100))
  writeFileSync(at('agent/journal'), kib(100))
  const { below } = await usage(root)
  expect(JSON.stringify(below)).not.toMatch(/id_ed25519|journal/)
  expect(below!.left_out.kept_back).toBe(2)
})

test("paths follow the rules of fs_list: those outside the roots and the agent's own are refused", async () => {
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

test('a count that ends early has read the neighbours of deep directories before their contents', async () => {
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
