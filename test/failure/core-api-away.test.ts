import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { waitOf } from '../../db/waits.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import { type Spine, startSpine } from '../support/spine.ts'

let spine: Spine

beforeAll(async () => {
  spine = await startSpine({ parts: ['lab', 'runbook', 'api', 'worker'] })
}, 300_000)
afterAll(async () => {
  await spine?.stop()
})

/** What the run itself wrote: alerts come when they come, and what is noted about a repair that is watched is noted later. */
const ownSteps = (events: IncidentEvent[]) =>
  events
    .filter(({ kind }) => !kind.startsWith('alert') && kind !== 'noted')
    .map(({ kind, metadata }) => `${kind} ${(metadata as { tool?: string }).tool ?? ''}`)

test('a core API that is away for 20 s in the middle of an investigation changes nothing in how it ends', async () => {
  await spine.lab.break('replication_lag', 'db-osl-1')
  const { id } = await spine.incident('replication_lag', 'investigating')
  await spine.kill('api')
  const waits = await spine.until('the step to say what it waits for', () => waitOf(spine.db, id))
  expect(waits).toMatchObject({ for: 'core_api' })
  // Temporal shows it as soon as the SDK sends the next beat.
  const awayFor = sleep(20_000)
  await spine.until('the heartbeat to say the same', async () => {
    const { pendingActivities } = (await spine.client.workflow.getHandle(`investigate:${id}:1`).describe()).raw
    const beats = (pendingActivities ?? []).flatMap(({ heartbeatDetails }) => heartbeatDetails?.payloads ?? [])
    return beats.some(({ data }) => Buffer.from(data ?? []).includes('core_api'))
  })
  await awayFor
  await spine.start('api')
  await spine.incident('replication_lag', 'resolved', 180_000)
  const events = await spine.events(id)
  expect(events.filter((event) => JSON.stringify(event.metadata).includes('UNANSWERED'))).toEqual([])
  const converged = (await spine.lab.effects()).filter(({ request }) => request.includes('converge'))
  expect(converged).toMatchObject([{ runs: 1 }])
  // The same steps as those of an incident whose core API was there.
  await spine.lab.heal()
  await spine.lab.break('replication_lag', 'db-ams-1')
  const undisturbed = await spine.until(
    'the other incident',
    async () => (await spine.incidents('?type=replication_lag&status=resolved')).find((each) => each.id !== id),
    180_000,
  )
  expect(ownSteps(events)).toEqual(ownSteps(await spine.events(undisturbed.id)))
  expect(await spine.get(`/incidents/${id}`)).toMatchObject({ waits: null })
}, 400_000)
