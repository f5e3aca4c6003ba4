import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { pathIndex, pathOf } from '../../../safety/command/path-index.ts'
import { globExpression } from '../../../safety/command/patterns.ts'
import { hiddenPaths, measuredPaths, openTrees, publicPaths } from '../../../safety/command/secret-paths.ts'

const lists = { secret: [...hiddenPaths, ...measuredPaths], open: openTrees, public: publicPaths }
const made = Object.values(lists).map((list) => ({ index: pathIndex(list), expression: globExpression(list) }))

/** Paths near those of the lists: a pattern with its wildcards filled in, then changed a little. */
const near = fc
  .tuple(
    fc.constantFrom(...Object.values(lists).flat()),
    fc.constantFrom('', 'x', '.x', 'a.b', 'x/y', 'SHADOW', 'id_rsa'),
    fc.constantFrom('', '/', '/tail', '.bak', 'x'),
    fc.constantFrom('', '/', '/srv/', 'rel/'),
    fc.boolean(),
  )
  .map(([pattern, filling, tail, head, isUpper]) => {
    const path = `${head}${pattern
      .replace(/\*\*|\*/g, filling)
      .replace(/\?/g, 'q')
      .replace(/\[[^\]]*\]/g, '1')}${tail}`
    return isUpper ? path.toUpperCase() : path
  })

test('an index of paths answers like one expression of all of them', () => {
  fc.assert(
    fc.property(near, (path) => {
      for (const { index, expression } of made)
        expect([path, index.test(pathOf(path))]).toEqual([path, expression.test(path)])
    }),
    { numRuns: 3_000 },
  )
})

test('every pattern is found by a path that it names', () => {
  const { index, expression } = made[0]!
  for (const pattern of lists.secret) {
    const path = pattern
      .replace(/\*\*|\*/g, 'x')
      .replace(/\?/g, 'q')
      .replace(/\[[^\]]*\]/g, '1')
    expect([pattern, index.test(pathOf(path))]).toEqual([pattern, expression.test(path)])
  }
})
