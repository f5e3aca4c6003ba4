import { expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { principalOf } from '../../../db/access/principals.ts'
import { verifyChanges, verifyKept } from '../../../db/verify/row-changes.ts'
import { asked } from '../../support/announced.ts'
import { useApi } from '../../support/api.ts'
import { claimedIncident } from '../../support/database.ts'

const api = useApi()
const everything = { role: 'approver', maxRisk: 'critical', incidentTypes: null, disabled: false }

const put = (name: string, body: object) => api.put(`/operators/${name}`, { body: { ...everything, ...body } })
async function tokenOf(operator: string, role = 'approver') {
  const { body } = await api.post('/tokens', { body: { name: `of ${operator}`, role, operator } })
  return body.token as unknown as string
}

test('a person is added, changed and found by name', async () => {
  expect((await put('anna', { maxRisk: 'high', incidentTypes: ['disk_pressure'] })).status).toBe(200)
  expect((await api.get('/operators/anna')).body).toMatchObject({
    name: 'anna',
    role: 'approver',
    maxRisk: 'high',
    incidentTypes: ['disk_pressure'],
    disabledAt: null,
  })
  expect((await put('anna', { role: 'viewer' })).body).toMatchObject({ role: 'viewer', maxRisk: 'critical' })
  const { items } = (await api.get('/operators')).body as unknown as { items: { name: string }[] }
  expect(items.map(({ name }) => name)).toEqual(['admin', 'anna', 'approver', 'operator', 'viewer'])
  expect((await api.get('/operators/nobody')).status).toBe(404)
})

test('an agent, a sentence or an incomplete entry cannot be added as a person', async () => {
  const answers = [
    await put('berta', { role: 'agent' }),
    await put('user:admin', {}),
    await put('system', {}),
    await put(encodeURIComponent('admin approved'), {}),
    await put('berta', { incidentTypes: ['No Type'] }),
    await api.put('/operators/berta', { body: { role: 'approver' } }),
  ]
  expect(answers.map(({ status }) => status)).toEqual([422, 422, 422, 422, 422, 422])
})

test('only an admin sees and changes people', async () => {
  for (const role of ['viewer', 'operator', 'approver', 'agent', 'ingest'] as const) {
    const as = api.tokens[role]
    expect((await api.get('/operators', { as })).status).toBe(403)
    expect((await api.put('/operators/approver', { as, body: { ...everything, role: 'admin' } })).status).toBe(403)
  }
})

test('people cannot lower their own rights, so that an admin remains', async () => {
  expect((await put('admin', { role: 'viewer' })).body.code).toBe('OWN_ROLE')
  expect((await put('admin', { role: 'admin', disabled: true })).body.code).toBe('OWN_ROLE')
  expect((await put('admin', { role: 'admin', maxRisk: 'high' })).body.code).toBe('OWN_ROLE')
  expect((await put('admin', { role: 'admin', incidentTypes: ['disk_pressure'] })).body.code).toBe('OWN_ROLE')
  expect((await put('admin', { role: 'admin' })).status).toBe(200)
})

test('nobody can grant a role, a risk, a type or a member ID beyond their own rights', async () => {
  const mint = async (body: object, as?: string) =>
    (await api.post('/tokens', { body, as })).body.token as unknown as string
  const as = await mint({ name: 'people alone', role: 'admin', scopes: ['manage_operators', 'read'] })
  await put('vera', { role: 'viewer', maxRisk: 'low', incidentTypes: ['disk_pressure'] })
  const tried = async (name: string, body: object, token = as) => {
    const { status, body: answer } = await api.put(`/operators/${name}`, {
      body: { ...everything, ...body },
      as: token,
    })
    return answer.code ?? status
  }
  for (const role of ['operator', 'approver', 'admin']) expect(await tried('vera', { role })).toBe('TOO_STRONG')
  for (const role of ['operator', 'approver', 'admin']) expect(await tried('new', { role })).toBe('TOO_STRONG')
  expect((await api.get('/operators/vera')).body).toMatchObject({ role: 'viewer', maxRisk: 'low' })
  expect((await api.get('/operators/new')).status).toBe(404)
  // A member of Slack acts as the person they are here: with it go the decisions of an approver.
  await put('paul', { maxRisk: 'high', incidentTypes: ['disk_pressure'] })
  const asPaul = { maxRisk: 'high', incidentTypes: ['disk_pressure'] }
  expect(await tried('paul', { ...asPaul, slackUserId: 'U012MINE' })).toBe('TOO_STRONG')
  expect(await tried('paul', { ...asPaul, pagerdutyUserId: 'PMINE' })).toBe('TOO_STRONG')
  expect(await tried('paul', { ...asPaul, maxRisk: 'critical' })).toBe('TOO_STRONG')
  expect(await tried('paul', { ...asPaul, incidentTypes: null })).toBe('TOO_STRONG')
  // Taking away, and what stays as it was, need nothing but the permission.
  expect(await tried('paul', asPaul)).toBe(200)
  expect(await tried('paul', { ...asPaul, maxRisk: 'low' })).toBe(200)
  expect(await tried('paul', { ...asPaul, maxRisk: 'low', disabled: true })).toBe(200)
  expect(await tried('paul', { ...asPaul, maxRisk: 'low' })).toBe('TOO_STRONG')
})

test('an admin with limited risks and types adds nobody with more, and makes no token for anybody with more', async () => {
  await put('lena', { role: 'admin', maxRisk: 'medium', incidentTypes: ['disk_pressure'] })
  const as = await tokenOf('lena', 'admin')
  const tried = async (name: string, body: object) =>
    (await api.put(`/operators/${name}`, { body: { ...everything, ...body }, as })).status
  const own = { maxRisk: 'medium', incidentTypes: ['disk_pressure'] }
  expect(await tried('moritz', own)).toBe(200)
  expect(await tried('nils', { ...own, maxRisk: 'high' })).toBe(403)
  expect(await tried('nils', { ...own, incidentTypes: ['disk_pressure', 'replication_lag'] })).toBe(403)
  expect(await tried('lena', { role: 'admin', incidentTypes: null })).toBe(403)
  const minted = (operator: string) =>
    api.post('/tokens', { body: { name: `of ${operator}`, role: 'approver', operator }, as })
  expect((await minted('moritz')).status).toBe(201)
  expect((await minted('approver')).body.code).toBe('TOO_STRONG')
})

test('a decision token is made only for the risks and types of its person', async () => {
  await put('carl', { maxRisk: 'high', incidentTypes: ['disk_pressure'] })
  const as = await tokenOf('carl')
  const disk = await asked(api.db, await claimedIncident(api.db))
  const lag = await asked(api.db, await claimedIncident(api.db, { labels: { incident_type: 'replication_lag' } }))
  const critical = await asked(api.db, await claimedIncident(api.db))
  await api.owner.updateTable('approval').set({ risk: 'critical' }).where('id', '=', critical).execute()
  const mint = (id: string) => api.post(`/approvals/${id}/token`, { as, body: { decision: 'approve' } })
  expect((await mint(disk)).status).toBe(201)
  expect((await mint(lag)).body.detail).toBe('carl may not decide about incidents of type replication_lag')
  expect((await mint(critical)).body.detail).toBe('carl may decide risks up to high, and this one is critical')
})

test('a disabled person cannot sign in anywhere, and has the former rights when enabled again', async () => {
  await put('dora', {})
  const as = await tokenOf('dora')
  expect((await api.get('/incidents', { as })).status).toBe(200)
  const first = (await put('dora', { disabled: true })).body.disabledAt
  expect((await api.get('/incidents', { as })).status).toBe(401)
  expect(await principalOf(api.db, as)).toBeNull()
  expect((await put('dora', { disabled: true })).body.disabledAt).toBe(first)
  await put('dora', {})
  expect((await api.get('/incidents', { as })).status).toBe(200)
})

test('a person cannot be added twice', async () => {
  const asNew = (body: object) =>
    api.put('/operators/frida', { headers: { 'if-none-match': '*' }, body: { ...everything, ...body } })
  expect((await asNew({ role: 'viewer' })).status).toBe(200)
  const again = await asNew({ role: 'admin' })
  expect([again.status, again.body.code]).toEqual([412, 'NAME_TAKEN'])
  expect((await api.get('/operators/frida')).body.role).toBe('viewer')
})

test('the time when a person was last seen is shown, by token and by browser', async () => {
  const seen = async () => (await api.get('/operators/emil')).body.lastSeenAt as unknown as string | null
  await put('emil', {})
  expect(await seen()).toBeNull()
  const as = await tokenOf('emil')
  await api.get('/incidents', { as })
  const byToken = await seen()
  expect(byToken).not.toBeNull()
  const { code } = (await (
    await api.api.app.request('/auth/codes', { method: 'POST', headers: { authorization: `Bearer ${as}` } })
  ).json()) as { code: string }
  await api.api.app.request('/auth/session', {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: 'http://localhost' },
    body: JSON.stringify({ code }),
  })
  expect((await seen()) ?? '').not.toBe(byToken)
})

