import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { Silence, SilenceMatcher, SilencesRead } from '../../../domain/silence.ts'
import { compileLabelPattern } from '../../../safety/query/pattern.ts'
import { describeNoSilence, findSilence } from '../../../safety/site/silences.ts'
import { withoutHanging } from '../../support/endless.ts'
import { isSilencedPlainly } from './reference.ts'

const nowMs = Date.parse('2026-11-29T12:00:00Z')
const at = (minutes: number) => new Date(nowMs + minutes * 60_000).toISOString()
const alert = { alertname: 'DiskFull', instance: 'web-1:9100', env: 'prod', path: 'C:\\disk' }

const matcher = (text: string): SilenceMatcher => {
  const [, name = '', sign = '', value = ''] = /^(\w+)(=~|!~|!=|=)([\s\S]*)$/.exec(text) ?? []
  return { name, value, isRegex: sign.endsWith('~'), isEqual: sign.startsWith('=') }
}
const silence = (matchers: readonly string[] | null, more: Partial<Silence> = {}): Silence => ({
  ...{ id: '1f0c9a7d', state: 'active', startsAt: at(-60), endsAt: at(60), createdBy: 'berit', comment: 'new disk' },
  matchers: matchers?.map(matcher) ?? null,
  ...more,
})
const read = (...silences: Silence[]): SilencesRead[] => [{ source: 'am', readAt: at(-1), silences }]
/** Does it match, not, or is that not known? */
function find(matchers: readonly string[] | null, labels: Record<string, string> = alert) {
  const found = findSilence(read(silence(matchers)), [labels], nowMs)
  return found === null ? 'no' : found.is === 'silenced' && !found.isSupposed ? 'yes' : 'unknown'
}

test.each<[matchers: string[], is: 'yes' | 'no']>([
  [['alertname=DiskFull'], 'yes'],
  [['alertname=DiskFul'], 'no'],
  [['alertname!=HighLoad'], 'yes'],
  [['alertname=DiskFull', 'env=test'], 'no'],
  [['alertname=DiskFull', 'env=~prod|test'], 'yes'],
  [['instance=~web-[0-9]+:.*'], 'yes'],
  // The whole of it, at both ends.
  [['instance=~web-1'], 'no'],
  [['instance=~1:9100'], 'no'],
  [['instance=~prod|web'], 'no'],
  [['instance!~web-1'], 'yes'],
  [['instance!~web-1:.+'], 'no'],
  [['alertname=~(?i)diskfull'], 'yes'],
  [['alertname=~(?i:disk)full'], 'no'],
  [['instance=~\\w+-\\d:\\d{4}'], 'yes'],
  [['instance=~web-1\\.9100'], 'no'],
  // What a class escapes is one character, and ends where RE2 ends it.
  [['alertname=~[\\x44a][i]skFull'], 'yes'],
  [['alertname=~Dis[\\x6bf]Full'], 'yes'],
  [['path=~C:[^\\[]+'], 'yes'],
  [['path!~C:[\\[]disk'], 'yes'],
  [['path=~C:[\\\\x41]disk'], 'yes'],
  [['path=~C:[[\\\\]disk'], 'yes'],
  [['path=~C:[\\]\\[]disk'], 'no'],
  [['instance=~web[_\\-]1:9100'], 'yes'],
  // An absent one is empty.
  [['team='], 'yes'],
  [['team!='], 'no'],
  [['team=~.+'], 'no'],
  [['team=~.*'], 'yes'],
  [['team!~ops'], 'yes'],
  [['__proto__='], 'yes'],
])('a silence with the matchers %s applies as in Alertmanager: %s', (matchers, is) => {
  expect(find(matchers)).toBe(is)
})

