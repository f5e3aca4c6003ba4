import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import type { DeclaredUndo } from '../../../../domain/undo.ts'
import { gitHistory, gitRevert } from '../../../../mesh/agent/capabilities/git.ts'
import type { DeviceCapability } from '../../../../mesh/agent/capability.ts'
import { specOf } from '../../../../mesh/registry.ts'
import { ask, type Device, deviceOf, done, fault } from '../../../support/device.ts'
import { temporaryDirectory } from '../../../support/directory.ts'

let place: ReturnType<typeof temporaryDirectory>
let device: Device
let checkout: string

const [gitLog, gitShow] = gitHistory as unknown as [DeviceCapability, DeviceCapability]
const git = (...words: string[]) =>
  execFileSync('git', ['-c', 'user.name=Ada', '-c', 'user.email=ada@localhost', ...words], {
    cwd: checkout,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  }).trim()
const write = (name: string, text: string) => writeFileSync(join(checkout, name), text)
const read = (name: string) => readFileSync(join(checkout, name), 'utf8')
const head = () => git('rev-parse', 'HEAD')
function commit(message: string, files: Record<string, string>): string {
  for (const [name, text] of Object.entries(files)) write(name, text)
  git('add', '--all')
  git('commit', '--quiet', `--message=${message}`)
  return head()
}
/** Bytes of the working tree and of everything that git keeps. */
const snapshot = () =>
  execFileSync('sh', ['-c', 'find . -type f -print0 | sort -z | xargs -0 sha256sum'], {
    cwd: checkout,
    encoding: 'utf8',
  })

let first: string
let second: string
const revert = (revision: string) => ({ path: checkout, revision })

beforeEach(() => {
  place = temporaryDirectory()
  checkout = join(place.path, 'srv/conf')
  mkdirSync(checkout, { recursive: true })
  mkdirSync(join(place.path, 'state'))
  device = deviceOf(join(place.path, 'state'), { roots: [{ path: join(place.path, 'srv'), writable: true }] })
  git('init', '--quiet', '--initial-branch=main')
  first = commit('First', { 'app.conf': 'workers 4\nport 80\n', other: 'one\n' })
  second = commit('Fewer workers\n\nTo save memory.', { 'app.conf': 'workers 0\nport 80\n', 'new file': 'x\n' })
})
afterEach(() => place.remove())

test('the newest commits are listed, and the files with uncommitted changes', async () => {
  write('other', 'by hand\n')
  const log = await done(device, gitLog, { path: checkout })
  expect(log).toMatchObject({ path: checkout, branch: 'main', uncommitted: ['other'], uncommitted_total: 1 })
  expect(log.commits).toEqual([
    { commit: second, parents: [first], at: expect.any(String), author: 'Ada', subject: 'Fewer workers' },
    { commit: first, parents: [], at: expect.any(String), author: 'Ada', subject: 'First' },
  ])
  expect((await done(device, gitLog, { path: checkout, limit: 1 })).commits).toHaveLength(1)
})

test('a commit is shown with its message and difference, also the first one, and a file as it was', async () => {
  const shown = await done(device, gitShow, { path: checkout, revision: 'HEAD' })
  expect(shown).toMatchObject({ commit: second, files: ['app.conf', 'new file'], files_total: 2 })
  expect(shown.message).toBe('Fewer workers\n\nTo save memory.')
  expect(shown.diff).toContain('-workers 4\n+workers 0\n')
  const before = await done(device, gitShow, { path: checkout, revision: 'HEAD~1', file: 'app.conf' })
  expect(before).toMatchObject({ commit: first, files: ['app.conf'], content: 'workers 4\nport 80\n' })
  expect(before.diff).toContain('+workers 4\n')
  expect(before.diff).not.toContain('one')
  const missing = await fault(device, gitShow, { path: checkout, revision: first, file: 'new file' })
  expect(missing).toMatchObject({ code: 'not_found', message: expect.stringContaining('new file') })
  expect(await fault(device, gitShow, { path: checkout, revision: 'nope' })).toMatchObject({ code: 'not_found' })
})

test('a secret file is named and not shown', async () => {
  mkdirSync(join(checkout, '.ssh'))
  commit('Key', { '.ssh/id_ed25519': 'PRIVATE' })
  const shown = await done(device, gitShow, { path: checkout, revision: 'HEAD', file: '.ssh/id_ed25519' })
  expect(shown.files).toEqual(['.ssh/id_ed25519'])
  expect(JSON.stringify(shown)).not.toContain('PRIVATE')
  expect(shown.content).toContain('not shown')
})

test('a revision is one commit: no option, no range, no path', () => {
  const isTaken = (revision: string) => gitShow.args.safeParse({ path: checkout, revision }).success
  for (const good of ['HEAD', 'HEAD~3', 'main^', 'v1.2.0', 'feature/x', second])
    expect([good, isTaken(good)]).toEqual([good, true])
  for (const bad of ['--all', 'a..b', 'HEAD:app.conf', ':/First', '@{-1}', 'a b', 'a^{tree}', '../x'])
    expect([bad, isTaken(bad)]).toEqual([bad, false])
  expect(gitRevert.args.safeParse(revert('HEAD')).success).toBe(false)
})

