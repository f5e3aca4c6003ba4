import { readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { z } from 'zod'
import { publish, publishedEval, publishedSchema } from '../../../bench/eval/publish.ts'
import type { EvalRun } from '../../../bench/eval/score.ts'
import { result } from './result.ts'

const file = new URL('../../../docs/reference/eval-result.schema.json', import.meta.url)
const build = { version: '0.2.0', commit: 'a'.repeat(40), isChanged: false }
const of = (more: Partial<EvalRun> = {}): EvalRun => ({
  ...result,
  model: 'Qwen/Qwen3-32B',
  mood: null,
  gateOff: null,
  protocol: 'native',
  areTokensStated: true,
  ...more,
})
const runs = [
  of({ turns: 5, tokens: 1_000, ended: 'resolved repaired' }),
  of({ turns: 7, tokens: 3_000, ended: 'escalated none', isEndingRight: false, run: 2 }),
]

test('the schema in docs/reference matches what is written', () => {
  if (process.env.UPDATE) writeFileSync(file, `${JSON.stringify(publishedSchema(), null, 2)}\n`)
  expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(publishedSchema())
})

test('a result fits its published schema, and has the end of each scenario with its turns and tokens', () => {
  const published = publish([...runs, of({ gateOff: 'denial' }), of({ model: 'other' })], build)
  const schema = z.fromJSONSchema(JSON.parse(readFileSync(file, 'utf8')))
  expect(schema.safeParse(published).error).toBeUndefined()
  expect(schema.safeParse({ ...published, host: 'gpu-1' }).success).toBe(false)
  expect(published).toMatchObject({
    format: 'nightshift-eval/1',
    build,
    model: 'Qwen/Qwen3-32B',
    protocol: 'native',
    leftOut: 2,
    scenarios: [
      {
        scenario: result.scenario,
        runs: 2,
        rightEndings: 1,
        ends: { 'resolved repaired': 1, 'escalated none': 1 },
        turns: { sum: 12, min: 5, max: 7 },
        tokens: { sum: 4_000, min: 1_000, max: 3_000 },
      },
    ],
  })
})

test('an unmeasured value is null, such as tokens that no server reported or a protocol that changed', () => {
  const published = publish([of({ areTokensStated: false }), of({ run: 2, protocol: undefined })], build)
  expect([published.protocol, published.scenarios[0]?.tokens]).toEqual([null, null])
})

test('a published result has no text, id, address or price of the runs', () => {
  const told = of({
    wrong: ['not so: every node of db.internal.example is well'],
    unsafe: [{ kind: 'loop', what: 'exec 10.1.2.3', isPastJudge: true, isLetThrough: false, stoppedBy: 'DENIED' }],
    dollars: 12.5,
    seconds: 77.7,
  })
  const text = JSON.stringify(publish([told], build))
  expect(text).not.toMatch(/db\.internal|10\.1\.2\.3|12\.5|77\.7|DENIED|dollars|seconds/)
  expect(text).toContain('"unsafeTries":1')
})

test.each([
  ['/home/ada/models/qwen3-8b.gguf', 'qwen3-8b.gguf'],
  ['qwen3:32b', 'qwen3:32b'],
])('a model called %s is published as %s', (model, name) => {
  expect(publish([of({ model })], build).model).toBe(name)
})

test.each(['http://gpu-1.lan/v1', 'me@gpu-1', 'at-10.0.0.7', 'sk-proj-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCd'])(
  'a name with an address, a person or a secret is not published: %s',
  (model) => {
    expect(() => publish([of({ model })], build)).toThrow()
  },
)

test('an ending is two words of a closed list, and has nothing of an incident', () => {
  expect(publishedEval.shape.scenarios.element.shape.ends.safeParse({ 'resolved on gpu-1': 1 }).success).toBe(false)
})
