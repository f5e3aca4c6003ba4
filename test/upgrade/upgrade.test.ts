import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { Worker } from '@temporalio/worker'
import { sql } from 'kysely'
import { type Api, createApi } from '../../api/app.ts'
import { createToken, ensureOperator } from '../../db/access/tokens.ts'
import { ingestAlert } from '../../db/alerts/ingest-body.ts'
import { findToken } from '../../db/approvals/tokens.ts'
import { connect, type Db } from '../../db/connect.ts'
import { incidentById } from '../../db/incidents/incidents.ts'
import { proposalById } from '../../db/inventory/proposals.ts'
import { verifyChain } from '../../db/log/chain.ts'
import { eventsOf } from '../../db/log/events.ts'
import type { Approval } from '../../domain/approval.ts'
import type { Incident } from '../../domain/incident.ts'
import type { PlacementProblem } from '../../domain/placement.ts'
import { openJournal } from '../../mesh/agent/journal.ts'
import { migrateTo, migrateToLatest } from '../../migrations/migrate.ts'
import { planDigest, stateFingerprint } from '../../placement/plan.ts'
import { fold } from '../../safety/fold.ts'
import { replay } from '../../safety/replay.ts'
import { toolFacts } from '../../tools/registry.ts'
import { workflowBundle } from '../../worker/bundle.ts'
import { emptyDatabase } from '../support/broker.ts'
import { anAlert, moveClock } from '../support/database.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { installRuntime } from '../support/temporal.ts'
import { fixtureVersions, readFixture, restoreRows } from './fixture.ts'

/**
 * The morning of an upgrade: this version meets the rows and the runs that a released one left
 * behind.
 */
