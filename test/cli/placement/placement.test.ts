import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { parse } from 'yaml'
import { generate } from '../../../bench/placement/clusters.ts'
import type { PlacementProblem } from '../../../domain/placement.ts'
import { emptyDir, runCli, startCli } from '../../support/run-cli.ts'

const example = 'examples/placement.yaml'
const placement = (...args: string[]) => runCli(['placement', ...args])

function file(name: string, text: string): string {
  const path = join(emptyDir, name)
  writeFileSync(path, text)
  return path
}

function inWordsOfFile({ hosts, vms }: PlacementProblem) {
  return {
    hosts: hosts.map(({ name, ramMib, cpuMc, state }) => ({ name, ram_mib: ramMib, cpu_mc: cpuMc, state })),
    vms: vms.map((vm) => ({ vmid: vm.vm, ram_mib: vm.ramMib, cpu_mc: vm.cpuMc, ha_group: vm.haGroup, host: vm.host })),
  }
}

/** One that stays down: 3 and 4 do not both fit, and 3 is more important. */
const tight = file(
  'tight.yaml',
  `hosts:
  - { name: a, ram_mib: 8192, cpu_mc: 8000 }
  - { name: b, ram_mib: 8192, cpu_mc: 8000 }
  - { name: x, ram_mib: 16384, cpu_mc: 8000, state: dead }
vms:
  - { vmid: 1, ram_mib: 6144, cpu_mc: 1000, host: a, ha_group: g }
  - { vmid: 2, ram_mib: 4096, cpu_mc: 1000, host: b }
  - { vmid: 3, ram_mib: 4096, cpu_mc: 1000, host: x, priority: 5 }
  - { vmid: 4, ram_mib: 4096, cpu_mc: 1000, host: x, ha_group: g }
  - { vmid: 5, ram_mib: 2048, cpu_mc: 1000, host: x, pinned_to: a }
`,
)

test('a file is planned offline: steps by wave, the proof of their number, and a picture in 80 columns', async () => {
  const { code, stdout } = await placement('plan', example, '--picture')
  expect(code).toBe(0)
  expect(stdout).toContain('Recover from host-1. All VMs have a place.')
  expect(stdout).toMatch(/1 +1 +migrate +batch-1 +host-3 +→ host-2\n/)
  expect(stdout).toMatch(/2 +2 +start +db-1 +host-1 +→ host-3 +1\n/)
  expect(stdout).toContain('2 starts. 1 migration, and no plan needs fewer (')
  expect(stdout).toMatch(/host-1 dead +×+·+ {2}·+ {2}2 → 0 VMs down/)
  expect(stdout).toMatch(/host-3 +█+▒+·+ {2}█+▓+·+ {2}36 → 56 of 64 GiB\n +\+db-1 −batch-1/)
  for (const line of stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(80)
})

test('YAML and JSON are equivalent, and a plan in a file is verified with both', async () => {
  const asJson = JSON.stringify(parse(readFileSync(example, 'utf8')))
  const out = join(emptyDir, 'plan.json')
  const [yaml, json] = await Promise.all([
    placement('plan', example, '--json', '--out', out),
    runCli(['placement', 'plan', '-', '--json'], {}, asJson),
  ])
  expect(JSON.parse(yaml.stdout)).toEqual(JSON.parse(json.stdout))
  expect(JSON.parse(yaml.stdout)).toMatchObject({ state: 'planned', migrations: 1, lowerBound: 1, gap: 0 })
  expect(await placement('verify', example, out)).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^OK {2}the plan: 3/),
  })
})

test('verifying names the first step that fails and why, and separately whether a certificate holds', async () => {
  const { stdout } = await placement('plan', example, '--json')
  const plan = JSON.parse(stdout)
  const [move, start] = plan.steps
  const early = {
    ...plan,
    steps: [{ ...start, step: 1, needs: [], wave: 1 }, { ...move, step: 2 }, ...plan.steps.slice(2)],
  }
  const proof = { kind: 'certificate', k: 0, scale: 1, price: {} }
  const large = file(
    'large.json',
    JSON.stringify(inWordsOfFile(generate({ hosts: 20, vms: 300, racks: null, load: 0.97, seed: 1 }))),
  )
  const out = join(emptyDir, 'large-plan.json')
  await placement('plan', large, '--out', out)
  const certified = await placement('verify', large, out)
  expect(certified.stdout).toMatch(
    /^OK {2}the plan.*\nOK {2}the certificate: every plan for all VMs needs at least 2 migrations\n/,
  )
  expect(certified.code).toBe(0)
  const [broken, unproved] = await Promise.all([
    placement('verify', example, file('early.json', JSON.stringify(early))),
    placement('verify', example, file('unproved.json', JSON.stringify({ ...plan, proof }))),
  ])
  expect(broken.code).toBe(11)
  expect(broken.stdout).toMatch(/^NO {2}the plan: step 1: host-3 is short by 4096 MiB/)
  expect(unproved.code).toBe(11)
  expect(unproved.stdout).toMatch(/^OK {2}the plan.*\nNO {2}the certificate does not show that 1 migration/)
})

