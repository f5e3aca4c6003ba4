import { describe, expect, test } from '@jest/globals'
import { cap, stripJson } from '../../safety/redact.ts'

function nested(depth: number, leaf: unknown, wrap: (inner: unknown) => unknown): unknown {
  let value = leaf
  for (let n = 0; n < depth; n += 1) value = wrap(value)
  return value
}

describe('data nested without end', () => {
  test.each<[string, (inner: unknown) => unknown]>([
    ['lists', (inner) => [inner]],
    ['objects', (inner) => ({ inner })],
  ])('of %s is cut at 400 levels', (_title, wrap) => {
    expect(JSON.stringify(stripJson(nested(400, [1], wrap)))).not.toContain('too deep')
    expect(JSON.stringify(stripJson(nested(401, [1], wrap)))).toContain('[nested too deep]')
  })
})

test('what JSON cannot say is left out', () => {
  expect(Object.keys(stripJson({ a: undefined, b: null }))).toEqual(['b'])
})

describe('a text too long to keep', () => {
  test.each([
    [0, '', ''],
    [1, '', 'é'.slice(1)],
    [3, 'é', ''],
    [4, 'é', 'é'],
  ])('in %i bytes is cut between characters', (limit, head, tail) => {
    expect(cap('ééééé', limit)).toMatchObject({ head, tail, bytes: 10 })
  })

  test('that fits is kept whole, by its bytes and not by its letters', () => {
    expect(cap('éé', 4)).toBe(null)
    expect(cap('éé', 3)).not.toBe(null)
  })

  test('of one character that is longer than the limit leaves nothing', () => {
    expect(cap('😀', 2)).toMatchObject({ head: '', tail: '', bytes: 4 })
    expect(cap('😀', 3)).toMatchObject({ head: '', tail: '', bytes: 4 })
  })
})