test('a change applies to tokens that exist already', async () => {
  await put('emil', { role: 'admin' })
  const as = await tokenOf('emil', 'admin')
  expect((await api.get('/tokens', { as })).status).toBe(200)
  await put('emil', { role: 'operator' })
  expect((await api.get('/tokens', { as })).status).toBe(403)
})

test('the database has no limit that code could not read', async () => {
  const set = (column: string, value: string) =>
    sql`update operator set ${sql.ref(column)} = ${sql.raw(value)}`.execute(api.owner)
  await expect(set('max_risk', "'total'")).rejects.toThrow()
  await expect(set('incident_types', `'"all"'::jsonb`)).rejects.toThrow()
})

test('a member of Slack is one person here, and the audit log shows the link', async () => {
  expect((await put('dora', { slackUserId: 'U0DORA' })).body).toMatchObject({ slackUserId: 'U0DORA' })
  // An unnamed part stays: an older client does not take it away.
  expect((await put('dora', { maxRisk: 'high' })).body).toMatchObject({ slackUserId: 'U0DORA' })
  expect((await put('emil', { slackUserId: 'U0DORA' })).body).toMatchObject({ code: 'SLACK_USER_TAKEN' })
  expect((await put('emil', { slackUserId: '@emil' })).status).toBe(422)
  expect((await put('dora', { slackUserId: null })).body).toMatchObject({ slackUserId: null })
  expect((await put('emil', { slackUserId: 'U0DORA' })).status).toBe(200)
  const { items } = (await api.get('/audit?what=operator')).body as unknown as { items: { detail: string }[] }
  expect(items.map(({ detail }) => detail).join('\n')).toContain('U0DORA at Slack')
})

