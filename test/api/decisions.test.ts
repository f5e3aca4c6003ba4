import { describe, expect, test } from '@jest/globals'
import { createToken, ensureOperator } from '../../db/access/tokens.ts'
import { eventsOf } from '../../db/log/events.ts'
import { type Permission, permissions, type Role } from '../../domain/operator.ts'
import { asked } from '../support/announced.ts'
import { useApi } from '../support/api.ts'
import { claimedIncident, moveClock, openedIncident } from '../support/database.ts'

describe('doors', () => {
  const api = useApi()

  type Operation = { 'x-permission'?: Permission; 'x-agent-tool'?: string; responses: Record<string, unknown> }

  async function operations() {
    const document = (await (await api.api.app.request('/openapi.json')).json()) as {
      paths: Record<string, Record<string, Operation>>
    }
    return Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
    )
  }

  async function knock(method: string, path: string, token: string | null, headers: Record<string, string> = {}) {
    const response = await api.api.app.request(path.replace(/\{\w+\}/g, 'none'), {
      method,
      headers: { ...(token && { authorization: `Bearer ${token}` }), ...headers },
      ...(method !== 'GET' && { body: '{}' }),
    })
    const type = response.headers.get('content-type') ?? ''
    if (response.status === 200 && type.startsWith('text/event-stream')) {
      await response.body?.cancel()
      return { status: 200, code: undefined }
    }
    return { status: response.status, code: (JSON.parse(await response.text()) as { code?: string }).code }
  }

  test('every operation names a permission, and nobody without a token comes in', async () => {
    const all = await operations()
    expect(all.length).toBeGreaterThan(35)
    for (const { path, method, operation } of all) {
      expect([path, operation['x-permission']]).toEqual([path, expect.any(String)])
      expect([path, (await knock(method, path, null)).status]).toEqual([path, 401])
    }
  })

  test('every role is kept out of every operation that its permissions do not name', async () => {
    for (const { path, method, operation } of await operations()) {
      for (const role of Object.keys(permissions) as Role[]) {
        const allowed = permissions[role].includes(operation['x-permission'] as Permission)
        const answer = await knock(method, path, api.tokens[role], { 'content-type': 'application/json' })
        if (!allowed)
          expect([role, method, path, answer]).toEqual([role, method, path, { status: 403, code: 'FORBIDDEN' }])
        else if (answer.status === 403)
          expect([role, method, path, answer.code]).toEqual(['agent', method, path, 'UNJUDGED'])
      }
    }
  })

  test('an agent finds every door to authority closed: decisions, tokens, configuration, ingest', async () => {
    const doors: [string, string][] = [
      ['POST', '/api/v1/approvals/apr_x/token'],
      ['POST', '/api/v1/approvals/apr_x/decision'],
      ['PUT', '/api/v1/config/agent.max_turns'],
      ['POST', '/api/v1/ingest/alertmanager'],
      ['POST', '/api/v1/incidents'],
      ['POST', '/api/v1/agent'],
      ['POST', '/api/v1/incidents/inc_x/cancel'],
      ['POST', '/api/v1/incidents/inc_x/investigate'],
      ['GET', '/api/v1/config'],
    ]
    for (const [method, path] of doors) {
      const answer = await knock(method, path, api.tokens.agent, { 'content-type': 'application/json' })
      expect([path, answer]).toEqual([path, { status: 403, code: 'FORBIDDEN' }])
    }
  })

  test('only these operations are open to an agent that writes, each with the tool it stands for', async () => {
    const writable = (await operations())
      .filter(({ operation }) => operation['x-agent-tool'])
      .map(({ method, path, operation }) => `${method} ${path} ${operation['x-agent-tool']}`)
    expect(writable.sort()).toEqual([
      'POST /api/v1/capability-gaps report_capability_gap',
      'POST /api/v1/devices/{id}/calls the device tool of its capability, or `search_logs`',
      'POST /api/v1/incidents/{id}/escalate escalate_incident',
      'POST /api/v1/incidents/{id}/events add_incident_event',
      'POST /api/v1/incidents/{id}/resolve resolve_incident',
      'POST /api/v1/jobs/{name}/run run_job',
      'POST /api/v1/placement/proposals schedule_ha_proposal',
      'POST /api/v1/placement/proposals/{id}/execute execute_migration',
      'POST /api/v1/shards/{id}/converge converge_shard',
      'POST /api/v1/sources/read the source tool that its body names',
      'POST /api/v1/vms/{id}/restart vm_restart',
      'POST /api/v1/vms/{id}/start vm_start',
      'POST /api/v1/vms/{id}/stop vm_stop',
    ])
  })

  test('errors are problems with a code, and unknown paths are among them', async () => {
    const answer = await api.get('/nothing/here')
    expect(answer.status).toBe(404)
    expect(answer.headers.get('content-type')).toBe('application/problem+json')
    expect(answer.body).toMatchObject({ status: 404, code: 'NOT_FOUND', requestId: expect.any(String) })
    expect((await api.api.app.request('/wp-login.php')).status).toBe(404)
  })

  test('malformed JSON is a 400, and a field that does not fit is a 422 that names it', async () => {
    const id = await openedIncident(api.db)
    expect((await api.post(`/incidents/${id}/escalate`, { raw: '{' })).status).toBe(400)
    const answer = await api.post(`/incidents/${id}/escalate`, { body: { reason: 'x' } })
    expect(answer.status).toBe(422)
    expect(answer.body).toMatchObject({ code: 'INVALID', errors: [{ in: 'body', field: 'reason' }] })
    expect((await api.post(`/incidents/${id}/escalate`, { body: { reason: 'long enough', by: 'me' } })).status).toBe(
      422,
    )
  })

  test('a body that is not sent as JSON, or is larger than 1 MiB, is refused', async () => {
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    expect((await api.post('/agent', { raw: 'question=why', headers })).status).toBe(415)
    expect((await api.post('/agent', { body: { question: 'x'.repeat(1024 * 1024) } })).status).toBe(413)
  })

  test('answers carry security headers and a request id, and let no foreign origin read them', async () => {
    const answer = await api.get('/incidents', {
      headers: { 'x-request-id': 'mine-1', origin: 'https://evil.example' },
    })
    expect(answer.headers.get('x-request-id')).toBe('mine-1')
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
    expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'")
    expect(answer.headers.get('access-control-allow-origin')).toBeNull()
  })

  test('the document describes every operation with an example, and the page shows them without any other server', async () => {
    for (const { path, operation } of await operations()) {
      const [, answer] = Object.entries(operation.responses).find(([status]) => status.startsWith('2')) ?? []
      const content = Object.values((answer as { content?: Record<string, { example?: unknown }> }).content ?? {})
      expect([path, content[0]?.example]).toEqual([path, expect.anything()])
    }
    const page = await (await api.api.app.request('/docs')).text()
    expect(page).toContain('/api/v1/approvals/{id}/decision')
    expect(page).not.toMatch(/(src|href)="https?:/)
  })

  test('the metrics can be scraped', async () => {
    const text = await (await api.api.app.request('/metrics')).text()
    expect(text).toContain('nightshift_incidents_open{')
    expect(text).toContain('nightshift_http_requests_total{')
    expect(text).toContain('route="/api/v1/incidents/:id/escalate"')
  })

  test('it is ready when the database has every migration', async () => {
    const answer = await api.api.app.request('/readyz')
    expect(await answer.json()).toMatchObject({ status: 'ok', checks: { database: { status: 'ok' } } })
  })
})

