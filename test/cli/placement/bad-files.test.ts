import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { parse } from '../../../cli/placement/parse.ts'
import { emptyDir, runCli } from '../../support/run-cli.ts'

const size = 'ram_mib: 1, cpu_mc: 1'
const two = 'hosts: [{ name: a, ram_mib: 8192, cpu_mc: 8000 }, { name: x, ram_mib: 8192, cpu_mc: 8000, state: dead }]\n'
const vms = (...rows: string[]) => `${two}vms:\n${rows.map((row) => `  - { ${row} }\n`).join('')}`
const one = (row: string) => vms(`vmid: 1, ${size}, ${row}`)
const json = (vm: string) =>
  `{"hosts":[{"name":"a","ram_mib":8192,"cpu_mc":8000}],"vms":[{${vm},"ram_mib":9,"cpu_mc":1}]}`
const nested = (count: number) => `${'['.repeat(count)}${']'.repeat(count)}`

/**
 * A file by name and text, and its first flaw: the path of the field or the place in the text, and
 * what is said.
 */
type BadFile = [what: string, file: string, text: string, path: string, said: string]

const notYaml: BadFile[] = [
  ['a tab', 'f.yaml', 'hosts:\n\t- { name: a }\n', 'line 2, column 1', 'with spaces, not with tabs'],
  ['two documents', 'f.yaml', `${two}vms: []\n---\n${two}`, 'line 3, column 1', 'a second document begins here'],
  ['a tag', 'f.yaml', `!mine\n${two}`, 'line 1, column 1', 'this tag (!name) is not known'],
  ['a set', 'f.yaml', `${two}vms: !!set { a }\n`, 'vms', 'give a list'],
  ['a reference to nothing', 'f.yaml', 'hosts: *none\n', 'the problem', 'names no earlier anchor'],
  ['bad indentation', 'f.yaml', 'hosts:\n  - name: a\n   ram_mib: 3\n', 'line 3, column 1', 'is missing'],
  ['an open quote', 'f.yaml', 'hosts: "a\n', 'line 2, column 1', 'a quote, bracket, comma or colon is missing'],
  ['a list as a key', 'f.yaml', '? [a, b]\n: 1\n', 'line 1, column 3', 'a key must be a text'],
  ['a reference as a key', 'f.yaml', 'a: &x k\n*x : 1\n', 'line 2, column 1', 'a key must be a text'],
  ['a key twice', 'f.yaml', 'vms: []\nhosts: []\nvms: []\n', 'line 3, column 1', 'the key vms is given twice'],
  ['a key as a number and as a text', 'f.yaml', '1: a\n"1": b\n', 'line 2, column 1', 'the key 1 is given twice'],
  ['a text that begins with @', 'f.yaml', 'hosts: @a\n', 'line 1, column 8', 'needs quotes in YAML'],
  ['an unknown escape', 'f.yaml', 'hosts: "\\q"\n', 'line 1, column 9', 'an escape that YAML does not know'],
  ['an unknown directive', 'f.yaml', `%FOO x\n---\n${two}`, 'line 1, column 1', 'this directive (%) is not known'],
  [
    'a merge key',
    'f.yaml',
    `${two}vms:\n  - { <<: &b { ${size} }, vmid: 1 }\n`,
    'line 3, column 7',
    'write the fields out',
  ],
  ['brackets without end', 'f.yaml', '['.repeat(3_000), 'line 1, column', 'nested deeper than 64 levels'],
  ['70 brackets', 'f.yaml', nested(70), '0.0.0.0.0.0.0.0', 'nested deeper than 64 levels'],
  ['200 lists in lists', 'f.yaml', `${'- '.repeat(200)}x`, 'line 1, column', 'nested deeper than 64 levels'],
  ['a list in itself', 'f.yaml', 'a: &a [*a]\n', 'a.0.0.0.0.0.0.0', 'nested deeper than 64 levels'],
  [
    'anchors of anchors',
    'f.yaml',
    `a: &a [x]\n${'bcdefghijk'.replace(/./g, (key) => `${key}: &${key} [${`*${String.fromCharCode(key.charCodeAt(0) - 1)},`.repeat(9)}]\n`)}`,
    'the problem',
    'more than 2000000 values, with anchors written out',
  ],
]