test.each<[why: string, matchers: string[] | null, labels?: Record<string, string>]>([
  ['matchers that were too long to be kept', null],
  ['a group that closes the anchor', ['instance=~a)|(?:.*']],
  ['a pattern that repeats a repeat', ['instance=~(a+)+b']],
  ['a class of Unicode', ['instance=~\\p{Greek}+']],
  ['ends of lines', ['instance=~(?m)web-1:9100$']],
  ['a look ahead', ['instance=~(?=web).*']],
  ['a pattern that does not end', ['instance=~[']],
  ['a letter beside a class that JavaScript has otherwise', ['instance=~\\w+'], { instance: 'ſ' }],
  ['a pattern of five thousand characters', [`instance=~${'web-1|'.repeat(900)}x`]],
  ['a value that was shortened', ['summary=all'], { summary: 'al…' }],
  ['a value that was redacted', ['key=s3cret'], { key: '[redacted:password]' }],
  [
    'a label that may have been left out',
    ['team=ops'],
    Object.fromEntries(Array.from({ length: 64 }, (_, n) => [`l${n}`, 'x'])),
  ],
])('%s cannot be compared, and counts as silenced', (_, matchers, labels = alert) => {
  expect(find(matchers, labels)).toBe('unknown')
})

test('a silence that certainly does not match ignores what cannot be compared', () => {
  expect(find(['instance=~(a+)+b', 'alertname=HighLoad'])).toBe('no')
})

const bombs = [
  ...['(.*)*x', '(a|a)*b', '(a|aa)+$', '(.*a){25}', '((a{0,30}){0,30}){0,1}', '.*'.repeat(1_900)],
  ...['(?:.?){990}x', `${'(?:.{0,30}){0,30}'.repeat(200)}`, `${'a?'.repeat(900)}${'a'.repeat(900)}`, '(x{0,1000})b'],
]

test('no foreign pattern takes longer than its time, alone or with ten thousand others', () => {
  const labels = { instance: 'a'.repeat(1_024) }
  withoutHanging(() => {
    for (const bomb of bombs) expect(['no', 'unknown', 'yes']).toContain(find([`instance=~${bomb}`], labels))
    const many = Array.from({ length: 10_000 }, (_, n) => silence([`instance=~${bombs[n % bombs.length]}${n}`]))
    const alerts = Array.from({ length: 1_000 }, (_, n) => ({ ...labels, n: String(n) }))
    expect(findSilence(read(...many), alerts, nowMs)).toMatchObject({ is: 'silenced', isSupposed: true })
  })
})

test('a pattern that takes too long makes no other silence unknown', () => {
  const labels = { instance: 'a'.repeat(1_024), env: 'prod' }
  const bomb = silence([`instance=~${'.*'.repeat(1_900)}b`, 'env=test'])
  const other = silence([`instance=~${'.*'.repeat(1_900)}b`], { id: 'b' })
  expect(findSilence(read(bomb), [labels], nowMs)).toBeNull()
  expect(findSilence(read(bomb, silence(['env=prod'], { id: 'c' })), [labels], nowMs)).toMatchObject({ id: 'c' })
  expect(findSilence(read(other, silence(['env=prod'], { id: 'c' })), [labels], nowMs)).toMatchObject({ id: 'c' })
  expect(findSilence(read(other, silence(['env=test'])), [labels], nowMs)).toMatchObject({ id: 'b', isSupposed: true })
})

test('alerts beyond the limit of the comparison count as silenced, if a silence exists', () => {
  const alerts = Array.from({ length: 1_001 }, (_, n) => ({ instance: `web-${n}` }))
  expect(findSilence(read(silence(['instance=db-1'])), alerts, nowMs)).toMatchObject({ isSupposed: true })
  expect(findSilence(read(), alerts, nowMs)).toBeNull()
})

test('a future silence applies from its beginning, and an active one until its Alertmanager ends it', () => {
  const all = ['alertname=DiskFull']
  const held = (more: Partial<Silence>) => findSilence(read(silence(all, more)), [alert], nowMs) !== null
  expect(held({ state: 'pending', startsAt: at(1) })).toBe(false)
  expect(held({ state: 'pending', startsAt: at(0) })).toBe(true)
  // Its clock is behind ours, or it ends within this minute.
  expect(held({ endsAt: at(-1) })).toBe(true)
  // Its clock is ahead of ours.
  expect(held({ startsAt: at(1) })).toBe(true)
})

