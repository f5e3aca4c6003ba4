import { describe, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { Webhook } from 'standardwebhooks'
import { createApi } from '../../api/app.ts'
import { closeConnections } from '../../clients/http.ts'
import { listEnvironment } from '../../config/environment.ts'
import { ingestAlert } from '../../db/alerts/ingest-body.ts'
import { noteProvider } from '../../db/event-counters.ts'
import { openIncident } from '../../db/incidents/incidents.ts'
import { append } from '../../db/log/append.ts'
import { listAudit, recordAudit } from '../../db/log/audit.ts'
import { systemScope } from '../../db/scope.ts'
import { noteWorkerEnvironment } from '../../db/settings.ts'
import { agentActor, type NewEvent } from '../../domain/event.ts'
import type { ShownVariable } from '../../domain/setting-row.ts'
import { healthApp } from '../../worker/workers.ts'
import { announced, asked } from '../support/announced.ts'
import { useApi } from '../support/api.ts'
import { allAtOnce, anAlert, claimedIncident, openedIncident } from '../support/database.ts'
import { eventually } from '../support/directory.ts'
import { startLocalServer } from '../support/local-server.ts'

describe('status', () => {
  describe('config', () => {
    const api = useApi(() => ({
      environment: { LLM_MAX_TURNS: '7' },
      variables: listEnvironment({ LLM_MAX_TURNS: '7', DATABASE_URL: 'postgresql://u:hunter2@db/x' }),
    }))

    test('a value is set, takes effect, and its history tells who and why', async () => {
      const answer = await api.put('/config/agent.max_turns', { body: { value: '12', reason: 'disks need more' } })
      expect([answer.status, answer.headers.get('etag')]).toEqual([200, '"1"'])
      const effective = await api.get('/config/effective?type=disk_pressure')
      expect(effective.body.items).toContainEqual({
        ...{ name: 'agent.max_turns', key: 'agent.max_turns', value: 12, source: 'global', problem: null },
      })
      expect((await api.get('/config/agent.max_turns/revisions')).body.items).toMatchObject([
        { version: 1, oldValue: null, newValue: '12', actor: 'user:admin', reason: 'disks need more' },
      ])
    })

    test('of two people who change the same version one wins, and the other is told', async () => {
      await api.put('/config/agent.leader_wait', { body: { value: '60' }, headers: { 'if-match': '"0"' } })
      const changes = await Promise.all(
        ['90', '120'].map((value) =>
          api.put('/config/agent.leader_wait', { body: { value }, headers: { 'if-match': '"1"' } }),
        ),
      )
      expect(changes.map(({ status }) => status).sort()).toEqual([200, 412])
      const late = await api.put('/config/agent.leader_wait', { body: { value: '1' }, headers: { 'if-match': '"0"' } })
      expect([late.status, late.body.version]).toEqual([412, 2])
    })

    test('a value that does not fit and a key that no setting has are refused', async () => {
      const wrong = await api.put('/config/agent.max_turns', { body: { value: 'many' } })
      expect([wrong.status, wrong.body.code]).toEqual([422, 'INVALID'])
      expect((await api.put('/config/agent.no_such', { body: { value: '1' } })).status).toBe(404)
    })

    test('the environment stands between a stored value and the default', async () => {
      await sql`delete from platform_config where key = 'agent.max_turns'`.execute(api.owner)
      expect((await api.get('/config/effective')).body.items).toContainEqual({
        ...{ name: 'agent.max_turns', key: 'LLM_MAX_TURNS', value: 7, source: 'environment', problem: null },
      })
    })

    test('a secret is shown to nobody, neither as a value nor in its history', async () => {
      const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
      const key = 'webhook.escalated.secret'
      const answers = [
        await api.put(`/config/${key}`, { body: { value: secret } }),
        await api.get('/config'),
        await api.get(`/config/${key}`),
        await api.get(`/config/${key}/revisions`),
        await api.get('/config/effective'),
      ]
      for (const { status, body } of answers) {
        expect([status, body.detail]).toEqual([200, undefined])
        expect(JSON.stringify(body)).not.toContain(secret)
      }
    })

    test('the environment in force is for admins, and says nothing of a secret but that it is set', async () => {
      const answer = await api.get('/config/environment')
      expect(answer.body.items).toContainEqual(expect.objectContaining({ name: 'LLM_MAX_TURNS', value: '7' }))
      expect(answer.body.items).toContainEqual(
        expect.objectContaining({ name: 'DATABASE_URL', secret: true, state: 'set', value: null }),
      )
      expect(JSON.stringify(answer.body)).not.toContain('hunter2')
      for (const role of ['viewer', 'operator', 'approver', 'agent'] as const)
        expect([role, (await api.get('/config/environment', { as: api.tokens[role] })).status]).toEqual([role, 403])
    })

    test('what the worker that started last was started with is shown beside it, without its secrets', async () => {
      const before = (await api.get('/config/environment')).body
      const workers = (before.items as unknown as ShownVariable[]).map(({ worker }) => worker)
      expect([before.workerStartedAt, new Set(workers)]).toEqual([null, new Set([null])])
      await noteWorkerEnvironment(api.db, listEnvironment({ LLM_MAX_TURNS: '9' }))
      const given = {
        LLM_MAX_TURNS: '20',
        LLM_API_KEY: 'hunter3',
        LLM_BASE_URL: 'http://me:hunter3@model/v1?key=hunter3',
      }
      await noteWorkerEnvironment(api.db, listEnvironment(given))
      const { body } = await api.get('/config/environment')
      const items = body.items as unknown as ShownVariable[]
      const of = (name: string) => items.find((each) => each.name === name)
      expect(body.workerStartedAt).toMatch(/^2\d{3}-/)
      expect(of('LLM_MAX_TURNS')).toMatchObject({ value: '7', worker: { state: 'set', value: '20' } })
      expect(of('LLM_API_KEY')).toMatchObject({ state: 'not_set', worker: { state: 'set', value: null } })
      expect(of('LLM_BASE_URL')?.worker?.value).toBe('http://model/v1?…')
      const { rows } = await sql<{ text: string }>`select variables::text as text from worker_environment`.execute(
        api.db,
      )
      expect(rows.map(({ text }) => text.includes('hunter'))).toEqual([false])
    })

    test('a test message goes to the stored address with its secret, and the answer is what the receiver said', async () => {
      const receiver = await startLocalServer()
      try {
        const [url, secret] = [`${receiver.url}/hook/PATH`, `whsec_${Buffer.alloc(32, 7).toString('base64')}`]
        expect((await api.post('/webhooks/approval/test')).body).toMatchObject({ code: 'NOT_SET', status: 409 })
        await api.put('/config/webhook.approval.url', { body: { value: url } })
        await api.put('/config/webhook.approval.secret', { body: { value: secret } })
        receiver.play((response) => response.writeHead(200).end('thanks'))
        expect((await api.post('/webhooks/approval/test')).body).toEqual({
          ...{ outcome: 'sent', status: 200, detail: 'the receiver answered 200', said: 'thanks' },
        })
        const { body, headers } = receiver.seen.at(-1)!
        expect(new Webhook(secret).verify(body, headers)).toMatchObject({
          type: 'incident.notice',
          data: { page: false, reason: 'admin sent it to see whether webhook.approval arrives.' },
        })
        receiver.play((response) => response.writeHead(403).end('no such channel at /hook/PATH'))
        expect((await api.post('/webhooks/approval/test')).body).toEqual({
          ...{ outcome: 'drop', status: 403, detail: 'the receiver answered 403', said: 'no such channel at [path]' },
        })
        const audit = (await api.get('/audit?what=webhook')).body.items
        expect(audit).toMatchObject([
          { what: 'webhook.tested', who: 'admin', subject: 'webhook.approval', detail: 'The receiver answered 403' },
          { detail: 'The receiver answered 200' },
        ])
        for (const role of ['viewer', 'approver', 'agent'] as const)
          expect((await api.post('/webhooks/approval/test', { as: api.tokens[role] })).status).toBe(403)
        receiver.play((response) => response.writeHead(204).end())
        const statuses: number[] = []
        for (let at = 0; at < 10; at++) statuses.push((await api.post('/webhooks/approval/test')).status)
        expect(statuses.slice(0, 8)).toEqual(Array(8).fill(200))
        expect(statuses.slice(8)).toEqual([429, 429])
        expect(receiver.seen.length).toBe(10)
      } finally {
        await closeConnections()
        await receiver.close()
      }
    })

    test('the audit may be filtered by who did something of late, and by what was done', async () => {
      const { body } = await api.get('/audit/choices')
      expect(body.who).toContain('admin')
      expect(body.what).toContain('config.changed')
      expect((await api.get('/audit/choices', { as: api.tokens.viewer })).status).toBe(403)
      expect((await api.get('/inventory/resources?needs=host:')).status).toBe(422)
    })

    test('a key that plain SQL put there is listed with its problem', async () => {
      await sql`insert into platform_config (key, value) values ('agent.max_turms', '99')`.execute(api.owner)
      const { body } = await api.get('/config')
      expect(body.items).toContainEqual(
        expect.objectContaining({ key: 'agent.max_turms', problem: expect.any(String) }),
      )
    })
  })

  describe('metrics', () => {
    const api = useApi()

    type Answering = { request(path: string): Response | Promise<Response> }

    async function scrape(app: Answering = api.api.app): Promise<string[]> {
      const text = await (await app.request('/metrics')).text()
      return text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
    }

    const sumOf = (lines: string[]) => lines.reduce((total, line) => total + Number(line.split(' ').at(-1)), 0)
    const ofLog = (lines: string[]) =>
      lines.filter((line) => /^nightshift_(agentic|phantom|security|approval_dec)/.test(line))

    async function answered(incidentId: string, model: string): Promise<void> {
      const event = {
        kind: 'model_answered',
        actor: agentActor,
        turn: 1,
        detail: 'said something',
        metadata: {
          ...{ content: '', body: null, calls: [], final: null, problem: null, model, finishReason: 'native:stop' },
          ...{ usage: { promptTokens: 1, completionTokens: 1 }, durationMs: 1 },
        },
      } as NewEvent
      await api.db.transaction().execute((trx) => append(trx, incidentId, 1, event))
    }

    test('three hundred alert types make fifty series and one for all others, and none is lost', async () => {
      const types = Array.from({ length: 300 }, (_, type) => `type_${type}`)
      await allAtOnce(types, (name) => openedIncident(api.db, { labels: { incident_type: name }, name }))
      const lines = (await scrape()).filter((line) => line.startsWith('nightshift_incidents_open'))
      expect(lines).toHaveLength(51)
      expect(sumOf(lines)).toBe(300)
      const again = (await scrape()).filter((line) => line.startsWith('nightshift_incidents_open'))
      expect(again.sort()).toEqual(lines.sort())
    })

    test('a row is counted once, whichever process is asked, how many there are, and after one was started again', async () => {
      const incident = await claimedIncident(api.db)
      await noteProvider(api.db, 'models.example:8000')
      const other = createApi({ db: api.db }).app
      for (let turn = 0; turn < 5; turn += 1) await answered(incident, 'Qwen/Qwen2.5-72B')
      const counted =
        'nightshift_agentic_iterations_total{provider="models.example:8000",model="Qwen/Qwen2.5-72B",protocol="native"} 5'
      const [one, two] = await eventually('the counts', async () => {
        const both = await Promise.all([scrape(), scrape(other)])
        return both.every((lines) => lines.includes(counted)) ? both : null
      })
      expect(ofLog(two as string[])).toEqual(ofLog(one as string[]))
      const started = createApi({ db: api.db }).app
      expect(ofLog(await scrape(started))).toEqual(ofLog(one as string[]))
      // What a worker answers is the same.
      const worker = healthApp(api.db, () => ['RUNNING'])
      expect(ofLog(await scrape(worker))).toEqual(ofLog(one as string[]))
      const refused = await worker.request('/metrics', { method: 'POST' })
      expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
    })

    test('a model server that calls itself something else each time makes fifty series, and no name breaks a line', async () => {
      const incident = await claimedIncident(api.db)
      for (let model = 0; model < 70; model += 1) await answered(incident, `model-${model}"} 1\n{x="`)
      const lines = await eventually('the counts', async () => {
        const found = (await scrape()).filter((line) => line.startsWith('nightshift_agentic_iterations'))
        return sumOf(found) === 75 ? found : null
      })
      expect(lines).toHaveLength(51)
      expect(lines.filter((line) => line.includes('model="other"'))).toEqual([expect.stringMatching(/ 21$/)])
    })

    test('decisions are counted from their rows, by the door they came through', async () => {
      const approval = await asked(api.db, await claimedIncident(api.db))
      const { body } = await api.post(`/approvals/${approval}/token`, {
        as: api.tokens.approver,
        body: { decision: 'approve' },
      })
      const decision = { decision: 'approve', token: body.token }
      await api.post(`/approvals/${approval}/decision`, { body: decision, as: api.tokens.approver })
      const other = createApi({ db: api.db }).app
      const counted = 'nightshift_approval_decisions_total{decision="approve",via="api"} 1'
      await eventually('the count', async () => ((await scrape(other)).includes(counted) ? true : null))
    })

    test('a request of any method and path is counted under a route of ours', async () => {
      for (let asking = 0; asking < 30; asking += 1) {
        await api.api.app.request(`/made-up-${asking}`, { method: 'PROPFIND' })
        await api.get(`/incidents/made-up-${asking}`)
        await api.get(`/made-up-${asking}`)
      }
      const lines = (await scrape()).filter((line) => line.startsWith('nightshift_http_requests_total'))
      expect(lines.filter((line) => line.includes('made-up'))).toEqual([])
      expect(lines.some((line) => line.includes('method="other"'))).toBe(true)
    })
  })

  describe('status', () => {
    const api = useApi()
    type Items = { items: Record<string, unknown>[]; nextCursor: string | null }
    const list = async (path: string, as?: string) => (await api.get(path, { as })).body as unknown as Items

    test('alerts are listed newest first, with what was read from the source, page by page', async () => {
      await ingestAlert(api.db, anAlert({ fingerprint: 'a', title: 'Disk 96% full' }))
      await ingestAlert(api.db, anAlert({ fingerprint: 'a' }))
      await ingestAlert(api.db, anAlert({ fingerprint: 'b', name: 'host_down', title: 'Host_down' }))
      const all = await list('/alerts')
      expect(all.items.map(({ fingerprint, count }) => [fingerprint, count])).toEqual([
        ['b', 1],
        ['a', 2],
      ])
      expect(all.items[1]).toMatchObject({
        raw: { title: 'Disk 96% full' },
        incidentId: expect.stringMatching(/^inc_/),
      })
      const first = await list('/alerts?limit=1')
      expect((await list(`/alerts?limit=1&cursor=${first.nextCursor}`)).items).toMatchObject([{ fingerprint: 'a' }])
      expect((await list('/alerts?q=96%25')).items).toHaveLength(1)
      expect((await list('/alerts?status=resolved')).items).toEqual([])
    })

    test('a list of incidents carries what happened last, and can be narrowed to a group', async () => {
      const id = await claimedIncident(api.db)
      await announced(api.db, id, 'get_shard', {})
      const { items } = await list('/incidents')
      const found = items.find((each) => each.id === id)
      expect(found).toMatchObject({ lastEvent: { kind: 'tool_started', detail: 'Calling tool: get_shard' } })
      const group = await list(`/incidents?group=${found?.groupId}`)
      expect(group.items.map((each) => each.id)).toEqual([id])
      expect((await list(`/incidents?group=${found?.groupId}&role=follower`)).items).toEqual([])
    })

    test('an incident says what the caller may do now, and why not the rest', async () => {
      const id = await claimedIncident(api.db)
      const actions = async (as: string) => {
        const { body } = await api.get(`/incidents/${id}/surroundings`, { as })
        const rows = body.actions as unknown as { action: string; refused: string | null }[]
        return Object.fromEntries(rows.map(({ action, refused }) => [action, refused]))
      }
      expect(await actions(api.tokens.admin)).toEqual({
        ...{ resolve: null, escalate: null, cancel: null, comment: null, tell: null, take: null, expected: null },
        give_back: 'Nobody has it: there is nothing to give back.',
        investigate: 'It is investigating: this needs resolved or escalated or cancelled.',
      })
      expect((await actions(api.tokens.viewer)).cancel).toBe('Your role (viewer) lacks the permission manage_incident.')
      expect((await api.get('/incidents/inc_none/surroundings')).status).toBe(404)
    })

    test('usage counts models, people and days', async () => {
      await asked(api.db, await claimedIncident(api.db))
      const { body } = await api.get('/usage?days=2')
      expect(body.byDay).toHaveLength(2)
      expect(body.approvals).toMatchObject([{ status: 'pending', count: 1, medianWaitSeconds: null }])
      expect((await api.get('/usage?days=0')).status).toBe(422)
    })

    test('the status tells what waits, and what is not there', async () => {
      const waiting = { type: 'disk', severity: 'info', severitySource: 'alert', title: 'x', resource: null } as const
      await api.db.transaction().execute((trx) => openIncident(trx, { ...waiting, requestedBy: null }))
      const { status, body } = await api.get('/status')
      expect(status).toBe(200)
      expect(body.backlog).toMatchObject({ oldestWaitingAt: expect.any(String) })
      const parts = body.parts as unknown as { name: string; status: string }[]
      expect(Object.fromEntries(parts.map((part) => [part.name, part.status]))).toEqual({
        ...{ database: 'ok', Temporal: 'ok', worker: 'unknown', queue: 'unknown', platform: 'off', model: 'unknown' },
        knowledge: 'unknown',
      })
    })

    test('what a page reads is for people and agents, not for senders of alerts', async () => {
      for (const path of ['/alerts', '/usage', '/status']) {
        expect((await api.get(path, { as: api.tokens.ingest })).status).toBe(403)
      }
    })
  })
})

describe('audit', () => {
  const api = useApi()
  type Entry = { at: string; who: string; what: string; subject: string; detail: string; address: string | null }

  async function audit(query = ''): Promise<Entry[]> {
    const answer = await api.get(`/audit${query}`)
    expect(answer.status).toBe(200)
    return answer.body.items as unknown as Entry[]
  }
  const newest = async (what: string) => (await audit(`?what=${what}&limit=1`))[0]

  async function signIn(token: string) {
    const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ token }) }
    return await api.api.app.request('http://localhost/auth/session', init, {
      incoming: { socket: { remoteAddress: '192.0.2.7', remotePort: 1, remoteFamily: 'IPv4' } },
    })
  }

  test('who minted and who revoked a token is told, and never what it is', async () => {
    const { body } = await api.post('/tokens', {
      body: { name: 'laptop', role: 'approver', operator: 'approver', scopes: ['type:disk_pressure'] },
    })
    expect(await newest('token.minted')).toMatchObject({
      ...{ who: 'admin', subject: body.id, detail: 'Minted laptop: approver of approver for type:disk_pressure' },
    })
    await api.post(`/tokens/${body.id}/revoke`)
    await api.post(`/tokens/${body.id}/revoke`)
    expect(await newest('token.revoked')).toMatchObject({ who: 'admin', subject: body.id })
    expect((await audit('?what=token')).map(({ what }) => what)).toEqual(['token.revoked', 'token.minted'])
    expect(JSON.stringify(await audit())).not.toContain(body.token)
  })

  test('what a person may now, and what it was before, is told', async () => {
    const body = { role: 'approver', maxRisk: 'high', incidentTypes: null, disabled: false }
    await api.put('/operators/anna', { body })
    await api.put('/operators/anna', { body })
    await api.put('/operators/anna', { body: { ...body, disabled: true, reason: 'left the company' } })
    expect((await audit('?what=operator')).map(({ what, detail }) => [what, detail])).toEqual([
      [
        'operator.changed',
        'From approver, risks up to high, all incident types to approver, risks up to high, all incident types, disabled: left the company',
      ],
      ['operator.added', 'As approver, risks up to high, all incident types'],
    ])
  })

  test('a changed setting is told without its value', async () => {
    await api.put('/config/webhook.critical.secret', { body: { value: `whsec_${'A'.repeat(32)}`, reason: 'rotated' } })
    expect(await newest('config')).toMatchObject({
      ...{ who: 'admin', what: 'config.changed', subject: 'webhook.critical.secret', detail: 'Version 1: rotated' },
    })
    await sql`insert into platform_config (key, value) values ('agent.paused', 'true')`.execute(api.owner)
    expect(await newest('config')).toMatchObject({ who: 'sql', subject: 'agent.paused' })
  })

  test('decisions, forgeries and what a person did to an incident come from the log', async () => {
    const incidentId = await claimedIncident(api.db)
    const id = await asked(api.db, incidentId)
    const as = api.tokens.approver
    const decide = (token: string) =>
      api.post(`/approvals/${id}/decision`, { body: { decision: 'deny', token, reason: 'not now' }, as })
    await decide('forged')
    await decide(
      (await api.post(`/approvals/${id}/token`, { as, body: { decision: 'deny' } })).body.token as unknown as string,
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
      ['unknown', 'security.unknown_token', incidentId],
    ])
    expect(await audit('?who=operator&what=incident')).toHaveLength(2)
  })

  test('sign-ins are told with where they came from, the refused as well', async () => {
    await signIn(api.tokens.approver)
    expect(await newest('sign_in')).toMatchObject({
      ...{ who: 'approver', what: 'sign_in.done', detail: 'Signed in as approver', address: '192.0.2.7' },
    })
    await signIn('nst_forged')
    expect(await newest('sign_in')).toMatchObject({ who: 'unknown', what: 'sign_in.refused', address: '192.0.2.7' })
    await signIn(api.tokens.agent)
    expect((await newest('sign_in'))?.detail).toContain('agent (agent) is not a person')
    expect(JSON.stringify(await audit())).not.toMatch(/nst_\w/)
  })

  test('pages follow on without gap or overlap, whatever table a row is from', async () => {
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

  test('operators and above read it; viewers, agents and senders of alerts do not', async () => {
    const statuses = await Promise.all(
      (['viewer', 'agent', 'ingest', 'operator', 'approver'] as const).map(
        async (role) => (await api.get('/audit', { as: api.tokens[role] })).status,
      ),
    )
    expect(statuses).toEqual([403, 403, 403, 200, 200])
    expect((await api.get("/audit?cursor=' or true--")).status).toBe(422)
    expect((await api.get('/audit?what=%25')).status).toBe(422)
  })

  test('the services can only add to it, and even its owner changes nothing unseen', async () => {
    await recordAudit(api.db, { who: 'x', what: 'token.minted', subject: 's', detail: 'key sk-ant-api03-abcdef\u0000' })
    for (const db of [api.db, api.owner]) {
      await expect(db.updateTable('audit').set({ who: 'y' }).execute()).rejects.toThrow()
      await expect(db.deleteFrom('audit').execute()).rejects.toThrow()
      await expect(sql`truncate audit`.execute(db)).rejects.toThrow()
    }
    expect((await listAudit(systemScope(api.db), {}, { before: null, limit: 1 }))[0]?.detail).not.toContain('\u0000')
  })

  test('the log is read by its own small index', async () => {
    await sql`set enable_seqscan = off`.execute(api.owner)
    const { rows } = await sql<{ 'QUERY PLAN': string }>`
    explain select id from incident_event
    where (actor like 'user:%' or kind = 'security_event') order by at desc, id desc limit 50`.execute(api.owner)
    expect(rows.map((row) => Object.values(row)[0]).join('\n')).toContain('incident_event_audit')
  })
})

