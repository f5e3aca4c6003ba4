import { expect, test } from '@jest/globals'
import type { ResourceRef } from '../../../domain/registry.ts'
import type { SiteThing } from '../../../safety/site/decide.ts'
import { type FactsOfSite, lintAgainstSite } from '../../../safety/site/lint.ts'
import { readSitePolicy } from '../../../safety/site/read.ts'
import { toolFacts } from '../../../tools/registry.ts'

const thing = (key: string, labels: SiteThing['labels'] = {}): SiteThing => {
  const [kind, id] = key.split(':')
  return { names: [{ kind, id } as ResourceRef], labels }
}
const site: FactsOfSite = {
  things: [
    thing('host:web-1', { role: ['web'], team: ['shop'] }),
    thing('host:web-2', { role: ['web'] }),
    thing('database:db-1', { role: ['db'] }),
  ],
  people: new Map([
    ['ada', 'decides'],
    ['bo', 'disabled'],
    ['cy', 'decides nothing'],
  ]),
  types: new Set(['vm_stopped']),
  silences: [{ source: 'am', readAt: '2026-11-29T11:59:00Z', fault: null, isUnread: false }],
  nowMs: Date.parse('2026-11-29T12:00:00Z'),
}

function lint(rules: string, more = '', facts = site): string[] {
  const read = readSitePolicy(`version: 1\n${more}rules:\n${rules}`, toolFacts, null)
  if (!read.ok) throw new Error(JSON.stringify(read.faults))
  return lintAgainstSite(read.policy, read.compiled, read.lines, facts).map(
    ({ line, why, remedy }) => `${line}: ${why}. ${remedy}`,
  )
}
const rule = (fields: string, name = 'a') => `  - { name: ${name}, ${fields} }\n`
const past = 'windows:\n  gone: { timezone: UTC, start: 2026-01-01T00:00, end: 2026-01-02T00:00 }\n'
const ended =
  'windows:\n  gone: { timezone: UTC, start: 2026-01-04T02:00, end: 2026-01-04T04:00, rrule: FREQ=WEEKLY;UNTIL=20260201 }\n'

test.each<[string, string, string, RegExp[]]>([
  [
    'a type that was never here',
    '',
    rule('type: vm_stoped, tool: vm_start, action: never'),
    [/^3: "a": no incident of this site has ever had the type vm_stoped/],
  ],
  [
    'an id that nobody lists',
    '',
    rule('resource: { kind: host, id: [web-1, web-9] }, action: never'),
    [/^3: "a": no source lists host:web-9/],
  ],
  [
    'a kind that nobody lists',
    '',
    rule('resource: { kind: vm }, action: never'),
    [/no source lists a vm/, /the rule matches no resource that a source lists/],
  ],
  [
    'a label that nothing has',
    '',
    rule('resource: { labels: { tier: gold } }, action: never'),
    [/no resource has the label tier\. write one of role and team/, /the rule matches no resource/],
  ],
  [
    'a value that nothing has',
    '',
    rule('resource: { labels: { role: [web, cache] } }, action: never'),
    [/no resource has role: cache\. write one of web and db/],
  ],
  [
    'all there is',
    '',
    rule('resource: { labels: { role: [web, db] } }, action: never'),
    [/the rule matches all 3 resources/],
  ],
  [
    'a window that is over',
    past,
    rule('during: gone, action: never'),
    [/^5: "a": the rule never applies again: gone is over/],
  ],
  [
    'a rule of days that are over',
    ended,
    rule('during: gone, action: never'),
    [/the rule never applies again: gone is over/],
  ],
  [
    'people who are not there, are disabled or decide nothing, and a group that cannot decide',
    'groups:\n  dbas: [adda, bo, cy, ada]\n',
    rule('tool: vm_start, action: ask, group: dbas, people: 2'),
    [
      /^3: the group dbas: there is no operator adda/,
      /bo is disabled\. give this person the role approver/,
      /cy may not decide anything/,
      /1 person in the group may decide, but a rule needs 2, so nobody can approve a call under that rule/,
    ],
  ],
  [
    'the same things under another name, with another action',
    '',
    rule('resource: { kind: host }, action: never') + rule('resource: { labels: { role: web } }, action: ask', 'b'),
    [
      /^4: "b": the rule contradicts "a" \(line 3\), which comes first for all 2 resources that it matches: never, not ask/,
    ],
  ],
  [
    'the same things under another name, with the same action',
    '',
    rule('resource: { kind: host }, action: ask') + rule('resource: { labels: { team: shop } }, action: ask', 'b'),
    [/^4: "b": the rule never decides on this site: "a" \(line 3\) comes first for the one resource that it matches/],
  ],
])('%s is reported with its line', (_, more, rules, expected) => {
  const found = lint(rules, more)
  expect(found).toHaveLength(expected.length)
  for (const [at, each] of expected.entries()) expect(found[at]).toMatch(each)
})

