import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { gitCommit } from '../../../../mesh/agent/capabilities/git.ts'
import { gitClone, gitPush } from '../../../../mesh/agent/capabilities/git-transfer.ts'
import { remoteOf } from '../../../../mesh/agent/checkout.ts'
import { ask, type Device, deviceOf, done, fault, manifestOf } from '../../../support/device.ts'
import { temporaryDirectory } from '../../../support/directory.ts'

let place: ReturnType<typeof temporaryDirectory>
let device: Device
let root: string
let bare: string
let checkout: string

const at = (...names: string[]) => join(root, ...names)
const git = (cwd: string, ...words: string[]) =>
  execFileSync('git', ['-c', 'user.name=Ada', '-c', 'user.email=ada@localhost', ...words], {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  }).trim()

beforeEach(() => {
  place = temporaryDirectory()
  root = join(place.path, 'srv')
  bare = at('origin.git')
  checkout = at('conf')
  mkdirSync(root)
  mkdirSync(join(place.path, 'state'))
  device = deviceOf(join(place.path, 'state'), {
    roots: [{ path: root, writable: true }],
    git_hosts: ['git.example.org', 'git.example.org:8443'],
  })
  git(root, 'init', '--quiet', '--bare', '--initial-branch=main', bare)
  git(root, 'clone', '--quiet', bare, checkout)
  writeFileSync(join(checkout, 'app.json'), '{ "port": 80 }\n')
  writeFileSync(join(checkout, 'other'), 'one\n')
  git(checkout, 'add', '.')
  git(checkout, 'commit', '--quiet', '--message=First')
  git(checkout, 'push', '--quiet', 'origin', 'HEAD:main')
})
afterEach(() => place.remove())

const head = (path = checkout) => git(path, 'rev-parse', 'HEAD')
const snapshot = () =>
  execFileSync('sh', ['-c', 'find . -type f | sort | xargs sha256sum'], { cwd: checkout, encoding: 'utf8' })

test('a repository inside the roots is cloned whole, by name, and the answer has its commit', async () => {
  const result = await done(device, gitClone, { url: bare, path: at('copy') })
  expect(result).toEqual({ path: at('copy'), url: bare, branch: 'main', commit: head() })
  expect(readFileSync(at('copy/app.json'), 'utf8')).toBe('{ "port": 80 }\n')
  expect(git(at('copy'), 'remote', 'get-url', 'origin')).toBe(bare)
  expect(readdirSync(root).sort()).toEqual(['conf', 'copy', 'origin.git'])
})

test('a failed clone leaves nothing behind, and a clone over an existing path is a conflict', async () => {
  expect(await fault(device, gitClone, { url: bare, path: at('copy'), branch: 'none' })).toMatchObject({
    code: 'failed',
  })
  expect(await fault(device, gitClone, { url: bare, path: checkout })).toMatchObject({ code: 'conflict' })
  expect(await fault(device, gitClone, { url: at('none.git'), path: at('copy') })).toMatchObject({ code: 'not_found' })
  expect(readdirSync(root).sort()).toEqual(['conf', 'origin.git'])
})

test.each([
  'https://evil.example/x.git',
  'https://git.example.org.evil.example/x.git',
  'https://git.example.org:9/x.git',
  'http://git.example.org/x.git',
  'git://git.example.org/x.git',
  'ext::sh -c id',
  'fd::17',
  'file:///etc',
  '/etc',
  '../outside',
  'outside',
  '--upload-pack=id',
  '-oProxyCommand=id',
  'ssh://-oProxyCommand=id/x',
  'ssh://-oProxyCommand=id@git.example.org/x',
  'git@evil.example:x.git',
  'git@-oProxyCommand=id:x',
  'git@git.example.org:-x',
  'https://git.example.org\\@evil.example/x',
  'https://git.example.org#@evil.example/x',
  'https://evil.example#@git.example.org/x',
  'https://git.example.org@evil.example/x',
  'ssh://git.example.org%2eevil.example/x',
])('nothing is cloned from %j', (url) => {
  expect('code' in remoteOf(url, device.manifest)).toBe(true)
  const args = gitClone.args.safeParse({ url, path: at('copy') })
  if (args.success) expect(gitClone.weigh(args.data, device.manifest).effect).toBe('refused')
})

