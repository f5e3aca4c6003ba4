import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { z } from 'zod'
import { readPlainValues } from '../../model/plain-values.ts'
import { tools } from '../../tools/registry.ts'

const input = z.strictObject({
  on: z.string().min(1),
  limit: z.number().int().positive().optional(),
  name: z.string().min(2).optional(),
  argv: z.array(z.string()).optional(),
  deep: z.object({ seq: z.number(), note: z.string().min(1).optional() }).optional(),
  rows: z.array(z.object({ seq: z.number() })).optional(),
  all: z.boolean().optional(),
})

test.each([
  ['null for what may be left out', { on: 'a', limit: null, name: null }, { on: 'a' }],
  ['an empty text for what may be left out', { on: 'a', name: '', limit: '' }, { on: 'a' }],
  ['digits for a number', { on: 'a', limit: '5' }, { on: 'a', limit: 5 }],
  ['JSON in a text for a list', { on: 'a', argv: '["df", "-h"]' }, { on: 'a', argv: ['df', '-h'] }],
  ['JSON in a text for an object, and digits in it', { on: 'a', deep: '{"seq":"7"}' }, { on: 'a', deep: { seq: 7 } }],
  ['digits within a list', { on: 'a', rows: [{ seq: '1' }, { seq: 2 }] }, { on: 'a', rows: [{ seq: 1 }, { seq: 2 }] }],
  ['words for true and false', { on: 'a', all: 'False' }, { on: 'a', all: false }],
  ['an empty text deep within', { on: 'a', deep: { seq: 1, note: '' } }, { on: 'a', deep: { seq: 1 } }],
])('%s is read as intended, once, and reported', (_what, given, expected) => {
  const result = readPlainValues(input, given)
  expect(result.arguments).toEqual(expected)
  expect(result.read.length).toBeGreaterThan(0)
  expect(readPlainValues(input, result.arguments).read).toEqual([])
})

test.each([
  ['null for what is needed', { on: null }],
  ['an empty text for what is needed', { on: '' }],
  ['words for a list', { on: 'a', argv: 'df -h' }],
  ['a number with its unit', { on: 'a', limit: '5 rows' }],
  ['a number of another base', { on: 'a', limit: '0x10' }],
  ['zero where more is asked', { on: 'a', limit: 0 }],
  ['a name that there is not', { on: 'a', colour: null }],
  ['a list for a text', { on: ['a'] }],
])('%s stays as it is', (_what, given) => expect(readPlainValues(input, given)).toEqual({ arguments: given, read: [] }))

test('readable values are read beside unreadable ones', () => {
  expect(readPlainValues(input, { on: 'a', limit: '5', argv: 'df -h' })).toEqual({
    arguments: { on: 'a', limit: 5, argv: 'df -h' },
    read: [{ field: 'limit', from: '5', to: 5 }],
  })
})

test('valid arguments are never changed, and no refused one is read as more than it says', () => {
  for (const { input: schema, name } of tools.values()) {
    fc.assert(
      fc.property(
        fc.dictionary(fc.constantFrom('id', 'on', 'limit', 'path', 'reason', 'name'), fc.jsonValue()),
        (given) => {
          const result = readPlainValues(schema, given as Record<string, unknown>)
          if (schema.safeParse(given).success) expect({ name, ...result }).toEqual({ name, arguments: given, read: [] })
          // Only values that stood there are read; none is invented.
          for (const key of Object.keys(result.arguments)) expect(Object.hasOwn(given, key)).toBe(true)
        },
      ),
      { numRuns: 8 },
    )
  }
})
