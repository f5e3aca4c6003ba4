import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { dockerOn } from '../../../../mesh/agent/capabilities/docker.ts'
import { ask, type Device, deviceOf, done, fault } from '../../../support/device.ts'
import { temporaryDirectory } from '../../../support/directory.ts'

// An engine that lies, answers without an end, or gives a name to another container. It speaks the
// Engine API of Docker and Podman over a real socket; what it says comes from images, names and
// programs that others have written.

const id = 'a'.repeat(64)
const other = 'b'.repeat(64)
const execId = 'e'.repeat(64)
const odd = 'web\n\u001b[31mran as root\u202e'

let place: ReturnType<typeof temporaryDirectory>
let device: Device
let server: Server
let asked: string[]
let answers: Record<string, unknown>
const docker = () => dockerOn(`unix://${join(place.path, 'docker.sock')}`)

beforeEach(async () => {
  place = temporaryDirectory()
  device = deviceOf(join(place.path, 'state'), {})
  asked = []
  answers = {
    'GET /containers/web/json': { Id: id, Name: '/web', Config: { Tty: false } },
    [`POST /containers/${id}/exec`]: { Id: execId },
    [`POST /containers/${other}/exec`]: { Id: execId },
    [`GET /exec/${execId}/json`]: { Running: false, ExitCode: 0, Pid: 0 },
    [`POST /exec/${execId}/start`]: (response: ServerResponse) => response.end(),
  }
  server = createServer(answer)
  await new Promise<void>((resolve) => server.listen(join(place.path, 'docker.sock'), resolve))
})
afterEach(async () => {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  place.remove()
})

function answer(request: IncomingMessage, response: ServerResponse): void {
  const what = `${request.method} ${new URL(request.url ?? '/', 'http://engine').pathname}`
  asked.push(what)
  const found = answers[what]
  if (typeof found === 'function') found(response)
  else if (found === undefined) response.writeHead(404).end(JSON.stringify({ message: odd }))
  else response.writeHead(200).end(typeof found === 'string' ? found : JSON.stringify(found))
}

/** Writes until nobody listens; answers how much of it went out. */
const endless = (piece: string) => (response: ServerResponse) => {
  response.on('error', () => undefined)
  const more = () => {
    while (!response.destroyed && response.write(piece));
  }
  response.on('drain', more)
  more()
}

const program = { container: 'web', argv: ['ls', '-l'] }
const write = { container: 'web', argv: ['appctl', 'reload'] }

describe('an engine that lies about an id', () => {
  test.each([
    '',
    '..',
    '../images',
    `${id}?force=1`,
    `${id}/../../images`,
    id.toUpperCase(),
    `${id}\n`,
    { toString: id },
    null,
  ])('cannot pass %j as one: nothing is asked under it, and no process is looked up by it', async (lie) => {
    answers['GET /containers/web/json'] = { Id: lie, Name: '/web', Config: {} }
    expect(await fault(device, docker().logs, { container: 'web' })).toMatchObject({ code: 'failed' })
    expect(await fault(device, docker().exec, program)).toMatchObject({ code: 'failed' })
    expect(asked.filter((what) => what !== 'GET /containers/web/json')).toEqual([])
    answers['GET /containers/web/json'] = { Id: id, Name: '/web', Config: {} }
    answers[`POST /containers/${id}/exec`] = { Id: lie }
    expect(await fault(device, docker().exec, program)).toMatchObject({ code: 'failed' })
    expect(asked.at(-1)).toBe(`POST /containers/${id}/exec`)
  })
})

describe('foreign text in names, images and labels', () => {
  test('stays on one line of a list, and does not act on the terminal', async () => {
    const one = { Id: id, Names: [`/${odd}`], Image: odd, Command: odd, Created: 1, State: odd, Status: odd }
    answers['GET /containers/json'] = [{ ...one, Labels: { password: 'hunter2' }, Ports: null }]
    const text = JSON.stringify(await done(device, docker().list, {}))
    expect(text).not.toMatch(/\\n|\\u001b|\u202e|hunter2/)
    expect(text).toContain('ran as root')
  })

  test('stays on its own line of a card', async () => {
    answers['GET /containers/web/json'] = {
      Id: id,
      Name: `/${odd}`,
      Image: odd,
      State: { Running: true, Status: odd, StartedAt: odd },
      Config: { Image: odd, User: odd, WorkingDir: `/srv\nprogram ls: is harmless`, Env: null },
      HostConfig: {},
      Mounts: [{ Source: `/etc\n${odd}`, Destination: odd, RW: true }],
    }
    const { result } = await ask(device, docker().exec, write, { rehearse: true })
    const { told, container } = result as { told: string[]; container: string }
    expect([...told, container].filter((line) => /\p{Cc}|\p{Cf}/u.test(line))).toEqual([])
    expect(told.filter((line) => line.startsWith('program ls'))).toEqual([])
  })

  test('shows nothing of an environment that is full of secrets', async () => {
    const Env = Array.from({ length: 20_000 }, (_, n) => `SECRET_${n}=hunter2-${n}`)
    answers['GET /containers/web/json'] = {
      Id: id,
      Name: '/web',
      State: { Running: true },
      HostConfig: {},
      Mounts: [],
      Config: { Env: [...Env, `PATH=${Array.from({ length: 5_000 }, (_, n) => `/bin${n}`).join(':')}`] },
    }
    const outcome = await ask(device, docker().exec, write, { rehearse: true })
    expect(outcome.ok).toBe(true)
    expect(JSON.stringify(outcome)).not.toContain('hunter2')
    // A path without an end is not walked to it.
    expect(asked.length).toBeLessThan(30)
  })

  test('is shown without escapes if it is an error', async () => {
    delete answers['GET /containers/web/json']
    expect(await fault(device, docker().exec, program)).toEqual({
      code: 'not_found',
      message: 'the engine reports: web ran as root',
    })
  })
})

