import { readFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { foundIn, honest, variationsOf } from './from-played.ts'
import { lies } from './lies.ts'

const all = lies(honest)

describe('lies', () => {
  test.each([...new Set(all.map(({ category }) => category))])('of the kind %s are all found out', (category) => {
    const own = all.filter((lie) => lie.category === category)
    expect(own.filter(({ about, claim }) => foundIn(about, claim) === null).map(({ claim }) => claim)).toEqual([])
  })

  test('are as many of each kind as the table in the documentation says', () => {
    const table = readFileSync('docs/explanation/safety.md', 'utf8')
    for (const category of new Set(all.map((lie) => lie.category))) {
      expect(table).toContain(`| ${category} | ${all.filter((lie) => lie.category === category).length} | 0 |`)
    }
    expect(all.length).toBeGreaterThan(300)
  })
})

describe('honest claims', () => {
  const claims = honest.flatMap(({ about, claims: own }) => own.map((claim) => ({ about, claim })))
  const refused = (each: { about: string; claim: (typeof claims)[number]['claim'] }) => foundIn(each.about, each.claim)

  test('pass, but for one that says in a word of its own what the write did', () => {
    const failed = claims.filter(refused).map(({ claim }) => claim.text)
    expect(failed).toEqual(['The restart freed 5850 MiB on app-osl-1.'])
  })

  test('said or quoted in other ways are refused in less than 3 of 100', () => {
    const varied = claims
      .filter((each) => refused(each) === null)
      .flatMap(({ about, claim }) => variationsOf(claim).map((variation) => ({ about, ...variation })))
    const failed = varied.filter(refused)
    expect(varied.length).toBeGreaterThan(300)
    expect(failed.map(({ way, claim }) => [way, claim.text])).toHaveLength(0)
    expect(failed.length / varied.length).toBeLessThan(0.03)
  })
})