describe('decisions', () => {
  const api = useApi()

  async function minted(approvalId: string, as = api.tokens.approver, decision = 'approve'): Promise<string> {
    const answer = await api.post(`/approvals/${approvalId}/token`, {
      as,
      key: `mint-${approvalId}-${decision}`,
      body: { decision },
    })
    expect(answer.status).toBe(201)
    return answer.body.token as unknown as string
  }

  const decide = (
    approvalId: string,
    token: string,
    decision = 'approve',
    reason: string | null = null,
    as = api.tokens.approver,
  ) => api.post(`/approvals/${approvalId}/decision`, { body: { decision, token, reason }, as })

  async function securityCodes(incidentId: string) {
    const events = await eventsOf(api.db, incidentId)
    return events.flatMap((event) => (event.kind === 'security_event' ? [event.metadata.code] : []))
  }

  test('an approval is recorded for the person of the token, and the run is woken', async () => {
    const incidentId = await claimedIncident(api.db)
    const id = await asked(api.db, incidentId)
    expect((await api.get('/approvals?status=pending')).body.items).toMatchObject([{ id, status: 'pending' }])
    const answer = await decide(id, await minted(id))
    expect(answer.body).toEqual({ outcome: 'recorded', status: 'approved', approvalId: id, incidentId })
    expect(api.told.at(-1)).toEqual({ signal: 'decided', incidentId, attempt: 1 })
    expect((await api.get(`/approvals/${id}`)).body).toMatchObject({
      status: 'approved',
      decisions: [{ operator: 'approver', decision: 'approve', via: 'api' }],
    })
  })

  test('a minted token is stored nowhere in plain, not even under an idempotency key', async () => {
    const id = await asked(api.db, await claimedIncident(api.db))
    const token = await minted(id)
    const stored = await api.db.selectFrom('idempotency').selectAll().execute()
    expect(JSON.stringify(stored)).not.toContain(token)
  })

  test('a run that cannot be reached does not make a decision fail', async () => {
    api.runs.answer = 'unreached'
    const id = await asked(api.db, await claimedIncident(api.db))
    expect((await decide(id, await minted(id))).status).toBe(200)
    api.runs.answer = 'told'
  })

  test('the same decision again is answered the same, a contrary one is a conflict', async () => {
    const id = await asked(api.db, await claimedIncident(api.db))
    const token = await minted(id)
    await decide(id, token)
    expect((await decide(id, token)).body).toMatchObject({ outcome: 'repeated', status: 'approved' })
    const contrary = await decide(id, token, 'deny', 'on second thought')
    expect([contrary.status, contrary.body.approvalStatus]).toEqual([409, 'approved'])
  })

  test('a forged, a foreign and a spent token decide nothing and leave a trace', async () => {
    const incidentId = await claimedIncident(api.db)
    const id = await asked(api.db, incidentId, { required: 2 })
    const other = await asked(api.db, await claimedIncident(api.db))
    expect((await decide(id, 'forged')).status).toBe(403)
    expect((await decide(id, await minted(other))).status).toBe(403)
    expect(await securityCodes(incidentId)).toEqual(['UNKNOWN_TOKEN', 'FOREIGN_TOKEN'])
    expect((await api.get(`/approvals/${id}`)).body.status).toBe('pending')
  })

  test('a late decision is gone, and the approval is expired', async () => {
    const incidentId = await claimedIncident(api.db)
    const id = await asked(api.db, incidentId, { expirySeconds: 60 })
    const token = await minted(id)
    await moveClock(api.owner, '2 minutes')
    const answer = await decide(id, token)
    const minting = await api.post(`/approvals/${id}/token`, { as: api.tokens.approver, body: { decision: 'approve' } })
    await moveClock(api.owner, '0 minutes')
    expect([answer.status, answer.body.approvalStatus]).toEqual([410, 'expired'])
    expect(minting.status).toBe(410)
    expect(await securityCodes(incidentId)).toEqual(['LATE_TOKEN'])
  })

  test('a denial without words counts, and says that no reason was given', async () => {
    const id = await asked(api.db, await claimedIncident(api.db))
    const token = await minted(id, api.tokens.approver, 'deny')
    expect((await decide(id, token, 'deny')).body).toMatchObject({ outcome: 'recorded', status: 'denied' })
    expect((await api.get(`/approvals/${id}`)).body.decisions).toMatchObject([{ reason: 'no reason given' }])
  })

  test('a form that is wrong spends no token', async () => {
    const id = await asked(api.db, await claimedIncident(api.db))
    const token = await minted(id)
    const as = api.tokens.approver
    for (const body of [
      { decision: 'maybe', token },
      { decision: 'approve', token, args: 'all' },
      { decision: 'approve', token, surprise: 1 },
      { decision: 'approve', token, grant: { uses: 3, hours: 2 } },
    ]) {
      expect((await api.post(`/approvals/${id}/decision`, { body, as })).status).toBeGreaterThanOrEqual(400)
    }
    expect((await api.post(`/approvals/${id}/token`, { as })).status).toBeGreaterThanOrEqual(400)
    expect((await decide(id, token)).body).toMatchObject({ outcome: 'recorded', status: 'approved' })
  })

  test('a token to deny approves nothing, and is spent by the attempt', async () => {
    const incidentId = await claimedIncident(api.db)
    const id = await asked(api.db, incidentId)
    const token = await minted(id, api.tokens.approver, 'deny')
    const answer = await decide(id, token)
    expect([answer.status, answer.body.code]).toEqual([403, 'OTHER_VERDICT'])
    expect((await decide(id, token, 'deny')).body.code).toBe('SPENT_TOKEN')
    expect(await securityCodes(incidentId)).toEqual(['OTHER_VERDICT', 'SPENT_TOKEN'])
    expect((await api.get(`/approvals/${id}`)).body.status).toBe('pending')
  })

  test('two people are two people: the same one twice is one', async () => {
    const id = await asked(api.db, await claimedIncident(api.db), { required: 2 })
    expect((await decide(id, await minted(id))).body.status).toBe('pending')
    expect((await decide(id, await minted(id))).body).toMatchObject({ outcome: 'repeated', status: 'pending' })
    expect((await decide(id, await minted(id, api.tokens.admin))).body.status).toBe('approved')
  })

  test('of fifty people who decide at once, exactly one decides', async () => {
    const incidentId = await claimedIncident(api.db)
    const id = await asked(api.db, incidentId)
    const people: { as: string; token: string }[] = []
    for (let n = 0; n < 50; n++) {
      const operatorId = await ensureOperator(api.db, `person-${n}`, 'approver')
      const as = await createToken(api.db, { name: `person-${n}`, role: 'approver', operatorId })
      people.push({ as, token: await minted(id, as, n % 2 ? 'deny' : 'approve') })
    }
    const answers = await Promise.all(
      people.map(({ as, token }, n) => decide(id, token, n % 2 ? 'deny' : 'approve', n % 2 ? 'no' : null, as)),
    )
    expect(answers.filter(({ body }) => body.outcome === 'recorded')).toHaveLength(1)
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(49)
    const rows = (await eventsOf(api.db, incidentId)).filter((event) => event.kind === 'approval_decided')
    expect(rows).toHaveLength(1)
  })

  test('an approval that does not exist is not found', async () => {
    expect((await api.get('/approvals/apr_none')).status).toBe(404)
    expect((await api.post('/approvals/apr_none/token', { body: { decision: 'approve' } })).status).toBe(404)
  })
})
