import { expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { createToken } from '../../../db/access/tokens.ts'
import { verifyAudit } from '../../../db/log/audit.ts'
import { verifyNext } from '../../../db/verify/page.ts'
import { useApi } from '../../support/api.ts'
import { moveClock, openedIncident } from '../../support/database.ts'
import { notPersonal } from './not-personal.ts'

const api = useApi()

/** Everything that is held, one line a difference. */
async function differences(): Promise<string[]> {
  const page = await verifyNext(api.db, '', 1_000)
  const audit = await verifyAudit(api.db)
  return [
    ...page.differences.map(({ subject, what }) => `${subject}: ${what}`),
    ...(audit.problem ? [`audit ${audit.problem.seq}: ${audit.problem.what}`] : []),
  ]
}

/**
 * A person who signs in, wrote into an incident that is over, set a setting and holds another
 * incident no longer.
 */
async function aPerson(name: string): Promise<{ token: string; incidentId: string }> {
  const body = {
    role: 'admin',
    maxRisk: 'high',
    incidentTypes: null,
    disabled: false,
    slackUserId: `U${name.toUpperCase().replaceAll(/\W/g, '')}${name.charCodeAt(0)}`,
  }
  expect((await api.put(`/operators/${name}`, { body })).status).toBe(200)
  const { id } = await api.db.selectFrom('operator').select('id').where('name', '=', name).executeTakeFirstOrThrow()
  const token = await createToken(api.db, { name: `laptop of ${name}`, role: 'admin', operatorId: id })
  const incidentId = await openedIncident(api.db, { title: `${name} called: the disk is full` })
  const said = [
    await api.post(`/incidents/${incidentId}/hold`, { as: token, body: { reason: `${name} was told by the insurer` } }),
    await api.post(`/incidents/${incidentId}/release`, { as: token, body: { reason: 'my lawyer says so' } }),
    await api.post(`/incidents/${incidentId}/resolve`, {
      as: token,
      body: { resolution: `I, ${name}, cleaned it up after my surgery.`, outcome: 'no_fault' },
    }),
    await api.put('/config/agent.leader_wait', {
      as: token,
      body: { value: '60', reason: `asked by ${name} at home` },
    }),
  ]
  expect(said.map(({ status }) => status)).toEqual([201, 200, 200, 200])
  return { token, incidentId }
}

/** Tables in which a text is still found, anywhere. */
async function tablesWith(text: string): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    select table_name as name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'`.execute(
    api.owner,
  )
  const found: string[] = []
  for (const { name } of rows) {
    const { rows: hits } = await sql<{ hit: boolean }>`
      select exists (select from ${sql.table(name)} as stored where to_jsonb(stored)::text ilike ${`%${text}%`}) as hit`.execute(
      api.owner,
    )
    if (hits[0]?.hit) found.push(name)
  }
  return found
}

test('a person is erased: their name and words are removed from their rows, they cannot sign in, and all chains are valid', async () => {
  const { token } = await aPerson('marguerite')
  // Kept answers of requests go after a month by themselves; alerts are the site's.
  const passing = ['alert', 'idempotency']
  expect((await tablesWith('marguerite')).length).toBeGreaterThan(4)
  const preview = await api.get('/operators/marguerite/erasure')
  expect(preview.body).toMatchObject({ pseudonym: null, refusal: null, rows: { operator: 1, incident_hold: 1 } })
  const before = await api.db.selectFrom('auditHead').select(['seq', 'hash']).executeTakeFirstOrThrow()

  expect((await api.post('/operators/marguerite/erasure', { body: { confirm: 'margret' } })).status).toBe(409)
  const { status, body } = await api.post('/operators/marguerite/erasure', { body: { confirm: 'marguerite' } })
  expect([status, body]).toEqual([200, expect.objectContaining({ pseudonym: expect.stringMatching(/^erased-/) })])
  for (const text of ['marguerite', 'surgery', 'my lawyer'])
    expect((await tablesWith(text)).filter((name) => !passing.includes(name))).toEqual([])
  expect((await api.get('/incidents', { as: token })).status).toBe(401)
  expect(await differences()).toEqual([])
  // A head that was noted before still proves that nothing up to it was altered.
  expect(await verifyAudit(api.db, before.hash)).toMatchObject({ ok: true })
  const again = await api.post(`/operators/${body.pseudonym}/erasure`, { body: { confirm: body.pseudonym } })
  expect([again.status, again.body.detail]).toEqual([409, 'This person was erased before.'])
})

