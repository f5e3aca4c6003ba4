import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Approval } from '../../domain/approval.ts'
import type { EventKind, IncidentEvent } from '../../domain/event.ts'
import type { Incident } from '../../domain/incident.ts'

/** Speaks the shapes of the core API over rows that the test puts in; judges nothing. */
export async function startStandIn() {
  const incidents: Incident[] = []
  const events: IncidentEvent[] = []
  const approvals: Approval[] = []
  const listeners = new Set<{ response: ServerResponse; incident: string | null }>()
  const requests: { method: string; path: string; token: string; lastEventId: string | undefined; body: string }[] = []
  const settings: { key: string; value: string; version: number }[] = []
  /** What the stream tells new listeners only; for a gap that no message fills. */
  const chain = {
    ok: true,
    events: 7,
    headHash: 'ab'.repeat(32),
    problem: null as { seq: number; what: string } | null,
  }
  const world = { exportText: '# Postmortem\n', mute: false }

  function send(listener: { response: ServerResponse }, event: IncidentEvent): void {
    listener.response.write(`id: 1-${events.indexOf(event)}\nevent: ${event.kind}\ndata: ${JSON.stringify(event)}\n\n`)
  }

  function append(
    incidentId: string,
    kind: EventKind,
    metadata: object,
    more: Partial<IncidentEvent> = {},
  ): IncidentEvent {
    const seq = events.filter((each) => each.incidentId === incidentId).length + 1
    const event = {
      id: String(events.length + 1),
      ...{ incidentId, attempt: 1, seq, stepKey: null, turn: null, kind, action: 'investigated' },
      ...{ actor: 'agent:incident-investigator', detail: kind, metadata, prevHash: '', hash: '' },
      at: new Date().toISOString(),
      ...more,
    } as IncidentEvent
    events.push(event)
    const incident = incidents.find(({ id }) => id === incidentId)
    if (incident) incident.events = seq
    for (const each of listeners) {
      if (!world.mute && (each.incident === null || each.incident === incidentId)) send(each, event)
    }
    return event
  }

  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://x')
    const token = request.headers.authorization?.replace('Bearer ', '') ?? ''
    const lastEventId = request.headers['last-event-id'] as string | undefined
    requests.push({ method: request.method ?? '', path: request.url ?? '', token, lastEventId, body })
    if (pathname === '/readyz') return answer(response, 200, { status: 'ok' })
    if (!['admin-token', 'approver-token', 'ingest-token'].includes(token)) {
      return refuse(response, 401, 'Unauthorized', 'no such token', 'UNAUTHORIZED')
    }
    if (pathname === '/api/v1/stream') return stream(request, response, searchParams.get('incident'))
    const [kind = '', id = '', verb = ''] = pathname.replace('/api/v1/', '').split('/').map(decodeURIComponent)
    if (kind === 'ingest') {
      if (token !== 'ingest-token') return refuse(response, 403, 'Forbidden', 'role admin may not', 'FORBIDDEN')
      return answer(response, 202, { alerts: [{ fingerprint: 'f1', incidentId: 'inc_1', outcome: 'opened' }] })
    }
    if (kind === 'agent') return answer(response, 201, incidents[0])
    if (kind === 'config' && request.method === 'PUT') return answer(response, 200, { ...JSON.parse(body), version: 1 })
    if (kind === 'config' && id === 'effective') {
      return answer(response, 200, { items: [{ key: 'agent.max_turns', value: 10, source: 'default', problem: null }] })
    }
    if (kind === 'config') return answer(response, 200, { items: settings, nextCursor: null })
    if (kind === 'incidents') return incidentRoute(request, response, id, verb, searchParams)
    if (kind === 'approvals') return approvalRoute(response, id, verb, searchParams, body)
    refuse(response, 404, 'Not found', pathname, 'NOT_FOUND')
  })

  function stream(request: IncomingMessage, response: ServerResponse, incident: string | null): void {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(': here\n\n')
    const listener = { response, incident }
    const after = request.headers['last-event-id']
    if (after) for (const event of events.slice(Number(String(after).slice(2)) + 1)) send(listener, event)
    listeners.add(listener)
    response.on('close', () => listeners.delete(listener))
  }

  function incidentRoute(
    request: IncomingMessage,
    response: ServerResponse,
    id: string,
    verb: string,
    query: URLSearchParams,
  ): void {
    if (!id) {
      const from = Number(query.get('cursor') ?? 0)
      const status = query.get('status')
      const all = incidents.filter((each) => !status || each.status === status)
      const to = from + Number(query.get('limit') ?? 50)
      return void answer(response, 200, { items: all.slice(from, to), nextCursor: to < all.length ? String(to) : null })
    }
    const incident = incidents.find((each) => each.id === id)
    if (!incident) return void refuse(response, 404, 'Not found', `there is no incident ${id}`, 'NOT_FOUND')
    if (verb === 'events') {
      const mine = events.filter((each) => each.incidentId === id && each.seq > Number(query.get('after') ?? 0))
      return void answer(response, 200, {
        items: mine.slice(0, 3),
        nextCursor: mine.length > 3 ? String(mine[2]?.seq) : null,
      })
    }
    if (verb === 'verify') return void answer(response, 200, chain)
    if (verb === 'export') {
      response.writeHead(200, { 'content-type': 'text/markdown' })
      response.end(world.exportText)
      return
    }
    if (request.method === 'POST' && ['resolved', 'cancelled', 'escalated'].includes(incident.status)) {
      return void refuse(response, 409, 'Conflict', `${id} is ${incident.status}`, 'CONFLICT')
    }
    answer(response, 200, incident)
  }

  function approvalRoute(
    response: ServerResponse,
    id: string,
    verb: string,
    query: URLSearchParams,
    body: string,
  ): void {
    if (!id) {
      const status = query.get('status')
      return void answer(response, 200, {
        items: approvals.filter((each) => !status || each.status === status),
        nextCursor: null,
      })
    }
    const approval = approvals.find((each) => each.id === id)
    if (!approval) return void refuse(response, 404, 'Not found', `there is no approval ${id}`, 'NOT_FOUND')
    if (verb === '') return void answer(response, 200, approval)
    if (approval.status !== 'pending') return void refuse(response, 410, 'Gone', `${id} is ${approval.status}`, 'GONE')
    if (verb === 'token') {
      const { incidentId, expiresAt } = approval
      return void answer(response, 201, { token: 'ndt_secret', approvalId: id, incidentId, expiresAt })
    }
    const { decision, token, reason } = JSON.parse(body)
    if (token !== 'ndt_secret') return void refuse(response, 403, 'Forbidden', 'not valid', 'FOREIGN_TOKEN')
    approval.status = decision === 'approve' ? 'approved' : 'denied'
    approval.decisions.push({ operator: 'admin', decision, reason, via: 'api', at: new Date().toISOString() })
    if (decision === 'approve') approval.approvals++
    answer(response, 200, {
      outcome: 'recorded',
      status: approval.status,
      approvalId: id,
      incidentId: approval.incidentId,
    })
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    ...{ incidents, events, approvals, requests, settings, chain, world, listeners, append },
    /** Every stream breaks, as behind a proxy that restarts. */
    dropStreams() {
      for (const { response } of listeners) response.destroy()
      listeners.clear()
    },
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
export type StandIn = Awaited<ReturnType<typeof startStandIn>>

function answer(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body))
}

