import { beforeEach, expect, test } from '@jest/globals'
import { MockActivityEnvironment } from '@temporalio/testing'
import { sql } from 'kysely'
import { claim } from '../../activities/claim.ts'
import { incidentById, lockIncident } from '../../db/incidents/incidents.ts'
import { investigateAgain, openByHand } from '../../db/incidents/person-requests.ts'
import { reopenBecause } from '../../db/lifecycle/apply-lifecycle.ts'
import { eventsOf } from '../../db/log/events.ts'
import { openedIncident } from '../support/database.ts'
import { runCli, useServedApi } from '../support/run-cli.ts'

const api = useServedApi()

const setting = async (value: string) =>
  await api.put('/config/agent.investigate', { body: { value, reason: 'for tonight' } })

beforeEach(async () => await setting('all'))

/** A run of this attempt wants to begin. */
async function begins(incidentId: string, attempt = 1): Promise<boolean> {
  const run = { workflowId: `investigate:${incidentId}:${attempt}`, runId: `r-${attempt}` }
  const deps = { db: api.db, environment: {}, isEnabled: true }
  const claimed = await new MockActivityEnvironment({ workflowExecution: run }).run(
    async () => await claim(deps, { incidentId, attempt, role: 'leader', groupId: 'grp_test' }),
  )
  return claimed !== null
}

const standing = async (id: string) => await incidentById(api.db, id)

test('an incident that waits when agent.investigate changes follows the new filter, and page and terminal show why', async () => {
  const id = await openedIncident(api.db, { labels: { env: 'test' } })
  const other = await openedIncident(api.db, { labels: { env: 'prod' } })
  await setting('severity>=warning, env=prod')
  const reason = 'agent.investigate requires env=prod, and this incident has env=test'
  // While it waits its place says so already.
  expect((await api.get(`/incidents/${id}`)).body).toMatchObject({
    keptReason: null,
    queue: { why: 'kept', text: expect.stringContaining(reason) },
  })
  expect((await runCli(['incidents', 'show', id], api.as('viewer'))).stdout.replace(/\s+/g, ' ')).toContain(reason)
  expect(await begins(id)).toBe(false)
  expect(await begins(other)).toBe(true)
  expect(await standing(id)).toMatchObject({ status: 'open', attempt: 0, assignedTo: null, keptReason: reason })
  const shown = (await runCli(['incidents', 'show', id], api.as('viewer'))).stdout.replace(/\s+/g, ' ')
  expect(shown).toContain(`not investigated: ${reason}`)
  // It is no longer for a run to begin, and says so once.
  expect(await begins(id)).toBe(false)
  const notes = (await eventsOf(api.db, id)).filter(({ detail }) => detail.startsWith('Not investigated'))
  expect(notes).toHaveLength(1)
})

test('an incident that a person requested or that an agent already investigates is investigated despite the filter', async () => {
  const asked = await openedIncident(api.db, { labels: { env: 'test' } })
  await setting('none')
  expect(await begins(asked)).toBe(false)
  // By a token of nobody: only the row tells.
  await api.db.transaction().execute((trx) => investigateAgain(trx, asked, { actor: 'user:ci', operatorId: null }))
  expect(await begins(asked)).toBe(true)

  const opened = await api.db
    .transaction()
    .execute((trx) =>
      openByHand(
        trx,
        { type: 'disk_pressure', severity: 'warning', title: 'The disk', resource: null },
        'Please look',
        { actor: 'user:anna', operatorId: null },
      ),
    )
  expect(await begins(opened.id)).toBe(true)

  await setting('all')
  const repaired = await openedIncident(api.db, { labels: { env: 'test' } })
  expect(await begins(repaired)).toBe(true)
  const again = async (why: 'did_not_last' | 'came_back') => {
    await sql`update incident set status = 'resolved', closed_at = clock_timestamp(), closed_by = 'agent', assigned_to = null
      where id = ${repaired}`.execute(api.owner)
    await api.db.transaction().execute(async (trx) => {
      const row = await lockIncident(trx, repaired)
      if (row) await reopenBecause(trx, row, why)
    })
  }
  await again('did_not_last')
  await setting('none')
  expect(await begins(repaired, 2)).toBe(true)
  await setting('all')
  await again('came_back')
  await setting('none')
  expect(await begins(repaired, 3)).toBe(false)
})
