import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { dockerOn } from '../../../../mesh/agent/capabilities/docker.ts'
import { demultiplex } from '../../../../mesh/agent/engine.ts'
import { ask, type Device, deviceOf, done, fault } from '../../../support/device.ts'
import { eventually, temporaryDirectory } from '../../../support/directory.ts'

// A scripted engine on a Unix socket, in the shapes of the Engine API (v1.41 and later): we do not
// own the engine. One that really runs is asked too, where this machine has one.

const web = 'c'.repeat(64)
const tty = 'd'.repeat(64)
const execId = 'e'.repeat(64)

let place: ReturnType<typeof temporaryDirectory>
let device: Device
let server: Server
let asked: string[]
let execs: Record<string, unknown>[]
let about: { Config?: object } & Record<string, unknown>
let exit: { Running: boolean; ExitCode: number | null; Pid: number }
let logs: (response: ServerResponse) => void
let output: (response: ServerResponse) => void

const framed = (stream: number, text: string | Buffer) => {
  const bytes = Buffer.from(text)
  const header = Buffer.alloc(8)
  header[0] = stream
  header.writeUInt32BE(bytes.length, 4)
  return Buffer.concat([header, bytes])
}

beforeEach(async () => {
  place = temporaryDirectory()
  device = deviceOf(join(place.path, 'state'), {})
  asked = []
  execs = []
  about = {}
  exit = { Running: false, ExitCode: 0, Pid: 0 }
  logs = (response) => response.end()
  output = (response) => response.end()
  server = createServer((request, response) => void engine(request, response))
  await new Promise<void>((resolve) => server.listen(join(place.path, 'docker.sock'), resolve))
})
afterEach(async () => {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  place.remove()
})

async function engine(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const json = (status: number, body: unknown) => {
    response.writeHead(status, { 'content-type': 'application/json', 'api-version': '1.50' }).end(JSON.stringify(body))
  }
  asked.push(`${request.method} ${request.url}`)
  const { pathname } = new URL(request.url!, 'http://engine')
  if (pathname === '/_ping') return void response.writeHead(200, { 'content-type': 'text/plain' }).end('OK')
  if (pathname === '/containers/json') return json(200, listed)
  if (pathname === '/containers/web/json')
    return json(200, { Id: web, Name: '/web', ...about, Config: { Tty: false, ...about.Config } })
  if (request.method === 'HEAD' && pathname === `/containers/${web}/archive`) {
    const path = new URL(request.url!, 'http://engine').searchParams.get('path')
    if (path !== '/opt/bin/appctl') return void response.writeHead(404).end()
    const stat = { name: 'appctl', size: 1234, mode: 493, mtime: '2026-01-02T03:04:05Z', linkTarget: '' }
    const header = Buffer.from(JSON.stringify(stat)).toString('base64')
    return void response.writeHead(200, { 'x-docker-container-path-stat': header }).end()
  }
  if (pathname === '/containers/tty/json') return json(200, { Id: tty, Name: '/tty', Config: { Tty: true } })
  if (pathname === '/containers/broken/json') return json(500, { message: 'something \u001b[31mbroke' })
  if (/^\/containers\/(c|d){64}\/logs$/.test(pathname)) {
    const type = pathname.includes(tty) ? 'raw-stream' : 'multiplexed-stream'
    response.writeHead(200, { 'content-type': `application/vnd.docker.${type}` })
    response.flushHeaders()
    return logs(response)
  }
  if (pathname === `/containers/${web}/exec`) {
    let body = ''
    for await (const text of request.setEncoding('utf8')) body += text
    execs.push(JSON.parse(body))
    return json(201, { Id: execId })
  }
  if (pathname === `/exec/${execId}/start`) {
    // No length and no chunks: the connection is the stream, and its end the end.
    response.socket!.write('HTTP/1.1 200 OK\r\nContent-Type: application/vnd.docker.raw-stream\r\n\r\n')
    return output(response.socket as unknown as ServerResponse)
  }
  if (pathname === `/exec/${execId}/json`) return json(200, { ID: execId, ContainerID: web, ...exit })
  json(404, { message: `No such container: ${pathname.split('/')[2]}` })
}

