import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals'
import { writePublicKey } from '../../../mesh/sign.ts'
import { eventually, freePort, temporaryDirectory } from '../../support/directory.ts'
import { aManifest, aRequest, keys } from '../../support/running-agent.ts'

/**
 * What an operator installs: the unit and the container, started as they say, with this machine's
 * places for theirs.
 */
const checkout = fileURLToPath(new URL('../../..', import.meta.url))
const own = keys()
const children: ChildProcess[] = []
let place: ReturnType<typeof temporaryDirectory>
let state = ''
let address = ''
beforeAll(async () => {
  place = temporaryDirectory()
  state = join(place.path, 'state')
  mkdirSync(state)
  writeFileSync(join(state, 'manifest.json'), JSON.stringify(aManifest(own)))
  writeFileSync(join(state, 'root-key'), writePublicKey(own.rootPublic))
  address = `127.0.0.1:${await freePort()}`
})
afterEach(async () => {
  for (const child of children.splice(0)) {
    const gone = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await gone
  }
})
afterAll(() => place.remove())

function start([program, ...args]: string[], env: Record<string, string> = {}, cwd = checkout): ChildProcess {
  expect(program).toMatch(/^(?:\/usr\/bin\/)?node$/)
  const child = spawn(process.execPath, args, {
    cwd,
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { PATH: process.env.PATH ?? '', HOME: '/tmp', ...env },
  })
  children.push(child)
  return child
}

async function ready(): Promise<void> {
  await eventually('the agent', async () => (await fetch(`http://${address}/health`).catch(() => null))?.ok)
}

/** The arguments of a process, which the agent replaces when it takes its place. */
const argumentsOf = (pid: number) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')

test('the unit starts the agent, as the one process that systemd knows', async () => {
  const unit = readFileSync(join(checkout, 'examples/nightshift-agent.service'), 'utf8')
  const words = /^ExecStart=(.*)$/m.exec(unit)?.[1]?.split(' ') ?? []
  // The programs of the package are those of the checkout, with another ending.
  const here = words.map((word) =>
    word
      .replace('/opt/nightshift/current/bin/node', 'node')
      .replace(/^\/opt\/nightshift\/current\/lib\/(.*)\.js$/, `${checkout}$1.ts`)
      .replace('/var/lib/nightshift-agent', state),
  )
  // Where nobody answers: it calls out until somebody does.
  const key = generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' })
  const kept = { api: 'https://127.0.0.1:1', ca: null, key, isPlainAllowed: false }
  writeFileSync(join(state, 'connection.json'), JSON.stringify(kept))
  const child = start(here)
  const main = join(checkout, 'mesh/agent/main.ts')
  await eventually('the agent', () => argumentsOf(child.pid ?? 0).includes(main) && existsSync(join(state, 'device')))
  expect(child.exitCode).toBe(null)
})

const dockerfile = readFileSync(join(checkout, 'Dockerfile'), 'utf8').replaceAll(/\\\n/g, ' ')
const stage = /^FROM \S+ AS agent\n([\s\S]*?)(?=^FROM )/m.exec(dockerfile)?.[1] ?? ''
// The programs of the image are those of the checkout, with another ending.
const command = (instruction: string) =>
  (JSON.parse(new RegExp(`^${instruction}.*?(\\[.*\\])$`, 'm').exec(stage)?.[1] ?? '[]') as string[]).map((word) =>
    word.replace(/\.js$/, '.ts'),
  )

test('everything that the image copies exists, and the build context leaves none of it out', () => {
  const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.*) \S+$/gm)].flatMap(([, from = '']) => from.split(' '))
  expect(copied).toContain('package-lock.json')
  for (const path of copied) expect([path, existsSync(join(checkout, path))]).toEqual([path, true])
  const stages = [...dockerfile.matchAll(/^FROM \S+ AS (\S+)$/gm)].map(([, name]) => name)
  for (const [, from] of stage.matchAll(/--from=(\S+)/g)) expect(stages).toContain(from)
  const ignored = readFileSync(join(checkout, '.dockerignore'), 'utf8').split('\n')
  for (const needed of ['cli', 'mesh', 'domain', 'safety']) expect(ignored).not.toContain(needed)
})

test('the container starts the agent as its one process, and knows whether it is ready', async () => {
  const env = { MESH_LISTEN: address }
  const check = async () => {
    const asking = start(command('HEALTHCHECK'), env)
    return await new Promise((resolve) => asking.once('exit', resolve))
  }
  expect(await check()).toBe(1)
  const child = start([...command('ENTRYPOINT'), '--state', state], env)
  await ready()
  expect(argumentsOf(child.pid ?? 0)).toContain(join(checkout, 'mesh/agent/main.ts'))
  expect(await check()).toBe(0)
  writeFileSync(join(state, 'manifest.json'), '{}')
  child.kill('SIGHUP')
  await eventually('it to refuse', async () => (await check()) === 1)
})

test('a state directory may be relative to the folder where the agent was started', async () => {
  const repository = join(place.path, 'repository')
  const git = (...args: string[]) => execFileSync('git', ['-C', repository, ...args])
  mkdirSync(repository)
  git('init', '--quiet')
  writeFileSync(join(repository, 'app.conf'), 'port = 80\n')
  git('add', '.')
  git('-c', 'user.name=a', '-c', 'user.email=a@b', 'commit', '--quiet', '-m', 'first')
  writeFileSync(join(repository, 'app.conf'), 'port = 81\n')
  const roots = [{ path: repository, writable: true }]
  writeFileSync(join(state, 'manifest.json'), JSON.stringify(aManifest(own, { roots })))
  const main = join(checkout, 'cli/main.ts')
  const args = ['--disable-warning=ExperimentalWarning', main, 'mesh', 'agent', '--state', 'state', '--listen', address]
  start(['node', ...args], {}, place.path)
  await ready()
  // Tried in a copy below the state directory, by a program that runs in another directory.
  const asked = aRequest(own, 'git.commit', { path: repository, message: 'second' }, { rehearse: true })
  const answer = await fetch(`http://${address}/capability`, { method: 'POST', body: JSON.stringify(asked) })
  expect(await answer.json()).toMatchObject({
    error: null,
    result: { diff: expect.stringContaining('+port = 81') },
  })
})
