import { expect, test } from '@jest/globals'
import { findSilentHeartbeats } from '../../../db/alerts/heartbeats.ts'
import { ingestBody } from '../../../db/alerts/ingest-body.ts'
import type { Alert } from '../../../domain/alert.ts'
import { anAlert, moveClock, storeSetting, useDatabase } from '../../support/database.ts'

const database = useDatabase()

const watchdog = (change: Partial<Alert> = {}) =>
  anAlert({ fingerprint: 'w', name: 'Watchdog', labels: { alertname: 'Watchdog', cluster: 'osl' }, ...change })

const incidents = () => database.db.selectFrom('incident').selectAll().orderBy('createdAt').execute()

async function beatAt(minutes: number): Promise<string> {
  await moveClock(database.owner, `${minutes} minutes`)
  const [taken] = await ingestBody(database.db, [watchdog()])
  return taken?.outcome ?? ''
}

async function silentAt(minutes: number): Promise<boolean> {
  await moveClock(database.owner, `${minutes} minutes`)
  return await findSilentHeartbeats(database.db)
}

test('a Watchdog opens no incident while it fires, and its silence opens a critical incident, which ends when it fires again', async () => {
  for (const minutes of [0, 60, 120]) expect(await beatAt(minutes)).toBe('heartbeat')
  expect(await silentAt(239)).toBe(false)
  expect(await incidents()).toEqual([])

  expect(await silentAt(241)).toBe(true)
  expect(await incidents()).toMatchObject([{ type: 'heartbeat_stopped', severity: 'critical', status: 'open' }])
  const [{ title, id }] = (await incidents()) as unknown as [{ title: string; id: string }]
  expect(title).toMatch(/^No heartbeat from alertmanager: Watchdog last came at /)
  expect(await silentAt(300)).toBe(false)

  expect(await beatAt(301)).toBe('heartbeat')
  const alerts = await database.db.selectFrom('alert').select(['status', 'name']).where('incidentId', '=', id).execute()
  expect(alerts).toEqual([{ status: 'resolved', name: 'heartbeat_stopped' }])
  // The hours without it are nothing to get used to.
  expect(await silentAt(430)).toBe(true)
})

test('the end of a Watchdog counts as its silence, because a Watchdog always fires', async () => {
  await moveClock(database.owner, '600 minutes')
  const other = { fingerprint: 'x', name: 'DeadMansSwitch', labels: { alertname: 'DeadMansSwitch' } }
  await ingestBody(database.db, [watchdog(other)])
  const before = (await incidents()).length
  await ingestBody(database.db, [watchdog({ ...other, status: 'resolved', endsAt: new Date().toISOString() })])
  expect((await incidents()).slice(before)).toMatchObject([{ type: 'heartbeat_stopped', severity: 'critical' }])
})

test('the incident of a Watchdog from before it was a heartbeat ends with the heartbeat', async () => {
  await storeSetting(database.db, 'alert.heartbeats', 'Other')
  const old = { fingerprint: 'old', name: 'Pulse', labels: { alertname: 'Pulse' } }
  const [opened] = await ingestBody(database.db, [watchdog(old)])
  expect(opened?.outcome).toBe('opened')
  await database.db
    .updateTable('platformConfig')
    .set({ value: 'Pulse' })
    .where('key', '=', 'alert.heartbeats')
    .execute()
  expect(await ingestBody(database.db, [watchdog(old)])).toMatchObject([{ outcome: 'heartbeat' }])
  const rows = await database.db.selectFrom('alert').select('status').where('fingerprint', '=', 'old').execute()
  expect(rows).toEqual([{ status: 'resolved' }])
})
