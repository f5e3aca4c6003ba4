import { afterAll, beforeAll, expect, test } from '@jest/globals'
import type { IncidentEvent } from '../../domain/event.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { runCli } from '../support/run-cli.ts'
import { type Said, type ScriptedModel, scriptedModel } from '../support/scripted-model.ts'
import { type Spine, startSpine } from '../support/spine.ts'

/** A model on trial, over the rows that an investigation of the real product left in PostgreSQL. */

let spine: Spine
let incidentId = ''
let rows: IncidentEvent[] = []
const files = temporaryDirectory()

beforeAll(async () => {
  spine = await startSpine({ parts: ['lab', 'runbook', 'api', 'worker'] })
  await spine.lab.break('replication_lag', 'db-osl-1')
  const incident = await spine.incident('replication_lag', 'resolved')
  incidentId = incident.id
  rows = await spine.events(incidentId)
})
afterAll(async () => {
  await spine?.stop()
  files.remove()
})

const as = () => ({ NIGHTSHIFT_URL: spine.url, NIGHTSHIFT_TOKEN: spine.tokens.admin })

let made = 0
async function replay(model: string, url: string, more: string[] = []) {
  const file = ['--file', `${files.path}/${++made}.jsonl`]
  const ended = await runCli(['model', 'replay', model, '--base-url', url, ...file, '--json', ...more], as())
  return { ...ended, told: ended.stdout === '' ? null : JSON.parse(ended.stdout) }
}

async function withModel<T>(
  script: Parameters<typeof scriptedModel>[0],
  use: (model: ScriptedModel) => Promise<T>,
): Promise<T> {
  const model = await scriptedModel(script)
  try {
    return await use(model)
  } finally {
    await model.stop()
  }
}

/**
 * The calls of each answer of the investigation as it was, by the numbers of the play where an
 * ending quotes rows.
 */
function answersThen(): Said[][] {
  return rows.flatMap((row) =>
    row.kind === 'model_answered'
      ? [row.metadata.calls.map(({ tool, arguments: given }) => ({ tool, arguments: given ?? {} }))]
      : [],
  )
}

test('the model that investigated ends its own incident alike, and nothing is done, written or set', async () => {
  const effects = (await spine.lab.effects()).length
  const { code, told } = await replay('runbook-rules', spine.runbookUrl)
  expect(code).toBe(0)
  expect(told).toMatchObject({ comparable: 1, notComparable: 0, sameEnding: 1, sameWrites: 1, alike: 1, verdict: null })
  const [result] = told.results
  const asked = rows.filter(({ kind }) => kind === 'model_answered').length
  expect(result).toMatchObject({
    incidentId,
    type: 'replication_lag',
    log: { end: 'resolved repaired', writes: ['converge_shard'], turns: asked },
    trial: { end: 'resolved repaired', turns: asked },
  })
  expect(result.quoted.of).toBeGreaterThan(0)
  expect(result.quoted.shared).toBe(result.quoted.of)
  expect((await spine.lab.effects()).length).toBe(effects)
  expect(await spine.events(incidentId)).toEqual(rows)
  expect(await spine.get('/config')).toMatchObject({ items: [] })
})

test('the candidate gets exactly the first turn of the investigation', async () => {
  await withModel(
    () => [{ tool: 'escalate_incident', arguments: { id: incidentId, reason: 'not looked at' } }],
    async (model) => {
      await replay('candidate', model.url)
      const [first] = model.requests
      const opening = rows.find((row) => row.kind === 'context_assembled')
      const text = async (digest: string) =>
        (await spine.get<{ text: string }>(`/incidents/${incidentId}/bodies/${digest}`)).text
      expect(first?.messages[0]?.content).toBe(await text(opening!.metadata.prompt.digest))
      expect(first?.tools).toEqual(JSON.parse(await text(opening!.metadata.tools.digest)))
      expect(first?.messages[1]?.content).toContain('You have 10 turns of up to 8 calls each')
    },
  )
})

test('a read that the log does not contain ends the incident as not comparable, and names the read', async () => {
  await withModel(
    () => [{ tool: 'get_shard', arguments: { id: 'web-osl-1' } }],
    async ({ url, requests }) => {
      const { told } = await replay('curious', url)
      expect(told).toMatchObject({ comparable: 0, notComparable: 1, sameEnding: 0 })
      expect(told.results[0].why).toBe('the log does not contain get_shard {"id":"web-osl-1"}')
      expect(requests).toHaveLength(1)
    },
  )
})