const listed = [
  {
    Id: web,
    Names: ['/web'],
    Image: 'nginx:1.27',
    ImageID: `sha256:${'a'.repeat(64)}`,
    Command: '/start.sh --password hunter2hunter2',
    Created: 1_700_000_000,
    State: 'running',
    Status: 'Up 2 hours',
    Ports: [
      { IP: '0.0.0.0', PrivatePort: 80, PublicPort: 8080, Type: 'tcp' },
      { PrivatePort: 443, Type: 'tcp' },
    ],
    Labels: { token: 'x' },
  },
]

const docker = () => dockerOn(`unix://${join(place.path, 'docker.sock')}`)

test('containers are listed with their state and ports, without secrets and labels', async () => {
  const result = await done(device, docker().list, { all: true })
  expect(result).toEqual({
    containers: [
      {
        id: 'cccccccccccc',
        name: 'web',
        image: 'nginx:1.27',
        state: 'running',
        status: 'Up 2 hours',
        command: expect.not.stringContaining('hunter2'),
        created: '2023-11-14T22:13:20.000Z',
        ports: ['0.0.0.0:8080->80/tcp', '443/tcp'],
      },
    ],
    total: 1,
  })
  expect(asked).toEqual(['GET /containers/json?all=true'])
})

test('both outputs of a container are returned in their order, line by line', async () => {
  logs = (response) => {
    response.write(framed(1, 'one\ntw'))
    response.write(framed(1, 'o\n'))
    response.write(framed(2, 'error \u001b[31mred\u001b[0m\n'))
    response.end(framed(1, 'last'))
  }
  const result = await done(device, docker().logs, { container: 'web', tail: 5, since_seconds: 60 })
  expect(result).toEqual({ container: 'web', id: 'cccccccccccc', output: 'one\ntwo\nerror red\nlast' })
  expect(device.lines).toEqual(['one', 'two', 'error red', 'last'])
  const query = new URL(asked.at(-1)!.split(' ')[1]!, 'http://engine').searchParams
  expect(query.get('tail')).toBe('5')
  expect(Date.now() / 1_000 - Number(query.get('since'))).toBeLessThan(120)
})

test('the logs of a container with a terminal are read without frames', async () => {
  logs = (response) => response.end('plain\r\ntext')
  expect(await done(device, docker().logs, { container: 'tty' })).toMatchObject({ output: 'plain\ntext' })
})

test('endless logs are cut at the limit, and followed logs at the time limit', async () => {
  device.manifest.limits.output_bytes = 10_000
  logs = (response) => {
    const more = setInterval(() => response.write(framed(1, `${'x'.repeat(999)}\n`.repeat(4))), 5)
    response.on('close', () => clearInterval(more))
  }
  const outcome = await ask(device, docker().logs, { container: 'web' })
  expect(outcome).toMatchObject({ ok: true, truncated: true })
  expect((outcome.result!.output as string).length).toBe(10_000)

  logs = (response) => void response.write(framed(1, 'heard\n'))
  const followed = await ask(device, docker().logs, { container: 'web', follow_seconds: 1 })
  expect(followed).toMatchObject({ ok: true, truncated: false, result: { output: 'heard\n' } })
  expect(asked.at(-1)).toContain('follow=true')
})

test('a program in a container returns both outputs and its exit code', async () => {
  output = (socket) => socket.end(Buffer.concat([framed(1, 'out\n'), framed(2, 'err\n')]))
  exit = { Running: false, ExitCode: 3, Pid: 0 }
  const result = await done(device, docker().exec, { container: 'web', argv: ['ls', '-l', 'a b'], user: 'app' })
  expect(result).toEqual({
    container: 'web',
    stdout: 'out\n',
    stderr: 'err\n',
    exit_code: 3,
    cmd_executed: "ls -l 'a b'",
  })
  expect(execs).toEqual([
    {
      AttachStdin: false,
      AttachStdout: true,
      AttachStderr: true,
      Tty: false,
      Privileged: false,
      Cmd: ['ls', '-l', 'a b'],
      Env: expect.any(Array),
      User: 'app',
    },
  ])
})

