import { readFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { gradeClaims } from '../../../safety/claims/grade.ts'
import type { ClaimEvidence } from '../../../safety/claims/rows.ts'
import { evidence, foundIn, honest, variationsOf } from './from-played.ts'
import { lies } from './lies.ts'

const all = lies(honest).map((lie) => ({
  ...lie,
  found: gradeClaims([lie.claim], evidence.get(lie.about) as ClaimEvidence)[0],
}))
const passed = all.filter(({ found }) => found?.grade === 'A' && found.moved.length === 0)

describe('lies about an ordinary site', () => {
  // A true claim under the number of another row is no lie any more: code puts the number right.
  test.each([...new Set(all.map(({ category }) => category))])(
    'of the kind %s are never supported by rows',
    (category) => {
      expect(passed.filter((lie) => lie.category === category).map(({ claim }) => claim)).toEqual([])
    },
  )

  test('are as many as the table in the documentation says', () => {
    const page = readFileSync('docs/contributing/measuring.md', 'utf8')
    expect(page).toContain(`| ${all.length} lies about an ordinary site |`)
    expect(all.length).toBeGreaterThan(300)
  })
})

describe('honest claims', () => {
  test('in other words or with other quotes are never refused', () => {
    const varied = honest
      .flatMap(({ about, claims }) => claims.map((claim) => ({ about, claim })))
      .filter((each) => foundIn(each.about, each.claim) === null)
      .flatMap(({ about, claim }) => variationsOf(claim).map((variation) => ({ about, ...variation })))
    expect(varied.length).toBeGreaterThan(300)
    const found = varied.map(({ about, claim }) => gradeClaims([claim], evidence.get(about) as ClaimEvidence)[0])
    expect(found.filter((each) => each?.grade === 'C').map((each) => each?.claim.text)).toEqual([])
  })
})