test('a VM that stays down is listed with the reason, the remedy, and what each host lacks', async () => {
  const [plan, explained] = await Promise.all([placement('plan', tight), placement('explain', tight)])
  expect([plan.code, explained.code]).toEqual([8, 8])
  expect(plan.stdout).toContain('1 VM stays down:\n  4: no room for 4096 MiB')
  expect(plan.stdout.replace(/\s+/g, ' ')).toContain(
    'There is no place for all: RAM is short by 4096 MiB in total. Each of these changes was tried and is enough by itself: 3 left down',
  )
  expect(explained.stdout).toMatch(
    / {2}b +RAM short by 4096 MiB\n {2}a +1 of HA group g is on a; RAM short by 4096 MiB\n {2}x +it is dead/,
  )
})

test('a simulated failure is planned and played wave by wave, and without a named host each failure is tried', async () => {
  const [one, all] = await Promise.all([
    placement('simulate', example, '--kill', 'host-2'),
    placement('simulate', example),
  ])
  expect(one.stdout).toMatch(/^Recover from host-1 and host-2\./)
  expect(one.stdout).toMatch(/Wave 1 of 2, while its 2 steps run\n/)
  expect(one.stdout).toMatch(/host-1 dead +×+·+ {2}1 VM down\nhost-3 +█+▒+·+ {2}36 of 64 GiB\n +−batch-1\n/)
  expect(all.code).toBe(8)
  expect(all.stdout).toMatch(/rack-b +2 +moved +all restart after 1 migration\n/)
  expect(all.stdout).toMatch(/rack-c +3 +restarted .*\nrack-d +1 +left down +build-1\n/)
})

test('errors of a file are reported by path or by line, and nothing is planned', async () => {
  const wrong = '{"hosts":[{"name":"a","ram_mib":"8"}],"vms":[{"vmid":1,"ram_mib":1,"cpu_mc":1,"hots":"a"}]}'
  const [fields, syntax, bomb, missing, unknown] = await Promise.all([
    runCli(['placement', 'plan', '-'], {}, wrong),
    runCli(['placement', 'plan', '-'], {}, 'hosts:\n  - { name: a, ram_mib: 1\nvms: []\n'),
    runCli(
      ['placement', 'plan', '-'],
      {},
      `a: &a [x]\n${'bcdefgh'.replace(/./g, (key) => `${key}: &${key} [${`*${String.fromCharCode(key.charCodeAt(0) - 1)},`.repeat(9)}]\n`)}`,
    ),
    placement('plan', 'no-such-file.yaml'),
    placement('simulate', tight, '--kill', 'y'),
  ])
  expect([fields.code, syntax.code, bomb.code, missing.code, unknown.code]).toEqual([2, 2, 2, 3, 2])
  expect(fields.stderr).toMatch(/\nhosts\.0\.ram_mib: .*\nhosts\.0\.cpu_mc: .*\nvms\.0: .*hots/)
  expect(syntax.stderr).toMatch(/^✖ -, line \d+, column \d+: \w/)
  expect(bomb.stderr).toContain('it has more than 2000000 values, with anchors written out')
  expect(missing.stderr).toContain('There is no file no-such-file.yaml.')
  expect(unknown.stderr).toContain('There is no host y in the file.')
})

test('a duplicate key and a byte that is no text are refused with their place, in YAML and in JSON', async () => {
  const hosts = '"hosts": [{"name": "a", "ram_mib": 8192, "cpu_mc": 8000}]'
  const twice = `{${hosts},\n"vms": [\n{"vmid": 1, "ram_mib": 9, "cpu_mc": 1, "ram\\u005fmib": 1}],\n"hosts": []}`
  const [json, yaml, number] = await Promise.all([
    runCli(['placement', 'plan', '-'], {}, twice),
    runCli(['placement', 'plan', '-'], {}, 'vms: []\nhosts: []\nvms: []\n'),
    runCli(['placement', 'plan', '-'], {}, '1: a\n"1": b\n'),
  ])
  const latin = file('latin.yaml', '')
  writeFileSync(latin, Buffer.from('hosts:\n  - { name: m\xfcnchen }\n', 'latin1'))
  const bytes = await placement('plan', latin)
  expect([json.code, yaml.code, number.code, bytes.code]).toEqual([2, 2, 2, 2])
  expect(json.stderr).toContain('vms.0.ram_mib: the key is given twice, again in line 3')
  expect(json.stderr).toContain('hosts: the key is given twice, again in line 4')
  expect(yaml.stderr).toContain('-, line 3, column 1: the key vms is given twice')
  expect(number.stderr).toContain('line 2, column 1: the key 1 is given twice')
  expect(bytes.stderr).toContain('line 2: byte 21 is not UTF-8')
})