test.each<[string[], 'read' | 'write' | 'refused']>([
  [['cat', '/etc/nginx/nginx.conf'], 'read'],
  [['cat', '/run/secrets/db'], 'write'],
  [['nginx', '-s', 'reload'], 'write'],
  [['redis-cli', 'ping'], 'read'],
  // What they obey lies in the container, where nobody looks beforehand.
  [['git', 'status'], 'write'],
  [['mysql', '-e', 'select 1'], 'write'],
  [['sh', '-c', 'id'], 'read'],
  [['sh', '-c', 'echo x > /etc/x'], 'write'],
  [['rm', '-rf', '/'], 'refused'],
  [['tail', '-f', '/var/log/x'], 'refused'],
])('%j in a container is classified as %s', (argv, effect) => {
  const weight = docker().exec.weigh({ container: 'web', argv }, device.manifest)
  expect([argv, weight.effect]).toEqual([argv, effect])
})

/** Starts a program in the container and cancels it when it has said its first words. */
async function cancelled(pid: number) {
  output = (socket) => void socket.write(framed(1, 'begun\n'))
  exit = { Running: true, ExitCode: null, Pid: pid }
  const stop = new AbortController()
  const going = ask(device, docker().exec, { container: 'web', argv: ['sleep', '60'] }, { signal: stop.signal })
  while (device.lines.length === 0) await new Promise((resolve) => setTimeout(resolve, 20))
  stop.abort()
  return going
}

test('a cancelled program is killed only if it provably belongs to the container, and the answer says so', async () => {
  const child = spawn('sleep', ['60'])
  try {
    expect(await cancelled(child.pid!)).toMatchObject({
      ok: false,
      code: 'cancelled',
      result: { stdout: 'begun\n', exit_code: null, still_running: true },
    })
    expect(child.signalCode).toBeNull()
  } finally {
    child.kill('SIGKILL')
  }
})

const groups = controlGroupOf(web)

;(groups ? test : test.skip)('a cancelled program is killed with all its child processes', async () => {
  const child = spawn('bash', ['-c', 'sleep 60 & echo on; wait'], { stdio: ['ignore', 'pipe', 'ignore'] })
  await new Promise((resolve) => child.stdout.once('data', resolve))
  const all = [child.pid!, Number(execFileSync('pgrep', ['-P', String(child.pid)], { encoding: 'utf8' }))]
  mkdirSync(groups!)
  for (const pid of all) writeFileSync(join(groups!, 'cgroup.procs'), String(pid))
  const gone = new Promise((resolve) => child.once('exit', (_, signal) => resolve(signal)))
  void gone.then(() => {
    exit = { Running: false, ExitCode: 137, Pid: 0 }
  })
  expect(await cancelled(child.pid!)).toMatchObject({ code: 'cancelled', result: { still_running: false } })
  expect(await gone).toBe('SIGKILL')
  await eventually('the grandchild is gone', () => !existsSync(`/proc/${all[1]}/cmdline`) || isZombie(all[1]!))
  await eventually('the control group is empty', () => {
    try {
      rmdirSync(groups!)
      return true
    } catch {
      return false
    }
  })
})

const isZombie = (pid: number) => /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))

/** Where a control group of this name could be made; null where this machine does not let us. */
function controlGroupOf(name: string): string | null {
  for (const parent of ['/sys/fs/cgroup/pids', '/sys/fs/cgroup']) {
    const group = join(parent, name)
    try {
      mkdirSync(group)
      const works = existsSync(join(group, 'cgroup.procs'))
      rmdirSync(group)
      if (works) return group
    } catch {}
  }
  return null
}

test('a refusal of the engine is reported in its words, without escape sequences', async () => {
  expect(await fault(device, docker().logs, { container: 'gone' })).toEqual({
    code: 'not_found',
    message: 'the engine reports: No such container: gone',
  })
  expect(await fault(device, docker().logs, { container: 'broken' })).toEqual({
    code: 'failed',
    message: 'the engine reports: something broke',
  })
  logs = (response) => response.end('this is no stream of frames')
  expect(await fault(device, docker().logs, { container: 'web' })).toMatchObject({ code: 'failed' })
})

test.each(['../images', 'web/../../x', '-x', '', 'web?all=1', 'a b', `a${'b'.repeat(200)}`])(
  '%j is no container',
  (container) => {
    expect(docker().logs.args.safeParse({ container }).success).toBe(false)
  },
)

