import { execFileSync, spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { toEnvelope } from '../../../activities/send.ts'
import { syncInventory } from '../../../db/inventory/sync-inventory.ts'
import { append } from '../../../db/log/append.ts'
import { systemScope } from '../../../db/scope.ts'
import { callsOf } from '../../../db/writes/device-calls.ts'
import { effectByKey } from '../../../db/writes/effects.ts'
import { agentActor } from '../../../domain/event.ts'
import { capability } from '../../../domain/mesh.ts'
import type { CoreAnswer } from '../../../domain/tool.ts'
import { describeError, whyEndedBadly } from '../../../effects/devices/ask-device.ts'
import { allCapabilities } from '../../../mesh/agent/agent-state.ts'
import {
  descriptionOf,
  inMode,
  meshSpecs,
  missingPrerequisite,
  specNamed,
  toolsOf,
  unknownTools,
} from '../../../mesh/registry.ts'
import { procListArgs } from '../../../mesh/specs/host.ts'
import { describeTools } from '../../../model/describe-tools.ts'
import { describedTools, tools } from '../../../tools/registry.ts'
import { scriptedPlatform } from '../../api/scripted-platform.ts'
import { temporaryDirectory } from '../../support/directory.ts'
import { corePort, enrolled, prepared, ran, realAgent, stopDevicesAtEnd, toolNamed, useMeshApi } from './mesh-api.ts'
import type { ScriptedDevice } from './scripted-device.ts'

describe('registry', () => {
  describe('registry', () => {
    const device = { mode: 'all' as const, toolsAllowed: [], terms: { capabilities: [] }, health: null }
    const names = (more: object) => toolsOf({ ...device, ...more }).map((spec) => spec.name)

    test('there is one tool for each capability', () => {
      const carriedOut = allCapabilities.map((one) => one.capability)
      expect(meshSpecs.map((spec) => spec.capability).sort()).toEqual([...carriedOut].sort())
      expect(carriedOut.filter((name) => !capability.safeParse(name).success)).toEqual([])
      expect(new Set(meshSpecs.map((spec) => spec.name)).size).toBe(carriedOut.length)
    })

    test('servers that speak the OpenAI protocol take every name', () => {
      for (const { name } of meshSpecs) expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/)
    })

    test('a model knows a remote tool by the end of its description, and what is always asked', () => {
      for (const spec of meshSpecs)
        expect(descriptionOf(spec)).toMatch(/ \[device_mesh: [a-z.]+\](?: \(approval required\))?$/)
      expect(tools.get('exec')?.description).toMatch(/\[device_mesh: shell\.exec\]$/)
      expect(tools.get('pkg_install')?.description).toMatch(/\[device_mesh: pkg\.install\] \(approval required\)$/)
      for (const spec of meshSpecs) expect(descriptionOf(spec, 'sudo')).toContain('(approval required)')
    })

    test('shell_eval is there in every mode, and sudo forces its approval', () => {
      const spec = specNamed('shell.eval')
      if (!spec) throw new Error('no shell_eval')
      for (const mode of ['user', 'sudo', 'all'] as const) expect(inMode(spec, mode)).toBe(true)
      expect(descriptionOf(spec, 'user')).not.toContain('approval required')
      expect(descriptionOf(spec, 'sudo')).toContain('(approval required)')
    })

    test('what only an admin lets happen is not in mode user', () => {
      const missing = names({}).filter((name) => !names({ mode: 'user' }).includes(name))
      expect(missing).toEqual(['git_push', 'pkg_install', 'proc_kill', 'docker_exec', 'container_restart'])
      expect(names({ mode: 'sudo' })).toEqual(names({}))
    })

    test('a list of tools takes both spellings; an unknown name is told and passed over', () => {
      const toolsAllowed = ['exec', 'fs.read', 'fs_list', 'docker.container.logs', 'memory.recall']
      expect(names({ toolsAllowed })).toEqual(['exec', 'fs_read', 'fs_list', 'docker_logs'])
      expect(unknownTools(toolsAllowed)).toEqual(['memory.recall'])
      expect(names({ toolsAllowed: ['memory.recall'] })).toEqual([])
    })

    test('what the device lacks is not offered, and says why', () => {
      const health = { unavailable: { 'docker.container.list': 'no engine socket' } }
      expect(names({ health })).not.toContain('docker_list')
      const spec = specNamed('docker_list')
      expect(spec && missingPrerequisite(spec, { ...device, health })).toBe('no engine socket')
      expect(names({ terms: { capabilities: ['fs.read'] } })).toEqual(['fs_read'])
    })

    describe('the model', () => {
      test('is told of no device tool where there is no device', () => {
        expect(describedTools(null).map((tool) => tool.name)).not.toContain('exec')
        expect(describedTools(null, [device]).map((tool) => tool.name)).toContain('exec')
      })

      test('is told of one only where its type of incident is offered it', () => {
        const offered = describedTools(['fs_read'], [device]).map((tool) => tool.name)
        expect(offered).toContain('fs_read')
        expect(offered).not.toContain('exec')
      })

      test('has room for all of them beside the prompt', () => {
        expect(JSON.stringify(describeTools(describedTools(null, [device]))).length).toBeLessThan(22_500)
      })
    })

    test('every write says which resource it is for, and why', () => {
      for (const { name } of meshSpecs) {
        const tool = tools.get(name)
        expect([name, tool?.names, tool?.input.safeParse({}).success]).toEqual([
          name,
          { on: ['node', 'host', 'vm'] },
          false,
        ])
        if (tool?.effect === 'write') expect([name, tool.prepare, tool.postcondition]).not.toContain(undefined)
      }
      const parsed = tools.get('fs_write')?.input.safeParse({ on: 'n1', path: '/srv/x', content: '' })
      expect(parsed?.error?.issues[0]?.path).toEqual(['reason'])
    })

    test('an agent that is older than an argument refuses it, and the model reads what helps', () => {
      const refused = procListArgs.omit({ port: true }).safeParse({ port: 80 }).error?.issues[0]?.message ?? ''
      const error = (message: string) => describeError('proc.list', { error: { code: 'invalid_arguments', message } })
      expect(error(`The arguments: ${refused}`)).toMatch(
        /"port".*older than this argument: leave it out, or update the agent$/,
      )
      expect(error('limit: Too big')).toBe('device_mesh: proc.list: invalid_arguments: limit: Too big')
    })

    test('arguments that no device should see are refused by the schema', () => {
      const refused: [string, object][] = [
        ['fs_read', { path: 'etc/passwd' }],
        ['fs_read', { path: '/srv/a\nb' }],
        ['git_clone', { url: 'ext::sh -c id', path: '/srv/x' }],
        ['git_push', { path: '/srv/x', remote: '--receive-pack=id' }],
        ['pkg_install', { packages: ['-o', 'Dpkg::Pre-Invoke=id'] }],
        ['proc_kill', { pid: 1, start_time: '1' }],
        ['proc_kill', { pid: 4711 }],
        ['proc_list', { port: 0 }],
        ['disk_usage', { path: 'srv' }],
        ['git_show', { path: '/srv/x', revision: '--all' }],
        ['git_revert', { path: '/srv/x', revision: 'HEAD' }],
        ['docker_logs', { container: '../containers/json' }],
        ['exec', { argv: [] }],
        ['exec', { argv: ['id'], shell: true }],
      ]
      for (const [name, args] of refused) {
        const parsed = tools.get(name)?.input.safeParse({ on: 'n1', reason: 'because', ...args })
        expect([name, args, parsed?.success]).toEqual([name, args, false])
      }
    })
  })

  describe('faults', () => {
    const api = useMeshApi()
    stopDevicesAtEnd()

    const read = { capability: 'fs.read', args: { path: '/srv/app.conf' } }
    const ask = (body: object = read) => api.post('/devices/node-osl-1/calls', { body, as: api.tokens.operator })
    let device: ScriptedDevice

    beforeAll(async () => {
      device = await enrolled(api, 'node-osl-1')
      device.files.set('/srv/app.conf', 'port = 80')
    })

    test.each(['other_request', 'other_device', 'junk'] as const)(
      'an answer that is none (%s) is not believed',
      async (mood) => {
        device.moods = [mood]
        const answer = await ask()
        expect([answer.status, answer.body.code]).toEqual([424, 'device_unreachable'])
        expect(JSON.stringify(answer.body)).not.toContain('teapot')
      },
    )

    test('a read whose answer was lost is asked again', async () => {
      device.moods = ['drop_after', 'drop_before']
      expect((await ask()).status).toBe(200)
    })

    test('a device that has no room just now is asked again a moment later', async () => {
      device.moods = ['busy']
      expect((await ask()).status).toBe(200)
    })

    test('a device that never answers is given up, and says so', async () => {
      const within = (timeoutSeconds: number) =>
        sql`update device set timeout_seconds = ${timeoutSeconds}`.execute(api.db)
      await within(2)
      device.moods = ['hang']
      const answer = await ask()
      await within(60)
      expect([answer.status, answer.body.code]).toEqual([424, 'device_unreachable'])
      expect(answer.body.detail).toContain('took longer')
    })

    test('a device that is down is told in words, and its health says it', async () => {
      await device.stop()
      expect((await ask()).body.detail).toMatch(/device_mesh: fs\.read: device_unreachable: node-osl-1 gave no answer/)
      expect((await api.post('/devices/node-osl-1/health')).body.healthProblem).toContain('no connection')
      await device.resume()
      expect((await api.post('/devices/node-osl-1/health')).body).toMatchObject({ healthProblem: null })
    })

    test('what the device said it lacks is refused before it is asked', async () => {
      const heard = device.heard.length
      const answer = await ask({ capability: 'docker.container.list', args: {} })
      expect([answer.status, answer.body.code]).toEqual([424, 'capability_unavailable'])
      expect(answer.body.detail).toContain('no engine socket')
      expect(device.heard.length).toBe(heard)
    })

    test('a secret among the arguments goes nowhere', async () => {
      const heard = device.heard.length
      const argv = ['curl', '-H', 'Authorization: Bearer ghp_0123456789abcdefghijklmnopqrstuvwxyz']
      const answer = await ask({ capability: 'shell.exec', args: { argv } })
      expect([answer.status, answer.body.code]).toEqual([422, 'SECRET_IN_ARGUMENTS'])
      expect(device.heard.length).toBe(heard)
    })

    test('a secret in what a device answers is not handed on', async () => {
      device.files.set('/srv/secret.env', 'DB_PASSWORD=hunter2hunter2')
      const answer = await ask({ capability: 'fs.read', args: { path: '/srv/secret.env' } })
      expect(answer.body.content).toContain('[redacted')
      expect(JSON.stringify(answer.body)).not.toContain('hunter2')
    })

    test('an address in the environment wins over the one in the row', async () => {
      const asked: string[] = []
      const elsewhere = createServer((request, response) => {
        asked.push(request.url ?? '')
        response.end('{}')
      })
      await new Promise<void>((resolve) => elsewhere.listen(0, '127.0.0.1', resolve))
      const body = {
        url: device.url,
        urlEnv: 'NODE_OSL_1_DEVICE_MESH_URL',
        mode: 'all',
        terms: { capabilities: [], roots: [] },
      }
      await api.put('/devices/node-osl-1', { body })
      api.variables.NODE_OSL_1_DEVICE_MESH_URL = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}`
      await ask()
      delete api.variables.NODE_OSL_1_DEVICE_MESH_URL
      expect(asked).toContain('/capability')
      elsewhere.close()
      const wrong = { ...body, urlEnv: 'AGENT_API_KEY' }
      expect((await api.put('/devices/node-osl-1', { body: wrong })).status).toBe(422)
    })

    test('calls are counted by capability and by what came of them', async () => {
      const text = await (await api.api.app.request('/metrics')).text()
      expect(text).toMatch(/nightshift_device_calls_total\{capability="fs\.read",outcome="ok"\} [1-9]/)
      expect(text).toMatch(/nightshift_device_calls_total\{capability="fs\.read",outcome="not_sent"\} [1-9]/)
      expect(text).toMatch(/nightshift_device_call_duration_seconds_count\{capability="fs\.read",outcome="ok"\} [1-9]/)
    })

    test('an API without keys has no mesh, and says so', async () => {
      const { mesh } = api.api.deps
      api.api.deps.mesh = null
      expect((await ask()).body.code).toBe('NO_MESH')
      api.api.deps.mesh = mesh
    })
  })
})

describe('exit codes', () => {
  /** What went through: tool registry, core API, signature, the agent's door, guard and journal, the process, and back. */
  const api = useMeshApi()
  const on = 'host-osl-1'
  const place = temporaryDirectory()
  afterAll(() => place.remove())
  beforeAll(async () => {
    const { inventoryState } = scriptedPlatform()
    const [first] = inventoryState.vms
    if (!first) throw new Error('no VM')
    await syncInventory(api.db, { ...inventoryState, vms: [...inventoryState.vms, { ...first, id: 'vm-101' }] })
    const pct = '#!/bin/sh\nshift 3\nexec "$@"\n'
    const roots = [{ path: place.path, writable: true }]
    await realAgent(api, on, { guests: 'pct', terms: { capabilities: [], roots } } as never, { pct })
  })

  /** The row with which a run notes what it was answered. */
  async function finished(
    id: string,
    stepKey: string,
    tool: string,
    args: Record<string, unknown>,
    answer: CoreAnswer,
  ) {
    await api.db.transaction().execute((trx) =>
      append(trx, id, 1, {
        ...{ kind: 'tool_finished', actor: agentActor, detail: '', stepKey: stepKey.replace('started', 'finished') },
        metadata: {
          ...{ callId: 'c1_0', tool, arguments: args, effect: 'write', targets: [], body: null, discovered: [] },
          ...{ outcome: answer.ok ? 'done' : 'failed', result: { ...toEnvelope(answer), data: null }, durationMs: 1 },
        },
      }),
    )
  }

  /** An approved call: what the model reads of it, and what its verification says. */
  async function verified(tool: string, args: Record<string, unknown>) {
    const given = { on, ...args, reason: 'because' }
    const { answer, stepKey, incidentId } = await ran(api, tool, given, 'approved')
    await finished(incidentId, stepKey, tool, given, answer as CoreAnswer)
    const context = { core: corePort(api), incidentId, stepKey, ifMatch: null }
    const seen = await toolNamed(tool).postcondition?.check(given as never, null, context)
    return { read: toEnvelope(answer as CoreAnswer), seen, effect: await effectByKey(api.db, stepKey) }
  }

  const exec = (...argv: string[]) => verified('exec', { argv })
  const bash = (command: string) => verified('shell_eval', { command })

  describe('a command that was to change something', () => {
    test('and ended with an exit code other than 0 failed, and the model reads the code and what it printed', async () => {
      const { read, seen, effect } = await exec(
        'sh',
        '-c',
        'echo before; echo first >&2; echo "no such unit" >&2; exit 7',
      )
      expect(seen).toEqual({ holds: false, observed: 'not verified: exit code 7: no such unit' })
      expect(effect).toMatchObject({ status: 'failed' })
      // On the page of the device, too.
      expect(
        (await callsOf(systemScope(api.db), on, { limit: 50 })).find(({ key }) => key === effect?.key),
      ).toMatchObject({
        ...{ ok: false, errorCode: 'exit_code' },
      })
      expect(read).toMatchObject({
        ok: false,
        error: { failed: true, blocked: false, message: 'device_mesh: shell.exec: exit code 7: no such unit' },
        data: { exit_code: 7, stdout: 'before\n', stderr: 'first\nno such unit\n' },
      })
    })

    test('and ended with 0 is unproven: nothing was promised', async () => {
      const { read, seen, effect } = await exec('touch', join(place.path, 'new'))
      expect(seen).toMatchObject({ holds: null, observed: expect.stringContaining('nothing proves that it worked') })
      expect(read).toMatchObject({ ok: true, data: { exit_code: 0 } })
      expect(effect).toMatchObject({ status: 'done' })
    })

    test.each<[string, string]>([
      ['false; touch x', 'a later command'],
      ['rm /nowhere || true', 'another one that took its place'],
      ['rm /nowhere 2>&1 | tee x', 'the end of a pipe'],
      ['rm /nowhere & wait', 'the background'],
    ])('in %s, where the exit code of %s hides its own, is never held', async (command) => {
      expect((await verified('shell_eval', { command, cwd: place.path })).seen).toMatchObject({ holds: null })
    })

    test('and was killed did not do its work', async () => {
      expect((await exec('sh', '-c', 'kill -9 $$')).seen).toMatchObject({
        holds: false,
        observed: 'not verified: ended by SIGKILL',
      })
      expect((await bash("sh -c 'kill -9 $$'; exit $?")).seen).toMatchObject({
        holds: false,
        observed: expect.stringContaining('exit code 137'),
      })
    })

    test('and was stopped, since it printed too much, did not do its work', async () => {
      const { seen, read } = await exec('sh', '-c', 'yes nightshift; touch never')
      expect(seen).toMatchObject({
        holds: false,
        observed: expect.stringMatching(/^not verified: (ended by|it was stopped)/),
      })
      expect(read.ok).toBe(false)
    })

    test('and is not there at all did not do its work', async () => {
      expect((await exec('no-such-program')).seen).toMatchObject({ holds: false })
      expect((await bash('no-such-program')).seen).toMatchObject({
        observed: expect.stringContaining('not verified: exit code 127'),
      })
    })

    test('shows no secret of its last line', async () => {
      const { seen } = await bash('echo "pass""word=hunter2hunter2" >&2; exit 3')
      expect(seen).toMatchObject({ holds: false, observed: expect.stringContaining('exit code 3: password=') })
      expect(seen?.observed).not.toContain('hunter2')
    })

    test('and never came to the device did not do its work', async () => {
      const { read, seen, effect } = await bash('touch x; export TOKEN=ghp_0123456789abcdefghijABCDEFGHIJ012345')
      expect(effect).toBeNull()
      expect(read).toMatchObject({ ok: false, error: { code: 'INVALID_INPUT' } })
      expect(seen).toMatchObject({ holds: false, observed: expect.stringContaining('not verified: ') })
    })

    test('in a guest that pct reaches ends with the exit code of the guest', async () => {
      const inGuest = (argv: string[]) => verified('exec', { on: 'vm-101', argv })
      expect((await inGuest(['sh', '-c', 'echo down >&2; exit 5'])).seen).toEqual({
        ...{ holds: false, observed: 'not verified: exit code 5: down' },
      })
      expect((await inGuest(['touch', join(place.path, 'guest')])).seen).toMatchObject({ holds: null })
      const text = await verified('shell_eval', { on: 'vm-101', command: 'touch z; exit 9' })
      expect(text.seen).toMatchObject({ holds: false, observed: 'not verified: exit code 9' })
    })

    test('with a code that says it did its work has done it: what is reported is not a failure', async () => {
      writeFileSync(join(place.path, 'a'), 'a\n')
      writeFileSync(join(place.path, 'b'), 'b\n')
      const { seen, read } = await verified('shell_eval', { command: 'diff a b > difference', cwd: place.path })
      expect(seen).toMatchObject({ holds: null })
      expect(read).toMatchObject({ ok: true, data: { exit_code: 1 } })
    })
  })

  test('a look that a person allowed tells its exit code as a part of the answer', async () => {
    const { seen, read } = await exec('grep', '-c', 'nobody-has-this-name', '/etc/shadow')
    expect(read).toMatchObject({ ok: true, data: { exit_code: 1 } })
    expect(seen).toMatchObject({ holds: null, observed: expect.stringContaining('read-only') })
  })

  test('an unasked look tells its exit code, before what it printed', async () => {
    const { answer } = await ran(api, 'exec', { on, argv: ['ls', '/nowhere'] }, 'unasked')
    expect(answer).toMatchObject({ ok: true, data: { exit_code: 2, stderr: expect.stringContaining('/nowhere') } })
    const keys = Object.keys((answer as { data: object }).data)
    expect(keys.indexOf('exit_code')).toBeLessThan(keys.indexOf('stdout'))
  })

  test('git makes its commits as Nightshift, and one that it cannot make is told as such', async () => {
    const path = join(place.path, 'repository')
    const git = (...words: string[]) =>
      execFileSync('git', ['-C', path, '-c', 'user.name=A', '-c', 'user.email=a@a', ...words], { encoding: 'utf8' })
    execFileSync('git', ['init', '--quiet', path])
    writeFileSync(join(path, 'file'), 'one\n')
    git('add', 'file')
    git('commit', '--quiet', '--message', 'one')
    writeFileSync(join(path, 'file'), 'two\n')
    git('commit', '--quiet', '--all', '--message', 'two')

    const reverted = await exec('git', '-C', path, 'revert', '--no-edit', 'HEAD')
    expect([reverted.read.ok, reverted.seen?.holds]).toEqual([true, null])
    expect(git('log', '-1', '--format=%an <%ae> %s').trim()).toBe(`Nightshift <nightshift@${on}> Revert "two"`)
    const again = await exec('git', '-C', path, 'revert', '--no-edit', 'no-such-commit')
    expect(again.seen).toMatchObject({
      holds: false,
      observed: expect.stringMatching(/^not verified: exit code 128: fatal: /),
    })
  })

  describe('what will prove a write', () => {
    const proof = async (tool: string, args: Record<string, unknown>) =>
      (await prepared(api, tool, { on, ...args, reason: 'because' }))?.dryRun.proof

    const sleeping = spawn('sleep', ['300'], { stdio: 'ignore' })
    afterAll(() => void sleeping.kill('SIGKILL'))
    const there = () => {
      const { pid = 0 } = sleeping
      return { pid, start_time: readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ')[19] }
    }

    test('is the state, where the device can be asked for it', async () => {
      expect(await proof('fs_write', { path: join(place.path, 'file'), content: 'x' })).toEqual({
        by: 'state',
        text: 'the file holds exactly what was written',
      })
      expect(await proof('proc_kill', there())).toMatchObject({ by: 'state' })
    })

    test('is nothing for a command, for a signal that asks for something else, and for what goes through a host', async () => {
      expect(await proof('exec', { argv: ['touch', '/x'] })).toMatchObject({ by: 'nothing' })
      expect(await proof('shell_eval', { command: 'touch /x' })).toMatchObject({ by: 'nothing' })
      expect(await proof('proc_kill', { ...there(), signal: 'HUP' })).toMatchObject({ by: 'nothing' })
      expect(await proof('exec', { on: 'vm-101', argv: ['touch', '/x'] })).toMatchObject({ by: 'nothing' })
    })

    test('appended or whole, a file is looked at', async () => {
      const path = join(place.path, 'appended')
      writeFileSync(path, 'one\n')
      const { seen } = await verified('fs_write', { path, content: 'two\n', append: true })
      expect(seen).toEqual({ holds: true, observed: 'the file holds what was written' })
    })

    test('a clone that was refused does not hold, though something stands in its place', async () => {
      const { seen, effect } = await verified('git_clone', { url: 'https://example.invalid/x.git', path: place.path })
      expect(effect).toMatchObject({ status: 'failed' })
      expect(seen).toMatchObject({ holds: false, observed: expect.stringContaining('not verified: ') })
    })
  })

  describe('what the engine of containers says of a command', () => {
    const spec = specNamed('docker_exec')!
    const why = (argv: string[], result: object) =>
      whyEndedBadly({ spec, input: { container: 'web', argv } }, { stderr: '', ...result })

    test('is its exit code', () => {
      expect(why(['nginx', '-s', 'reload'], { exit_code: 0 })).toBeNull()
      expect(why(['nginx', '-s', 'reload'], { exit_code: 1, stderr: 'a\nno pid\n' })).toBe('exit code 1: no pid')
      expect(why(['nginx', '-s', 'stop'], { exit_code: 137 })).toBe('exit code 137')
    })

    test('may be nothing: then it is not known how it ended', () => {
      expect(why(['nginx', '-s', 'reload'], { exit_code: null, still_running: true })).toMatch(
        /how it ended is not known/,
      )
      expect(why(['nginx', '-s', 'reload'], {})).toMatch(/how it ended is not known/)
    })

    test('is a part of the answer of a look', () => {
      expect(why(['ls', '/nowhere'], { exit_code: 2 })).toBeNull()
    })
  })
})