test('without an answer for five minutes, or without an Alertmanager, silences are unknown, and a known silence is named first', () => {
  const [away, here] = [
    { source: 'am', readAt: at(-6), silences: [] },
    { source: 'b', readAt: at(-5), silences: [silence(['alertname=DiskFull'])] },
  ]
  expect(findSilence([away], [alert], nowMs)).toEqual({ is: 'unread', source: 'am', readAt: at(-6) })
  expect(findSilence([{ ...away, readAt: null }], [alert], nowMs)).toMatchObject({ is: 'unread', readAt: null })
  // The clock was put back since.
  expect(findSilence([{ ...away, readAt: at(6) }], [alert], nowMs)).toMatchObject({ is: 'unread', readAt: at(6) })
  expect(findSilence([{ ...away, readAt: at(1) }], [alert], nowMs)).toBeNull()
  expect(findSilence([], [alert], nowMs)).toEqual({ is: 'unread', source: null, readAt: null })
  expect(findSilence([away, here], [alert], nowMs)).toMatchObject({ is: 'silenced', source: 'b', createdBy: 'berit' })
  expect(findSilence([], [], nowMs)).toBeNull()
  expect(describeNoSilence([], [])).toBe('The incident has no alert that could be silenced')
  expect(describeNoSilence(read(silence(['env=test'])), [alert])).toBe(
    'These silences match none of its 1 alert: 1 silence of am (read 2026-11-29 11:59 UTC)',
  )
})

const names = ['env', 'tier', 'team']
const word = fc.constantFrom('a', 'b', 'ab', 'aab', 'b1', '')
/** Patterns that JavaScript reads as RE2 does. */
const part = fc.oneof(
  fc.constantFrom('a', 'b', '.', '[ab]', '[^b]', '\\d', '(?:ab)', '(a|b1)', '\\.'),
  // Classes of escapes.
  fc
    .array(fc.constantFrom('a', 'b', '1', '\\x61', '\\x62', '\\[', '\\]', '\\\\', '\\d', '['), {
      minLength: 1,
      maxLength: 3,
    })
    .map((pieces) => `[${pieces.join('')}]`),
)
const pattern = fc
  .array(fc.tuple(part, fc.constantFrom('', '*', '+', '?', '{2}', '{0,2}', '{1,}', '*?')), { maxLength: 4 })
  .map((parts) => parts.map(([one, times]) => `${one}${times}`).join(''))
const anyPattern = fc.oneof(
  pattern,
  fc.tuple(pattern, pattern).map(([left, right]) => `${left}|${right}`),
)
const anyMatcher: fc.Arbitrary<SilenceMatcher> = fc.oneof(
  fc.record({ name: fc.constantFrom(...names), value: word, isRegex: fc.constant(false), isEqual: fc.boolean() }),
  fc.record({ name: fc.constantFrom(...names), value: anyPattern, isRegex: fc.constant(true), isEqual: fc.boolean() }),
)
const anySilence = fc.record({
  state: fc.constantFrom('active' as const, 'active' as const, 'pending' as const),
  matchers: fc.array(anyMatcher, { minLength: 1, maxLength: 3 }),
  startsAt: fc.constantFrom(at(-1), at(0), at(1)),
})
const anyRead = fc.record({
  source: fc.constantFrom('am', 'b'),
  readAt: fc.constantFrom(at(0), at(-1), at(-2), at(-4), at(-5), at(-6), null),
  silences: fc.array(
    anySilence.map((each) => silence(null, each)),
    { maxLength: 4 },
  ),
})

test('random alerts and silences match like a plain reading of the documentation', () => {
  const seen = { yes: 0, no: 0 }
  fc.assert(
    fc.property(
      fc.array(anyRead, { maxLength: 2 }),
      fc.array(fc.dictionary(fc.constantFrom(...names), word), { maxLength: 3 }),
      (sources, alerts) => {
        const expected = isSilencedPlainly(sources, alerts, nowMs)
        const found = findSilence(sources, alerts, nowMs)
        expect([found !== null, found?.is === 'silenced' && found.isSupposed]).toEqual([expected, false])
        seen[expected ? 'yes' : 'no'] += 1
      },
    ),
    { numRuns: Number(process.env.POLICIES ?? 10_000) },
  )
  expect(Math.min(seen.yes, seen.no)).toBeGreaterThan(1_000)
})

test('a pattern matches a value like the expression of JavaScript', () => {
  fc.assert(
    fc.property(anyPattern, fc.stringMatching(/^[ab1.[\]\\x]{0,6}$/), (text, value) => {
      const budget = { left: 1_000_000 }
      expect(compileLabelPattern(text, budget)(value, budget)).toBe(new RegExp(`^(?:${text})$`, 'u').test(value))
    }),
    { numRuns: 5_000 },
  )
})