test('a write that the log does not contain ends the play as a proposed write, and is not done', async () => {
  const effects = (await spine.lab.effects()).length
  const then = answersThen()
  const shard = then.flat().find(({ tool }) => tool === 'converge_shard')
  await withModel(
    // As the log went, but where that ended it converges once more.
    (turn) => {
      const said = then[turn - 1] ?? []
      return said.some(({ tool }) => tool === 'resolve_incident') ? [shard as Said] : said
    },
    async ({ url, requests }) => {
      const { told } = await replay('bold', url)
      const [result] = told.results
      expect(result).toMatchObject({ outcome: 'comparable', isSameWrites: false, isSameEnding: false })
      expect(result.trial.end).toMatch(/^would write converge_shard \{"id":"db-osl-1"/)
      expect(result.trial.writes).toHaveLength(2)
      expect(requests).toHaveLength(then.length)
    },
  )
  expect((await spine.lab.effects()).length).toBe(effects)
})

test('the reason of a write in other words makes no other write of it', async () => {
  const shard = answersThen()
    .flat()
    .find(({ tool }) => tool === 'converge_shard')
  const before = answersThen()
  const at = before.findIndex((calls) => calls.some(({ tool }) => tool === 'converge_shard'))
  const looks = before.slice(0, at)
  await withModel(
    (turn) =>
      looks[turn - 1] ?? [
        { tool: 'converge_shard', arguments: { ...(shard?.arguments as object), reason: 'In my own words.' } },
        ...endOf('escalate_incident'),
      ],
    async ({ url }) => {
      const { told } = await replay('wordy', url)
      // Its reason is in other words, which makes it no other write; its ending differs.
      expect(told.results[0]).toMatchObject({
        isSameWrites: true,
        isSameEnding: false,
        trial: { end: 'escalated no_tool' },
      })
    },
  )
})

function endOf(tool: string): Said[] {
  return [{ tool, arguments: { id: incidentId, reason: 'The replica needs a person.', category: 'no_tool' } }]
}

test('after an interruption the same command continues, and asks nothing twice', async () => {
  await withModel(
    () => endOf('escalate_incident'),
    async ({ url, requests }) => {
      const file = `${files.path}/kept.jsonl`
      const once = ['model', 'replay', 'steady', '--base-url', url, '--file', file]
      const first = await runCli(once, as())
      expect(first.stdout).toMatch(/No verdict: 30 comparable incidents are needed, 29 more than there are\./)
      const asked = requests.length
      expect(asked).toBeGreaterThan(0)
      const again = await runCli(once, as())
      expect(again.stdout).toBe(first.stdout)
      expect(requests).toHaveLength(asked)
      await runCli([...once, '--fresh'], as())
      expect(requests).toHaveLength(2 * asked)
      const other = await runCli(['model', 'replay', 'another', '--base-url', url, '--file', file], as())
      expect([other.code, other.stderr]).toEqual([2, expect.stringContaining('holds no trial of another')])
    },
  )
})

test('the token budget ends a replay between two turns', async () => {
  await withModel(
    (turn) => answersThen()[turn - 1] ?? endOf('escalate_incident'),
    async ({ url, requests }) => {
      const { told } = await replay('costly', url, ['--max-tokens', '1'])
      expect([told.isSpent, told.results, requests.length]).toEqual([true, [], 1])
    },
  )
})

test.each([
  ['a server that is not there', 'http://127.0.0.1:9', 1, /cannot be reached.*Start the server/],
  ['an address that is none', 'ftp://here', 2, /is not an http\(s\) URL/],
])('%s is an error with its remedy', async (_what, url, code, said) => {
  const ended = await replay('nobody', url)
  expect([ended.code, ended.stdout]).toEqual([code, ''])
  expect(ended.stderr).toMatch(said)
})

test('an undeclared name is refused with the declared names', async () => {
  const ended = await runCli(['model', 'replay', 'gone'], as())
  expect([ended.code, ended.stderr]).toEqual([
    3,
    expect.stringMatching(/No model is declared as gone; there is default/),
  ])
})

test('a declared model is asked at its own server', async () => {
  const ended = await runCli(['model', 'replay', 'default', '--json', '--file', `${files.path}/declared.jsonl`], as())
  expect([ended.code, JSON.parse(ended.stdout)]).toEqual([
    0,
    expect.objectContaining({ model: 'runbook-rules', alike: 1 }),
  ])
})