test.each([
  'https://git.example.org/team/x.git',
  'https://GIT.example.org:8443/x',
  'ssh://git@git.example.org/x.git',
  'git@git.example.org:team/x.git',
])('%j is on a host of this device', (url) => {
  expect(remoteOf(url, device.manifest)).toMatchObject({ kind: 'host' })
})

test('a password in an address is neither accepted nor shown', () => {
  expect(gitClone.args.safeParse({ url: 'https://u:p@git.example.org/x', path: at('c') }).success).toBe(false)
  expect(remoteOf('https://u:p@git.example.org/x', device.manifest)).toMatchObject({
    shown: 'https://git.example.org/x',
  })
})

test('a commit contains exactly the named files, as Nightshift, with the incident', async () => {
  const before = head()
  writeFileSync(join(checkout, 'app.json'), '{ "port": 8080 }\n')
  writeFileSync(join(checkout, 'other'), 'two\n')
  writeFileSync(join(checkout, 'new file'), 'n\n')
  git(checkout, 'add', 'other')
  const result = await done(device, gitCommit, {
    path: checkout,
    message: 'Move the port\n\n# because 80 is taken',
    files: ['app.json', 'new file'],
    incident: 'inc-17',
  })
  expect(result).toEqual({
    path: checkout,
    branch: 'main',
    previous: before,
    commit: head(),
    files: ['app.json', 'new file'],
  })
  expect(git(checkout, 'log', '-1', '--format=%an <%ae> %cn%n%B')).toBe(
    'Nightshift <nightshift@web1> Nightshift\nMove the port\n\n# because 80 is taken\n\nIncident: inc-17',
  )
  // What somebody else has staged stays staged.
  expect(git(checkout, 'status', '--porcelain')).toBe('M  other')
})

test('without names, changed tracked files are committed, and no new files', async () => {
  writeFileSync(join(checkout, 'other'), 'two\n')
  rmSync(join(checkout, 'app.json'))
  writeFileSync(join(checkout, '.env'), 'TOKEN=x\n')
  expect((await done(device, gitCommit, { path: checkout, message: 'Change' })).files).toEqual(['app.json', 'other'])
  expect(git(checkout, 'status', '--porcelain')).toBe('?? .env')
  expect(await fault(device, gitCommit, { path: checkout, message: 'Again' })).toEqual({
    code: 'failed',
    message: 'nothing to commit',
  })
})

test('a file is committed under any name', async () => {
  const odd = ['grüße "ä".conf', 'tab\there', 'line\nbreak']
  for (const name of odd) writeFileSync(join(checkout, name), 'x\n')
  const asked = { path: checkout, message: 'Odd', files: odd }
  expect((await done(device, gitCommit, asked, { rehearse: true })).files).toEqual([...odd].sort())
  expect((await done(device, gitCommit, asked)).files).toEqual([...odd].sort())
})

test('a removed file is committed by its name', async () => {
  rmSync(join(checkout, 'other'))
  expect((await done(device, gitCommit, { path: checkout, message: 'Remove', files: ['other'] })).files).toEqual([
    'other',
  ])
})

test('a rehearsed commit shows its content and the output of the checks, and changes nothing', async () => {
  device.manifest.checks = [{ path: `${checkout}/*.json`, argv: ['python3', '-m', 'json.tool', '{path}'] }]
  writeFileSync(join(checkout, 'app.json'), '{ "port": 8080, }\n')
  writeFileSync(join(checkout, 'new'), 'n\n')
  const asked = { path: checkout, message: 'Move the port', files: ['app.json', 'new'] }
  const before = snapshot()

  const shown = await done(device, gitCommit, asked, { rehearse: true })
  expect(shown).toMatchObject({ would_change: true, files: ['app.json', 'new'] })
  expect(shown.diff).toContain('-{ "port": 80 }\n+{ "port": 8080, }\n')
  expect(shown.diff).toContain('+++ b/new\n')
  expect(shown.checks).toEqual([expect.objectContaining({ exit_code: 1, output: expect.stringContaining('line 1') })])
  expect(snapshot()).toBe(before)
  expect(readdirSync(join(device.state, 'rehearsals'))).toEqual([])

  const { files } = await done(device, gitCommit, { path: checkout, message: 'All' }, { rehearse: true })
  expect(files).toEqual(['app.json'])
  // And what was shown is what is done.
  await done(device, gitCommit, asked)
  expect(shown.diff).toBe(`${git(checkout, 'diff-tree', '-r', '-p', 'HEAD~', 'HEAD')}\n`)
  expect(await done(device, gitCommit, { path: checkout, message: 'Again' }, { rehearse: true })).toMatchObject({
    would_change: false,
    diff: '',
    checks: [],
  })
})