describe('reports', () => {
  const api = useApi()

  test('a report is data or CSV, of the days that it says it is about', async () => {
    await openedIncident(api.db, { labels: { incident_type: 'reported' } })
    const { body } = await api.get('/reports?type=reported')
    expect(body).toMatchObject({
      total: { incidents: 1, autoResolved: 0 },
      byType: [{ type: 'reported', incidents: 1 }],
    })
    expect(body.byWeek).toHaveLength(13)
    const severe = async (word: string) =>
      (await api.get(`/reports?type=reported&severity=${word}`)).body as unknown as { total: { incidents: number } }
    const counts = await Promise.all(['critical', 'warning', 'info'].map(severe))
    expect(counts.map(({ total }) => total.incidents).sort()).toEqual([0, 0, 1])
    expect((await api.get('/reports?severity=bad')).status).toBe(422)
    const csv = await api.get('/reports?type=reported&since=2026-01-01&format=csv')
    const [head, total] = String(csv.body.text).split('\r\n')
    expect(csv.headers.get('content-type')).toMatch(/^text\/csv/)
    expect(head).toMatch(/^line,name,incidents,closed,resolved,auto_resolved,/)
    expect(total).toMatch(/^total,2026-01-01 to \d{4}-\d\d-\d\d,1,0,0,0,,/)
  })

  test('two years are the most, days in the wrong order have nothing, and a day that is none is refused', async () => {
    const range = async (query: string) => (await api.get(`/reports?${query}`)).body
    expect(await range('since=1000-01-01&until=2026-11-24')).toMatchObject({ since: '2024-11-24', until: '2026-11-24' })
    expect(await range('since=2026-02-01&until=2026-01-01')).toMatchObject({ total: { incidents: 0 }, byWeek: [] })
    for (const since of ['2026-02-30', 'yesterday', '2026-1-1'])
      expect((await api.get(`/reports?since=${since}`)).status).toBe(422)
  })
})