function refuse(response: ServerResponse, status: number, title: string, detail: string, code: string): void {
  response.writeHead(status, { 'content-type': 'application/problem+json' })
  response.end(JSON.stringify({ type: 'about:blank', title, status, detail, code }))
}

export function anIncident(over: Partial<Incident> = {}): Incident {
  return {
    ...{ id: 'inc_1', type: 'replication_lag', severity: 'critical', severitySource: 'alert', status: 'investigating' },
    ...{ title: 'Replication lag exceeded 3 s', resource: { kind: 'shard', id: 'db-osl-1' }, assignedTo: null },
    ...{ attempt: 1, role: 'leader', groupId: null, resolution: null, createdAt: new Date().toISOString() },
    ...{ queuedAt: null, closedAt: null, updatedAt: new Date().toISOString(), events: 0 },
    ...over,
  } as Incident
}

export function anApproval(over: Partial<Approval> = {}): Approval {
  const steps = [
    { step: 1, action: 'start', vm: 'vm-101', from: 'host-osl-1', to: 'host-osl-3' },
    { step: 2, action: 'migrate', vm: 'vm-107', from: 'host-osl-3', to: 'host-osl-2' },
  ]
  return {
    ...{ id: 'apr_1', incidentId: 'inc_1', attempt: 2, callId: 'c1', tool: 'execute_migration' },
    arguments: { proposal_id: 'prp_1', reason: 'its host is dead' },
    targets: [{ kind: 'vm', id: 'vm-101' }],
    ...{ reason: 'host-osl-1 is dead', risk: 'high', reversible: true, required: 1, approvals: 0 },
    dryRun: { possible: true, summary: 'start 1 VM and migrate 1 VM, to host-osl-2, host-osl-3', details: { steps } },
    ...{ actionDigest: 'd', stateFingerprint: 's', status: 'pending', useBy: null, decisions: [] },
    requestedAt: new Date().toISOString(),
    expiresAt: new Date(Date.now() + 600_000).toISOString(),
    ...over,
  } as Approval
}