test('of a large tree only the changes of the commit are written out for the checks', async () => {
  device.manifest.checks = [{ path: `${checkout}/**`, argv: ['sh', '-c', 'ls "$(dirname "$0")"', '{path}'] }]
  execFileSync('truncate', ['-s', '70M', join(checkout, 'large')])
  git(checkout, 'add', 'large')
  git(checkout, 'commit', '--quiet', '--message=Large')
  writeFileSync(join(checkout, 'other'), 'two\n')
  rmSync(join(checkout, 'app.json'))
  const shown = await done(device, gitCommit, { path: checkout, message: 'Two' }, { rehearse: true })
  expect(shown.files).toEqual(['app.json', 'other'])
  expect(shown.checks).toEqual([expect.objectContaining({ exit_code: 0, output: 'other\n' })])
})

test('a rehearsed commit does not show the content of a file with secrets', async () => {
  writeFileSync(join(checkout, '.env'), 'TOKEN=topsecret\n')
  writeFileSync(join(checkout, 'other'), 'two\n')
  const asked = { path: checkout, message: 'Env', files: ['.env', 'other'] }
  const shown = await done(device, gitCommit, asked, { rehearse: true })
  expect(shown.diff).toContain('+two')
  expect(shown.diff).toContain('.env: [not shown')
  expect(JSON.stringify(shown)).not.toContain('topsecret')
})

test('no check follows a link in a commit', async () => {
  device.manifest.checks = [{ path: `${checkout}/**`, argv: ['cat', '{path}'] }]
  symlinkSync('/etc/hostname', join(checkout, 'link'))
  const shown = await done(device, gitCommit, { path: checkout, message: 'L', files: ['link'] }, { rehearse: true })
  expect(shown).toMatchObject({ would_change: true, checks: [] })
})

test('a branch is pushed to its remote, and a branch that moved there is a conflict', async () => {
  writeFileSync(join(checkout, 'other'), 'two\n')
  await done(device, gitCommit, { path: checkout, message: 'Two' })
  const pushed = await done(device, gitPush, { path: checkout })
  expect(pushed).toMatchObject({ remote: 'origin', url: bare, branch: 'main', commit: head(), up_to_date: false })
  expect(head(bare)).toBe(head())
  expect(await done(device, gitPush, { path: checkout, branch: 'main' })).toMatchObject({ up_to_date: true })

  await done(device, gitClone, { url: bare, path: at('copy') })
  writeFileSync(at('copy/other'), 'three\n')
  await done(device, gitCommit, { path: at('copy'), message: 'Three' })
  await done(device, gitPush, { path: at('copy') })
  writeFileSync(join(checkout, 'other'), 'four\n')
  await done(device, gitCommit, { path: checkout, message: 'Four' })
  expect(await fault(device, gitPush, { path: checkout })).toMatchObject({ code: 'conflict' })
  expect(head(bare)).toBe(head(at('copy')))
})

test('a push to another remote is refused, and an unknown remote is not found', async () => {
  git(checkout, 'remote', 'add', 'away', 'https://evil.example/x.git')
  git(checkout, 'remote', 'add', 'program', 'ext::sh -c id')
  for (const [remote, code] of [
    ['away', 'blocked'],
    ['program', 'blocked'],
    ['none', 'not_found'],
  ])
    expect(await fault(device, gitPush, { path: checkout, remote })).toMatchObject({ code })
  expect(await fault(device, gitPush, { path: checkout, branch: 'none' })).toMatchObject({ code: 'not_found' })
})

