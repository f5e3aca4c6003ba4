import { readFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { z } from 'zod'
import { sitePolicy } from '../../../domain/site-policy.ts'
import { readSitePolicy } from '../../../safety/site/read.ts'
import { clockChangesIn, compileWindow, isInWindow } from '../../../safety/site/windows.ts'
import { toolFacts } from '../../../tools/registry.ts'

const read = (text: string | Uint8Array) => readSitePolicy(text, toolFacts, null)
const faultsOf = (text: string | Uint8Array) => {
  const found = read(text)
  return found.ok ? [] : found.faults.map(({ line, why }) => `${line}: ${why}`)
}
const rules = (...lines: string[]) => `version: 1\nrules:\n${lines.map((line) => `  - { ${line} }\n`).join('')}`
const window = (text: string) =>
  `version: 1\nwindows:\n  w: { ${text} }\nrules:\n  - { name: a, during: w, action: never }\n`

test('the example of the documentation is accepted literally', () => {
  const page = readFileSync('docs/reference/policy.md', 'utf8')
  const [, example = ''] = /```yaml\n([\s\S]*?)```/.exec(page) ?? []
  expect(read(example)).toMatchObject({ ok: true, policy: { rules: { length: 4 } } })
})

test('the published schema is that of the reader', () => {
  const schema: unknown = JSON.parse(JSON.stringify(z.toJSONSchema(sitePolicy, { io: 'input' })))
  expect(JSON.parse(readFileSync('docs/reference/policy.schema.json', 'utf8'))).toEqual(schema)
})

const refused: [what: string, text: string | Uint8Array, said: RegExp][] = [
  ['a file of more than a megabyte', `# ${'x'.repeat(1_048_577)}`, /^1: the file has more than 1048576 bytes/],
  ['what is not UTF-8', new Uint8Array([0xff, 0xfe]), /^1: the file is not UTF-8/],
  ['what is no YAML', 'version: 1\nrules: [', /^2: the file is not valid YAML/],
  ['two documents', 'version: 1\nrules: []\n---\nversion: 1\n', /^\d: the file is not valid YAML/],
  [
    'a key that stands twice',
    'version: 1\nrules: []\nrules: []\n',
    /^3: the file is not valid YAML: Map keys must be unique/,
  ],
  ['an anchor', 'version: 1\ngroups:\n  a: &all [ada]\nrules: []\n', /^3: the file has an anchor or an alias/],
  [
    'aliases that explode',
    `a: &a [x]\n${'bcdefg'.replaceAll(/./g, (n) => `${n}: &${n} [*a, *a]\n`)}`,
    /^1: the file has an anchor/,
  ],
  ['what is nested without an end', '['.repeat(100_000), /^1: the file is/],
  [
    'a key that nobody knows',
    rules('name: a, tool: exec, action: never, hosts: x'),
    /^3: rules\.0: "hosts" is not known here/,
  ],
  ['an action that nobody knows', rules('name: a, tool: exec, action: allow'), /^3: rules\.0\.action/],
  ['a tool that does not exist', rules('name: a, tool: vm_strat, action: never'), /^3: "a": there is no tool vm_strat/],
  [
    'a group that does not exist',
    rules('name: a, tool: exec, action: ask, group: dba'),
    /^3: "a": there is no group dba/,
  ],
  ['a window that does not exist', rules('name: a, during: xmas, action: never'), /^3: "a": there is no window xmas/],
  [
    'a kind that does not exist',
    rules('name: a, resource: { kind: server }, action: never'),
    /^3: rules\.0\.resource\.kind/,
  ],
  ['a rule that fits everything', rules('name: a, action: ask'), /^3: "a": the rule matches everything/],
  [
    'ids without a kind',
    rules('name: a, resource: { id: db-1 }, action: never'),
    /^3: "a": the rule has an id without exactly one kind/,
  ],
  [
    'people beside never',
    rules('name: a, tool: exec, action: never, people: 2'),
    /^3: "a": group and people have no effect/,
  ],
  [
    'a rule about an ending',
    rules('name: a, tool: resolve_incident, action: never'),
    /^3: "a": resolve_incident only writes/,
  ],
  ['a question about a look', rules('name: a, tool: get_host, action: ask'), /^3: "a": get_host only reads/],
  [
    'a command that would run',
    rules('name: a, tool: exec, action: run'),
    /^3: "a": no policy can allow exec: the tool runs a command/,
  ],
  [
    'what cannot be undone and would run',
    rules('name: a, tool: vm_restart, action: run'),
    /^3: "a": no policy can allow vm_restart: the tool cannot be undone/,
  ],
  [
    'what would run because it is silenced',
    rules('name: a, silenced: true, tool: vm_start, action: run'),
    /^3: "a": a silenced alert cannot allow a call/,
  ],
  ['what is not silenced', rules('name: a, silenced: false, tool: exec, action: ask'), /^3: rules\.0\.silenced/],
  [
    'a rule that never decides, silenced or not',
    rules('name: a, tool: vm_stop, action: ask', 'name: b, tool: vm_stop, silenced: true, action: ask'),
    /^4: "b": the rule never decides/,
  ],
  [
    'two rules of one name',
    rules('name: a, tool: exec, action: never', 'name: a, tool: vm_stop, action: never'),
    /^4: "a": the rule on line 3 has the same name/,
  ],
  [
    'a rule that never decides',
    rules(
      'name: a, resource: { kind: [host, vm] }, action: ask',
      'name: b, tool: vm_stop, resource: { kind: vm, id: vm-1 }, action: never',
    ),
    /^4: "b": the rule never decides: "a" \(line 3\) comes first and matches all its calls/,
  ],
  [
    'a rule that contradicts another',
    rules('name: a, tool: vm_stop, action: ask', 'name: b, tool: [vm_stop], action: never'),
    /^4: "b": the rule contradicts "a" \(line 3\)/,
  ],
  [
    'a window that ends before it begins',
    window('timezone: UTC, start: 2026-12-20T00:00, end: 2026-12-19T00:00'),
    /^3: the window w: the window ends/,
  ],
  [
    'a day that does not exist',
    window('timezone: UTC, start: 2026-02-30T00:00, end: 2026-03-19T00:00'),
    /^3: the window w: 2026-02-30T00:00 is not a valid time/,
  ],
  [
    'a time zone that does not exist',
    window('timezone: Europe/Olso, start: 2026-12-20T00:00, end: 2026-12-21T00:00'),
    /^3: the window w: there is no time zone/,
  ],
  [
    'a rule that never gives a day',
    window('timezone: UTC, start: 2026-12-20T00:00, end: 2026-12-20T01:00, rrule: FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30'),
    /^3: the window w: its rrule matches no day/,
  ],
  [
    'a rule of every second',
    window('timezone: UTC, start: 2026-12-20T00:00, end: 2026-12-20T01:00, rrule: FREQ=SECONDLY'),
    /^3: the window w: its rrule has FREQ=SECONDLY/,
  ],
]

test.each(refused)('refused with its line: %s', (_what, text, said) => {
  expect(faultsOf(text)[0]).toMatch(said)
})

test('a rule behind one for silenced alerts decides, and a rule may fit whatever is silenced', () => {
  const first = 'name: a, silenced: true, action: never'
  expect(faultsOf(rules(first, 'name: b, tool: vm_stop, action: ask'))).toEqual([])
})

test('a rule behind one for certain times can decide', () => {
  const text = `version: 1\nwindows:\n  w: { timezone: UTC, start: 2026-12-20T00:00, end: 2026-12-21T00:00 }\nrules:\n  - { name: a, tool: vm_stop, during: w, action: never }\n  - { name: b, tool: vm_stop, action: ask }\n`
  expect(faultsOf(text)).toEqual([])
})

function windowOf(start: string, end: string, rrule?: string) {
  const compiled = compileWindow('w', { timezone: 'Europe/Oslo', start, end, ...(rrule && { rrule }) })
  if ('why' in compiled) throw new Error(compiled.why)
  return compiled
}
const holdsAt = (compiled: ReturnType<typeof windowOf>, at: string) => isInWindow(compiled, Date.parse(at))
const [march, october] = [Date.parse('2027-03-01T00:00Z'), Date.parse('2027-10-01T00:00Z')]

test('an hour that a clock change skips never comes, and the check of a file reports it', () => {
  const inside = windowOf('2027-01-03T02:15', '2027-01-03T02:45', 'FREQ=WEEKLY;BYDAY=SU')
  // At one in the morning of UTC the clocks of Oslo go from two to three.
  expect(['2027-03-28T00:59Z', '2027-03-28T01:00Z', '2027-03-28T01:30Z'].map((at) => holdsAt(inside, at))).toEqual([
    false,
    false,
    false,
  ])
  expect(clockChangesIn(inside, march)[0]).toBe(
    'on 2027-03-28 the clocks change from 02:00 to 03:00: the window does not apply that night',
  )
  const across = windowOf('2027-01-03T02:30', '2027-01-03T05:00', 'FREQ=WEEKLY;BYDAY=SU')
  expect(
    ['2027-03-28T00:59Z', '2027-03-28T01:00Z', '2027-03-28T02:59Z', '2027-03-28T03:00Z'].map((at) =>
      holdsAt(across, at),
    ),
  ).toEqual([false, true, true, false])
  expect(clockChangesIn(across, march)[0]).toBe(
    'on 2027-03-28 the clocks change from 02:00 to 03:00: the window begins at 03:00',
  )
})

test('an hour that a clock change repeats applies twice', () => {
  const twice = windowOf('2027-01-03T01:30', '2027-01-03T02:30', 'FREQ=WEEKLY;BYDAY=SU')
  const moments = [
    '2027-10-30T23:30Z',
    '2027-10-31T00:29Z',
    '2027-10-31T00:30Z',
    '2027-10-31T01:00Z',
    '2027-10-31T01:30Z',
  ]
  expect(moments.map((at) => holdsAt(twice, at))).toEqual([true, true, false, true, false])
  expect(clockChangesIn(twice, october)[0]).toBe(
    'on 2027-10-31 the clocks change from 03:00 to 02:00: the part of the window in these hours happens twice',
  )
})
