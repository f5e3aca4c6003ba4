import { expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { listAudit, recordAudit } from '../../../db/log/audit.ts'
import { systemScope } from '../../../db/scope.ts'
import { asked } from '../../support/announced.ts'
import { useApi } from '../../support/api.ts'
import { claimedIncident, openedIncident } from '../../support/database.ts'

const api = useApi()
type Entry = { at: string; who: string; what: string; subject: string; detail: string; address: string | null }

async function audit(query = ''): Promise<Entry[]> {
  const answer = await api.get(`/audit${query}`)
  expect(answer.status).toBe(200)
  return answer.body.items as unknown as Entry[]
}
/** What people did, without what the start of this file did for them. */
const byPeople = async (query: string) => (await audit(query)).filter(({ who }) => who !== 'start')
const newest = async (what: string) => (await audit(`?what=${what}&limit=1`))[0]

async function signIn(token: string) {
  const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ token }) }
  return await api.api.app.request('http://localhost/auth/session', init, {
    incoming: { socket: { remoteAddress: '192.0.2.7', remotePort: 1, remoteFamily: 'IPv4' } },
  })
}

test('the audit log shows who made and who revoked a token, and never the token', async () => {
  const { body } = await api.post('/tokens', {
    body: { name: 'laptop', role: 'approver', operator: 'approver', scopes: ['type:disk_pressure'] },
  })
  expect(await newest('token.minted')).toMatchObject({
    who: 'admin',
    subject: body.id,
    detail: expect.stringMatching(/^Minted approver of approver for type:disk_pressure until .* UTC: laptop$/),
  })
  await api.post(`/tokens/${body.id}/revoke`)
  await api.post(`/tokens/${body.id}/revoke`)
  expect(await newest('token.revoked')).toMatchObject({ who: 'admin', subject: body.id })
  expect((await byPeople('?what=token')).map(({ what }) => what)).toEqual(['token.revoked', 'token.minted'])
  expect(JSON.stringify(await audit())).not.toContain(body.token)
})

test('the audit log shows the new and the former rights of a person', async () => {
  const body = { role: 'approver', maxRisk: 'high', incidentTypes: null, disabled: false }
  await api.put('/operators/anna', { body })
  await api.put('/operators/anna', { body })
  await api.put('/operators/anna', { body: { ...body, disabled: true, reason: 'left the company' } })
  expect((await byPeople('?what=operator')).map(({ what, detail }) => [what, detail])).toEqual([
    [
      'operator.changed',
      'From approver, risks up to high, all incident types to approver, risks up to high, disabled, all incident types: left the company',
    ],
    ['operator.added', 'As approver, risks up to high, all incident types'],
  ])
})

test('a changed setting is shown without its value', async () => {
  await api.put('/config/webhook.critical.secret', { body: { value: `whsec_${'A'.repeat(32)}`, reason: 'rotated' } })
  expect(await newest('config')).toMatchObject({
    who: 'admin',
    what: 'config.changed',
    subject: 'webhook.critical.secret',
    detail: 'Version 1: rotated',
  })
  await sql`insert into platform_config (key, value) values ('agent.paused', 'true')`.execute(api.owner)
  expect(await newest('config')).toMatchObject({ who: 'sql', subject: 'agent.paused' })
})

test("decisions, forgeries and a person's actions on an incident come from the log", async () => {
  const incidentId = await claimedIncident(api.db)
  const id = await asked(api.db, incidentId)
  const as = api.tokens.approver
  const decide = (token: string) =>
    api.post(`/approvals/${id}/decision`, { body: { decision: 'deny', token, reason: 'not now' }, as })
  await decide('forged')
  await decide(
    (await api.post(`/approvals/${id}/token`, { as, body: { decision: 'deny', reason: 'not now' } })).body
      .token as unknown as string,
  )
  await api.post(`/incidents/${incidentId}/escalate`, { body: { reason: 'needs hands' }, as: api.tokens.operator })
  const open = { type: 'question', severity: 'info', title: 'Is all well?' }
  const opened = (await api.post('/incidents', { body: open, as: api.tokens.operator })).body.id
  await api.post(`/incidents/${opened}/cancel`, { body: { reason: 'by mistake' } })
  const found = (await audit()).filter(({ what }) => /^(approval|incident|security)/.test(what))
  expect(found.map(({ who, what, subject }) => [who, what, subject])).toEqual([
    ['admin', 'incident.cancelled', opened],
    ['operator', 'incident.opened', opened],
    ['operator', 'incident.escalated', incidentId],
    ['approver', 'approval.denied', id],
    ['approver', 'approval.token_minted', id],
    ['approver', 'security.unknown_token', incidentId],
  ])
  expect(await audit('?who=operator&what=incident')).toHaveLength(2)
})