test('hooks, filters and settings of a repository start no program', async () => {
  const trap = join(place.path, 'trapped')
  const script = `#!/bin/sh\ntouch ${trap}\n`
  for (const where of [join(checkout, '.git/hooks'), join(bare, 'hooks')]) {
    mkdirSync(where, { recursive: true })
    for (const hook of [
      'pre-commit',
      'commit-msg',
      'post-commit',
      'pre-push',
      'pre-receive',
      'update',
      'post-receive',
      'post-index-change',
    ])
      writeFileSync(join(where, hook), script, { mode: 0o755 })
  }
  writeFileSync(join(checkout, 'other'), 'two\n')
  await done(device, gitCommit, { path: checkout, message: 'Two' })
  await done(device, gitPush, { path: checkout })
  await done(device, gitClone, { url: bare, path: at('copy') })
  expect(existsSync(trap)).toBe(false)

  for (const [key, value] of [
    ['filter.x.clean', `touch ${trap}`],
    ['core.fsmonitor', `touch ${trap}`],
    ['core.sshCommand', `touch ${trap}`],
    ['gpg.program', `touch ${trap}`],
    ['url.https://evil.example/.insteadOf', bare],
    ['include.path', join(place.path, 'more')],
    ['remote.origin.receivepack', `touch ${trap}`],
    ['submodule.x.update', `!touch ${trap}`],
    // The name of a remote may look like the end of a harmless setting.
    [`remote.${bare}.url=x.receivepack`, `touch ${trap}`],
    ['remote.x.url\u001b]y.receivepack', `touch ${trap}`],
    ['core.worktree', '/etc'],
    ['extensions.worktreeConfig', 'true'],
  ] as const) {
    const config = readFileSync(join(checkout, '.git/config'), 'utf8')
    execFileSync('git', ['config', '--file', join(checkout, '.git/config'), key, value])
    writeFileSync(join(checkout, 'other'), `${key}\n`)
    for (const asked of [
      () => fault(device, gitCommit, { path: checkout, message: 'x' }),
      () => fault(device, gitCommit, { path: checkout, message: 'x' }, { rehearse: true }),
      () => fault(device, gitPush, { path: checkout }),
    ])
      expect([key, (await asked()).code]).toEqual([key, 'blocked'])
    writeFileSync(join(checkout, '.git/config'), config)
  }
  expect(existsSync(trap)).toBe(false)
})

test('a checkout that leads elsewhere, or belongs to another user, is left alone', async () => {
  const asked = { path: checkout, message: 'x' }
  mkdirSync(at('plain'))
  expect(await fault(device, gitCommit, { ...asked, path: at('plain') })).toMatchObject({ code: 'not_found' })
  symlinkSync(join(checkout, '.git'), at('plain/.git'))
  expect(await fault(device, gitCommit, { ...asked, path: at('plain') })).toMatchObject({ code: 'outside_roots' })

  writeFileSync(join(checkout, '.git/objects/info/alternates'), '/elsewhere\n')
  expect(await fault(device, gitCommit, asked)).toMatchObject({ code: 'blocked' })
  rmSync(join(checkout, '.git/objects/info/alternates'))
  writeFileSync(join(checkout, '.git/MERGE_HEAD'), `${head()}\n`)
  expect(await fault(device, gitCommit, asked)).toMatchObject({ code: 'conflict' })
  rmSync(join(checkout, '.git/MERGE_HEAD'))

  chmodSync(checkout, 0o777)
  expect(await fault(device, gitCommit, asked)).toMatchObject({ code: 'failed' })
  chmodSync(checkout, 0o755)
  if (process.getuid!() !== 0) return
  chownSync(checkout, 65534, 65534)
  expect(await fault(device, gitCommit, asked)).toMatchObject({
    code: 'failed',
    message: expect.stringContaining('belongs'),
  })
})

