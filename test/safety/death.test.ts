import { describe, expect, test } from '@jest/globals'
import type { Death, Witness } from '../../domain/death.ts'
import { judgeDeath, whyNotDead } from '../../safety/death.ts'

const nowMs = Date.parse('2026-11-21T03:00:00Z')
const ago = (seconds: number) => new Date(nowMs - seconds * 1_000).toISOString()
const saw = (sees: Witness['sees'], says: Witness['says'], seconds: number | null = 1): Witness => ({
  who: { platform: 'the platform', monitoring: 'Prometheus (prom)', agent: 'the agent of host h' }[sees],
  ...{ sees, says, at: seconds === null ? null : ago(seconds) },
})
const dead = (...witnesses: Witness[]): Death => ({ host: 'h', witnesses, isForecast: false })
const verdictOf = (death: Death, said: string[] = []) => judgeDeath(death, said, nowMs).verdict

const words = ['fenced', 'down', 'up', 'silent'] as const
const kinds = ['platform', 'monitoring', 'agent'] as const
const absent = [...words, null] as const

/** Every combination of what three who look at different things may say, one of them not there. */
const all = absent.flatMap((platform) =>
  absent.flatMap((monitoring) =>
    absent.flatMap((agent) => [[], ['h'], ['other']].map((said) => ({ says: { platform, monitoring, agent }, said }))),
  ),
)

test('in every combination a witness who saw the host alive disputes its death, and one report that it is down confirms nothing', () => {
  for (const { says, said } of all) {
    const death = dead(...kinds.flatMap((kind) => (says[kind] === null ? [] : [saw(kind, says[kind])])))
    const told = Object.values(says)
    const down = told.filter((word) => word === 'down').length
    // Fencing without a later sighting: all of these were seen in the same second.
    const wanted = told.includes('up')
      ? 'disputed'
      : told.includes('fenced')
        ? 'fenced'
        : down > 1
          ? 'witnessed'
          : said.includes('h')
            ? 'said'
            : 'unconfirmed'
    expect([JSON.stringify(says), said, verdictOf(death, said)]).toEqual([JSON.stringify(says), said, wanted])
  }
  expect(all).toHaveLength(375)
})

describe('a witness', () => {
  test.each([
    ['two who look at the same are one', [saw('monitoring', 'down'), saw('monitoring', 'down')], 'unconfirmed'],
    ['the platform twice is one', [saw('platform', 'down'), saw('platform', 'down')], 'unconfirmed'],
    [
      'a scrape of long ago counts for nothing',
      [saw('platform', 'down'), saw('monitoring', 'down', 121)],
      'unconfirmed',
    ],
    [
      'an agent heard long ago is silent',
      [saw('platform', 'down'), saw('monitoring', 'down'), saw('agent', 'up', 91)],
      'witnessed',
    ],
    [
      'an agent heard just now stops it',
      [saw('platform', 'down'), saw('monitoring', 'down'), saw('agent', 'up', 89)],
      'disputed',
    ],
    [
      'a sighting from before it was fenced says nothing',
      [saw('platform', 'fenced', 10), saw('agent', 'up', 11)],
      'fenced',
    ],
    ['one from after it was fenced does', [saw('platform', 'fenced', 10), saw('agent', 'up', 9)], 'disputed'],
    ['one stops fencing that has no time', [saw('platform', 'fenced', null), saw('agent', 'up', 30)], 'disputed'],
    ['a clock that is ahead makes nothing old', [saw('platform', 'down'), saw('agent', 'up', -500)], 'disputed'],
    [
      'a time that cannot be read is no sighting',
      [saw('platform', 'down'), { ...saw('agent', 'up'), at: 'soon' }],
      'unconfirmed',
    ],
    ['nobody says anything', [], 'unconfirmed'],
  ] as [string, Witness[], string][])('%s', (_, witnesses, wanted) => {
    expect(verdictOf(dead(...witnesses))).toBe(wanted)
  })
})

test('a host that its platform fences and restarts needs no statement, and the plan stops if somebody saw it alive', () => {
  const forecast = (...witnesses: Witness[]): Death => ({ ...dead(...witnesses), isForecast: true })
  expect(verdictOf(forecast(saw('platform', 'down')))).toBe('forecast')
  expect(verdictOf(forecast(saw('platform', 'down'), saw('agent', 'up')))).toBe('disputed')
})

test("a person reads each witness's report, and what would be enough", () => {
  const { sentence } = judgeDeath(dead(saw('platform', 'down'), saw('agent', 'silent', null)), [], nowMs)
  expect(sentence).toBe(
    'h: the platform says that it is down (2026-11-21 02:59 UTC); the agent of host h does not know. One source is not enough: the host may be alive but cut off.',
  )
  expect(judgeDeath(dead(saw('platform', 'down'), saw('agent', 'up')), ['h'], nowMs).sentence).toContain(
    'the agent of host h saw it alive (2026-11-21 02:59 UTC). The sources disagree. Nothing is written until',
  )
})

test('every one of several hosts needs a confirmation, and a dispute comes first', () => {
  const named = (host: string, ...witnesses: Witness[]): Death => ({ ...dead(...witnesses), host })
  const a = named('a', saw('platform', 'down'))
  const b = named('b', saw('platform', 'down'), saw('monitoring', 'up'))
  const c = named('c', saw('platform', 'fenced'))
  expect(whyNotDead([a, c], ['b'], nowMs)).toMatchObject({ code: 'HOST_NOT_CONFIRMED', hosts: ['a'] })
  expect(whyNotDead([a, c], ['a'], nowMs)).toBeNull()
  expect(whyNotDead([a, b, c], ['a', 'b'], nowMs)).toMatchObject({ code: 'WITNESSES_DISAGREE', hosts: ['b'] })
  expect(whyNotDead([], [], nowMs)).toBeNull()
})
