import { expect, test } from '@jest/globals'
import { type Permission, permissions, type Role } from '../../domain/permissions.ts'
import { useApi } from '../support/api.ts'
import { openedIncident } from '../support/database.ts'

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

test('every operation names a permission, and no request without a token is accepted', async () => {
  const all = await operations()
  expect(all.length).toBeGreaterThan(35)
  for (const { path, method, operation } of all) {
    expect([path, operation['x-permission']]).toEqual([path, expect.any(String)])
    expect([path, (await knock(method, path, null)).status]).toEqual([path, 401])
  }
})

test('every role is refused every operation that its permissions do not name', async () => {
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

test('an agent is refused decisions, tokens, configuration and ingest', async () => {
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

test('an agent that writes may use only these operations, each with the tool that it belongs to', async () => {
  const writable = (await operations())
    .filter(({ operation }) => operation['x-agent-tool'])
    .map(({ method, path, operation }) => `${method} ${path} ${operation['x-agent-tool']}`)
  expect(writable.sort()).toEqual([
    'POST /api/v1/capability-gaps report_capability_gap',
    'POST /api/v1/databases/{name}/cancel_query cancel_query',
    'POST /api/v1/databases/{name}/drop_replication_slot drop_replication_slot',
    'POST /api/v1/databases/{name}/start_replica start_replica',
    'POST /api/v1/databases/{name}/terminate_session terminate_session',
    'POST /api/v1/devices/{id}/calls the device tool of its capability, or `search_logs`',
    'POST /api/v1/incidents/{id}/escalate escalate_incident',
    'POST /api/v1/incidents/{id}/events add_incident_event',
    'POST /api/v1/incidents/{id}/resolve resolve_incident',
    'POST /api/v1/jobs/{name}/run run_job',
    'POST /api/v1/placement/proposals schedule_ha_proposal',
    'POST /api/v1/placement/proposals/{id}/execute execute_migration',
    'POST /api/v1/shards/{id}/converge converge_shard',
    'POST /api/v1/sources/read the source tool that the request names',
    'POST /api/v1/vms/{id}/restart vm_restart',
    'POST /api/v1/vms/{id}/start vm_start',
    'POST /api/v1/vms/{id}/stop vm_stop',
  ])
})

test('errors are problem documents with a code, also for unknown paths', async () => {
  const answer = await api.get('/nothing/here')
  expect(answer.status).toBe(404)
  expect(answer.headers.get('content-type')).toBe('application/problem+json')
  expect(answer.body).toMatchObject({ status: 404, code: 'NOT_FOUND', requestId: expect.any(String) })
  expect((await api.api.app.request('/wp-login.php')).status).toBe(404)
})

test('malformed JSON gets 400, and a wrong field gets 422 with the name of the field', async () => {
  const id = await openedIncident(api.db)
  expect((await api.post(`/incidents/${id}/escalate`, { raw: '{' })).status).toBe(400)
  const answer = await api.post(`/incidents/${id}/escalate`, { body: { reason: 'x' } })
  expect(answer.status).toBe(422)
  expect(answer.body).toMatchObject({ code: 'INVALID', errors: [{ in: 'body', field: 'reason' }] })
  expect((await api.post(`/incidents/${id}/escalate`, { body: { reason: 'long enough', by: 'me' } })).status).toBe(422)
})

test('a body that is not JSON, or is larger than 1 MiB, is refused', async () => {
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  expect((await api.post('/agent', { raw: 'question=why', headers })).status).toBe(415)
  expect((await api.post('/agent', { body: { question: 'x'.repeat(1024 * 1024) } })).status).toBe(413)
})

test('answers have security headers and a request id, and cannot be read by a foreign origin', async () => {
  const answer = await api.get('/incidents', {
    headers: { 'x-request-id': 'mine-1', origin: 'https://evil.example' },
  })
  expect(answer.headers.get('x-request-id')).toBe('mine-1')
  expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
  expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'")
  expect(answer.headers.get('access-control-allow-origin')).toBeNull()
})

test('the API document describes every operation with an example, and its page needs no other server', async () => {
  for (const { path, operation } of await operations()) {
    const [, answer] = Object.entries(operation.responses).find(([status]) => status.startsWith('2')) ?? []
    const content = Object.values((answer as { content?: Record<string, { example?: unknown }> }).content ?? {})
    expect([path, content[0]?.example]).toEqual([path, expect.anything()])
  }
  const page = await (await api.api.app.request('/docs')).text()
  expect(page).toContain('/api/v1/approvals/{id}/decision')
  expect(page).not.toMatch(/(src|href)="https?:/)
})

test('Prometheus can scrape the metrics', async () => {
  const text = await (await api.api.app.request('/metrics')).text()
  expect(text).toContain('nightshift_incidents_open{')
  expect(text).toContain('nightshift_http_requests_total{')
  expect(text).toContain('route="/api/v1/incidents/:id/escalate"')
})

test('the API is ready when the database has every migration', async () => {
  const answer = await api.api.app.request('/readyz')
  expect(await answer.json()).toMatchObject({ status: 'ok', checks: { database: { status: 'ok' } } })
})