test('a user of PagerDuty is one person here', async () => {
  expect((await put('dora', { pagerdutyUserId: 'PLH1HKV' })).body).toMatchObject({ pagerdutyUserId: 'PLH1HKV' })
  expect((await put('emil', { pagerdutyUserId: 'PLH1HKV' })).body).toMatchObject({ code: 'PAGERDUTY_USER_TAKEN' })
  expect((await put('emil', { pagerdutyUserId: 'emil@example.com' })).body.detail).toContain('as PLH1HKV')
  expect((await put('dora', { pagerdutyUserId: null })).body).toMatchObject({ pagerdutyUserId: null })
})

test('verify finds no unexplained change after actions through the product', async () => {
  const found = [...(await verifyChanges(api.db, 0)).differences, ...(await verifyKept(api.db)).differences]
  // Fixtures of tests claim incidents, and change rows as the owner.
  expect(found.filter(({ subject, what }) => !subject.startsWith('inc_') && !what.includes(' by postgres '))).toEqual(
    [],
  )
})

const bound = { maxRisk: 'none', rights: ['critical host:host-ams-* type:disk_pressure'] }
const question = async (id: string, targets: object[], risk = 'critical') => {
  const approval = await asked(api.db, await claimedIncident(api.db))
  await api.owner
    .updateTable('approval')
    .set({ risk, targets: JSON.stringify(targets) })
    .where('id', '=', approval)
    .execute()
  return {
    approval,
    mint: async () => await api.post(`/approvals/${approval}/token`, { as: id, body: { decision: 'deny' } }),
  }
}

