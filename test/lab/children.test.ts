import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { processState } from '../../lab/children.ts'
import { eventually } from '../support/directory.ts'
import { labDirectory, type RunningLab, runLab } from '../support/running-lab.ts'

let directory: ReturnType<typeof labDirectory>
const labs: RunningLab[] = []

beforeEach(() => {
  directory = labDirectory()
})
afterEach(async () => {
  for (const lab of labs.splice(0)) await lab.stop()
  directory.remove()
})

async function start(): Promise<RunningLab> {
  const lab = await runLab(directory.path, { webShards: 0 })
  labs.push(lab)
  return lab
}

/** Every process of the lab, by what it recorded: nodes, hosts, and the VMs that hosts run. */
function pids(dir: string): number[] {
  const children = JSON.parse(readFileSync(join(dir, 'children.json'), 'utf8')) as { id: string; pid: number }[]
  const beats = readdirSync(join(dir, 'storage')).flatMap((vm) =>
    readdirSync(join(dir, 'storage', vm))
      .filter((name) => name.startsWith('running.'))
      .map((name) => Number(readFileSync(join(dir, 'storage', vm, name), 'utf8'))),
  )
  return [...children.filter(({ id }) => id !== 'controller').map(({ pid }) => pid), ...beats]
}

test('killing the controller leaves no node behind, not even a stopped one', async () => {
  const lab = await start()
  await lab.control.break('replication_lag', 'db-osl-1')
  const all = pids(lab.dir)
  expect(all).toHaveLength(4 + 9 + 25)
  lab.process.kill('SIGKILL')
  await eventually('every process to be gone', () => all.every((pid) => processState(pid) === 'gone'))
})

test('a lab that is asked to stop ends every process', async () => {
  const lab = await start()
  const all = pids(lab.dir)
  lab.process.kill('SIGTERM')
  await once(lab.process, 'exit')
  await eventually('every process to be gone', () => all.every((pid) => processState(pid) === 'gone'))
})

test('a second start finds the VMs at their places, the counters, hosts to drain, and the answers to writes', async () => {
  const first = await start()
  const { answer } = await first.write('k', '/v1/vms/vm-112/migrate', { from: 'host-osl-4', to: 'host-ams-3' })
  expect(answer.status).toBe('done')
  const counter = Number(readFileSync(join(first.dir, 'storage/vm-112/counter'), 'utf8'))
  await first.control.break('drain', 'host-osl-2')
  await first.control.break('step_fails', 'host-osl-3')
  await first.stop()
  const second = await start()
  const { vms, hosts } = await second.inventory()
  expect(hosts.find(({ id }) => id === 'host-osl-2')?.state).toBe('draining')
  expect((await fetch(`${second.url}/readyz`)).status).toBe(200)
  expect(vms.find(({ id }) => id === 'vm-112')).toMatchObject({ host: 'host-ams-3', running: true })
  expect(Number(readFileSync(join(second.dir, 'storage/vm-112/counter'), 'utf8'))).toBeGreaterThan(counter)
  const again = await second.write('k', '/v1/vms/vm-112/migrate', { from: 'host-osl-4', to: 'host-ams-3' })
  expect(again.answer).toEqual(answer)
  expect(await second.control.effects()).toMatchObject([{ key: 'k', runs: 1 }])
})

test('two labs do not share a directory', async () => {
  const lab = await start()
  await expect(runLab(lab.dir)).rejects.toThrow(/another lab runs in/)
  expect((await fetch(`${lab.url}/readyz`)).status).toBe(200)
})

test('nodes have no token, and a start as root runs them as another user', async () => {
  const lab = await start()
  const shown = execFileSync('ps', ['-o', 'uid=,args=', '-p', pids(lab.dir).join(',')], { encoding: 'utf8' })
  const uids = new Set(
    shown
      .trim()
      .split('\n')
      .map((line) => Number(line.trim().split(/\s+/)[0])),
  )
  expect(uids.size).toBe(1)
  if (process.getuid!() === 0) expect(uids.has(0)).toBe(false)
  expect(shown).not.toContain('token')
})
