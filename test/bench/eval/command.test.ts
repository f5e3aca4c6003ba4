import { describe, expect, test } from '@jest/globals'
import { keyOf, planRuns, readAsked, readResults } from '../../../bench/eval/command.ts'
import { result } from './result.ts'

describe('a file of results', () => {
  test('is read again without a last line that was cut off, and a broken line is named', () => {
    const line = JSON.stringify(result)
    expect(readResults(`${line}\n${line.slice(0, 40)}`)).toEqual([result])
    expect(() => readResults(`{"x":1}\n${line}\n`)).toThrow('line 1 is no result')
  })

  test('names a run by everything that it was played under', () => {
    const wanted = { scenario: 'service_down', mood: null, people: 'approve', gateOff: null, run: 1 } as const
    expect(keyOf('m', wanted)).toBe(keyOf('m', result))
    expect(keyOf('m', { ...wanted, run: 2 })).not.toBe(keyOf('m', result))
    expect(keyOf('m', { ...wanted, gateOff: 'denial' })).not.toBe(keyOf('m', result))
  })
})

test('runs without a gate come last, and runs of each gate are together', () => {
  const each = (gateOff: string | null) =>
    ({ scenario: 'service_down', mood: null, people: 'approve', gateOff }) as const
  const plan = planRuns([each('denial'), each(null), each('approval'), each('denial')], 1)
  expect(plan.map(({ gateOff }) => gateOff)).toEqual([null, 'approval', 'denial', 'denial'])
})

test.each([
  [['--runs', '0'], '--runs takes a whole number from 1'],
  [['--scenarios', 'flood'], '--scenarios does not know "flood"; there is replication_lag'],
  [['--moods', 'sad'], '--moods does not know "sad"'],
  [['--guards-off', 'claims'], '--guards-off does not know "claims"'],
  [['--people', 'bribe'], '--people does not know "bribe"; there is approve, deny, edit, silent'],
  [['--model', 'qwen3'], '--model and --base-url go together'],
  [['--model', 'qwen3', '--base-url', 'http://h/v1', '--moods', 'prose'], 'moods belong to the rule table'],
  [['--out', 'package.json'], 'package.json is there: play on with --resume'],
  [['--resume', 'no-such-file'], 'there is no no-such-file; begin with --out'],
])('a wrong command line is refused with the valid options: %j', (words, said) =>
  expect(() => readAsked(words)).toThrow(said),
)
