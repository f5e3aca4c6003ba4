import { expect, test } from '@jest/globals'
import { costOf, parsePrices, priceOf, shippedPrices } from '../../domain/price.ts'

const rules = (text: string) => {
  const parsed = parsePrices(text)
  if (!parsed.ok) throw new Error(parsed.reason)
  return parsed.rules
}

test.each([
  ['a model with a list price', ['gpt-4.1'], '', { in: 2, out: 8, isAssumed: false }],
  ['its dated name', ['claude-sonnet-5-20260601'], '', { in: 2, out: 10, isAssumed: false }],
  ['the name of a reseller before it', ['openai/gpt-5'], '', { in: 1.25, out: 10, isAssumed: false }],
  ['a price of the site goes first', ['gpt-4.1'], 'gpt-4.1 = 1/2', { in: 1, out: 2, isAssumed: false }],
  ['a model of the site that costs nothing', ['qwen3-32b'], 'qwen* = 0', { in: 0, out: 0, isAssumed: false }],
  [
    'the configured name decides over what the server says',
    ['big', 'qwen3'],
    'qwen* = 0; big = 9/9',
    { in: 9, out: 9, isAssumed: false },
  ],
  ['a model nobody priced counts as the dearest', ['mystery'], 'gold = 20/300', { in: 20, out: 300, isAssumed: true }],
])('%s', (_, models, own, price) => {
  expect(priceOf(models, rules(own))).toEqual(price)
})

test.each([
  'gpt',
  'gpt = 1',
  'gpt = -1/2',
  'gpt = 1/2/3',
  'a b = 1/2',
  'gpt = 1e9/2',
  'gpt = 999999/1',
  '= 1/2',
  `${'x = 1/1;'.repeat(101)}`,
])('an unreadable rule is refused by name: %s', (text) =>
  expect(parsePrices(text)).toMatchObject({ ok: false, reason: expect.any(String) }),
)

test('a million tokens each way cost what the rule says, and every shipped price names a public page', () => {
  expect(costOf({ promptTokens: 1_000_000, completionTokens: 1_000_000 }, { in: 0.4, out: 1.6 })).toBe(2)
  for (const { source, price } of shippedPrices) {
    expect(source).toMatch(/^https:\/\//)
    expect(price.out).toBeGreaterThanOrEqual(price.in)
  }
})