test('arguments that git could take for options or other places are refused', () => {
  const commit = (files: string[]) => gitCommit.args.safeParse({ path: checkout, message: 'm', files }).success
  for (const file of ['-a', '--force', '/etc/passwd', '../x', 'a/../../x', '.git/config', 'a/.GIT/hooks/x', ''])
    expect([file, commit([file])]).toEqual([file, false])
  const push = (branch: string) => gitPush.args.safeParse({ path: checkout, branch }).success
  for (const branch of ['-f', '+main', ':main', 'a:b', 'a..b', 'main.lock', 'refs//x', 'a b', '@{u}', 'x^', ''])
    expect([branch, push(branch)]).toEqual([branch, false])
  for (const branch of ['main', 'fix/port-80', 'v1.2', 'a_b']) expect([branch, push(branch)]).toEqual([branch, true])
  expect(gitPush.args.safeParse({ path: checkout, remote: '--mirror' }).success).toBe(false)
})

test('git works in writable roots alone', () => {
  const manifest = manifestOf({ roots: [{ path: root, writable: false }] })
  expect(gitCommit.weigh({ path: checkout, message: 'x' }, manifest).effect).toBe('refused')
  expect(gitPush.weigh({ path: '/etc', remote: 'origin' }, device.manifest)).toMatchObject({ code: 'outside_roots' })
  expect(gitCommit.weigh({ path: checkout, message: 'x' }, device.manifest).effect).toBe('write')
})

const rehearsedBy = async (...given: Parameters<typeof ask>) => {
  const outcome = await ask(given[0], given[1], given[2], { rehearse: true })
  if (!outcome.ok) throw new Error(outcome.message)
  const { told, untried, tried, rests_on: rests } = outcome.result
  return { said: (told as string[]).join('\n'), untried, tried, rests }
}

test('before a push the card lists the commits that would be sent, and nothing is sent', async () => {
  const before = git(bare, 'rev-parse', 'main')
  const nothing = await rehearsedBy(device, gitPush as never, { path: checkout, branch: 'main' })
  expect(nothing).toMatchObject({ said: expect.stringContaining('nothing would be sent'), tried: true })
  writeFileSync(join(checkout, 'other'), 'two\n')
  git(checkout, 'commit', '--quiet', '--all', '--message=Second thoughts')
  mkdirSync(join(bare, 'hooks'), { recursive: true })
  writeFileSync(join(bare, 'hooks', 'pre-receive'), `#!/bin/sh\n: > ${at('hook-ran')}\n`, { mode: 0o755 })
  const some = await rehearsedBy(device, gitPush as never, { path: checkout, branch: 'main' })
  expect(some.said).toMatch(/the remote would change: [0-9a-f]+\.\.[0-9a-f]+\n {2}[0-9a-f]+ Second thoughts$/)
  expect(some.rests).not.toBe(nothing.rests)
  expect(git(bare, 'rev-parse', 'main')).toBe(before)
  expect(existsSync(at('hook-ran'))).toBe(false)
})

test('a rehearsal calls no other host, and the card says so', async () => {
  git(checkout, 'remote', 'set-url', 'origin', 'https://git.example.org/x.git')
  const push = await rehearsedBy(device, gitPush as never, { path: checkout, branch: 'main' })
  expect(push).toMatchObject({ tried: false, untried: [expect.stringContaining('The remote was not checked')] })
  const url = 'https://git.example.org/x.git'
  const clone = await rehearsedBy(device, gitClone as never, { url, path: at('copy') })
  expect(clone).toMatchObject({ tried: false, untried: [expect.stringContaining('was not checked')] })
  expect(existsSync(at('copy'))).toBe(false)
})

test('before a clone of a repository on this device the card shows the commit that it would have, and nothing is made', async () => {
  const found = await rehearsedBy(device, gitClone as never, { url: bare, path: at('copy') })
  expect(found.said).toContain(`the checkout would be at ${head().slice(0, 12)}`)
  expect(found.said).toContain('its branches: main ')
  expect(readdirSync(root).sort()).toEqual(['conf', 'origin.git'])
  const refused = await ask(
    device,
    gitClone as never,
    { url: bare, path: at('copy'), branch: 'none' },
    { rehearse: true },
  )
  expect(refused).toMatchObject({ ok: false, code: 'not_found' })
})