test('a file without an end is abandoned at the time limit, from stdin or a pipe', async () => {
  const pipe = join(emptyDir, 'pipe')
  execFileSync('mkfifo', [pipe])
  const open = startCli(['placement', 'plan', '-', '--timeout', '0.5'], {}, null)
  open.child.stdin.write('hosts:\n')
  const [stdin, silent] = await Promise.all([open.ended, placement('plan', pipe, '--timeout', '0.5')])
  expect([stdin.code, silent.code]).toEqual([10, 10])
  expect(stdin.stderr).toContain('stdin was not read to its end within 0.5 s.')
  expect(silent.stderr).toContain(`${pipe} was not read to its end within 0.5 s.`)
})

test('a certificate of a drain counts what has to move, and a certificate of an overfull state is refused by name', async () => {
  const hosts = ['a', 'b', 'c'].map((name) => ({
    name,
    ram_mib: 4_096,
    cpu_mc: 8_000,
    state: name === 'c' ? 'draining' : 'live',
  }))
  const on = (vmid: string, host: string, gib: number) => ({ vmid, ram_mib: gib * 1_024, cpu_mc: 1_000, host })
  const drain = { intent: 'drain', host_ids: ['c'], hosts, vms: [on('r', 'a', 2), on('s', 'b', 2), on('v', 'c', 3)] }
  const plan = {
    state: 'planned',
    steps: [
      { step: 1, action: 'migrate', vm: 'r', from: 'a', to: 'b', needs: [], wave: 1 },
      { step: 2, action: 'migrate', vm: 'v', from: 'c', to: 'a', needs: [1], wave: 2 },
    ],
    migrations: 2,
    lowerBound: 2,
    unplaced: [],
    obstacle: null,
    standing: null,
    reason: null,
    proof: { kind: 'certificate', k: 0, scale: 1, price: { '3072/1000': 1 } },
  }
  const full = { ...drain, vms: [...drain.vms, on('t', 'b', 3)] }
  const [drained, overfull] = await Promise.all([
    placement('verify', file('drain.json', JSON.stringify(drain)), file('drain-plan.json', JSON.stringify(plan))),
    placement('verify', file('full.json', JSON.stringify(full)), file('drain-plan.json', JSON.stringify(plan))),
  ])
  expect(drained).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/\nOK {2}the certificate: .* 2 migrations\n/),
  })
  expect(overfull.code).toBe(11)
  expect(overfull.stdout).toContain('NO  the certificate proves nothing, as these hosts are over capacity: b')
})

test('a certificate of VMs that stay down is checked, and a forged one is refused in a sentence', async () => {
  const host = (name: string, gib: number, state: string) => ({ name, ram_mib: gib * 1_024, cpu_mc: 8_000, state })
  const on = (vmid: string, at: string, gib: number, priority: number) => ({
    vmid,
    ...{ ram_mib: gib * 1_024, cpu_mc: 1_000, host: at, priority },
  })
  const cluster = {
    intent: 'recover',
    host_ids: ['x'],
    hosts: [host('a', 4, 'live'), host('b', 4, 'live'), host('x', 16, 'dead')],
    vms: [on('runs', 'a', 1, 0), on('one', 'x', 3, 9), on('two', 'x', 3, 5), on('three', 'x', 3, 5)],
  }
  const asked = file('short.json', JSON.stringify(cluster))
  const out = join(emptyDir, 'short-plan.json')
  const planned = await placement('plan', asked, '--out', out)
  expect(planned.code).toBe(8)
  expect(planned.stdout.replace(/\s+/g, ' ')).toContain(
    'No choice leaves fewer of priority 5 down without leaving more important VMs down (certificate).',
  )
  const plan = JSON.parse(readFileSync(out, 'utf8'))
  const [level] = plan.triage.levels
  const changed = (name: string, more: object) =>
    placement('verify', asked, file(`${name}.json`, JSON.stringify({ ...plan, triage: { ...plan.triage, ...more } })))
  const [held, priced, counted, word] = await Promise.all([
    changed('held', {}),
    changed('priced', { levels: [{ ...level, price: {} }] }),
    changed('counted', { levels: [{ ...level, down: 2 }] }),
    changed('word', { proof: 'engine', levels: undefined }),
  ])
  expect(held).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('OK  the certificate of the VMs that stay down'),
  })
  expect(priced.code).toBe(11)
  expect(priced.stdout).toContain('the certificate does not show that 1 of priority 5 have to stay down')
  expect(counted.code).toBe(11)
  expect(counted.stdout).toContain('1 of priority 5 stay down, but the certificate states 2')
  expect(word.code).toBe(0)
  expect(word.stdout).toContain('is known by "engine", which cannot be checked here')
})