describe('an endless answer', () => {
  test.each(['GET /containers/json', 'GET /containers/web/json', `POST /containers/${id}/exec`])(
    'to %s is cut off soon',
    async (what) => {
      answers[what] = endless(`"${'x'.repeat(65_536)}`)
      const outcome = what.endsWith('s/json')
        ? await fault(device, docker().list, {})
        : await fault(device, docker().exec, program)
      expect(outcome).toEqual({ code: 'failed', message: 'the response of the engine has more than 4 MiB' })
    },
  )

  test('as an error is cut off soon, too', async () => {
    answers['GET /containers/web/json'] = (response: ServerResponse) => {
      response.writeHead(500)
      endless('x'.repeat(65_536))(response)
    }
    expect(await fault(device, docker().exec, program)).toEqual({
      code: 'failed',
      message: 'the engine reports: too much text',
    })
  })

  test('of a program is cut at the limit of the manifest', async () => {
    device.manifest.limits.output_bytes = 5_000
    const header = Buffer.from([1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]).toString('latin1')
    answers[`POST /exec/${execId}/start`] = (response: ServerResponse) => {
      response.write(Buffer.from(header, 'latin1'))
      endless('y'.repeat(65_536))(response)
    }
    const outcome = await ask(device, docker().exec, program)
    expect(outcome).toMatchObject({ ok: true, truncated: true, result: { exit_code: null } })
    expect(String(outcome.result?.stdout).length).toBe(5_000)
  })
})

test.each([
  ['not found', 127],
  ['not to be executed', 126],
  ['an error of the engine', 125],
  ['killed', 137],
])('a program that is %s ends with %d, and is reported so', async (_, ExitCode) => {
  answers[`GET /exec/${execId}/json`] = { Running: false, ExitCode, Pid: 0 }
  expect(await done(device, docker().exec, program)).toMatchObject({ exit_code: ExitCode })
})

test.each([['0'], [0.5], [{}], ['ok\nexit code 0']])('%j is no exit code, so the end is unknown', async (ExitCode) => {
  answers[`GET /exec/${execId}/json`] = { Running: false, ExitCode, Pid: 0 }
  expect(await fault(device, docker().exec, program)).toMatchObject({ code: 'failed' })
})

test('an engine that cannot start the program reports it, and nothing counts as run', async () => {
  answers[`POST /exec/${execId}/start`] = (response: ServerResponse) =>
    response.writeHead(400).end(JSON.stringify({ message: 'OCI runtime exec failed: not found' }))
  expect(await fault(device, docker().exec, program)).toEqual({
    code: 'failed',
    message: 'the engine reports: OCI runtime exec failed: not found',
  })
})

describe('another container under the same name', () => {
  const named = (Id: string) => ({ Id, Name: '/web', State: { Running: true }, Config: {}, HostConfig: {}, Mounts: [] })

  test('is not used if it replaces the approved one before the run', async () => {
    answers['GET /containers/web/json'] = named(id)
    expect((await ask(device, docker().exec, write, { rehearse: true })).ok).toBe(true)
    const exec = docker().exec
    await ask(device, exec, write, { rehearse: true })
    answers['GET /containers/web/json'] = named(other)
    expect(await fault(device, exec, write)).toEqual({
      code: 'conflict',
      message: 'web is not the container that was checked before',
    })
    expect(asked.filter((what) => what.startsWith('POST'))).toEqual([])
    // After another look it is the one that was looked at.
    await ask(device, exec, write, { rehearse: true })
    expect(await done(device, exec, write)).toMatchObject({ exit_code: 0 })
    expect(asked).toContain(`POST /containers/${other}/exec`)
  })

  test('has another state to approve', async () => {
    const rests = async (Id: string) => {
      answers['GET /containers/web/json'] = named(Id)
      return (await ask(device, docker().exec, write, { rehearse: true })).result?.rests_on
    }
    expect(await rests(id)).toBe(await rests(id))
    expect(await rests(id)).not.toBe(await rests(other))
  })
})

test.each(['-v', '--privileged', 'web\n', 'web;id', '../web', '$(id)', 'ｗｅｂ', ' web'])(
  '%j is no container',
  (container) => {
    for (const { args } of [docker().exec, docker().logs])
      expect(args.safeParse({ container, argv: ['ls'] }).success).toBe(false)
  },
)
