import { execFileSync, spawn } from 'node:child_process'
import { copyFileSync, mkdirSync, openSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { eventually, temporaryDirectory } from '../../support/directory.ts'
import { findProgram } from '../kinds.ts'

export type RealEngine = {
  /** As DOCKER_HOST writes it. */
  host: string
  /** The process whose mounts are those of the engine. */
  pid: number
  /** The engine's own client, with these words. */
  docker(...words: string[]): string
  stop(): Promise<void>
}

/** The image that `startEngine` makes: busybox as Debian links it, without libraries. */
export const image = 'nightshift.local/busybox:1'

/**
 * Debian's container engine on a socket of its own, without a network and without a registry. It
 * lives in a mount namespace, so that whatever it mounts is gone with it.
 */
export async function startEngine(): Promise<RealEngine> {
  const place = temporaryDirectory()
  const socket = join(place.path, 'docker.sock')
  const host = `unix://${socket}`
  const log = join(place.path, 'log')
  const engine = spawn(
    'unshare',
    [
      ...['--mount', '--propagation', 'private', findProgram('dockerd')!, '--host', host],
      ...['--data-root', join(place.path, 'data'), '--exec-root', join(place.path, 'exec')],
      ...['--pidfile', join(place.path, 'pid'), '--bridge=none', '--iptables=false', '--ip6tables=false'],
    ],
    {
      stdio: ['ignore', openSync(log, 'a'), openSync(log, 'a')],
      env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
    },
  )
  const ended = new Promise<void>((resolve) => engine.once('exit', () => resolve()))
  const docker = (...words: string[]) =>
    execFileSync(findProgram('docker')!, words, {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: '/usr/bin:/bin', DOCKER_HOST: host, HOME: place.path },
    })
  const stop = async () => {
    if (engine.exitCode === null && engine.signalCode === null) {
      const [...running] = docker('ps', '--all', '--quiet').trim().split('\n').filter(Boolean)
      if (running.length > 0) docker('rm', '--force', ...running)
      engine.kill('SIGTERM')
      await ended
    }
    place.remove()
  }
  await eventually('the engine to answer', () => {
    if (engine.exitCode !== null) throw new Error(`the engine ended: ${readFileSync(log, 'utf8').slice(-2_000)}`)
    try {
      return docker('version')
    } catch {
      return null
    }
  })
  importImage(place.path, docker)
  return { host, pid: engine.pid as number, docker, stop }
}

/** No registry can be asked: an image is a folder that was packed. */
function importImage(directory: string, docker: RealEngine['docker']): void {
  const bin = join(directory, 'root/bin')
  mkdirSync(bin, { recursive: true })
  copyFileSync(findProgram('busybox')!, join(bin, 'busybox'))
  for (const name of ['sh', 'sleep', 'echo', 'cat', 'date']) symlinkSync('busybox', join(bin, name))
  const packed = join(directory, 'root.tar')
  execFileSync('tar', ['-C', join(directory, 'root'), '-cf', packed, '.'])
  docker('import', packed, image)
}
