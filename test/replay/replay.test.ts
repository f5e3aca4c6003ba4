import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js'
import { Worker } from '@temporalio/worker'
import { DeterminismViolationError } from '@temporalio/workflow'
import { workflowBundle } from '../../worker/bundle.ts'
import { useDatabase } from '../support/database.ts'
import { installRuntime, useTemporal } from '../support/temporal.ts'
import { scenarios } from './scenarios.ts'

/**
 * Runs that began under older code must go on under this one: every stored history is replayed on
 * today's workflows. When a test here fails, a change altered the order of what a workflow does,
 * and runs that wait for a person would be stuck after a deploy. Record new ones by
 * `RECORD_HISTORIES=1 npm test -- test/replay`.
 */
const dir = join(import.meta.dirname, 'histories')
const names = readdirSync(dir).map((file) => file.replace(/\.json$/, ''))

type Stored = { events: { activityTaskScheduledEventAttributes?: { activityType: { name: string } } }[] }

const stored = (name: string): Stored => JSON.parse(readFileSync(join(dir, `${name}.json`), 'utf8'))
const replay = async (history: Stored) =>
  await Worker.runReplayHistory({ workflowBundle: await workflowBundle() }, history, 'replayed')

beforeAll(() => {
  installRuntime()
})

describe('a run that began before this version continues under it', () => {
  test.each(names)('%s', async (name) => {
    await replay(stored(name))
  })

  test('each event of production has a stored history', () => {
    expect(names).toEqual(expect.arrayContaining(scenarios.map((scenario) => scenario.name)))
  })
})

describe("a changed order of a workflow's steps is noticed", () => {
  test.each([
    ['resolved-after-a-write', 'verify', 'act'],
    ['expired', 'readDecision', 'escalate'],
    ['group-of-four', 'planGroup', 'stampQueue'],
    ['tick', 'rewakeDecisions', 'wakeGroup'],
  ])('%s: %s was replaced by %s', async (name, from, to) => {
    const history = stored(name)
    const step = history.events.find(
      (event) => event.activityTaskScheduledEventAttributes?.activityType.name === from,
    )?.activityTaskScheduledEventAttributes
    if (!step) throw new Error(`${name} has no step ${from}`)
    step.activityType.name = to
    await expect(replay(history)).rejects.toThrow(DeterminismViolationError)
  })

  test('two swapped steps', async () => {
    const history = stored('approved-by-signal')
    const steps = history.events.flatMap((event) => event.activityTaskScheduledEventAttributes ?? [])
    const [think, act] = ['think', 'act'].map((name) => steps.find((step) => step.activityType.name === name))
    if (!think || !act) throw new Error('the history lacks its steps')
    think.activityType.name = 'act'
    act.activityType.name = 'think'
    await expect(replay(history)).rejects.toThrow(DeterminismViolationError)
  })
})

/**
 * Records the histories that are replayed above:
 *
 *     RECORD_HISTORIES=1 npm test -- test/replay && npm run format
 *
 * A recorded history is what production holds at this moment. Where it must break (a release that
 * drains its runs first), the commit that breaks it records it again; otherwise a new one is added
 * under a new name and the old one stays.
 */
if (process.env.RECORD_HISTORIES === '1')
  describe("today's histories", () => {
    const database = useDatabase()
    const temporal = useTemporal({ cached: 0 })

    test.each(scenarios)('$name', async ({ name, activities, play }) => {
      await temporal.working(activities(database), async (taskQueue) => {
        const run = await play(temporal.client, taskQueue, database)
        const json = historyToJSON(await run.fetchHistory()).replaceAll(`${process.pid}@${hostname()}`, 'worker')
        expect(json).not.toContain(`@${hostname()}`)
        const file = join(dir, `${name}.json`)
        writeFileSync(file, `${JSON.stringify(JSON.parse(json), null, 2)}\n`)
      })
    })
  })
