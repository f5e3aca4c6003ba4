import { writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js'
import { useDatabase } from '../support/database.ts'
import { useTemporal } from '../support/temporal.ts'
import { scenarios } from './scenarios.ts'

/**
 * Records the histories that `replay.test.ts` replays:
 *
 *     RECORD_HISTORIES=1 npm test -- test/replay && npm run format
 *
 * A recorded history is what production holds at this moment. Where it must break (a release that drains its runs first), it
 * is recorded anew in the commit that breaks it; otherwise a new one is added under a new name and the old one stays.
 */
describe('the histories of today', () => {
  const database = useDatabase()
  const temporal = useTemporal({ cached: 0 })

  test.each(scenarios)('$name', async ({ name, activities, play }) => {
    await temporal.working(activities(database), async (taskQueue) => {
      const run = await play(temporal.client, taskQueue, database)
      const json = historyToJSON(await run.fetchHistory()).replaceAll(`${process.pid}@${hostname()}`, 'worker')
      expect(json).not.toContain(`@${hostname()}`)
      const file = join(import.meta.dirname, 'histories', `${name}.json`)
      writeFileSync(file, `${JSON.stringify(JSON.parse(json), null, 2)}\n`)
    })
  })
})