test('a window that a clock change cuts is reported with its line', () => {
  const more =
    'windows:\n  night: { timezone: Europe/Oslo, start: 2026-11-29T02:15, end: 2026-11-29T02:45, rrule: FREQ=DAILY }\n'
  expect(lint(rule('during: night, action: never'), more)[0]).toMatch(
    /^3: the window night: on 2027-03-28 the clocks change from 02:00 to 03:00: the window does not apply that night\. if that matters/,
  )
})

test('a policy that fits the site gets no finding, and a site that is too large gets one', () => {
  const sound = rule('resource: { kind: host, id: web-1 }, tool: vm_start, type: vm_stopped, action: ask')
  expect(lint(sound)).toEqual([])
  expect(lint(sound, '', { ...site, things: null })).toEqual([
    expect.stringContaining('the registry has too many resources'),
  ])
})

test('a window outside its time has no effect, so that the rules behind it are not hidden', () => {
  const sundays =
    'windows:\n  sundays: { timezone: UTC, start: 2026-01-04T02:00, end: 2026-01-04T04:00, rrule: FREQ=WEEKLY }\n'
  const rules =
    rule('resource: { kind: host }, during: sundays, action: never') +
    rule('resource: { labels: { role: web } }, action: ask', 'b')
  expect(lint(rules, sundays)).toEqual([])
})

test('a rule about silences is reported if silences are unknown, and hides no rule behind it', () => {
  const silenced = rule('silenced: true, resource: { kind: host }, action: never')
  expect(lint(silenced)).toEqual([])
  expect(lint(silenced + rule('resource: { labels: { role: web } }, action: ask', 'b'))).toEqual([])
  expect(lint(silenced, '', { ...site, silences: [] })).toEqual([
    expect.stringMatching(
      /^3: "a": no Alertmanager is connected.*as if every alert were silenced\. "nightshift sources/,
    ),
  ])
  const away = { source: 'am', readAt: '2026-11-29T11:02:00Z', fault: 'am cannot be reached', isUnread: true }
  expect(lint(silenced, '', { ...site, silences: [away] })).toEqual([
    expect.stringMatching(/silences of am were last read 2026-11-29 11:02 UTC.*"nightshift sources test am" shows why/),
  ])
  expect(lint(rule('tool: vm_start, action: never'), '', { ...site, silences: [] })).toEqual([])
})

test('an earlier rule without a tool hides no read that a later one refuses, and one about resources hides none without a resource', () => {
  const exec = 'tool: exec, resource: { labels: { role: web } }, action: never'
  expect(lint(rule('resource: { kind: host }, action: never') + rule(exec, 'b'))).toEqual([])
  const all = 'resource: { kind: [host, database] }, action: ask'
  expect(lint(rule(all) + rule('tool: vm_start, action: never', 'b'))).toEqual([
    expect.stringContaining('"a": the rule matches all 3 resources'),
  ])
})
