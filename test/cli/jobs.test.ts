import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { acceptEffect, finishEffect, noteJobOfEffect } from '../../db/writes/effects.ts'
import { parseJobs } from '../../effects/jobs/jobs.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { runCli, useServedApi } from '../support/run-cli.ts'
import { scriptedPlatform } from '../support/scripted-platform.ts'

const hosts = temporaryDirectory()
afterAll(hosts.remove)
const playbook = fileURLToPath(new URL('../effects/stand-ins/playbook.sh', import.meta.url))
const jobs = parseJobs(`
jobs:
  - name: converge-node
    about: Re-applies the configuration of a node
    resources: { kind: node, pattern: "node-osl-[12]" }
    run: { command: [${playbook}, ${hosts.path}, --limit, "{id}"] }
    check:
      command: [${playbook}, ${hosts.path}, --limit, "{id}", --check, --diff]
      noChanges: { pattern: "changed=0 .*failed=0", unless: "changed=[1-9]|failed=[1-9]" }
  - name: no-check
    about: Does something to it
    resources: { kind: node, ids: [node-osl-2] }
    run: { command: [${playbook}, ${hosts.path}, --limit, node-osl-2] }
`)
const api = useServedApi(() => ({ platform: scriptedPlatform(), jobs }))
const run = (args: string[], role: 'viewer' | 'admin' = 'viewer') => runCli(args, api.as(role))
const host = (text: string) => writeFileSync(join(hosts.path, 'node-osl-2'), text)
beforeAll(() => {
  writeFileSync(join(hosts.path, 'calls'), '')
  host('drifted')
})

test('jobs are listed, also for one resource, with whether their check mode verifies runs', async () => {
  const all = await run(['jobs', 'list'])
  expect([all.code, all.stdout]).toEqual([0, expect.stringMatching(/converge-node +node +command +yes, verifies runs/)])
  const { stdout } = await run(['jobs', 'list', '--on', 'node:node-osl-1', '--json'])
  expect(JSON.parse(stdout)).toMatchObject([{ name: 'converge-node', hasCheck: true }])
  expect((await run(['jobs', 'list', '--on', 'node-osl-1'])).code).toBe(2)
  expect((await run(['jobs', 'list', '--on', 'shard:db-osl-1'])).stderr).toContain('No job may run on shard:db-osl-1')
})

test('a job is shown with its arguments, its places, its check mode and its last runs', async () => {
  const key = 'api:tok_1:once'
  await acceptEffect(api.db, { key, incidentId: null, tool: 'run_job', actionDigest: 'd' })
  const resource = { kind: 'node' as const, id: 'node-osl-2' }
  await noteJobOfEffect(api.db, key, {
    name: 'converge-node',
    system: 'command',
    phase: 'begun',
    ref: null,
    resource,
  })
  await finishEffect(api.db, key, {
    status: 'done',
    detail: 'converge-node: ended with \u001b[31mcode 0',
    result: {},
  })
  const { code, stdout } = await run(['jobs', 'show', 'converge-node'])
  expect(code).toBe(0)
  expect(stdout).toContain('node whose full id matches node-osl-[12]')
  expect(stdout).toContain('playbook.sh')
  expect(stdout).toMatch(/is given +\{id\}/)
  expect(stdout).toMatch(/no change +output matches changed=0/)
  expect(stdout).toMatch(/done +.*node:node-osl-2 .*code 0/)
  expect(stdout).not.toContain('\u001b[31m')
  const shown = JSON.parse((await run(['jobs', 'show', 'no-check', '--json'])).stdout)
  expect(shown).toMatchObject({ check: null, on: { ids: ['node-osl-2'] }, parameters: [], lastRuns: [] })
})

test('the check mode is run by hand, and shows what would change, or that nothing would', async () => {
  const check = ['jobs', 'check', 'converge-node', '--on', 'node:node-osl-2']
  const drifted = await run(check, 'admin')
  expect([drifted.code, drifted.stdout]).toEqual([0, expect.stringMatching(/\+wanted[\s\S]*changed=1/)])
  expect(drifted.stderr).toContain('Nothing was changed')
  host('wanted')
  const nothing = await run(check, 'admin')
  expect([nothing.code, nothing.stdout]).toEqual([0, 'converge-node would change nothing on node:node-osl-2.\n'])
  expect(JSON.parse((await run([...check, '--json'], 'admin')).stdout)).toMatchObject({ wouldChange: false })
})

test('an error names its remedy', async () => {
  const unknown = await run(['jobs', 'show', 'convrge'])
  expect([unknown.code, unknown.stderr]).toEqual([3, expect.stringContaining('converge-node, no-check')])
  expect(unknown.stderr).toContain('nightshift jobs list')
  const elsewhere = await run(['jobs', 'check', 'no-check', '--on', 'node:node-osl-1'], 'admin')
  expect([elsewhere.code, elsewhere.stderr]).toEqual([
    1,
    expect.stringContaining('Declared for this resource: converge-node'),
  ])
  expect((await run(['jobs', 'check', 'no-check'], 'admin')).code).toBe(2)
  const viewer = await run(['jobs', 'check', 'converge-node', '--on', 'node:node-osl-2'])
  expect([viewer.code, viewer.stderr]).toEqual([4, expect.stringContaining('act_on_platform')])
})

test('a job that a person runs is shown, and waits as an incident while Temporal is away', async () => {
  host('drifted')
  const words = ['jobs', 'run', 'converge-node', '--on', 'node:node-osl-2', '--reason', 'it drifted', '--yes']
  const { code, stderr } = await run(words, 'admin')
  expect([code, stderr]).toEqual([
    0,
    expect.stringMatching(
      /changed=1 [\s\S]*Nothing was done yet, because Temporal does not answer\. [\s\S]*incidents watch inc_/,
    ),
  ])
  const { stdout } = await run([...words, '--json'], 'admin')
  const { incidentId } = JSON.parse(stdout)
  expect((await run(['incidents', 'show', incidentId], 'admin')).stdout).toContain('admin: Run the job converge-node')
  expect(
    (
      await run(
        words.filter((word) => !/reason|drifted/.test(word)),
        'admin',
      )
    ).code,
  ).toBe(2)
})

test('a shard that a person converges is shown with the changes and their places', async () => {
  const words = ['act', 'converge', 'db-osl-1', '--reason', 'a setting has drifted', '--yes']
  const { code, stderr } = await run(words, 'admin')
  expect([code, stderr]).toEqual([0, expect.stringContaining('Converge db-osl-1: ')])
  expect((await run(words)).code).toBe(4)
  expect((await run(['act', 'converge', 'nowhere', '--reason', 'x', '--yes'], 'admin')).code).not.toBe(0)
})
