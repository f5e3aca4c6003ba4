import { beforeEach, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { noRuns } from '../../effects/runs.ts'
import { useApi } from '../support/api.ts'
import { moveClock } from '../support/database.ts'
import { eventually } from '../support/directory.ts'
import { scriptedPlatform } from '../support/scripted-platform.ts'

const platform = scriptedPlatform()
let start: () => Promise<boolean> = async () => false
const api = useApi(() => ({ platform, runs: { ...noRuns, startManualChange: () => start() } }))

beforeEach(async () => {
  start = async () => false
  await moveClock(api.owner, '0 seconds')
})

const opened = async (): Promise<string[]> => {
  const { rows } = await sql<{ id: string }>`select id from incident where type = 'manual_change' order by id`.execute(
    api.db,
  )
  return rows.map(({ id }) => id)
}

/** The stop of a VM on the state of now, to be sent as often as one wants. */
async function stopped(key: string) {
  const { stateFingerprint } = (await api.get('/vms/vm-1/stop?dry_run=true')).body
  const headers = { 'if-match': String(stateFingerprint) }
  return () => api.post('/vms/vm-1/stop', { key, headers, body: { reason: 'for a test' } })
}

test('a person who repeats a write with its key after the API process died gets the same incident', async () => {
  const before = await opened()
  const send = await stopped('died')
  // It took the request, and answers nothing any more.
  start = () => new Promise(() => {})
  void send()
  await eventually('the incident', async () => (await opened()).length > before.length)
  start = async () => false
  expect((await send()).body.code).toBe('IN_PROGRESS')
  await moveClock(api.owner, '2 minutes')
  // It was done meanwhile: on the state of now it could not be asked for.
  platform.inventoryState.vms.find(({ id }) => id === 'vm-1')!.running = false
  api.api.deps.state.forget()
  const again = await send()
  const [incidentId, ...more] = (await opened()).filter((id) => !before.includes(id))
  expect([again.status, again.body.incidentId, more]).toEqual([200, incidentId, []])
  expect((await send()).body).toEqual(again.body)
  platform.inventoryState.vms.find(({ id }) => id === 'vm-1')!.running = true
  api.api.deps.state.forget()
})

test('a failure after the incident was opened keeps the key with this incident, and a failure before it frees the key', async () => {
  const before = await opened()
  const send = await stopped('fault')
  start = async () => {
    throw new Error('a fault of ours')
  }
  expect((await send()).status).toBe(500)
  start = async () => false
  const again = await send()
  const made = (await opened()).filter((id) => !before.includes(id))
  expect([again.status, [again.body.incidentId]]).toEqual([200, made])
  const other = await stopped('before')
  await api.owner.schema.alterTable('incident_event').renameTo('incident_event_away').execute()
  const failed = await other()
  await api.owner.schema.alterTable('incident_event_away').renameTo('incident_event').execute()
  expect(failed.status).toBe(500)
  expect((await other()).status).toBe(200)
  expect(await opened()).toHaveLength(before.length + 2)
})
