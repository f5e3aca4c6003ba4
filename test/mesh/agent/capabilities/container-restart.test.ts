import { createServer, type Server } from 'node:http'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { dockerOn } from '../../../../mesh/agent/capabilities/docker.ts'
import { containerRestart } from '../../../../mesh/specs/docker.ts'
import { ask, type Device, deviceOf, done, fault } from '../../../support/device.ts'
import { temporaryDirectory } from '../../../support/directory.ts'

// A scripted engine in the shapes of the Engine API v1.41: this machine has none.

const id = 'c'.repeat(64)
let place: ReturnType<typeof temporaryDirectory>
let device: Device
let server: Server
let asked: string[]
let about: { State: Record<string, unknown> } & Record<string, unknown>
/** What a restart does to the container. */
let restarts: () => void

beforeEach(async () => {
  place = temporaryDirectory()
  device = deviceOf(join(place.path, 'state'), {})
  asked = []
  const State = { Status: 'running', Running: true, StartedAt: '2026-11-23T10:00:00Z', ExitCode: 0 }
  about = {
    Id: id,
    Name: '/web',
    Image: 'sha256:1',
    RestartCount: 0,
    State,
    Config: { Image: 'nginx:1.29', Tty: false },
    HostConfig: { AutoRemove: false },
    Mounts: [{ Type: 'bind' }],
  }
  restarts = () => {
    about.State = { ...about.State, StartedAt: '2026-11-23T11:00:00Z' }
  }
  server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`)
    if (request.url?.startsWith(`/containers/${id}/restart`)) {
      restarts()
      return void response.writeHead(204).end()
    }
    if (!/^\/containers\/(?:web|c{64})\/json/.test(request.url ?? '')) {
      return void response.writeHead(404).end('{"message":"No such container"}')
    }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(about))
  })
  await new Promise<void>((resolve) => server.listen(join(place.path, 'docker.sock'), resolve))
})
afterEach(async () => {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  place.remove()
})

const restart = () => dockerOn(`unix://${join(place.path, 'docker.sock')}`).restart

async function rehearsed() {
  const outcome = await ask(device, restart(), { container: 'web' }, { rehearse: true })
  if (!outcome.ok) throw new Error(outcome.message)
  return outcome.result as { told: string[]; rests_on: string }
}

test('the rehearsal names the container and what is lost, and restarts nothing', async () => {
  const { told } = await rehearsed()
  expect(told.join('\n')).toMatch(
    /web \(cccccccccccc\) of the image nginx:1\.29\nnow running since .*\n.*no health check\nkeeps: .*1 mounts/,
  )
  expect(asked.some((line) => line.startsWith('POST'))).toBe(false)
})

test('a person approves this container and this run of it', async () => {
  const { rests_on: before } = await rehearsed()
  restarts()
  expect((await rehearsed()).rests_on).not.toBe(before)
})

test('a restarted container is watched, and its answer names the new start', async () => {
  const result = await done(device, restart(), { container: 'web' })
  expect(result).toMatchObject({ id: 'cccccccccccc', name: 'web', started_at: '2026-11-23T11:00:00Z' })
  const promise = containerRestart.promise?.({ container: 'web' })
  const seen = (state: string, status: string) =>
    promise?.holds({ result: { containers: [{ id: 'cccccccccccc', state, status }] } }, result)
  expect(seen('running', 'Up 6 seconds')).toMatchObject({ holds: true })
  expect(seen('running', 'Up 6 seconds (unhealthy)')).toMatchObject({ holds: false })
  expect(seen('exited', 'Exited (1) 2 seconds ago')).toMatchObject({ holds: false })
})

test('a container that ends right after its start has failed', async () => {
  restarts = () => {
    about.State = { Status: 'exited', Running: false, StartedAt: '2026-11-23T11:00:00Z', ExitCode: 78 }
  }
  expect(await fault(device, restart(), { container: 'web' })).toEqual({
    code: 'failed',
    message: 'web did not stay up: exited, exit code 78',
  })
})

test('a container that the engine removes at its end is refused, and so is Nightshift itself', async () => {
  about.HostConfig = { AutoRemove: true }
  expect(await fault(device, restart(), { container: 'web' })).toMatchObject({ code: 'conflict' })
  Object.assign(about, { HostConfig: {}, Name: '/nightshift-api-1' })
  expect(await fault(device, restart(), { container: 'web' })).toMatchObject({ code: 'blocked' })
  expect(asked.some((line) => line.startsWith('POST'))).toBe(false)
})