const notJson: BadFile[] = [
  ['5,000 brackets', 'f.json', nested(5_000), '0.0.0.0.0.0.0.0', 'nested deeper than 64 levels'],
  ['a comma before }', 'f.json', '{"hosts":[],}', 'line 1, column 13', 'JSON has no comma before }'],
  ['the same on stdin', '-', '{"hosts":[],}', 'line 1, column 13', 'JSON has no comma before }'],
  ['a comma before ]', 'f.json', '{"hosts":[1,]}', 'line 1, column 13', 'JSON has no comma before ]'],
  ['NaN', 'f.json', '{"hosts":[{"ram_mib":NaN}]}', 'line 1, column 22', 'JSON has no NaN: give a number'],
  ['a comment', 'f.json', '{\n  // hosts\n  "hosts": []}', 'line 2, column 3', 'JSON has no comments (//)'],
  ['a comment with #', '-', '{"hosts": [], # x\n"vms":[]}', 'line 1, column 15', 'JSON has no comments (#)'],
  ['a comment in the middle', 'f.json', '{/* x */"hosts":[]}', 'line 1, column 2', 'JSON has no comments (/*)'],
  ['single quotes', 'f.json', "{'hosts': []}", 'line 1, column 2', 'a key needs double quotes'],
  ['a bare key', 'f.json', '{hosts: []}', 'line 1, column 2', 'a key needs double quotes in JSON, but this is hosts'],
  ['half a file', 'f.json', '{"hosts":[{"name":"a"', 'line 1, column 22', 'ends too early: 3 brackets are not closed'],
  ['an open text', 'f.json', '{"hosts":"a', 'line 1, column 10', 'is never closed'],
  ['no comma', 'f.json', '{"hosts":[] "vms":[]}', 'line 1, column 13', 'a comma is missing before "vms"'],
  ['no colon', 'f.json', '{"hosts" []}', 'line 1, column 10', 'a colon is missing before ['],
  ['no value', 'f.json', '{"hosts":}', 'line 1, column 10', 'a value is missing before }'],
  ['True', 'f.json', '{"a":True}', 'line 1, column 6', 'JSON has only true, false and null'],
  ['a sign', 'f.json', '{"a":+1}', 'line 1, column 6', '+1 is not a number in JSON'],
  ['a leading zero', 'f.json', '{"a":01}', 'line 1, column 6', '01 is not a number'],
  ['a number in base 16', 'f.json', '{"a":0x10}', 'line 1, column 6', '0x10 is not a number'],
  ['two documents', 'f.json', '{"a":1}\n{"b":2}', 'line 2, column 1', 'after the end of the JSON'],
  ['a line break in a text', 'f.json', '{"a":"b\nc"}', 'line 1, column 6', 'write it as an escape'],
  ['an escape of another language', 'f.json', '{"a":"\\x41"}', 'line 1, column 6', 'JSON has no escape \\x'],
  ['brackets that do not match', 'f.json', '{"a":[1}', 'line 1, column 8', '} closes what [ opened'],
  ['half a character', 'f.json', json('"vmid":"v\\ud800"'), 'vms.0.vmid', 'half of a surrogate pair'],
  ['half a character in YAML', 'f.yaml', vms(`vmid: "v\\ud800", ${size}`), 'vms.0.vmid', 'half of a surrogate pair'],
  ['half a character in a key', 'f.json', '{"a\\udc00":1}', 'the problem', 'a key has half of a surrogate pair'],
]

