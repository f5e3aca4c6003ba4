import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { readStat } from '../../../mesh/agent/programs.ts'
import { temporaryDirectory } from '../../support/directory.ts'
import { aGranted, aManifest, keys, type Running, startAgent } from '../../support/running-agent.ts'

// Through the agent's own process: signed requests in, its guard and journal between, effects on
// this machine.

const own = keys()
const isRoot = process.getuid!() === 0
const users: [string, number | undefined][] = [['the user who started it', undefined]]
// As most devices should run it.
if (isRoot) users.push(['a user without rights', 65534])

describe.each(users)('an agent that runs as %s', (_, uid) => {
  let place: ReturnType<typeof temporaryDirectory>
  let root: string
  let agent: Running

  beforeAll(async () => {
    place = temporaryDirectory()
    root = join(place.path, 'srv')
    mkdirSync(join(root, 'conf'), { recursive: true })
    const manifest = aManifest(own, {
      roots: [{ path: root, writable: true }],
      checks: [{ path: `${root}/**/*.json`, argv: ['python3', '-m', 'json.tool', '{path}'] }],
    })
    give(place.path)
    agent = await startAgent(own, { manifest, uid, dockerHost: 'unix:///nowhere/docker.sock' })
  })
  afterAll(async () => {
    await agent?.stop()
    place.remove()
  })

  /** What lies there belongs to whom the agent runs as. */
  const give = (path: string) => uid && execFileSync('chown', ['-R', `${uid}:${uid}`, path])
  const at = (...names: string[]) => join(root, ...names)

  test('the agent reports at its start what this device lacks', async () => {
    const { unavailable } = await agent.health()
    expect(unavailable['docker.container.list']).toBe('no engine socket at /nowhere/docker.sock')
    expect(unavailable['fs.read']).toBeUndefined()
    if (uid) expect(unavailable['pkg.install']).toMatch(/only root installs packages|apt-get is not installed/)
    expect((await agent.call('docker.container.list', {})).answer.error).toMatchObject({
      code: 'capability_unavailable',
    })
  })

  test('a file is read without approval, and one that is outside or secret is not', async () => {
    writeFileSync(at('plain'), 'hello\n')
    writeFileSync(at('.env'), 'TOKEN=x\n')
    give(root)
    expect((await agent.call('fs.read', { path: at('plain') })).answer).toMatchObject({
      ok: true,
      approval_status: 'auto_approved',
      cmd_executed: null,
      result: { content: 'hello\n', encoding: 'utf8' },
    })
    expect((await agent.call('fs.read', { path: '/etc/hostname' })).answer.error).toMatchObject({
      code: 'outside_roots',
    })
    expect((await agent.granted('fs.read', { path: '/etc/hostname' })).answer.error).toMatchObject({
      code: 'outside_roots',
    })
    expect((await agent.call('fs.read', { path: at('.env') })).answer.error).toMatchObject({
      code: 'approval_required',
    })
    expect((await agent.granted('fs.read', { path: at('.env') })).answer.result).toMatchObject({
      content: 'TOKEN=x\n',
    })
  })

  test('a write is rehearsed without approval, done with a grant, and done once however often it is sent', async () => {
    const args = { path: at('conf/app.json'), content: '{"port": 8080}\n' }
    expect((await agent.call('fs.write', args)).answer.error).toMatchObject({ code: 'approval_required' })
    expect((await agent.call('fs.write', args, { rehearse: true })).answer).toMatchObject({
      ok: true,
      result: { would_change: true, checks: [{ exit_code: 0 }], diff: expect.stringContaining('+{"port": 8080}') },
    })
    expect(readdirSync(at('conf'))).toEqual([])

    const append = { ...args, content: 'once\n', append: true }
    await agent.granted('fs.write', args)
    const request = aGranted(own, 'fs.write', append)
    const first = await agent.post(request)
    expect(first.answer).toMatchObject({ ok: true, approval_status: 'granted', result: { created: false } })
    const again = aGranted(own, 'fs.write', append, { idempotency_key: request.idempotency_key })
    expect((await agent.post(again)).answer.result).toEqual(first.answer.result)
    expect(readFileSync(args.path, 'utf8')).toBe('{"port": 8080}\nonce\n')
  })

  test('a commit is rehearsed without a grant, and made with one', async () => {
    const checkout = at('repo')
    mkdirSync(checkout)
    const git = (...words: string[]) =>
      execFileSync('git', words, { cwd: checkout, encoding: 'utf8', stdio: 'pipe' }).trim()
    git('init', '--quiet', '--initial-branch=main')
    writeFileSync(join(checkout, 'a.json'), '{}\n')
    git('add', '.')
    git('-c', 'user.name=Ada', '-c', 'user.email=ada@localhost', 'commit', '--quiet', '--message=First')
    writeFileSync(join(checkout, 'a.json'), '{ broken\n')
    give(checkout)
    const args = { path: checkout, message: 'Break it', incident: 'inc-1' }
    const shown = (await agent.call('git.commit', args, { rehearse: true })).answer
    expect(shown).toMatchObject({ ok: true, result: { checks: [{ exit_code: 1 }], would_change: true } })
    const { answer } = await agent.granted('git.commit', args)
    expect(answer).toMatchObject({
      ok: true,
      result: { commit: git('-c', 'safe.directory=*', 'rev-parse', 'HEAD'), files: ['a.json'] },
    })
  })

  test('a process is ended with a grant, and the agent itself with none', async () => {
    const child = spawn('sleep', ['60'], uid ? { uid } : {})
    const gone = new Promise((resolve) => child.once('exit', (_, signal) => resolve(signal)))
    const startTime = (pid: number) => readStat(readFileSync(`/proc/${pid}/stat`, 'utf8')).start_time
    const kill = (pid: number) => agent.granted('proc.kill', { pid, start_time: startTime(pid), signal: 'TERM' })
    expect((await kill(agent.pid)).answer.error).toMatchObject({ code: 'blocked' })
    expect((await kill(child.pid!)).answer).toMatchObject({ ok: true, result: { ended: true } })
    expect(await gone).toBe('SIGTERM')
    const { answer } = await agent.call('proc.list', { name: 'agent' })
    expect((answer.result!.processes as { pid: number }[]).map(({ pid }) => pid)).toContain(agent.pid)
  })
})
