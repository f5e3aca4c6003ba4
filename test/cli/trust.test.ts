import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { playPair } from '../support/played-pair.ts'
import { runCli } from '../support/run-cli.ts'
import { type Spine, startSpine } from '../support/spine.ts'

let spine: Spine
beforeAll(async () => {
  spine = await startSpine({ parts: ['api'], environment: { AGENT_TRUST: 'propose' } })
})
afterAll(() => spine?.stop())

const nightshift = (...words: string[]) =>
  runCli(words, { NIGHTSHIFT_URL: spine.url, NIGHTSHIFT_TOKEN: spine.tokens.approver })

test('the terminal shows the record of a pair, sets its level with a reason, and names the person', async () => {
  await playPair(spine, { AGENT_TRUST: 'propose' }).propose()
  const promoted = await nightshift(
    ...['trust', 'promote', 'replication_lag', 'converge_shard', '--to', 'act', '--reason', 'it is the lab'],
  )
  expect(promoted).toMatchObject({ code: 0 })
  expect(promoted.stdout).toMatch(/proposed +1/)
  expect((await nightshift('trust')).stdout).toMatch(/^act .*converge_shard, replication_lag$/m)
  const shadow = ['converge_shard', '--to', 'shadow', '--reason', 'the replicas move']
  const mistyped = await nightshift('trust', 'promote', 'replication_lagg', ...shadow)
  expect(mistyped).toMatchObject({
    code: 3,
    stderr: expect.stringMatching(/nothing was set\. Did you mean replication_lag\?/),
  })
  expect((await nightshift('trust', 'show', 'replication_lag', 'converge_shard')).stdout).toContain(
    'act, by approver: it is the lab',
  )
})

test('one command stops a kind of write for the site, home shows the stop, and another command ends it', async () => {
  const words = [
    'stop',
    'replication_lag',
    '--tool',
    'converge_shard',
    '--until',
    '8h',
    '--reason',
    'the replicas move',
  ]
  const stopped = await nightshift(...words)
  expect(stopped).toMatchObject({ code: 0 })
  expect(stopped.stderr + stopped.stdout).toContain('resume replication_lag --tool converge_shard --reason "…"')
  expect((await nightshift('home')).stderr).toMatch(
    /Stopped: converge_shard in .* by approver until .*: the replicas move/,
  )
  expect((await nightshift('stop')).stdout).toMatch(/converge_shard in incidents of type replication_lag .*approver/)
  expect((await nightshift(...words)).stderr).toContain('is stopped by approver until')
  const other = await nightshift('resume', 'replication_lag', '--reason', 'done')
  expect(other).toMatchObject({ code: 1 })
  expect(other.stderr).toMatch(/every write in .* is not stopped[\s\S]*resume replication_lag --tool converge_shard/)
  const resumed = await nightshift('resume', 'replication_lag', '--tool', 'converge_shard', '--reason', 'done')
  expect(resumed).toMatchObject({ code: 0 })
  expect((await nightshift('stop')).stderr).toContain('Nothing is stopped.')
  const untyped = await nightshift('stop', '--tool', 'converge_shard', '--reason', 'a drill')
  expect(untyped).toMatchObject({ code: 2, stderr: expect.stringContaining('Nothing was stopped: name the type') })
  expect((await nightshift('stop', 'replication_lagg', '--reason', 'a drill')).stderr).toContain(
    'Did you mean replication_lag?',
  )
})

test('a policy is linted alone, and against the running site', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'policy-'))
  const path = join(folder, 'policy.yaml')
  await writeFile(path, 'version: 1\nrules:\n  - { name: a, resource: { kind: host, id: web-9 }, action: never }\n')
  expect((await nightshift('policy', 'lint', path)).stderr).toContain('Add --site to compare it with your site too')
  const held = await nightshift('policy', 'lint', path, '--site')
  expect(held).toMatchObject({ code: 0 })
  expect(held.stdout).toContain(`${path}:3: ! "a": no source lists host:web-9.`)
  expect((await nightshift('policy', 'lint')).stderr).toContain('No policy is in force, and none waits: give a file.')
  await writeFile(path, 'version: 1\nrules:\n  - { name: a, tool: vm_strat, action: never }\n')
  expect(await nightshift('policy', 'lint', path, '--site')).toMatchObject({ code: 1 })
})

test('a call is explained with the silences of its incident, and without an incident nothing is silenced', async () => {
  const path = join(await mkdtemp(join(tmpdir(), 'policy-')), 'policy.yaml')
  await writeFile(path, 'version: 1\nrules:\n  - { name: theirs, silenced: true, action: ask }\n')
  const explain = (...words: string[]) => nightshift('policy', 'explain', 'vm_start', '--file', path, ...words)
  expect((await explain()).stdout).toMatch(
    /theirs +ask +no alert is silenced\nName an incident with --incident.*\nNo rule of the policy decides/,
  )
  const [incident] = await spine.incidents()
  expect((await explain('--incident', incident?.id ?? '')).stdout).toMatch(
    /theirs +ask +fits\nNo Alertmanager is connected.*\nask: line 3, "theirs"/,
  )
  const replayed = await nightshift('policy', 'replay', '--file', path)
  expect(replayed.stderr).toContain('Nightshift keeps no old silences')
})
