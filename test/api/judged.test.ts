import { expect, test } from '@jest/globals'
import { incidentById } from '../../db/incidents/incidents.ts'
import { append } from '../../db/log/append.ts'
import { eventsOf } from '../../db/log/events.ts'
import { agentActor } from '../../domain/event.ts'
import { announced } from '../support/announced.ts'
import { useApi } from '../support/api.ts'
import { claimedIncident } from '../support/database.ts'
import { seenNominal } from '../support/events.ts'

const api = useApi()

const finding = { action: 'investigated', detail: 'the replica stopped' }

test('an agent cannot record, resolve or escalate anything that no run announced, and its attempt is a row of the incident', async () => {
  const id = await claimedIncident(api.db)
  const doors = [
    { path: `/incidents/${id}/events`, body: finding },
    { path: `/incidents/${id}/escalate`, body: { reason: 'because' } },
    {
      path: `/incidents/${id}/resolve`,
      body: { resolution: 'all good', outcome: 'repaired', claims: [seenNominal(1)] },
    },
    { path: '/capability-gaps', body: { incident_id: id, category: 'remediation', description: 'none' } },
    {
      path: '/placement/proposals',
      body: { intent: 'recover', host_ids: ['h'], use_rack_constraints: true, incident_id: id },
    },
    { path: '/shards/db-osl-1/converge', body: { reason: 'because' } },
    { path: '/placement/proposals/prp_x/execute', body: { reason: 'because' } },
  ]
  for (const { path, body } of doors) {
    for (const key of [undefined, `${id}.1:1:tool_started:0`]) {
      const answer = await api.post(path, { body, key, as: api.tokens.agent })
      expect([path, answer.status, answer.body.code]).toEqual([path, 403, 'UNJUDGED'])
    }
  }
  expect(await incidentById(api.db, id)).toMatchObject({ status: 'investigating' })
  const marked = (await eventsOf(api.db, id)).filter((event) => event.kind === 'security_event')
  expect(marked.length).toBeGreaterThanOrEqual(7)
  expect(marked[0]).toMatchObject({ metadata: { code: 'UNJUDGED', subject: 'agent' } })
})

test('an announced finding is recorded once, however often it is sent', async () => {
  const id = await claimedIncident(api.db)
  const key = await announced(api.db, id, 'add_incident_event', { incident_id: id, ...finding })
  const first = await api.post(`/incidents/${id}/events`, { body: finding, key, as: api.tokens.agent })
  expect(first.status).toBe(201)
  expect(first.body).toMatchObject({
    actor: 'agent:incident-investigator',
    action: 'investigated',
    detail: finding.detail,
  })
  const again = await api.post(`/incidents/${id}/events`, { body: finding, key, as: api.tokens.agent })
  expect(again.body).toEqual(first.body)
  expect(again.headers.get('idempotency-replayed')).toBe('true')
  expect((await eventsOf(api.db, id)).filter((event) => event.kind === 'commented')).toHaveLength(1)
})

test('an announcement covers exactly its action, and other words, another incident or another tool are refused', async () => {
  const id = await claimedIncident(api.db)
  const other = await claimedIncident(api.db)
  const key = await announced(api.db, id, 'add_incident_event', { incident_id: id, ...finding })
  const tries = [
    api.post(`/incidents/${id}/events`, { body: { ...finding, detail: 'other' }, key, as: api.tokens.agent }),
    api.post(`/incidents/${other}/events`, { body: finding, key, as: api.tokens.agent }),
    api.post(`/incidents/${id}/escalate`, { body: { reason: 'because' }, key, as: api.tokens.agent }),
  ]
  for (const answer of await Promise.all(tries)) expect(answer.status).toBe(403)
})

test('an announcement of a superseded attempt is refused', async () => {
  const id = await claimedIncident(api.db)
  const key = await announced(api.db, id, 'add_incident_event', { incident_id: id, ...finding })
  await api.db.updateTable('incident').set({ attempt: 2 }).where('id', '=', id).execute()
  expect((await api.post(`/incidents/${id}/events`, { body: finding, key, as: api.tokens.agent })).status).toBe(403)
})