test('a right for some resources decides only about these, also if it was narrowed after the token was made', async () => {
  expect((await put('rita', bound)).body).toMatchObject({ rights: bound.rights })
  const as = await tokenOf('rita')
  const own = await question(as, [{ kind: 'host', id: 'host-ams-1' }])
  expect((await own.mint()).status).toBe(201)
  const both = await question(as, [
    { kind: 'host', id: 'host-ams-1' },
    { kind: 'host', id: 'host-osl-1' },
  ])
  expect((await both.mint()).body.detail).toBe(
    'rita decides about host:host-ams-*, and this call is about host:host-osl-1',
  )
  expect((await (await question(as, [])).mint()).body.detail).toBe(
    'rita decides about host:host-ams-*, and this call names no resource',
  )
  const later = await question(as, [{ kind: 'host', id: 'host-ams-2' }])
  const { token } = (await later.mint()).body
  await put('rita', { maxRisk: 'none', rights: ['critical host:host-osl-*'] })
  const refused = await api.post(`/approvals/${later.approval}/decision`, { as, body: { decision: 'deny', token } })
  expect(refused.body).toMatchObject({ code: 'ROLE_LOST' })
  // A right that is over is as good as none.
  await put('rita', { maxRisk: 'none', rights: ['critical host:host-ams-* until:2026-11-01'] })
  expect((await own.mint()).status).toBe(403)
})

test('an invalid right is refused, and a right that the giver does not have cannot be given', async () => {
  const { status, body } = await put('sven', { rights: ['critical printer:1'] })
  expect([status, body.errors]).toMatchObject([
    422,
    [{ field: 'rights.0', message: expect.stringContaining('"printer:1" is not a resource') }],
  ])
  await put('tina', { role: 'admin', maxRisk: 'low', rights: ['high host:a-*'] })
  const as = await tokenOf('tina', 'admin')
  const give = async (right: string) =>
    (await api.put('/operators/udo', { body: { ...everything, maxRisk: 'none', rights: [right] }, as })).status
  expect(await give('high host:a-1')).toBe(200)
  expect(await give('high host:a-* until:2026-12-31')).toBe(200)
  expect(await give('high host:b-1')).toBe(403)
  expect(await give('critical host:a-1')).toBe(403)
  expect(await give('high')).toBe(403)
  expect(
    (await api.put('/operators/tina', { body: { ...everything, role: 'admin', maxRisk: 'high' }, as })).status,
  ).toBe(403)
})

test('everybody is listed with whether they may decide and why, now and on a past day', async () => {
  await put('wanda', { maxRisk: 'none', rights: ['high host:host-ams-*'] })
  const before = (await api.get('/who-may?tool=execute_migration&type=host_down')).body.at as unknown as string
  await put('wanda', { maxRisk: 'none', rights: [] })
  const whoMay = async (query: string) => {
    const { body } = await api.get(`/who-may?${query}`)
    const { people } = body as unknown as { people: { name: string; why: string | null }[] }
    return {
      ...body,
      wanda: people.find(({ name }) => name === 'wanda')?.why,
      viewer: people.find(({ name }) => name === 'viewer'),
    }
  }
  const call = 'tool=converge_shard&type=host_down&risk=high&resources=host:host-ams-1'
  const now = await whoMay(call)
  expect(now).toMatchObject({
    risk: 'high',
    required: 1,
    wanda: 'wanda may decide risks up to none, and this one is high',
  })
  expect(now.viewer).toMatchObject({ why: 'viewer (viewer) may not decide approvals' })
  expect((await whoMay(`${call}&at=${encodeURIComponent(before)}`)).wanda).toBeNull()
  const { approval } = await question('', [{ kind: 'host', id: 'host-ams-1' }], 'high')
  expect(await whoMay(`approval=${approval}`)).toMatchObject({ incidentType: 'disk_pressure', risk: 'high' })
  const codes = await Promise.all(
    [
      'tool=nonsense&type=x',
      'tool=converge_shard',
      `${call}&at=2020-01-01`,
      `${call}&at=2126-01-01`,
      `${call},printer:1`,
      'approval=apr_none',
    ].map(async (query) => (await api.get(`/who-may?${query}`)).status),
  )
  expect(codes).toEqual([422, 422, 404, 422, 422, 404])
  expect((await api.get(`/who-may?${call}`, { as: api.tokens.viewer })).status).toBe(403)
})