test('no call opens a repository whose settings could start a program', async () => {
  git('config', 'core.fsmonitor', 'touch /tmp/never')
  for (const [capability, args] of [
    [gitLog, { path: checkout }],
    [gitShow, { path: checkout, revision: 'HEAD' }],
    [gitRevert as unknown as DeviceCapability, revert(second)],
  ] as const)
    expect(await fault(device, capability, args)).toMatchObject({ code: 'blocked' })
  const outside = deviceOf(device.state, { roots: [{ path: join(place.path, 'else'), writable: true }] })
  expect(await fault(outside, gitLog, { path: checkout })).toMatchObject({ code: 'outside_roots' })
})

test('the rehearsal of a revert shows the difference and writes nothing', async () => {
  write('other', 'by hand\n')
  const before = snapshot()
  const outcome = await ask(device, gitRevert, revert(second), { rehearse: true })
  expect(outcome).toMatchObject({ ok: true, result: { would_change: true, files: ['app.conf', 'new file'] } })
  expect(outcome.result?.diff).toContain('-workers 0\n+workers 4\n')
  expect(snapshot()).toBe(before)
})

test('a revert is a commit on the branch, the file has its former content, and code verifies it', async () => {
  commit('Another port', { 'app.conf': 'workers 0\nport 80\n# end\n', third: 'x\n' })
  write('other', 'by hand\n')
  const previous = head()
  const result = await done(device, gitRevert, revert(second.slice(0, 10)))
  expect(result).toEqual({
    path: checkout,
    branch: 'main',
    previous,
    reverted: second,
    commit: head(),
    files: ['app.conf', 'new file'],
  })
  expect(read('app.conf')).toBe('workers 4\nport 80\n# end\n')
  expect([existsSync(join(checkout, 'new file')), read('other')]).toEqual([false, 'by hand\n'])
  expect(git('log', '-1', '--format=%an: %s')).toBe('Nightshift: Revert "Fewer workers"')

  const promise = specOf('git.revert').promise?.(revert(second))
  const look = promise?.look(result)
  const seen = async () => promise?.holds({ result: await done(device, gitShow, look?.args ?? {}) }, result)
  expect(await seen()).toMatchObject({ holds: true })
  write('app.conf', 'workers 0\n')
  expect(await seen()).toMatchObject({ holds: false, observed: expect.stringContaining('app.conf') })
  commit('Later', {})
  expect(await seen()).toMatchObject({ holds: false, observed: expect.stringContaining('HEAD') })
})

test('a revert for one HEAD changes nothing on another, in the rehearsal and in the write', async () => {
  const before = head()
  for (const rehearse of [true, false]) {
    const outcome = await ask(device, gitRevert, { ...revert(second), if_head: 'a'.repeat(40) }, { rehearse })
    expect(outcome).toMatchObject({ ok: false, code: 'conflict', message: expect.stringContaining('nothing was done') })
  }
  expect(head()).toBe(before)
  expect(await done(device, gitRevert, { ...revert(second), if_head: before })).toMatchObject({ previous: before })
})

test('a revert is undone by a revert of exactly this commit, while it is HEAD and its files are unedited', async () => {
  const undo = specOf('git.revert').undo
  const result = await done(device, gitRevert, revert(second))
  const declared = undo?.of({ path: checkout }, result)
  const made = head()
  expect(declared).toMatchObject({ tool: 'git_revert', arguments: { revision: made, if_head: made } })
  const { files = [], left } = declared as DeclaredUndo
  const now = async () =>
    undo?.facts(await done(device, gitShow, { path: checkout, revision: 'HEAD' }), { path: checkout }, files)
  expect(await now()).toEqual(left)
  write(files[0]!, 'by hand\n')
  expect(await now()).not.toEqual(left)
})

test('a revert that cannot be complete is refused with its reason, and changes nothing', async () => {
  const refused = async (revision: string, words: string) => {
    const before = snapshot()
    for (const rehearse of [true, false]) {
      const outcome = await ask(device, gitRevert, revert(revision), { rehearse })
      expect(outcome).toMatchObject({ ok: false, code: 'conflict', message: expect.stringContaining(words) })
    }
    // Objects that no commit names are no change of the repository.
    const plain = (text: string) => text.replace(/^.*\.git\/objects\/.*\n/gm, '')
    expect(plain(snapshot())).toBe(plain(before))
  }
  await refused(first, 'first commit')
  write('app.conf', 'workers 1\n')
  await refused(second, 'app.conf')
  commit('Other workers', {})
  await refused(second, 'later commits changed')
  git('checkout', '--quiet', '-b', 'side', first)
  await refused(second, 'not on side')
  git('checkout', '--quiet', 'main')
  const gone = commit('Other', { other: 'two\n' })
  rmSync(join(checkout, 'other'))
  const removed = commit('Remove', {})
  write('other', 'in the way\n')
  await refused(removed, 'other would come back')
  rmSync(join(checkout, 'other'))
  git('revert', '--no-edit', removed)
  git('revert', '--no-edit', gone)
  await refused(gone, 'reverted before')
  writeFileSync(join(checkout, '.git/MERGE_HEAD'), '')
  await refused(gone, 'is not finished: .git/MERGE_HEAD exists')
})

test('a read-only root inside a checkout is not written by a revert either', async () => {
  mkdirSync(join(checkout, 'kept'))
  const kept = commit('Kept', { 'kept/file': 'x\n' })
  const roots = [
    { path: join(place.path, 'srv'), writable: true },
    { path: join(checkout, 'kept'), writable: false },
  ]
  const careful = deviceOf(device.state, { roots })
  expect(await fault(careful, gitRevert, revert(kept))).toMatchObject({ code: 'outside_roots' })
  expect(read('kept/file')).toBe('x\n')
})