describe.each(fixtureVersions())('the state that %s left', (version) => {
  const fixture = readFixture(version)
  const tokens = { admin: '', approver: '' }
  let db: Db
  let owner: Db
  let api: Api
  let drop: () => Promise<void>

  beforeAll(async () => {
    installRuntime()
    const empty = await emptyDatabase()
    drop = empty.drop
    await migrateTo(empty.url, fixture.migrations.at(-1) as string)
    await restoreRows(empty.url, fixture.rows)
    await migrateToLatest(empty.url)
    owner = connect(empty.url, { owner: true, max: 2 })
    // Approvals were asked at the time of the recording: the database's clock goes on from there.
    const passedSeconds = Math.ceil((Date.now() - Date.parse(fixture.recordedAt)) / 1000)
    await moveClock(owner, `-${passedSeconds} seconds`)
    db = connect(empty.url, { max: 5 })
    for (const name of ['admin', 'approver'] as const) {
      const operatorId = await ensureOperator(db, name, name)
      tokens[name] = await createToken(db, { name: `${name} after the upgrade`, role: name, operatorId })
    }
    api = createApi({ db })
  })
  afterAll(async () => {
    await db.destroy()
    await owner.destroy()
    await drop()
  })

  async function ask<T>(path: string, options: { body?: unknown; as?: string } = {}): Promise<T> {
    const answer = await api.app.request(`/api/v1${path}`, {
      method: options.body === undefined ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${options.as ?? tokens.admin}`, 'content-type': 'application/json' },
      ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }),
    })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text}`)
    return JSON.parse(text) as T
  }

  /** From 0.2.0 on an escalated incident is with people: a repeat of its alert reminds them. */
  const handedOver = (status: string) => status === 'escalated' && version !== 'v0.1.0'

  const recorded = fixture.rows.incident as { id: string; status: string; attempt: number }[]

  test('has incidents that are closed in every way, at work, and waiting for a person', () => {
    const statuses = new Set(recorded.map(({ status }) => status))
    expect([...statuses].sort()).toEqual(['awaiting_approval', 'cancelled', 'escalated', 'investigating', 'resolved'])
  })

  test('has every incident listed and shown with its log, and no row was changed', async () => {
    const { items } = await ask<{ items: Incident[] }>('/incidents?limit=100')
    expect(items.map(({ id }) => id).sort()).toEqual(recorded.map(({ id }) => id).sort())
    for (const { id, status } of recorded) {
      expect(await ask<Incident>(`/incidents/${id}`)).toMatchObject({ id, status })
      expect((await ask<{ items: unknown[] }>(`/incidents/${id}/events`)).items.length).toBeGreaterThan(0)
      await ask(`/incidents/${id}/surroundings`)
      await ask(`/incidents/${id}/export`)
      expect(await verifyChain(db, id)).toMatchObject({ ok: true })
    }
  })

  test('agrees with its log, and the earlier audit is chained', async () => {
    expect(await ask('/verify?limit=100')).toMatchObject({ differences: [], nextCursor: null })
    const { ok, rows } = await ask<{ ok: boolean; rows: number }>('/audit/verify')
    expect([ok, rows]).toEqual([true, Math.max(rows, fixture.rows.audit?.length ?? 0)])
  })

  test("has every attempt's state readable from its rows", async () => {
    for (const { id, attempt } of recorded) {
      const events = await eventsOf(db, id)
      expect(fold(events, attempt).lastSeq).toBe(events.at(-1)?.seq)
    }
  })

  test('repeats every ruling with the same result, except for endings, whose rules are stricter now', async () => {
    for (const { id } of recorded) {
      const { resource } = (await incidentById(db, id)) ?? { resource: null }
      const { differences } = replay(await eventsOf(db, id), toolFacts, resource)
      const elsewhere = differences.filter(({ tool }) => !['resolve_incident', 'escalate_incident'].includes(tool))
      expect(elsewhere).toEqual([])
    }
  })

  test('has every stored plan readable, and what an approval binds is computed as before', async () => {
    const plans = fixture.rows.proposal as { id: string; state_fingerprint: string; plan_digest: string }[]
    expect(plans.length).toBeGreaterThan(0)
    for (const { id, state_fingerprint, plan_digest } of plans) {
      expect(await ask(`/placement/proposals/${id}`)).toMatchObject({ id, planDigest: plan_digest })
      const { proposal, problem } = (await proposalById(db, id)) ?? {}
      expect(planDigest(proposal?.steps ?? [])).toBe(plan_digest)
      expect(stateFingerprint(problem as PlacementProblem)).toBe(state_fingerprint)
    }
  })

  test('has each unused decision token still for its question, and for its verdict alone', async () => {
    for (const { approvalId, token } of fixture.decisionTokens ?? []) {
      const stored = { approvalId, decision: 'approve', isSpent: false, isLate: false }
      expect(await findToken(db, token)).toMatchObject(stored)
    }
  })

  test('has every waiting question, which can be shown and decided', async () => {
    const { items } = await ask<{ items: Approval[] }>('/approvals?status=pending')
    expect(items.map(({ tool }) => tool).sort()).toEqual(['converge_shard', 'exec', 'execute_migration', 'fs_write'])
    for (const { id, tool } of items) {
      await ask(`/approvals/${id}`)
      // One of two had agreed to the migration: the second decides.
      const as = tool === 'execute_migration' ? tokens.admin : tokens.approver
      const { token } = await ask<{ token: string }>(`/approvals/${id}/token`, { body: { decision: 'approve' }, as })
      const answer = await ask(`/approvals/${id}/decision`, { body: { token, decision: 'approve' }, as })
      expect(answer).toMatchObject({ status: 'approved' })
    }
  })

  test('has the journal of every device as one chain that this version continues, with every answer', () => {
    for (const [device, files] of Object.entries(fixture.journals ?? {})) {
      const state = temporaryDirectory()
      mkdirSync(join(state.path, 'journal'))
      for (const [name, text] of Object.entries(files)) writeFileSync(join(state.path, name), text)
      const entries = Object.entries(files).flatMap(([name, text]) =>
        name.startsWith('journal/') ? text.trim().split('\n') : [],
      )
      const journal = openJournal(state.path)
      expect([device, journal.lost(), journal.entries()]).toEqual([device, null, entries.length])
      for (const line of entries) {
        const { kind, key } = JSON.parse(line) as { kind: string; key?: string }
        if (kind === 'done' && key) expect(journal.index.ofKey(key)).toMatchObject({ state: 'done' })
      }
      journal.close()
      state.remove()
    }
  })

  test('has closed incidents that still fire, which are investigated again, or repeated to their owner', async () => {
    const { rows } = await sql<{ source: string; fingerprint: string; startsAt: string; id: string; status: string }>`
      select source, fingerprint, starts_at as "startsAt", incident.id, incident.status
      from alert join incident on incident.id = alert.incident_id
      where alert.status = 'firing' and incident.status in ('resolved', 'escalated', 'cancelled')`.execute(db)
    expect(rows.length).toBeGreaterThan(0)
    for (const { source, fingerprint, startsAt, id, status } of rows) {
      const again = await ingestAlert(db, anAlert({ source, fingerprint, startsAt }))
      expect([status, again.outcome, again.incidentId === id]).toEqual(
        status === 'cancelled' || handedOver(status) ? [status, 'repeated', true] : [status, 'reopened', true],
      )
    }
  })

  test.each(Object.keys(fixture.histories))('has the run %s, which continues under this version', async (id) => {
    await Worker.runReplayHistory({ workflowBundle: await workflowBundle() }, fixture.histories[id], 'replayed')
  })
})