const noProblem: BadFile[] = [
  ['nothing', 'f.yaml', '', 'the problem', 'it is null: give an object'],
  ['a list', 'f.json', '[1, 2]', 'the problem', 'it is a list: give an object'],
  ['no hosts', 'f.yaml', 'hosts: []\nvms: []\n', 'hosts', 'give at least 1 entry'],
  ['an unknown key', 'f.yaml', one('hots: a'), 'vms.0', '"hots" is not known here: known are vmid, '],
  [
    'a key of JavaScript',
    'f.json',
    '{"hosts":[{"name":"a","ram_mib":1,"cpu_mc":1}],"vms":[],"__proto__":1}',
    'the problem',
    '"__proto__" is not known',
  ],
  [
    'a fraction as a name',
    'f.yaml',
    vms(`vmid: 1.5, ${size}`),
    'vms.0.vmid',
    'it is not a name: give a name, or a whole number',
  ],
  ['a truth as a name', 'f.yaml', vms(`vmid: true, ${size}`), 'vms.0.vmid', 'it is not a name'],
  ['zero as a name', 'f.yaml', vms(`vmid: 0, ${size}`), 'vms.0.vmid', 'it is not a name'],
  [
    'a number that two names share',
    'f.yaml',
    vms(`vmid: 12345678901234567890, ${size}`),
    'vms.0.vmid',
    'it is not a name',
  ],
  ['no name', 'f.yaml', vms(size), 'vms.0.vmid', 'it is missing: give a name'],
  ['an empty name', 'f.yaml', vms(`vmid: "", ${size}`), 'vms.0.vmid', 'give at least 1 character'],
  [
    'a name of 300 letters',
    'f.yaml',
    vms(`vmid: ${'v'.repeat(300)}, ${size}`),
    'vms.0.vmid',
    'give at most 200 characters',
  ],
  ['pinned to an empty name', 'f.yaml', one('pinned_to: ""'), 'vms.0.pinned_to.0', 'give at least 1 character'],
  ['pinned to a number', 'f.yaml', one('pinned_to: 3'), 'vms.0.pinned_to', 'it is 3: give a list'],
  [
    'pinned to a host and nothing',
    'f.yaml',
    one('pinned_to: [a, ""]'),
    'vms.0.pinned_to.1',
    'give at least 1 character',
  ],
  ['pinned to an unknown host', 'f.yaml', one('pinned_to: b'), 'vms.0.pinned_to.0', 'host b is unknown'],
  [
    'infinite RAM',
    'f.yaml',
    vms('vmid: 1, ram_mib: .inf, cpu_mc: 1'),
    'vms.0.ram_mib',
    'larger than any number that can be stored',
  ],
  [
    'RAM of 1e400',
    'f.json',
    json('"vmid":"v"').replace('"ram_mib":9', '"ram_mib":1e400'),
    'vms.0.ram_mib',
    'larger than any number',
  ],
  [
    'RAM of 20 digits',
    'f.yaml',
    vms('vmid: 1, ram_mib: 99999999999999999999, cpu_mc: 1'),
    'vms.0.ram_mib',
    'give at most 1000000000',
  ],
  [
    'RAM with its unit',
    'f.yaml',
    vms('vmid: 1, ram_mib: "8 GiB", cpu_mc: 1'),
    'vms.0.ram_mib',
    'it is a text: give a number',
  ],
  ['half a MiB', 'f.yaml', vms('vmid: 1, ram_mib: 1.5, cpu_mc: 1'), 'vms.0.ram_mib', 'it is 1.5: give a whole number'],
  ['a million digits', 'f.yaml', `hosts: ${'9'.repeat(1_000_000)}`, 'hosts', 'give a list'],
  [
    'a reserve above the host',
    'f.yaml',
    two.replace('cpu_mc: 8000 }', 'cpu_mc: 8000, ram_reserve_mib: 9000 }').concat('vms: []\n'),
    'hosts.0.ram_reserve_mib',
    'more than the host has: give at most 8192',
  ],
  [
    'a reserve below zero',
    'f.yaml',
    two.replace('cpu_mc: 8000 }', 'cpu_mc: 8000, cpu_reserve_mc: -1 }').concat('vms: []\n'),
    'hosts.0.cpu_reserve_mc',
    'give at least 0',
  ],
  [
    '1,001 hosts named',
    'f.yaml',
    `host_ids: [${'x,'.repeat(1_001)}]\n${two}vms: []\n`,
    'host_ids',
    'give at most 1000 entries',
  ],
  [
    '20,001 VMs named',
    'f.yaml',
    `vm_ids: [${'1,'.repeat(20_001)}]\n${two}vms: []\n`,
    'vm_ids',
    'give at most 20000 entries',
  ],
  [
    'more members than hosts',
    'f.json',
    '{"hosts":[{"name":"a","ram_mib":8,"cpu_mc":8}],"vms":[{"vmid":1,"ram_mib":1,"cpu_mc":1,"ha_group":"g"},{"vmid":2,"ram_mib":1,"cpu_mc":1,"ha_group":"g"}]}',
    'vms.1.ha_group',
    'HA group g has 2 members to keep apart and there is 1 host',
  ],
]

