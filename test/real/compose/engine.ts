import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { eventually } from '../../support/directory.ts'
import { findProgram } from '../kinds.ts'

export type ComposeEngine = {
  /** A process of its network. */
  pid: number
  host: string
  docker(...words: string[]): Promise<string>
  /** Docker Compose in a folder. Rejects with what it said where it fails. */
  compose(folder: string, ...words: string[]): Promise<string>
  stop(): Promise<void>
}

/**
 * Debian's engine with networks of its own: all that it mounts, opens and routes is in namespaces
 * that end with it. No registry can be reached.
 */
export async function startComposeEngine(place: string): Promise<ComposeEngine> {
  const host = `unix://${join(place, 'docker.sock')}`
  const file = join(place, 'engine.log')
  const log = openSync(file, 'a')
  const where = [
    '--data-root',
    join(place, 'data'),
    '--exec-root',
    join(place, 'exec'),
    '--pidfile',
    join(place, 'pid'),
  ]
  const engine: ChildProcess = spawn(
    'unshare',
    [
      ...['--mount', '--net', '--propagation', 'private', 'sh', '-c', 'ip link set lo up; exec "$@"', 'sh'],
      ...[findProgram('dockerd')!, '--host', host, ...where],
    ],
    { stdio: ['ignore', log, log], env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' } },
  )
  const ended = once(engine, 'exit')
  const env = { PATH: '/usr/bin:/bin', DOCKER_HOST: host, HOME: place, DOCKER_BUILDKIT: '0' }
  const act = async (program: string, words: string[], cwd: string) => {
    try {
      const { stdout, stderr } = await promisify(execFile)(program, words, { env, cwd, maxBuffer: 64 * 1024 * 1024 })
      return `${stdout}${stderr}`
    } catch (error) {
      const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string }
      throw new Error(`${words.join(' ')}: ${`${stdout}${stderr}`.slice(-4_000)}`)
    }
  }
  const docker = (...words: string[]) => act(findProgram('docker')!, words, place)
  const compose = (folder: string, ...words: string[]) => act(findProgram('docker-compose')!, words, folder)
  const stop = async () => {
    if (engine.exitCode !== null || engine.signalCode !== null) return
    const running = (await docker('ps', '--all', '--quiet')).trim().split('\n').filter(Boolean)
    if (running.length > 0) await docker('rm', '--force', ...running)
    engine.kill('SIGTERM')
    await ended
  }
  await eventually('the engine to answer', async () => {
    if (engine.exitCode !== null) throw new Error(`the engine ended: ${readFileSync(file, 'utf8').slice(-2_000)}`)
    return await docker('version').catch(() => null)
  })
  return { pid: engine.pid as number, host, docker, compose, stop }
}
