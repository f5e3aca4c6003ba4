import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { gitCommit, gitHistory, gitRevert } from '../../../mesh/agent/capabilities/git.ts'
import { gitClone, gitPush } from '../../../mesh/agent/capabilities/git-transfer.ts'
import type { DeviceCapability } from '../../../mesh/agent/capability.ts'
import { specOf } from '../../../mesh/registry.ts'
import { ask, type Device, deviceOf, done, fault } from '../../support/device.ts'
import { temporaryDirectory } from '../../support/directory.ts'

describe('git history', () => {
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

  test('the newest commits are listed, and files that were changed since', async () => {
    write('other', 'by hand\n')
    const log = await done(device, gitLog, { path: checkout })
    expect(log).toMatchObject({ path: checkout, branch: 'main', uncommitted: ['other'], uncommitted_total: 1 })
    expect(log.commits).toEqual([
      { commit: second, parents: [first], at: expect.any(String), author: 'Ada', subject: 'Fewer workers' },
      { commit: first, parents: [], at: expect.any(String), author: 'Ada', subject: 'First' },
    ])
    expect((await done(device, gitLog, { path: checkout, limit: 1 })).commits).toHaveLength(1)
  })

  test('a commit is shown with its message and difference, the first one too, and a file as it was', async () => {
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

  test('what is held for secret is named and not shown', async () => {
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

  test('a revert is a commit on the branch; the file has its former content, and code sees it', async () => {
    commit('Another port', { 'app.conf': 'workers 0\nport 80\n# end\n', third: 'x\n' })
    write('other', 'by hand\n')
    const previous = head()
    const result = await done(device, gitRevert, revert(second.slice(0, 10)))
    expect(result).toEqual({
      ...{ path: checkout, branch: 'main', previous, reverted: second },
      ...{ commit: head(), files: ['app.conf', 'new file'] },
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

  test('a revert that cannot be whole is refused with its reason, and leaves everything as it was', async () => {
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
    await refused(gone, 'taken back before')
    writeFileSync(join(checkout, '.git/MERGE_HEAD'), '')
    await refused(gone, 'somebody is at work')
  })

  test('a root that is only read inside a checkout is not written by a revert either', async () => {
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
})

describe('git https', () => {
  // git's own HTTP backend behind TLS, with a certificate that only this test's device trusts.

  let place: ReturnType<typeof temporaryDirectory>
  let server: Server
  let device: Device
  let host: string
  const at = (...names: string[]) => join(place.path, ...names)
  const git = (...words: string[]) =>
    execFileSync('git', ['-c', 'user.name=Ada', '-c', 'user.email=ada@localhost', ...words], {
      encoding: 'utf8',
      stdio: 'pipe',
    }).trim()

  beforeAll(async () => {
    place = temporaryDirectory()
    for (const name of ['srv', 'state', 'served']) mkdirSync(at(name))
    const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost']
    const files = ['-keyout', at('key'), '-out', at('cert')]
    execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', ...subject, ...files], {
      stdio: 'pipe',
    })
    git('init', '--quiet', '--bare', '--initial-branch=main', at('served/x.git'))
    git('-C', at('served/x.git'), 'config', 'http.receivepack', 'true')
    git('init', '--quiet', '--initial-branch=main', at('seed'))
    writeFileSync(at('seed/a'), 'one\n')
    git('-C', at('seed'), 'add', '.')
    git('-C', at('seed'), 'commit', '--quiet', '--message=First')
    git('-C', at('seed'), 'push', '--quiet', at('served/x.git'), 'main')

    server = createServer({ key: readFileSync(at('key')), cert: readFileSync(at('cert')) }, serve)
    await new Promise<void>((resolve) => server.listen(0, resolve))
    host = `localhost:${(server.address() as AddressInfo).port}`
    device = deviceOf(at('state'), { roots: [{ path: at('srv'), writable: true }], git_hosts: [host] })
    device.env = { GIT_SSL_CAINFO: at('cert') }
  })
  afterAll(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
    place.remove()
  })

  function serve(request: IncomingMessage, response: ServerResponse): void {
    const { pathname, search } = new URL(request.url!, 'https://localhost')
    if (pathname.startsWith('/moved.git/')) {
      const location = `https://${host}${pathname.replace('/moved', '/x')}${search}`
      return void response.writeHead(301, { location }).end()
    }
    if (pathname.startsWith('/closed.git/'))
      return void response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end()
    const backend = spawn('git', ['http-backend'], {
      env: {
        ...{ PATH: process.env.PATH!, GIT_PROJECT_ROOT: at('served'), GIT_HTTP_EXPORT_ALL: '1', REMOTE_USER: 'ada' },
        ...{ PATH_INFO: pathname, QUERY_STRING: search.slice(1), REQUEST_METHOD: request.method! },
        ...{ CONTENT_TYPE: request.headers['content-type'] ?? '', GIT_CONFIG_NOSYSTEM: '1' },
        HTTP_CONTENT_ENCODING: request.headers['content-encoding'] ?? '',
        GIT_PROTOCOL: String(request.headers['git-protocol'] ?? ''),
      },
      stdio: ['pipe', 'pipe', 'ignore'],
    })
    request.pipe(backend.stdin)
    const chunks: Buffer[] = []
    backend.stdout.on('data', (chunk) => chunks.push(chunk))
    backend.on('close', () => {
      const whole = Buffer.concat(chunks)
      const end = whole.indexOf('\r\n\r\n')
      let status = 200
      for (const line of whole.toString('latin1', 0, end).split('\r\n')) {
        const [name, value] = [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]
        if (name === 'Status') status = Number.parseInt(value, 10)
        else response.setHeader(name, value)
      }
      response.writeHead(status).end(whole.subarray(end + 4))
    })
  }

  test('a repository is cloned over https, and a commit pushed back', async () => {
    const cloned = await done(device, gitClone, { url: `https://${host}/x.git`, path: at('srv/x'), branch: 'main' })
    expect(cloned).toMatchObject({ branch: 'main', commit: git('-C', at('seed'), 'rev-parse', 'HEAD') })
    writeFileSync(at('srv/x/a'), 'two\n')
    const { commit } = await done(device, gitCommit, { path: at('srv/x'), message: 'Two' })
    expect(await done(device, gitPush, { path: at('srv/x') })).toMatchObject({ commit, url: `https://${host}/x.git` })
    expect(git('-C', at('served/x.git'), 'rev-parse', 'main')).toBe(commit)
  })

  test('a redirect is not followed, nobody is asked for a password, and nothing is left behind', async () => {
    for (const name of ['moved', 'closed', 'missing']) {
      const asked = { url: `https://${host}/${name}.git`, path: at('srv', name) }
      expect([name, (await fault(device, gitClone, asked)).code]).toEqual([name, 'failed'])
    }
    expect(readdirSync(at('srv')).filter((name) => name !== 'x')).toEqual([])
  })

  test('a certificate that the device does not trust ends it', async () => {
    const { env: _, ...strict } = device
    const asked = { url: `https://${host}/x.git`, path: at('srv/untrusted') }
    expect(await fault(strict, gitClone, asked)).toMatchObject({
      code: 'failed',
      message: expect.stringMatching(/certificate/i),
    })
  })
})