const looks: BadFile[] = [
  ['blanks', 'f.yaml', vms(`vmid: "  ", ${size}`), 'vms.0.vmid', 'the name has only spaces'],
  ['a blank behind', 'f.yaml', vms(`vmid: "a ", ${size}`), 'vms.0.vmid', 'the name begins or ends with a space'],
  [
    'a no-break space',
    'f.yaml',
    vms(`vmid: "a\u00a0b", ${size}`),
    'vms.0.vmid',
    'the name has an invisible character, \\u00a0',
  ],
  [
    'a blank of no width',
    'f.yaml',
    vms(`vmid: "a\u200bb", ${size}`),
    'vms.0.vmid',
    'the name has an invisible character, \\u200b',
  ],
  [
    'a turn of the reading direction',
    'f.yaml',
    vms(`vmid: "a\u202eb", ${size}`),
    'vms.0.vmid',
    'the name has an invisible character, \\u202e',
  ],
  ['NUL', 'f.yaml', vms(`vmid: "a\\0b", ${size}`), 'vms.0.vmid', 'the name has an invisible character, \\u0000'],
  [
    'a Cyrillic letter in a VM',
    'f.yaml',
    vms(`vmid: db-a, ${size}`, `vmid: "db-\u0430", ${size}`),
    'vms.1.vmid',
    'looks like VM db-a (vms.0.vmid), but is a different name: it has \\u0430 where the other has a',
  ],
  [
    'a Cyrillic letter in a host',
    'f.yaml',
    two.replace('name: x', 'name: "\u0430"').concat('vms: []\n'),
    'hosts.1.name',
    'looks like host a (hosts.0.name)',
  ],
  [
    'a Cyrillic letter in a group',
    'f.yaml',
    vms(`vmid: 1, ${size}, ha_group: app`, `vmid: 2, ${size}, ha_group: "\u0430pp"`),
    'vms.1.ha_group',
    'looks like HA group app (vms.0.ha_group)',
  ],
  [
    'an accent of its own',
    'f.yaml',
    vms(`vmid: "caf\u00e9", ${size}`, `vmid: "cafe\u0301", ${size}`),
    'vms.1.vmid',
    'looks like VM caf',
  ],
  [
    'a longer dash',
    'f.yaml',
    vms(`vmid: a-b, ${size}`, `vmid: "a\u2013b", ${size}`),
    'vms.1.vmid',
    'looks like VM a-b',
  ],
  ['a wide letter', 'f.yaml', vms(`vmid: a1, ${size}`, `vmid: "\uff411", ${size}`), 'vms.1.vmid', 'looks like VM a1'],
]

test.each([...notYaml, ...notJson, ...noProblem, ...looks])(
  '%s in %s is refused with its place',
  (_what, name, text, path, said) => {
    const parsed = parse({ kind: 'problem', bytes: new TextEncoder().encode(text), name })
    expect(parsed).toEqual({
      fault: expect.stringMatching(/^(cannot be read|is not a placement problem)$/),
      flaws: expect.any(Array),
    })
    const [first] = 'flaws' in parsed ? parsed.flaws : []
    expect(first?.path).toContain(path)
    expect(first?.message).toContain(said)
    expect(first?.message).not.toMatch(/Invalid input|call stack|attack/)
  },
)