test('a person with the same name keeps it, and so do sentences of the product with a word that is a name', async () => {
  const names = ['incident-b', 'an-incident', 'an-incident.b', 'Incident', 'user-b']
  const wordsOf = (name: string) => `the probe was ${[...names, 'incident', 'user'].indexOf(name)} times too strict`
  const work = async (name: string) => {
    const { token } = await aPerson(name)
    const incidentId = await openedIncident(api.db, { title: 'It was a false alarm' })
    const body = { resolution: wordsOf(name), outcome: 'no_fault' }
    expect((await api.post(`/incidents/${incidentId}/resolve`, { as: token, body })).status).toBe(200)
    return incidentId
  }
  const of = new Map<string, string>()
  for (const name of names) of.set(name, await work(name))
  for (const name of ['incident', 'user']) {
    await work(name)
    expect((await api.post(`/operators/${name}/erasure`, { body: { confirm: name } })).status).toBe(200)
  }
  expect(await differences()).toEqual([])
  for (const [name, incidentId] of of) {
    const rows = await api.db
      .selectFrom('incidentEvent')
      .select(['actor', 'detail'])
      .where('incidentId', '=', incidentId)
      .where('kind', '=', 'resolved')
      .execute()
    expect(rows).toEqual([{ actor: `user:${name}`, detail: wordsOf(name) }])
    expect(await api.db.selectFrom('operator').select('id').where('name', '=', name).execute()).toHaveLength(1)
  }
})

test('a row that was changed after an erasure is found, and so is a tombstone without a row in the audit log', async () => {
  const { incidentId } = await aPerson('theodora')
  expect((await api.post('/operators/theodora/erasure', { body: { confirm: 'theodora' } })).status).toBe(200)
  const altered = async (alter: (trx: typeof api.owner) => Promise<unknown>): Promise<string[]> => {
    const found: string[] = []
    await api.owner
      .transaction()
      .execute(async (trx) => {
        await sql`set local session_replication_role = 'replica'`.execute(trx)
        await alter(trx as never)
        const page = await verifyNext(trx as never, '', 1_000)
        const audit = await verifyAudit(trx as never)
        found.push(...page.differences.map(({ what }) => what), ...(audit.problem ? [audit.problem.what] : []))
        throw new Error('undone')
      })
      .catch((error) => {
        if ((error as Error).message !== 'undone') throw error
      })
    return found
  }
  expect(
    await altered((trx) =>
      sql`update incident_event set detail = 'another story' where incident_id = ${incidentId} and kind = 'resolved'`.execute(
        trx,
      ),
    ),
  ).toContainEqual(expect.stringContaining('an erasure left'))
  expect(
    await altered((trx) => sql`update audit set detail = 'another story' where who like 'erased-%'`.execute(trx)),
  ).toContainEqual('the content of the row differs from what an erasure left')
  expect(
    await altered((trx) => sql`update erased_row set digest = repeat('0', 64) where of_table = 'audit'`.execute(trx)),
  ).toContainEqual('no row of the audit has the digest of its tombstones')
})

test('an erasure of the last admin, of oneself, or against a hold or an open incident is refused', async () => {
  const own = await api.post('/operators/admin/erasure', { body: { confirm: 'admin' } })
  expect([own.status, own.body.code]).toEqual([409, 'OWN_ROLE'])
  const { token, incidentId } = await aPerson('leopold')
  expect((await api.post(`/incidents/${incidentId}/hold`, { body: { reason: 'a court asks' } })).status).toBe(201)
  const held = await api.post('/operators/leopold/erasure', { body: { confirm: 'leopold' } })
  expect([held.status, held.body.detail]).toEqual([409, expect.stringContaining('is on hold')])
  expect((await api.post(`/incidents/${incidentId}/release`, { body: { reason: 'it is over' } })).status).toBe(200)
  const asked = { title: 'The backup is late', type: 'backup_late', severity: 'warning' }
  expect((await api.post('/incidents', { as: token, body: asked })).status).toBe(201)
  const waits = await api.post('/operators/leopold/erasure', { body: { confirm: 'leopold' } })
  expect([waits.status, waits.body.detail]).toEqual([409, expect.stringContaining('is still open')])
  expect((await api.get('/incidents', { as: token })).status).toBe(200)
  await sql`update operator set disabled_at = nightshift_now() where name <> 'leopold'`.execute(api.owner)
  const { rows } = await sql<{ why: string }>`
    select why_not_erased(person) as why from operator as person where name = 'leopold'`.execute(api.owner)
  expect(rows[0]?.why).toBe('last admin')
})

test('the services can change no row of a chain by themselves', async () => {
  await moveClock(api.owner, '0')
  for (const table of ['incident_event', 'audit', 'erased_row', 'personal_column'])
    await expect(sql`delete from ${sql.table(table)}`.execute(api.db)).rejects.toMatchObject({ code: '42501' })
})

test('each text column is listed: it can name a person and is erased, or it has a reason to stay', async () => {
  const { rows } = await sql<{ column: string }>`
    select table_name || '.' || column_name as column from information_schema.columns
    where table_schema = 'public' and table_name not like 'kysely_%' and data_type in ('text', 'jsonb', 'ARRAY', 'bytea')
      and table_name not in ('erasure', 'erased_row', 'personal_column') order by 1`.execute(api.owner)
  const { rows: listed } = await sql<{ column: string }>`
    select of_table || '.' || of_column as column from personal_column order by 1`.execute(api.owner)
  const known = [...listed.map(({ column }) => column), ...Object.values(notPersonal).flat()]
  expect(rows.map(({ column }) => column).filter((column) => !known.includes(column))).toEqual([])
  expect(known.filter((column) => !rows.some((each) => each.column === column))).toEqual([])
})
