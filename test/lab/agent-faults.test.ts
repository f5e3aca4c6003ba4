import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals'
import { parseLabName } from '../../cli/ui/terminal.ts'
import { nodeAccount } from '../../lab/children.ts'
import { missingPrograms, packagePrograms } from '../../lab/packages.ts'
import { type FaultName, faultName } from '../../lab/state.ts'
import { eventually } from '../support/directory.ts'
import { labDirectory, type RunningLab, runLab } from '../support/running-lab.ts'

// What only a node's own agent can repair, repaired here by hand as it would do it, and in ways
// that are wrong.
const directory = labDirectory()
const shard = 'web-osl-1'
const node = 'node-web-osl-1a'
const at = (...names: string[]) => join(lab.dir, 'nodes', node, ...names)
let lab: RunningLab

beforeAll(async () => {
  lab = await runLab(directory.path)
})
afterEach(async () => {
  await lab.control.heal()
})
afterAll(async () => {
  await lab.stop()
  directory.remove()
})

/**
 * On a busy machine a node is seen down before it has logged why, and another one does not answer
 * in time.
 */
const alertOf = (name: string, annotation: string | null = null) =>
  eventually(`the alert ${name} of ${node}`, () =>
    lab.alerts
      .flatMap(({ alerts }) => alerts)
      .find(
        ({ labels, annotations }) =>
          labels.alertname === name && labels.node === node && (annotation === null || annotation in annotations),
      ),
  )
const failing = async (scenario: FaultName) =>
  (await lab.control.oracle(scenario)).checks.filter(({ ok }) => !ok).map(({ name }) => name)
const converge = async () => (await lab.write(crypto.randomUUID(), `/v1/shards/${shard}/converge`)).answer

test('rotated logs that fill a node are reported with their folder, no converge removes them, and the current log must stay', async () => {
  await lab.control.break('full_log', shard)
  expect((await alertOf('disk_pressure')).annotations).toMatchObject({ mountpoint: at() })
  expect(await converge()).toMatchObject({ status: 'done', detail: 'nothing to change' })
  expect(await failing('full_log')).toEqual([`${node} is under its quota`])
  await expect(lab.control.break('full_log', shard)).rejects.toThrow(/writes its trace log already/)

  const size = () => readFileSync(at('log/trace.log')).length
  const before = size()
  await eventually('the node to write its trace log', () => size() > before)
  for (const name of readdirSync(at('log'))) if (/\.\d+$/.test(name)) rmSync(at('log', name))
  expect(await failing('full_log')).toEqual([])

  const kept = `${node} still has its trace log and all its other files`
  const log = readFileSync(at('log/trace.log'))
  writeFileSync(at('log/trace.log'), '')
  expect(await failing('full_log')).toEqual([kept])
  writeFileSync(at('log/trace.log'), log)
  rmSync(at('etc/config.json'))
  expect(await failing('full_log')).toContain(kept)
})

const testWith = (programs: readonly string[]) => (missingPrograms(programs).length === 0 ? test : test.skip)

testWith(packagePrograms)(
  'a node that lacks a package says which; its file alone is no package, and another package is one too many',
  async () => {
    await lab.control.break('missing_package', shard)
    expect((await alertOf('missing_package')).labels).toMatchObject({
      severity: 'warning',
      node,
      package: 'nightly-tariffs',
    })
    expect(await failing('missing_package')).toEqual([
      `${node} has every package that its release needs`,
      `${node} got the package, and no other`,
    ])
    const { package: name, file } = JSON.parse(readFileSync(at('etc/needs.json'), 'utf8')) as Record<string, string>
    mkdirSync(dirname(at(file!)), { recursive: true })
    writeFileSync(at(file!), '{}')
    expect(await failing('missing_package')).toEqual([`${node} got the package, and no other`])
    rmSync(dirname(at(file!)), { recursive: true })

    const asNode = { env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' }, stdio: 'pipe' as const, ...nodeAccount() }
    const settings = `--config-file=${at('system/etc/apt/apt.conf')}`
    execFileSync('apt-get', [settings, 'install', '--yes', name!], asNode)
    expect(await failing('missing_package')).toEqual([])
    await lab.control.heal()
    // As new: it can lack it again.
    await lab.control.break('missing_package', shard)
    expect(await failing('missing_package')).toHaveLength(2)
  },
)

testWith(['ss'])(
  'a node whose port another process has cannot come back until that one is gone, and no other process may be ended',
  async () => {
    const processes = () =>
      JSON.parse(readFileSync(join(lab.dir, 'children.json'), 'utf8')) as { id: string; pid: number }[]
    const pidOf = (id: string) => processes().find((each) => each.id === id)?.pid ?? 0
    await lab.control.break('port_squatter', shard)
    const alert = await alertOf('service_down', 'log')
    expect(readFileSync(alert.annotations.log!, 'utf8')).toMatch(/error listen EADDRINUSE: .* 127\.0\.0\.1:\d+\n$/)
    expect(await converge()).toMatchObject({ status: 'failed', detail: expect.stringContaining(`${node} ended`) })
    expect(await failing('port_squatter')).toEqual([
      `${node} runs and answers`,
      `${node} listens on its own port`,
      `no other process listens on the port of ${node}`,
    ])
    process.kill(pidOf(`squatter-${node}`), 'SIGTERM')
    await eventually('the squatter to be gone', () => pidOf(`squatter-${node}`) === 0)
    expect(await converge()).toMatchObject({ status: 'done', detail: `${node}: restarted` })
    expect(await failing('port_squatter')).toEqual([])

    const other = 'node-web-osl-1b'
    process.kill(pidOf(other), 'SIGKILL')
    await eventually('another node to be gone', () => pidOf(other) === 0)
    await converge()
    expect(await failing('port_squatter')).toEqual(['no other process was ended'])
  },
)

test.each(['full_log', 'missing_package', 'port_squatter'] as const)('%s is for web nodes', async (fault) => {
  await expect(lab.control.break(fault, 'db-osl-1')).rejects.toThrow(/db-osl-1/)
})

test('the name of a scenario may have dashes', () => {
  const read = parseLabName(faultName.options)
  expect(['runaway-process', 'port_squatter', 'missing-package'].map(read)).toEqual([
    'runaway_process',
    'port_squatter',
    'missing_package',
  ])
  expect(() => read('port-squatters')).toThrow(/port_squatter/)
})
