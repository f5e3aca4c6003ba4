import fc from 'fast-check'

/**
 * What makes up cases by chance makes the same ones in every run, so that a failure is one of the
 * change that is tested. In CI, or with FC_SEED, one in a hundred more is new: `FC_SEED=… npm test
 * -- test/…` plays those again. This file stands in for fast-check (see in-node.js).
 */
const fixedSeed = 20_261_121

/** What global-setup.ts has printed; null where nothing new is tried. */
export const freshSeed = process.env.FC_SEED ? Number(process.env.FC_SEED) : null

/** How many of the cases are new besides. */
export const freshShare = (count: number): number => (freshSeed === null ? 0 : Math.max(1, Math.round(count / 100)))

type Property = fc.IRawProperty<unknown>
type Parameters = fc.Parameters<unknown>

function assert(property: Property, parameters: Parameters = {}): unknown {
  const fixed = fc.assert(property, { seed: fixedSeed, ...parameters })
  if (freshSeed === null || parameters.seed !== undefined) return fixed
  const { examples: _, path: __, numRuns = 100, ...rest } = parameters
  const again = () => fc.assert(property, { ...rest, numRuns: freshShare(numRuns), seed: freshSeed })
  return fixed instanceof Promise ? fixed.then(again) : again()
}

export * from 'fast-check'
export default { ...fc, assert }