test('sign-ins are shown with their address, also refused ones', async () => {
  await signIn(api.tokens.approver)
  expect(await newest('sign_in')).toMatchObject({
    who: 'approver',
    what: 'sign_in.done',
    detail: 'Signed in as approver',
    address: '192.0.2.7',
  })
  await signIn('nst_forged')
  expect(await newest('sign_in')).toMatchObject({ who: 'unknown', what: 'sign_in.refused', address: '192.0.2.7' })
  await signIn(api.tokens.agent)
  expect((await newest('sign_in'))?.detail).toContain('agent (agent) is not a person')
  expect(JSON.stringify(await audit())).not.toMatch(/nst_\w/)
})

test('pages follow each other without gap or overlap, whatever table a row is from', async () => {
  for (let n = 0; n < 5; n++) {
    await openedIncident(api.db)
    await api.post('/agent', { body: { question: `question ${n}?` } })
    await api.put('/config/agent.leader_wait', { body: { value: String(100 + n) } })
    await recordAudit(api.db, { who: 'x', what: 'token.minted', subject: 's', detail: 'd' })
  }
  const all = (await audit('?limit=200')) as (Entry & { id: string })[]
  const read: string[] = []
  for (let cursor = ''; ; ) {
    const { items, nextCursor } = (await api.get(`/audit?limit=3${cursor}`)).body as unknown as {
      items: { id: string }[]
      nextCursor: string | null
    }
    read.push(...items.map(({ id }) => id))
    if (!nextCursor) break
    cursor = `&cursor=${encodeURIComponent(nextCursor)}`
  }
  expect(read).toEqual(all.map(({ id }) => id))
  expect(new Set(read).size).toBe(read.length)
  const since = all[4]?.at as string
  expect(await audit(`?since=${since}`)).toHaveLength(5)
})

test('operators and higher roles read the audit log, and viewers, agents and senders of alerts do not', async () => {
  const statuses = await Promise.all(
    (['viewer', 'agent', 'ingest', 'operator', 'approver'] as const).map(
      async (role) => (await api.get('/audit', { as: api.tokens[role] })).status,
    ),
  )
  expect(statuses).toEqual([403, 403, 403, 200, 200])
  expect((await api.get("/audit?cursor=' or true--")).status).toBe(422)
  expect((await api.get('/audit?what=%25')).status).toBe(422)
})

test('the services and the owner of the audit log can only add rows to it', async () => {
  await recordAudit(api.db, { who: 'x', what: 'token.minted', subject: 's', detail: 'key sk-ant-api03-abcdef\u0000' })
  for (const db of [api.db, api.owner]) {
    await expect(db.updateTable('audit').set({ who: 'y' }).execute()).rejects.toThrow()
    await expect(db.deleteFrom('audit').execute()).rejects.toThrow()
    await expect(sql`truncate audit`.execute(db)).rejects.toThrow()
  }
  expect((await listAudit(systemScope(api.db), {}, { before: null, limit: 1 }))[0]?.detail).not.toContain('\u0000')
})

test('the audit log is read by a small index of its own', async () => {
  await sql`set enable_seqscan = off`.execute(api.owner)
  const { rows } = await sql<{ 'QUERY PLAN': string }>`
    explain select id from incident_event
    where (actor like 'user:%' or kind = 'security_event') order by at desc, id desc limit 50`.execute(api.owner)
  expect(rows.map((row) => Object.values(row)[0]).join('\n')).toContain('incident_event_audit')
})
