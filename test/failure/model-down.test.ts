import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { type Spine, startSpine } from '../support/spine.ts'

/** Two minutes by hand (`MODEL_DOWN_SECONDS=120 npm test -- test/failure/model-down`); else as long as two tries take. */
const downMs = Number(process.env.MODEL_DOWN_SECONDS ?? '0') * 1000
let spine: Spine

beforeAll(async () => {
  spine = await startSpine({ parts: ['lab', 'runbook', 'api', 'worker'] })
}, 300_000)
afterAll(async () => {
  await spine?.stop()
})

test('a model that is down for a while costs that while: each try is a row, and the investigation goes on', async () => {
  await spine.kill('runbook')
  await spine.lab.break('replication_lag', 'db-osl-1')
  const incident = await spine.incident('replication_lag', 'investigating')
  const failures = async () => (await spine.events(incident.id)).filter((event) => event.kind === 'model_failed')
  await sleep(downMs)
  await spine.until('two tries', async () => (await failures()).length >= 2)
  expect((await spine.incident('replication_lag')).status).toBe('investigating')
  await spine.start('runbook')
  await spine.incident('replication_lag', 'resolved', 180_000)
  expect((await failures())[0]).toMatchObject({ metadata: { code: 'unavailable' } })
}, 300_000)
