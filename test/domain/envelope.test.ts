import { expect, test } from '@jest/globals'
import { withoutNoise } from '../../domain/envelope.ts'

test.each([
  [{ expression: 'lag_seconds > 5', threshold: 5 }, { expression: 'lag_seconds > 5' }],
  [
    { expression: 'usage > 0.5', threshold: 5 },
    { expression: 'usage > 0.5', threshold: 5 },
  ],
  [
    { expression: 'usage > 15', threshold: 5 },
    { expression: 'usage > 15', threshold: 5 },
  ],
  [{ id: 'db-1', name: 'db-1' }, { id: 'db-1' }],
  [
    { id: 'db-1', name: 'db-10' },
    { id: 'db-1', name: 'db-10' },
  ],
])('text that %j repeats is left out, and nothing else', (answer, left) => {
  expect(withoutNoise(answer)).toEqual(left)
})
