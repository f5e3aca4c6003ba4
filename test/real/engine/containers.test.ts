import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { dockerOn } from '../../../mesh/agent/capabilities/docker.ts'
import { ask, type Device, deviceOf, done, fault } from '../../support/device.ts'
import { temporaryDirectory } from '../../support/directory.ts'
import { note } from '../facts.ts'
import { whyNot } from '../kinds.ts'
import { image, type RealEngine, startEngine } from './docker-engine.ts'

const lacking = whyNot('engine')

;(lacking ? describe.skip : describe)(`a real container engine${lacking ? ` (${lacking})` : ''}`, () => {
  const place = temporaryDirectory()
  let device: Device
  let engine: RealEngine
  beforeAll(async () => {
    const began = performance.now()
    engine = await startEngine()
    note('engine ready in', `${((performance.now() - began) / 1000).toFixed(1)} s`)
    device = deviceOf(place.path, {})
    const script = "echo began; echo 'no config' >&2; trap 'exit 0' TERM; sleep 86400 & wait"
    const options = ['--detach', '--pull', 'never', '--network', 'none']
    engine.docker('run', ...options, '--name', 'web', image, '/bin/sh', '-c', script)
    engine.docker('run', ...options, '--name', 'done', image, '/bin/sh', '-c', 'exit 3')
    engine.docker('wait', 'done')
  })
  afterAll(async () => {
    await engine?.stop()
    place.remove()
  })

  const docker = () => dockerOn(engine.host)
  type Listed = { containers: { name: string; image: string; state: string; status: string }[]; total: number }

  test('is found, and lists running containers, and ended ones on request', async () => {
    expect(await docker().list.missingPrerequisite?.(device.manifest)).toBeNull()
    expect(await done(device, docker().list, {})).toMatchObject({
      containers: [{ name: 'web', image, state: 'running', status: expect.stringMatching(/^Up /) }],
    })
    const all = (await done(device, docker().list, { all: true })) as Listed
    expect(all.containers.map(({ name, state }) => `${name} ${state}`).sort()).toEqual(['done exited', 'web running'])
  })

  test('returns what a container has printed on both its outputs', async () => {
    await done(device, docker().logs, { container: 'web' })
    expect(device.lines.toSorted()).toEqual(['began', 'no config'])
  })

  test('runs a program in a container, and returns how it ended', async () => {
    expect(await done(device, docker().exec, { container: 'web', argv: ['cat', '/proc/1/comm'] })).toMatchObject({
      ...{ container: 'web', stdout: 'sh\n', exit_code: 0 },
    })
    expect(await done(device, docker().exec, { container: 'web', argv: ['sh', '-c', 'exit 7'] })).toMatchObject({
      exit_code: 7,
    })
    expect(await fault(device, docker().exec, { container: 'done', argv: ['date'] })).toMatchObject({
      code: 'conflict',
    })
    expect(await fault(device, docker().exec, { container: 'none', argv: ['date'] })).toMatchObject({
      code: 'not_found',
    })
  })

  test('restarts a container: the rehearsal restarts nothing, and the answer names the new start', async () => {
    const startedAt = () => engine.docker('inspect', '--format', '{{.State.StartedAt}}', 'web').trim()
    const before = startedAt()
    const rehearsed = await ask(device, docker().restart, { container: 'web' }, { rehearse: true })
    expect(rehearsed.ok).toBe(true)
    expect(startedAt()).toBe(before)
    await done(device, docker().restart, { container: 'web' })
    expect(startedAt()).not.toBe(before)
    expect(engine.docker('inspect', '--format', '{{.State.Running}}', 'web').trim()).toBe('true')
  })
})
