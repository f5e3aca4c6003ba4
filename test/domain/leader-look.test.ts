import { expect, test } from '@jest/globals'
import { type IncidentTerms, inTermsOf, type LeaderLook } from '../../domain/leader-look.ts'
import { callId, firstPlaceOfCode, isCallOfCode } from '../../domain/step-key.ts'

const terms = (site: string, more: Partial<IncidentTerms> = {}): IncidentTerms => ({
  incidentId: `inc_${site}`,
  resource: { kind: 'node', id: `node-web-${site}-1a` },
  near: [
    { kind: 'shard', id: `web-${site}-1` },
    { kind: 'host', id: 'host-1' },
    { kind: 'node', id: `node-web-${site}-1b` },
    { kind: 'node', id: `node-web-${site}-1c` },
  ],
  labels: { alertname: 'DiskFull', node: `node-web-${site}-1a`, instance: `10.0.0.${site.length}:9100` },
  ...more,
})
const osl = terms('osl')
const other = terms('bergen')

const told = (look: LeaderLook['arguments'], leader = osl, own = other) =>
  inTermsOf({ before: [{ tool: 'get_node', arguments: look }], write: null, after: [] }, leader, own)?.before[0]
    ?.arguments

test("a read has the follower's resource in place of the leader's, in ids, paths, words of a command and queries", () => {
  expect(told({ id: 'node-web-osl-1a' })).toEqual({ id: 'node-web-bergen-1a' })
  expect(
    told({ on: { kind: 'node', id: 'node-web-osl-1a' }, argv: ['tail', '/srv/node-web-osl-1a/log/app.log'] }),
  ).toEqual({
    on: { kind: 'node', id: 'node-web-bergen-1a' },
    argv: ['tail', '/srv/node-web-bergen-1a/log/app.log'],
  })
  expect(told({ query: 'up{instance="10.0.0.3:9100"}', range: '30m' })).toEqual({
    query: 'up{instance="10.0.0.6:9100"}',
    range: '30m',
  })
  expect(told({ id: 'inc_osl' })).toEqual({ id: 'inc_bergen' })
})

test('the only neighbour of a kind replaces its counterpart, a common neighbour stays, and one of several is not guessed', () => {
  expect(told({ id: 'web-osl-1' })).toEqual({ id: 'web-bergen-1' })
  expect(told({ id: 'host-1' })).toEqual({ id: 'host-1' })
  expect(told({ id: 'node-web-osl-1b' })).toBeUndefined()
  expect(told({ argv: ['cat', '/srv/node-web-osl-1b/state'] })).toBeUndefined()
})

test('names are replaced only as a whole, because a longer name is another resource', () => {
  expect(told({ text: 'web-osl-12 web-osl-1 xweb-osl-1' })).toEqual({ text: 'web-osl-12 web-bergen-1 xweb-osl-1' })
  const numbers = {
    leader: terms('osl', { resource: { kind: 'vm', id: '101' } }),
    own: terms('bergen', { resource: { kind: 'vm', id: '205' } }),
  }
  expect(told({ vm: '101', argv: ['-n', '1010', '101 lines'] }, numbers.leader, numbers.own)).toEqual({
    vm: '205',
    argv: ['-n', '1010', '101 lines'],
  })
})

test('two names that swap places are each replaced once', () => {
  const a = terms('osl', { near: [{ kind: 'shard', id: 'web-a-1' }], labels: { peer: 'web-b-1' } })
  const b = terms('bergen', { near: [{ kind: 'shard', id: 'web-b-1' }], labels: { peer: 'web-a-1' } })
  expect(told({ text: 'web-a-1 and web-b-1' }, a, b)).toEqual({ text: 'web-b-1 and web-a-1' })
})

test('a read of a moment, a process or a page of an answer is left out', () => {
  expect(told({ on: 'node-web-osl-1a', pid: 4711 })).toBeUndefined()
  expect(told({ id: 'node-web-osl-1a', cursor: 'abc' })).toBeUndefined()
  expect(told({ id: 'node-web-osl-1a', since: '2026-11-21T02:00:00Z' })).toBeUndefined()
})

test('a label with two meanings for the follower has none', () => {
  const leader = terms('osl', { near: [], labels: { primary: 'db-osl-7', source: 'db-osl-7' } })
  const own = terms('bergen', { near: [], labels: { primary: 'db-bergen-7', source: 'db-bergen-9' } })
  expect(told({ id: 'db-osl-7' }, leader, own)).toBeUndefined()
})

test("an alert's unusual name gets into no read, and a name that the leader's sender never used neither", () => {
  const leader = terms('osl', { labels: { db: 'orders', file: '/srv/app.log', empty: '', constructor: 'tool-a' } })
  const named = (labels: Record<string, string>) => terms('bergen', { labels })
  const query = { sql: "select count(*) from pg_locks where datname = 'orders'" }
  expect(told(query, leader, named({ db: 'billing' }))).toEqual({
    sql: "select count(*) from pg_locks where datname = 'billing'",
  })
  for (const db of ["x' union select passwd from pg_shadow --", 'x"} or vector(1) #', '--output=/tmp/x', 'a\nb', ''])
    expect(told(query, leader, named({ db }))).toBeUndefined()
  expect(told({ path: '/srv/app.log' }, leader, named({ file: '/srv/../etc/shadow' }))).toBeUndefined()
  // An empty label names nothing, and neither does what every object of the language has.
  expect(told({ filter: '' }, leader, named({ empty: 'all' }))).toEqual({ filter: '' })
  expect(told({ id: 'tool-a', text: 'of tool-a' }, leader, named({}))).toEqual({ id: 'tool-a', text: 'of tool-a' })
})

test('a short name that occurs many times in a read makes no endless one', () => {
  const leader = terms('osl', { labels: { job: 'abcd' } })
  const own = terms('bergen', { labels: { job: 'e'.repeat(250) } })
  expect(told({ text: 'abcd '.repeat(10) }, leader, own)).toBeDefined()
  expect(told({ text: 'abcd '.repeat(1_000) }, leader, own)).toBeUndefined()
})

test('incidents about resources of different kinds share no reads', () => {
  expect(told({ id: 'x' }, osl, terms('bergen', { resource: { kind: 'host', id: 'host-9' } }))).toBeUndefined()
  expect(told({ id: 'x' }, osl, terms('bergen', { resource: null }))).toBeUndefined()
})

test('a read by code has an id that no call of a model can have', () => {
  expect(isCallOfCode(callId(0, firstPlaceOfCode))).toBe(true)
  expect(isCallOfCode(callId(3, 31))).toBe(false)
  expect(isCallOfCode('not a call')).toBe(false)
})
