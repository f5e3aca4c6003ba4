import { expect, test } from '@jest/globals'
import type { Client } from '@temporalio/client'
import { sql } from 'kysely'
import { queueActivities } from '../../activities/queue.ts'
import { ensureOperator } from '../../db/access/tokens.ts'
import { incidentById } from '../../db/incidents/incidents.ts'
import { openManualChange } from '../../db/incidents/manual-change.ts'
import { asked } from '../support/announced.ts'
import { claimedIncident, moveClock, useDatabase } from '../support/database.ts'

const database = useDatabase()

async function changeOf(vm: string): Promise<string> {
  const operatorId = await ensureOperator(database.db, 'ada', 'admin')
  const change = {
    tool: 'vm_stop',
    arguments: { id: vm, reason: 'for a test' },
    targets: [{ kind: 'vm' as const, id: vm }],
    stateFingerprint: 'state',
    risk: 'high' as const,
    reason: 'for a test',
    mayVote: true,
    alone: false,
    summary: `Stop ${vm}`,
  }
  return await database.db
    .transaction()
    .execute(async (trx) => (await openManualChange(trx, { operatorId, actor: 'user:ada', name: 'ada' }, change)).id)
}

test("a failure to cancel or start one person's write stops no other write and no decision, and is logged", async () => {
  const [stuck, other] = [await changeOf('vm-1'), await changeOf('vm-2')]
  const waiting = await claimedIncident(database.db)
  const approval = await asked(database.db, waiting, { tool: 'converge_shard', identity: { id: 'db-osl-1' } })
  await sql`update approval set status = 'approved', decided_at = nightshift_now(), use_by = nightshift_now() + interval '1 hour'
    where id = ${approval}`.execute(database.owner)
  await sql`
    create trigger stuck before update on incident for each row when (old.id = ${sql.lit(stuck)}) execute function refuse_change()`.execute(
    database.owner,
  )
  await moveClock(database.owner, '11 minutes')
  const [told, said]: [string[], unknown[]] = [[], []]
  const client = {
    workflow: {
      getHandle: (id: string) => ({ signal: async () => void told.push(id) }),
      start: async () => {
        throw new Error('Temporal is away')
      },
    },
  } as unknown as Client
  const log = { error: (fields: object) => void said.push(fields) }
  const queue = queueActivities({ db: database.db, client, taskQueue: 'none', environment: {}, log })
  expect(await queue.rewakeDecisions()).toBe(1)
  expect(told).toEqual([`investigate:${waiting}:1`])
  expect((await incidentById(database.db, other))?.status).toBe('cancelled')
  expect((await incidentById(database.db, stuck))?.status).toBe('open')
  expect(said).toEqual(
    [stuck, stuck].map((incidentId) => expect.objectContaining({ incidentId, err: expect.any(Error) })),
  )
})