test('a device names the engine that it lacks', async () => {
  const lacks = (host?: string) => dockerOn(host).list.missingPrerequisite(device.manifest)
  expect(await lacks(`unix://${join(place.path, 'docker.sock')}`)).toBeNull()
  expect(await lacks('unix:///nowhere/docker.sock')).toBe('no engine socket at /nowhere/docker.sock')
  expect(await lacks('tcp://10.0.0.1:2375')).toBe(
    'tcp://10.0.0.1:2375 is not a Unix socket, and other addresses are not supported',
  )
  expect(await fault(device, dockerOn('unix:///nowhere/docker.sock').list, {})).toMatchObject({
    code: 'capability_unavailable',
  })
})

test('the outputs are separated whole, however the network cuts them', async () => {
  const piece = fc.tuple(fc.constantFrom(1, 2), fc.uint8Array({ maxLength: 40 }))
  await fc.assert(
    fc.asyncProperty(
      fc.array(piece, { maxLength: 8 }),
      fc.array(fc.integer({ min: 1, max: 30 })),
      async (pieces, cuts) => {
        const whole = Buffer.concat(pieces.map(([stream, bytes]) => framed(stream, Buffer.from(bytes))))
        async function* body() {
          let at = 0
          for (const cut of cuts) {
            yield whole.subarray(at, at + cut)
            at += cut
          }
          yield whole.subarray(at)
        }
        const heard: Record<string, Buffer[]> = { stdout: [], stderr: [] }
        for await (const { stream, bytes } of demultiplex(body(), false)) heard[stream]!.push(bytes)
        for (const [number, stream] of [
          [1, 'stdout'],
          [2, 'stderr'],
        ] as const) {
          const sent = Buffer.concat(pieces.filter(([to]) => to === number).map(([, bytes]) => bytes))
          expect(Buffer.concat(heard[stream]!).equals(sent)).toBe(true)
        }
      },
    ),
    { numRuns: 300 },
  )
})

const real = (() => {
  try {
    execFileSync('docker', ['info'], { stdio: 'ignore', timeout: 5_000 })
    return true
  } catch {
    return false
  }
})()

;(real ? test : test.skip)('a real engine answers', async () => {
  expect(await done(device, dockerOn(process.env.DOCKER_HOST).list, { all: true })).toHaveProperty('containers')
})

test('before a program runs in a container the card shows the container, the user, the file, and its ways out', async () => {
  about = {
    Image: `sha256:${'a'.repeat(64)}`,
    State: { Status: 'running', Running: true, StartedAt: '2026-02-03T04:05:06.7Z' },
    Config: {
      Image: 'shop:7',
      User: 'app',
      WorkingDir: '/srv',
      Env: ['PATH=/bin:/opt/bin', 'DB_PASSWORD=hunter2hunter2'],
    },
    HostConfig: { Privileged: true },
    Mounts: [{ Source: '/etc', Destination: '/host/etc', RW: true }],
  }
  const asking = { container: 'web', argv: ['appctl', 'reload', '/etc/none'] }
  const outcome = await ask(device, docker().exec, asking, { rehearse: true })
  expect(outcome.result?.told).toEqual([
    'container web (cccccccccccc) of shop:7, running since 2026-02-03 04:05:06 UTC',
    'runs as user app in /srv',
    'has access outside the container: the container is privileged, the container may write /etc of the device as /host/etc',
    'program appctl: /opt/bin/appctl, 1234 bytes, changed 2026-01-02 03:04:05',
    '/etc/none: does not exist',
  ])
  expect(outcome.result).toMatchObject({ tried: false, untried: [expect.stringContaining('Nothing was run')] })
  expect(JSON.stringify(outcome)).not.toContain('hunter2')
  expect(execs).toEqual([])
  about.State = { Status: 'running', Running: true, StartedAt: '2026-02-04T04:05:06.7Z' }
  expect((await ask(device, docker().exec, asking, { rehearse: true })).result?.rests_on).toBe(outcome.result?.rests_on)
  about.Image = `sha256:${'b'.repeat(64)}`
  expect((await ask(device, docker().exec, asking, { rehearse: true })).result?.rests_on).not.toBe(
    outcome.result?.rests_on,
  )
  about.State = { Status: 'exited', Running: false }
  expect(await ask(device, docker().exec, asking, { rehearse: true })).toMatchObject({ ok: false, code: 'conflict' })
})
