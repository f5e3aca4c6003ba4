import { beforeEach, describe, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { findSilentHeartbeats } from '../../db/alerts/heartbeats.ts'
import { ingestBody } from '../../db/alerts/ingest-body.ts'
import { closeIncident } from '../../db/incidents/close-incident.ts'
import { leasesOfOthers } from '../../db/inventory/registry.ts'
import { readSettings } from '../../db/settings.ts'
import { acceptEffect, finishEffect } from '../../db/writes/effects.ts'
import { takeLeases } from '../../db/writes/leases.ts'
import {
  beginPlatformEffect,
  endPlatformEffect,
  notePlatformTask,
  platformEffectByKey,
} from '../../db/writes/platform-effects.ts'
import type { Alert } from '../../domain/alert.ts'
import type { ResourceRef } from '../../domain/registry.ts'
import { anAlert, claimedIncident, moveClock, openedIncident, useDatabase } from '../support/database.ts'

describe('heartbeats', () => {
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

  test('a Watchdog opens no incident while it comes; when it stops there is a critical one, which ends when it is heard again', async () => {
    for (const minutes of [0, 60, 120]) expect(await beatAt(minutes)).toBe('heartbeat')
    expect(await silentAt(239)).toBe(false)
    expect(await incidents()).toEqual([])

    expect(await silentAt(241)).toBe(true)
    expect(await incidents()).toMatchObject([{ type: 'heartbeat_stopped', severity: 'critical', status: 'open' }])
    const [{ title, id }] = (await incidents()) as unknown as [{ title: string; id: string }]
    expect(title).toMatch(/^No heartbeat from alertmanager: Watchdog came last at /)
    expect(await silentAt(300)).toBe(false)

    expect(await beatAt(301)).toBe('heartbeat')
    const alerts = await database.db
      .selectFrom('alert')
      .select(['status', 'name'])
      .where('incidentId', '=', id)
      .execute()
    expect(alerts).toEqual([{ status: 'resolved', name: 'heartbeat_stopped' }])
    // The hours without it are nothing to get used to.
    expect(await silentAt(430)).toBe(true)
  })

  test('an end of a Watchdog is its silence: what fires always has stopped', async () => {
    await moveClock(database.owner, '600 minutes')
    const other = { fingerprint: 'x', name: 'DeadMansSwitch', labels: { alertname: 'DeadMansSwitch' } }
    await ingestBody(database.db, [watchdog(other)])
    const before = (await incidents()).length
    await ingestBody(database.db, [watchdog({ ...other, status: 'resolved', endsAt: new Date().toISOString() })])
    expect((await incidents()).slice(before)).toMatchObject([{ type: 'heartbeat_stopped', severity: 'critical' }])
  })

  test('a Watchdog that opened an incident before it was a heartbeat ends there', async () => {
    await database.db
      .insertInto('platformConfig')
      .values({ key: 'alert.heartbeats', value: 'Other' } as never)
      .execute()
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
})

describe('leases', () => {
  const database = useDatabase()

  async function holding(target: ResourceRef): Promise<string> {
    const incidentId = await claimedIncident(database.db)
    const holder = { incidentId, attempt: 1, callId: 'c1_0' }
    expect(await database.db.transaction().execute((trx) => takeLeases(trx, holder, [target]))).toBe(true)
    return incidentId
  }

  const abandon = (incidentId: string) =>
    database.db
      .transaction()
      .execute((trx) =>
        closeIncident(
          trx,
          incidentId,
          2,
          { status: 'escalated', code: 'WATCHDOG_SILENT', reason: 'no run carries it' },
          { actor: 'system:nightshift', stepKey: null, nextAttempt: true },
        ),
      )

  test('a target is free again when the incident that held it is closed', async () => {
    const target: ResourceRef = { kind: 'shard', id: 'free' }
    const incidentId = await holding(target)
    const other = await openedIncident(database.db)
    expect(await leasesOfOthers(database.db, other, [target])).toHaveLength(1)
    await abandon(incidentId)
    expect(await leasesOfOthers(database.db, other, [target])).toEqual([])
  })

  test('a write that still runs keeps its target, though its run is gone, until it ends', async () => {
    const target: ResourceRef = { kind: 'shard', id: 'busy' }
    const incidentId = await holding(target)
    const other = await openedIncident(database.db)
    const effect = { key: `${incidentId}.1:1:tool_started:0`, incidentId, tool: 'converge_shard', actionDigest: 'd' }
    await acceptEffect(database.db, effect)
    await abandon(incidentId)
    expect(await leasesOfOthers(database.db, other, [target])).toEqual([{ target: 'shard:busy', incidentId }])
    await finishEffect(database.db, effect.key, { status: 'done', detail: '', result: {} })
    expect(await leasesOfOthers(database.db, other, [target])).toEqual([])
  })
})

describe('settings', () => {
  const database = useDatabase()
  beforeEach(async () => {
    await sql`delete from platform_config`.execute(database.db)
  })

  test("the seed's own INSERT statements work as they stand, and each leaves a revision", async () => {
    for (const statement of [
      `INSERT INTO platform_config (key, value) VALUES ('agent.concurrency.disk_pressure', '10');`,
      `INSERT INTO platform_config (key, value) VALUES ('agent.concurrency.replication_lag', '2');`,
      `INSERT INTO platform_config (key, value) VALUES ('webhook.critical.url', 'https://hooks.slack.com/...');`,
      `INSERT INTO platform_config (key, value) VALUES ('webhook.critical.template', 'slack');`,
      `INSERT INTO platform_config (key, value) VALUES ('webhook.escalated.url', 'https://ops.example.com/webhook');`,
      `INSERT INTO platform_config (key, value) VALUES ('webhook.escalated.template', 'generic');`,
    ]) {
      await sql.raw(statement).execute(database.db)
    }
    const settings = await readSettings(database.db)
    expect(settings.value('agent.concurrency', 'disk_pressure')).toBe(10)
    expect(settings.value('agent.concurrency', 'replication_lag')).toBe(2)
    expect(settings.value('agent.concurrency', 'anything_else')).toBe(5)
    expect(settings.value('webhook.critical.template')).toBe('slack')
    const { rows } = await sql<{ count: number }>`select count(*) as count from platform_config_revision`.execute(
      database.db,
    )
    expect(Number(rows[0]?.count)).toBe(6)
  })

  test('a type beats the global value, which beats the environment, which beats the default', async () => {
    const at = async () =>
      (await readSettings(database.db, { LLM_MAX_TURNS: '12' })).effective('agent.max_turns', 'disk_pressure')
    expect(await at()).toMatchObject({ value: 12, source: 'environment' })
    expect((await readSettings(database.db)).effective('agent.max_turns', 'disk_pressure')).toMatchObject({
      value: 10,
      source: 'default',
    })
    await sql`insert into platform_config (key, value) values ('agent.max_turns', '20')`.execute(database.db)
    expect(await at()).toMatchObject({ value: 20, source: 'global' })
    await sql`insert into platform_config (key, value) values ('agent.max_turns.disk_pressure', '30')`.execute(
      database.db,
    )
    expect(await at()).toMatchObject({ value: 30, source: 'type' })
  })

  test('a typing mistake at night is passed over and reported, and investigations go on', async () => {
    await sql`insert into platform_config (key, value) values ('agent.max_turns', 'ten')`.execute(database.db)
    const effective = (await readSettings(database.db)).effective('agent.max_turns', 'disk_pressure')
    expect(effective).toMatchObject({
      value: 10,
      source: 'default',
      problem: expect.stringContaining('agent.max_turns'),
    })
  })

  test('an update is a revision with the old value and the new, and revisions cannot be changed', async () => {
    await sql`insert into platform_config (key, value) values ('agent.paused', 'false')`.execute(database.db)
    await sql`update platform_config set value = 'true', updated_by = 'user:anna' where key = 'agent.paused'`.execute(
      database.db,
    )
    const revisions = await database.db
      .selectFrom('platformConfigRevision')
      .selectAll()
      .where('key', '=', 'agent.paused')
      .orderBy('id')
      .execute()
    expect(revisions.at(-1)).toMatchObject({ version: 2, oldValue: 'false', newValue: 'true', actor: 'user:anna' })
    await expect(sql`update platform_config_revision set actor = 'x'`.execute(database.owner)).rejects.toThrow(
      /append-only/,
    )
  })
})

describe('platform effects', () => {
  const database = useDatabase()
  const entry = {
    key: 'inc_1.1:3:tool_started:0:1',
    ...{ action: 'migrate' as const, vmId: 'vm-101', node: 'pve1', target: 'pve2', tasksBefore: ['UPID:a', 'UPID:b'] },
  }

  test('of two that want to send a write one may, and both find the same row', async () => {
    const { db } = database
    expect(await platformEffectByKey(db, entry.key)).toBeNull()
    const other = { ...entry, target: 'pve3' }
    const begun = await Promise.all([beginPlatformEffect(db, entry), beginPlatformEffect(db, other)])
    expect(begun.toSorted()).toEqual([false, true])
    const row = await platformEffectByKey(db, entry.key)
    expect(row).toMatchObject({ vmId: 'vm-101', target: begun[0] ? 'pve2' : 'pve3', task: null, ending: null })
    expect(row?.tasksBefore).toEqual(['UPID:a', 'UPID:b'])
  })

  test('the task is noted, the first ending stays, and secrets in it do not', async () => {
    const { db, owner } = database
    const key = 'another'
    await beginPlatformEffect(db, { ...entry, key })
    await notePlatformTask(db, key, 'UPID:c')
    await moveClock(owner, '90 seconds')
    expect(await platformEffectByKey(db, key)).toMatchObject({ task: 'UPID:c', ending: null })
    expect((await platformEffectByKey(db, key))?.ageSeconds).toBeGreaterThan(85)
    await endPlatformEffect(db, key, { status: 'failed', detail: 'password=hunter2hunter2 was refused' })
    await endPlatformEffect(db, key, { status: 'done', detail: 'late' })
    const ending = (await platformEffectByKey(db, key))?.ending
    expect(ending?.status).toBe('failed')
    expect(ending?.detail).not.toContain('hunter2')
  })
})
