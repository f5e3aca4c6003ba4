import { beforeAll, beforeEach, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { ingestAlert } from '../../../db/alerts/ingest-body.ts'
import { connect } from '../../../db/connect.ts'
import { closeIncident } from '../../../db/incidents/close-incident.ts'
import { verifyAudit } from '../../../db/log/audit.ts'
import { removeOld } from '../../../db/retention/remove.ts'
import { verifyIncident } from '../../../db/verify/incident.ts'
import { verifyGone, verifyRemovals } from '../../../db/verify/removals.ts'
import { verifyChanges } from '../../../db/verify/row-changes.ts'
import { agentActor } from '../../../domain/event.ts'
import { useApi } from '../../support/api.ts'
import { anAlert, moveClock } from '../../support/database.ts'
import { eventually } from '../../support/directory.ts'
import { claimed } from '../verify/life.ts'

/** What comes in for an incident while retention removes it, and people who end each other. */
const api = useApi()
const resolved = {
  status: 'resolved' as const,
  outcome: 'repaired' as const,
  resolution: 'It reads again.',
  claims: [],
  confidence: null,
}

async function anOldOne(name: string): Promise<{ id: string; alert: ReturnType<typeof anAlert> }> {
  const alert = anAlert({ name, labels: { alertname: name } })
  const id = (await ingestAlert(api.db, alert)).incidentId as string
  await api.db.transaction().execute(async (trx) => {
    await claimed(trx, id)
    await closeIncident(trx, id, 1, resolved, { actor: agentActor, stepKey: null })
  })
  await ingestAlert(api.db, { ...alert, status: 'resolved', endsAt: new Date().toISOString() })
  await sql`update incident set watch_until = null, look_wanted = null where id = ${id}`.execute(api.db)
  await sql`update delivery set status = 'sent', finished_at = nightshift_now()`.execute(api.owner)
  return { id, alert }
}

async function differences(): Promise<string[]> {
  const found = [await verifyChanges(api.db, 0), await verifyRemovals(api.db, 0), await verifyGone(api.db)]
  for (const { id } of await api.db.selectFrom('incident').select('id').execute())
    found.push(await verifyIncident(api.db, id))
  const audit = await verifyAudit(api.db)
  return [
    ...found.flatMap((each) => each.differences.map(({ subject, what }) => `${subject}: ${what}`)),
    ...(audit.problem ? [audit.problem.what] : []),
  ]
}

/** Somebody waits for a lock that another transaction holds. */
const isWaiting = () =>
  eventually('a wait for a lock', async () => {
    const { rows } = await sql<{ n: number }>`
      select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`.execute(
      api.owner,
    )
    return (rows[0]?.n ?? 0) > 0
  })

/**
 * Does this while a batch of retention has removed everything old and has not committed; the batch
 * commits once `during` waits for it.
 */
async function whileRemoved<T>(during: () => Promise<T>): Promise<T> {
  const other = connect(api.url, { owner: true, max: 1 })
  try {
    return await other
      .transaction()
      .execute(async (trx) => {
        const { rows } = await sql<{ removed: number }>`
        select removed from remove_closed_incidents('-infinity', '', 100)`.execute(trx)
        expect(rows[0]?.removed).toBeGreaterThan(0)
        const doing = during()
        void doing.catch(() => {})
        await isWaiting()
        return { doing }
      })
      .then(({ doing }) => doing)
  } finally {
    await other.destroy()
  }
}

beforeAll(async () => await moveClock(api.owner, '0 days'))
beforeEach(async () => {
  await moveClock(api.owner, '0 days')
  await api.put('/config/retention.incidents', { body: { value: '400' } })
})

test('a hold on an incident that is being removed is told that it is gone, and all chains are valid', async () => {
  const { id } = await anOldOne('held_too_late')
  await moveClock(api.owner, '401 days')
  const answer = await whileRemoved(() => api.post(`/incidents/${id}/hold`, { body: { reason: 'a court asks' } }))
  expect([answer.status, answer.body.detail]).toEqual([404, expect.stringContaining('removed by retention')])
  expect(await differences()).toEqual([])
})

test('an alert that returns while its incident is removed opens another incident', async () => {
  const { id, alert } = await anOldOne('back_too_late')
  await moveClock(api.owner, '401 days')
  const again = { ...alert, startsAt: new Date(Date.now() + 401 * 86_400_000).toISOString() }
  const { incidentId } = await whileRemoved(() => ingestAlert(api.db, again))
  expect(incidentId).not.toBeNull()
  expect(incidentId).not.toBe(id)
  expect(await api.get(`/incidents/${incidentId}`)).toMatchObject({ status: 200 })
  expect(await differences()).toEqual([])
})

test('a batch whose connection dies with its server process removes nothing, and the next round removes all of it', async () => {
  const { id } = await anOldOne('batch_killed')
  await moveClock(api.owner, '401 days')
  const other = connect(api.url, { owner: true, max: 1 })
  await other
    .transaction()
    .execute(async (trx) => {
      // A batch removes the incident last, after all that belongs to it.
      await sql`lock table incident in share mode`.execute(trx)
      const round = removeOld(api.db, new AbortController().signal)
      void round.catch(() => {})
      await isWaiting()
      await sql`
        select pg_terminate_backend(pid) from pg_stat_activity
        where wait_event_type = 'Lock' and query like '%remove_closed_incidents%' and datname = current_database()`.execute(
        api.owner,
      )
      await expect(round).rejects.toThrow(/terminat/)
    })
    .finally(() => other.destroy())
  // The pool may hand out the dead connection once before it hears of its end.
  await eventually('the incident is still there', async () => (await api.get(`/incidents/${id}`)).status === 200)
  expect(await differences()).toEqual([])
  expect((await removeOld(api.db, new AbortController().signal)).incidents).toBeGreaterThan(0)
  expect(await api.get(`/incidents/${id}`)).toMatchObject({ status: 404 })
  expect(await differences()).toEqual([])
})

test.each(['0', '-1', '1', '30', '30.5', '1e3', ' 400', '４００', '', 'KEEP', '9999'])(
  'retention of %j days is refused, and a stored value of this kind has no effect',
  async (value) => {
    expect((await api.put('/config/retention.incidents', { body: { value } })).status).toBe(422)
    await sql`update platform_config set value = ${value} where key = 'retention.incidents'`.execute(api.owner)
    const { id } = await anOldOne(`stored_${Buffer.from(value).toString('hex')}`)
    await moveClock(api.owner, '4000 days')
    expect((await removeOld(api.db, new AbortController().signal)).incidents).toBe(0)
    expect(await api.get(`/incidents/${id}`)).toMatchObject({ status: 200 })
  },
)

test.each(['erase', 'disable'])('if two admins %s each other at the same moment, one of them stays', async (what) => {
  const tokens: Record<string, string> = {}
  const [one, other] = [`ada-${what}`, `bob-${what}`]
  const body = { role: 'admin', maxRisk: 'critical', incidentTypes: null, disabled: false }
  await sql`update operator set disabled_at = null where name = 'admin'`.execute(api.owner)
  for (const name of [one, other]) {
    expect((await api.put(`/operators/${name}`, { body })).status).toBeLessThan(300)
    tokens[name] = String(
      (await api.post('/tokens', { body: { name: `of ${name}`, role: 'admin', operator: name } })).body.token,
    )
  }
  await sql`update operator set disabled_at = nightshift_now() where role = 'admin' and name not in (${one}, ${other})`.execute(
    api.owner,
  )
  const end = (name: string, by: string) =>
    what === 'erase'
      ? api.post(`/operators/${name}/erasure`, { as: tokens[by] as string, body: { confirm: name } })
      : api.put(`/operators/${name}`, { as: tokens[by] as string, body: { ...body, disabled: true } })
  const answers = await Promise.all([end(one, other), end(other, one)])
  expect(answers.map(({ status }) => status).filter((status) => status === 200)).toHaveLength(1)
  const { rows } = await sql<{ n: number }>`
    select count(*)::int as n from operator where role = 'admin' and disabled_at is null`.execute(api.owner)
  expect(rows[0]?.n).toBe(1)
})
