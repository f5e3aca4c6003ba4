import { expect, test } from '@jest/globals'
import { toUnreachableProblem } from '../../cli/api.ts'
import { declareResources } from '../../db/inventory/registry.ts'
import { platformSource } from '../../domain/declared-resources.ts'
import { ref } from '../../domain/registry.ts'
import { runCli, useServedApi } from '../support/run-cli.ts'

const api = useServedApi()

const runInventory = (args: string[], input?: string) => runCli(['inventory', ...args], api.as('admin'), input)

const file = `
nodes:
  - { id: web-1, group: web, hostname: web-1.example.com, ip: 192.0.2.11 }
  - { id: web-2, group: web }
hosts:
  - { id: hv-1, ramMib: 65536, cpuMc: 16000 }
`

test('a file of a site is shown, imported and exported', async () => {
  const dry = await runInventory(['import', '-', '--dry-run'], file)
  const near =
    'A reversible write on 2 neighbours of shard:web may run without asking in an incident about it, if its tool is trusted to act.\n'
  expect(dry).toMatchObject({ code: 0, stdout: `added    web, web-1, web-2, hv-1\n${near}` })
  expect(dry.stderr).toContain('Nothing was stored: this was a dry run.')
  expect((await runInventory(['export'])).stdout).not.toContain('web-1')
  expect((await runInventory(['import', '-'], file)).stdout).toBe(`added    web, web-1, web-2, hv-1\n${near}`)
  const { stdout } = await runInventory(['export'])
  expect(JSON.parse(stdout).nodes).toContainEqual({ id: 'web-2', group: 'web', hostname: 'web-2', ip: '' })
  const again = await runInventory(['import', '-', '--json'], stdout)
  expect(JSON.parse(again.stdout)).toMatchObject({ added: [], changed: [], removed: [], applied: true })
})

test('a wrong file is refused with every error, and nothing of it is sent', async () => {
  const wrong = await runInventory(
    ['import', '-'],
    'nodes: [{ id: "a b" }, { id: c, rack: r }]\nhosts: [{ id: h, ramMib: many }]',
  )
  expect(wrong.code).not.toBe(0)
  for (const place of ['nodes.0.id', 'nodes.1', 'hosts.0.ramMib']) expect(wrong.stderr).toContain(place)
  expect((await runInventory(['import', '-'], '{ nodes: [')).stderr).toContain('is not YAML or JSON')
  expect((await runInventory(['import', '/nowhere/site.yaml'])).stderr).toContain('cannot be read')
})

test('two hosts of one VM in a file are refused with the line of each claim', async () => {
  const text = `
resources:
  - { kind: vm, id: "101" }
  - { kind: host, id: pve-1 }
  - { kind: host, id: pve-3 }
relations:
  - { from: "vm:101", kind: runs_on, to: "host:pve-3" }
  - { from: "vm:101", kind: runs_on, to: "host:pve-1" }
`
  const refused = await runInventory(['import', '-'], text)
  expect(refused.code).toBe(2)
  expect(refused.stderr).toContain(
    'line 7, relations.0: vm:101 runs_on host:pve-3, and relations.1 says host:pve-1: vm:101 runs_on one host at most',
  )
  expect(refused.stderr).toContain('line 8, relations.1: vm:101 runs_on host:pve-1, and relations.0 says host:pve-3')
  expect((await runInventory(['export'])).stdout).not.toContain('pve-3')
})

test('a moved VM is on its new host alone, and its page shows what other sources say', async () => {
  const text = (host: string) =>
    JSON.stringify({
      resources: [
        { kind: 'vm', id: 'm-1' },
        { kind: 'host', id: 'pve-1' },
        { kind: 'host', id: 'pve-3' },
      ],
      relations: [{ from: 'vm:m-1', kind: 'runs_on', to: `host:${host}` }],
    })
  await runInventory(['import', '-'], text('pve-3'))
  const moved = await runInventory(['import', '-'], text('pve-1'))
  expect(moved.stdout).toContain('added    vm:m-1 runs_on host:pve-1\nremoved  vm:m-1 runs_on host:pve-3\n')
  const show = async () => (await runCli(['resources', 'show', 'vm:m-1'], api.as('viewer'))).stdout
  expect(await show()).toContain('A reversible write on the one neighbour of vm:m-1 may run without asking')
  await api.db.transaction().execute((trx) =>
    declareResources(trx, platformSource, {
      resources: [],
      relations: [{ from: ref('vm', 'm-1'), kind: 'runs_on', to: ref('host', 'pve-3') }],
    }),
  )
  expect((await show()).replace(/ \([^)]*\)/g, '')).toContain(
    'DISAGREEMENT   runs on: import host:pve-1, platform host:pve-3; Nightshift uses none of these claims to find neighbours\n',
  )
  expect(await show()).not.toContain('reversible write')
})

test('a large file is imported by a job: its steps are shown, then counts and a few names', async () => {
  const units = Array.from({ length: 2_500 }, (_, n) => ({ kind: 'service_unit', id: `web-1:unit-${n}.service` }))
  const ended = await runInventory(['import', '-'], JSON.stringify({ resources: units }))
  expect(ended.code).toBe(0)
  expect(ended.stderr).toMatch(/^Importing 2,500 entries as imp_[0-9a-z]{26}\.\n/)
  expect(ended.stdout).toMatch(
    /^added {4}2,500: service_unit:web-1:unit-0\.service, .* and 2,480 more \(--json names them\)\n/,
  )
  const relations = [{ from: 'service_unit:web-1:unit-0.service', kind: 'runs_on', to: 'node:nowhere' }]
  const wrong = await runInventory(['import', '-', '--prune'], JSON.stringify({ resources: units, relations }))
  expect([wrong.code, wrong.stdout]).toEqual([1, ''])
  expect(wrong.stderr).toContain('node:nowhere is not known')
})

test('a late answer is reported differently from an unreachable server', () => {
  const late = toUnreachableProblem('http://site', new DOMException('The operation timed out', 'TimeoutError'))
  expect(late.message).toContain('did not answer within 30 s')
  expect(late.remedy).toContain('may still do what you asked')
  expect(toUnreachableProblem('http://site', new Error('ECONNREFUSED')).message).toContain('was not reached')
})
