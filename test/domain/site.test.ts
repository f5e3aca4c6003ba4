import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { findSiteFaults } from '../../domain/site.ts'
import { useApi } from '../support/api.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { runCli } from '../support/run-cli.ts'

const api = useApi()
const none = new Set<string>()
const told = (file: unknown) => findSiteFaults(file, none).map(({ field, message }) => `${field}: ${message}`)

const vm = (id: string, more: object = {}) => ({ kind: 'vm', id, ...more })
const runs = (from: string, to: string) => ({ from: `vm:${from}`, kind: 'runs_on', to: `vm:${to}` })

test('errors of an entry hide no error between entries', () => {
  const faults = told({
    nodes: [{ id: 'x' }, { id: 'x' }],
    hosts: [{ id: 'x', ramMib: 1, cpuMc: 1 }],
    resources: [vm('a'), vm('b'), vm('a'), { kind: 'thing', id: 'c' }, vm('d/e'), { kind: 'vm' }],
    relations: [runs('a', 'b'), runs('b', 'a'), runs('a', 'gone'), { ...runs('a', 'b'), kind: 'eats' }],
    volumes: [],
  })
  expect(faults).toEqual([
    'volumes: must be one of groups, nodes, hosts, resources, relations',
    'nodes.1: x is listed twice',
    'resources.2: vm:a is listed twice',
    expect.stringMatching(/^resources\.3\.kind: /),
    expect.stringMatching(/^resources\.4\.id: must be letters/),
    expect.stringMatching(/^resources\.5\.id: /),
    expect.stringMatching(/^relations\.3\.kind: /),
    'nodes: x is also a host',
    'nodes: x is also a host',
    'null: vm:a runs_on vm:gone: vm:gone is not known',
    'null: a loop: vm:a → vm:b → vm:a',
  ])
})

test.each([
  ['a line break', 'web-2\nweb-1'],
  ['a sign that turns the text around', '\u202eweb-1'],
  ['a sign that is not seen', 'web\u200b-1'],
])('a name with %s is invalid', (_, alias) => {
  expect(told({ resources: [vm('a', { aliases: [alias] }), vm('b', { name: alias })] })).toHaveLength(2)
})

test.each([[null], [[]], ['nodes'], [7]])('%j is not an inventory', (file) => {
  expect(told(file)).toEqual([expect.stringContaining('is not an inventory')])
})

test('100,000 loops are reported in a few lines, and a long loop by its ends', () => {
  const resources = Array.from({ length: 100_000 }, (_, at) => vm(`v${at}`))
  const chain = resources.slice(1).map(({ id }, at) => runs(`v${at}`, id))
  const back = resources.slice(1).map(({ id }) => runs(id, 'v0'))
  const faults = told({ resources, relations: [...chain, ...back] })
  expect(faults).toHaveLength(51)
  expect(faults.join('\n').length).toBeLessThan(10_000)
  expect(faults.at(-1)).toContain('more loops')
})

test('100,000 wrong entries are refused with their number, and nothing is stored', async () => {
  const resources = [vm('right'), ...Array.from({ length: 99_999 }, (_, at) => ({ kind: 'thing', id: `a/${at}` }))]
  const refused = await api.put('/inventory', { body: { resources } })
  expect([refused.status, refused.body.code]).toEqual([422, 'INVALID'])
  expect(refused.body.detail).toContain('199998 faults, the first 200 of them named')
  expect((refused.body as unknown as { errors: unknown[] }).errors).toHaveLength(200)
  expect((await api.get('/inventory')).body.resources).toEqual([])
})

test('a file of a person is checked as a whole before anything is sent, with any line ends', async () => {
  const { path } = temporaryDirectory()
  const run = async (text: string) => {
    const file = join(path, 'site.yaml')
    writeFileSync(file, text)
    return await runCli(['inventory', 'import', file, '--dry-run'], {
      NIGHTSHIFT_URL: 'http://127.0.0.1:1',
      NIGHTSHIFT_TOKEN: 'nst_x',
    })
  }
  const bomb = ['a: &a [x, x, x, x, x, x, x, x, x]']
  for (let at = 1; at < 9; at += 1) bomb.push(`b${at}: &b${at} [${Array(9).fill(`*${at === 1 ? 'a' : `b${at - 1}`}`)}]`)
  const unfolded = await run(bomb.join('\n'))
  expect([unfolded.code, unfolded.stderr]).toEqual([2, expect.stringContaining('cannot be read')])
  expect(unfolded.stderr).not.toContain('at ')

  const windows = await run(
    '\ufeffresources:\r\n  - { kind: vm, id: a }\r\n  - { kind: vm, id: a }\r\n  - { kind: x, id: b }\r\n',
  )
  expect(windows.code).toBe(2)
  expect(windows.stderr).toContain('resources.1: vm:a is listed twice')
  expect(windows.stderr).toContain('resources.2.kind')
})