test.each([
  [
    '500 uses of one anchor',
    'f.yaml',
    `${two.replace('8192', '&ram 8192')}vms:\n${Array.from({ length: 500 }, (_, at) => `  - { vmid: ${at + 1}, ram_mib: *ram, cpu_mc: 1, host: x }\n`).join('')}`,
  ],
  ['YAML in braces', '-', '{ hosts: [{ name: a, ram_mib: 1, cpu_mc: 1 }], vms: [], }'],
  [
    'a file of YAML with a comma too many',
    'f.yaml',
    `{"hosts": [{"name": "a", "ram_mib": 1, "cpu_mc": 1}], "vms": [],}`,
  ],
  ['letters of one script', 'f.yaml', vms(`vmid: "\u0434\u0430", ${size}`, `vmid: da, ${size}`)],
])('%s is read', (_what, name, text) => {
  expect(parse({ kind: 'problem', bytes: new TextEncoder().encode(text), name })).toEqual({ value: expect.anything() })
})

const plan = (text: string, ...more: string[]) => runCli(['placement', 'plan', '-', ...more], {}, text)
const down = vms(`vmid: 1, ${size}, host: x`)

test.each([
  [
    'a recovery from a host that lives',
    `host_ids: [a]\n${down}`,
    'host_ids.0: host a is live, so nothing can be recovered from it, but host x is dead and has 1 VM',
  ],
  ['a recovery from nowhere', `host_ids: []\n${down}`, 'host_ids: it names no host, and host x is dead and has 1 VM'],
  [
    'a drain of nothing',
    `intent: drain\n${down}`,
    'host_ids: no host is draining and no host is named: name the hosts to empty',
  ],
])('%s is refused, because "nothing to do" would be good news', async (_what, text, said) => {
  const { code, stderr } = await plan(text)
  expect(code).toBe(2)
  expect(stderr).toContain(said)
})

test('a plan names the dead hosts that it leaves out', async () => {
  const { code, stdout } = await plan(`intent: drain\nhost_ids: [a]\n${down}`)
  expect(code).toBe(0)
  expect(stdout).toContain('Not in this plan: host x is dead and has 1 VM.')
})

test('a file that takes too long to read is abandoned with a plain message, and a too large file is refused first', async () => {
  const slow = join(emptyDir, 'slow.yaml')
  writeFileSync(
    slow,
    `${two}vms:\n${`  - { vmid: 1, ${size}, pinned_to: [a, a, a, a, a, a, a, a] }\n`.repeat(100_000)}`,
  )
  const [late, endless] = await Promise.all([
    runCli(['placement', 'plan', slow, '--timeout', '1']),
    runCli(['placement', 'plan', '/dev/zero', '--timeout', '120']),
  ])
  expect(late).toMatchObject({ code: 10, stdout: '' })
  expect(late.stderr).toBe(
    `✖ Reading ${slow} took 1.0 of 1 s. That leaves no time to plan. Give the command more time (--timeout), or write JSON, which is faster to read than YAML.\n`,
  )
  expect(endless).toMatchObject({ code: 2, stderr: '✖ /dev/zero has more than 64 MiB.\n' })
})

test('a large file is parsed in a thread of its own, and its errors are reported like those of a small file', async () => {
  const many = `${two}vms:\n${Array.from({ length: 2_000 }, (_, at) => `  - { vmid: ${at + 1}, ${size}, host: x, hots: a }\n`).join('')}`
  const { code, stderr } = await plan(many, '--timeout', '120')
  expect(code).toBe(2)
  expect(stderr).toMatch(/^✖ - is not a placement problem:\nvms\.0: "hots" is not known here/)
})