test.each(['no_fault', 'self_resolved'])('while its alert fires, an announced %s is a conflict', async (outcome) => {
  const id = await claimedIncident(api.db)
  const body = { resolution: 'All is well', outcome, claims: [seenNominal(1)] }
  const key = await announced(api.db, id, 'resolve_incident', { id, ...body })
  const answer = await api.post(`/incidents/${id}/resolve`, { body, key, as: api.tokens.agent })
  expect([answer.status, answer.body.code]).toEqual([409, 'STILL_FIRING'])
  expect((await api.get(`/incidents/${id}`)).body.status).toBe('investigating')
})

test('an announced resolution closes the incident, and gets the same answer when it is sent again', async () => {
  const id = await claimedIncident(api.db)
  await api.db.updateTable('alert').set({ status: 'resolved' }).where('incidentId', '=', id).execute()
  const body = { resolution: 'The replica caught up', outcome: 'self_resolved', claims: [seenNominal(1)] }
  const key = await announced(api.db, id, 'resolve_incident', { id, ...body })
  const first = await api.post(`/incidents/${id}/resolve`, { body, key, as: api.tokens.agent })
  expect(first.body).toMatchObject({ status: 'resolved', resolution: body.resolution })
  expect((await api.post(`/incidents/${id}/resolve`, { body, key, as: api.tokens.agent })).body).toEqual(first.body)
  expect((await eventsOf(api.db, id)).at(-1)).toMatchObject({ kind: 'resolved', metadata: { claims: body.claims } })
})

test('an announced escalation may give any reason', async () => {
  const id = await claimedIncident(api.db)
  const key = await announced(api.db, id, 'escalate_incident', { id })
  const body = { reason: 'the disk is broken' }
  const answer = await api.post(`/incidents/${id}/escalate`, { body, key, as: api.tokens.agent })
  expect(answer.body).toMatchObject({ status: 'escalated', resolution: body.reason })
})

test('an announced capability gap is listed', async () => {
  const id = await claimedIncident(api.db)
  const body = { incident_id: id, category: 'remediation', description: 'nothing restarts a service' }
  const key = await announced(api.db, id, 'report_capability_gap', body)
  expect((await api.post('/capability-gaps', { body, key, as: api.tokens.agent })).status).toBe(201)
  const gaps = await api.get('/capability-gaps?category=remediation')
  expect(gaps.body.items).toMatchObject([{ incidentId: id, description: body.description }])
  expect((await api.get('/capability-gaps?category=notification')).body.items).toEqual([])
})

test('if the sender sends no ends of alerts, an announced no_fault needs a good read of this attempt, and a person if the incident is critical', async () => {
  for (const source of ['generic', 'alertmanager'])
    await api.put(`/config/alert.ends.${source}`, { body: { value: 'no', reason: 'it says none' } })
  const look = (id: string, attempt: number, health: string) =>
    api.db.transaction().execute((trx) =>
      append(trx, id, attempt, {
        kind: 'tool_finished',
        actor: agentActor,
        detail: '',
        metadata: {
          ...{ callId: `c1_${health}`, tool: 'get_shard', arguments: {}, effect: 'read', outcome: 'done', body: null },
          ...{ targets: [], result: { ok: true, data: {}, meta: {} } },
          discovered: [{ kind: 'shard', id: 'db-osl-1', name: 'db-osl-1', aliases: [], seen: true, health }],
        },
      } as never),
    )
  const resolve = async (id: string) => {
    const body = { resolution: 'The alert is wrong', outcome: 'no_fault', claims: [seenNominal(1)] }
    const key = await announced(api.db, id, 'resolve_incident', { id, ...body })
    return await api.post(`/incidents/${id}/resolve`, { body, key, as: api.tokens.agent })
  }
  const set = async (severity: 'critical' | 'warning') => {
    const id = await claimedIncident(api.db)
    const own = { severity, resourceKind: 'shard', resourceId: 'db-osl-1' }
    await api.owner.updateTable('incident').set(own).where('id', '=', id).execute()
    return id
  }
  const id = await set('warning')
  expect((await resolve(id)).body).toMatchObject({ code: 'STILL_FIRING', detail: expect.stringContaining('nominal') })
  await look(id, 1, 'degraded')
  expect((await resolve(id)).status).toBe(409)
  const critical = await set('critical')
  await look(critical, 1, 'nominal')
  const refused = await resolve(critical)
  expect([refused.status, refused.body.detail]).toEqual([409, expect.stringContaining('a person decides')])
  const seen = await set('warning')
  await look(seen, 1, 'nominal')
  expect((await resolve(seen)).body).toMatchObject({ status: 'resolved', outcome: 'no_fault' })
})
