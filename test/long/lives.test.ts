import { expect, test } from '@jest/globals'
import { simulateLives } from '../simulation/life.ts'
import { freshSeed, freshShare } from '../support/random-cases.ts'

const seeds = Number(process.env.LIVES ?? 750)

test('thousands of lives with hostile models, lost answers, crashes and races break no invariant', async () => {
  const simulate = await simulateLives(seeds)
  expect(simulate).toMatchObject({ seeds, broken: 0 })
  expect(simulate.effects).toBeGreaterThan(seeds / 2)
  const fresh = freshShare(seeds)
  if (fresh > 0) expect(await simulateLives(fresh, freshSeed!)).toMatchObject({ seeds: fresh, broken: 0 })
}, 7_200_000)
