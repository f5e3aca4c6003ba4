import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { gitCommit } from '../../../../mesh/agent/capabilities/git.ts'
import { gitClone, gitPush } from '../../../../mesh/agent/capabilities/git-transfer.ts'
import { type Device, deviceOf, done, fault } from '../../../support/device.ts'
import { temporaryDirectory } from '../../../support/directory.ts'

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
      PATH: process.env.PATH!,
      GIT_PROJECT_ROOT: at('served'),
      GIT_HTTP_EXPORT_ALL: '1',
      REMOTE_USER: 'ada',
      PATH_INFO: pathname,
      QUERY_STRING: search.slice(1),
      REQUEST_METHOD: request.method!,
      CONTENT_TYPE: request.headers['content-type'] ?? '',
      GIT_CONFIG_NOSYSTEM: '1',
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

test('a certificate that the device does not trust ends the transfer', async () => {
  const { env: _, ...strict } = device
  const asked = { url: `https://${host}/x.git`, path: at('srv/untrusted') }
  expect(await fault(strict, gitClone, asked)).toMatchObject({
    code: 'failed',
    message: expect.stringMatching(/certificate/i),
  })
})
