import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll } from '@jest/globals'
import { temporaryDirectory } from '../../support/directory.ts'
import { eventually } from '../../support/eventually.ts'
import { freePort } from '../../support/port.ts'
import { type DeviceSettings, enrol, type MeshApi } from './mesh-api.ts'

const entry = fileURLToPath(new URL('../../../cli/main.ts', import.meta.url))
const ending: (() => void)[] = []
afterAll(() => {
  for (const end of ending.splice(0)) end()
})

export type RealAgent = { id: string; state: string; pid: number }

/**
 * The agent itself, enrolled as a person would do it. `programs` are scripts that this agent alone finds in /usr/local/sbin: it runs in a
 * namespace of mounts of its own, since what an agent executes comes from the machine's directories and no others. `overSystem`: a
 * directory over /usr/bin, which only root can put there.
 */
export async function realAgent(
  api: MeshApi,
  id: string,
  settings: DeviceSettings,
  programs: Record<string, string> = {},
  overSystem: string | null = null,
): Promise<RealAgent> {
  const directory = temporaryDirectory()
  const state = join(directory.path, 'state')
  mkdirSync(state)
  const address = `127.0.0.1:${await freePort()}`
  const body = { url: `http://${address}`, mode: 'all', terms: { capabilities: [], roots: [] }, ...settings }
  const made = await api.put(`/devices/${id}`, { body })
  if (made.status !== 200) throw new Error(JSON.stringify(made.body))
  const { body: minted } = await api.post(`/devices/${id}/enrolment`)
  const given = await enrol(api, String(minted.token))
  writeFileSync(join(state, 'manifest.json'), JSON.stringify(given.body.manifest))
  writeFileSync(join(state, 'root-key'), String(given.body.root_public_key))
  const command = [process.execPath, '--disable-warning=ExperimentalWarning', entry, 'mesh', 'agent']
  const words = [
    ...around(directory.path, programs),
    ...over(overSystem),
    ...command,
    '--state',
    state,
    '--listen',
    address,
  ]
  const child = spawn(words[0] ?? '', words.slice(1), { stdio: ['ignore', 'ignore', 'inherit'] })
  ending.push(() => {
    child.kill('SIGKILL')
    directory.remove()
  })
  await eventually(
    `the agent of ${id}`,
    async () => {
      if (hasEnded(child)) throw new Error(`the agent of ${id} ended with ${child.exitCode}`)
      const health = await fetch(`http://${address}/health`).catch(() => null)
      // Not somebody else's, who was faster to take the port.
      return health?.ok && ((await health.json()) as { device: string }).device === id
    },
    60_000,
  )
  await api.post(`/devices/${id}/health`)
  return { id, state, pid: child.pid ?? 0 }
}

const hasEnded = ({ exitCode, signalCode }: ChildProcess): boolean => exitCode !== null || signalCode !== null

function over(directory: string | null): string[] {
  if (directory === null) return []
  const mounted = `mount -t overlay overlay -o "lowerdir=$1:/usr/bin" /usr/bin && shift && exec "$@"`
  return ['unshare', '--mount', '--', '/bin/sh', '-c', mounted, 'sh', directory]
}

function around(directory: string, programs: Record<string, string>): string[] {
  const names = Object.keys(programs)
  if (names.length === 0) return []
  const programDirectory = join(directory, 'sbin')
  mkdirSync(programDirectory)
  for (const name of names) {
    writeFileSync(join(programDirectory, name), programs[name] ?? '')
    chmodSync(join(programDirectory, name), 0o755)
  }
  const mounted = `mount --bind "$1" /usr/local/sbin && shift && exec "$@"`
  const user = process.getuid?.() === 0 ? [] : ['--map-root-user']
  return ['unshare', ...user, '--mount', '--', '/bin/sh', '-c', mounted, 'sh', programDirectory]
}
