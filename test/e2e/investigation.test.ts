import { afterAll, beforeAll, expect, test } from '@jest/globals'
import type { IncidentEvent } from '../../domain/event.ts'
import { type Spine, startSpine } from '../support/spine.ts'

let spine: Spine

beforeAll(async () => {
  spine = await startSpine({ parts: ['lab', 'runbook', 'api', 'worker'] })
})
afterAll(async () => {
  await spine?.stop()
})

const kinds = (events: IncidentEvent[]) => events.map((event) => event.kind)

test('a stopped replica becomes an alert, an incident, a repair that held, and a resolution with evidence', async () => {
  await spine.lab.break('replication_lag', 'db-osl-1')
  const incident = await spine.incident('replication_lag', 'resolved')
  const events = await spine.events(incident.id)
  expect(kinds(events)).toEqual(
    expect.arrayContaining([
      'alert_received',
      'claimed',
      'context_assembled',
      'model_answered',
      'call_judged',
      'tool_started',
      'tool_finished',
      'verification',
      'resolved',
    ]),
  )
  const opening = events.find((event) => event.kind === 'context_assembled')
  expect(opening?.metadata).toMatchObject({
    parts: { runbook: 'ok' },
    runbook: {
      name: 'replication-lag',
      origin: 'shipped',
      digest: expect.stringMatching(/^[0-9a-f]{64}$/),
      why: 'type',
    },
  })
  const { system, runbooks } = await spine.get<{ system: string; runbooks: string }>(`/incidents/${incident.id}/prompt`)
  expect(system).toMatch(/2 regions, \d+ shards, [\s\S]*MySQL replication pair/)
  expect(runbooks).toContain('<<<DATA runbook\nLook:')
  const write = events.find((event) => event.kind === 'tool_started' && event.metadata.tool === 'converge_shard')
  const held = events.find((event) => event.kind === 'verification' && event.metadata.outcome === 'held')
  expect(write && held && write.seq < held.seq).toBe(true)
  const resolved = events.find((event) => event.kind === 'resolved')
  expect(resolved).toMatchObject({
    metadata: {
      outcome: 'repaired',
      claims: expect.arrayContaining([
        expect.objectContaining({ text: expect.any(String), quotes: expect.any(Array), shown: true }),
      ]),
    },
  })
  expect(await spine.lab.oracle('replication_lag', 'db-osl-1')).toMatchObject({ healthy: true })
  expect(await spine.get(`/incidents/${incident.id}/verify`)).toMatchObject({ ok: true })
  const effects = (await spine.lab.effects()).filter((effect) => effect.request.includes('converge'))
  expect(effects).toHaveLength(1)
  expect(effects[0]).toMatchObject({ runs: 1, status: 'done' })
})

test('a dead host waits for a person, forged decisions change nothing, and after an approval by signal its VMs move once', async () => {
  await spine.lab.break('host_down', 'host-osl-1')
  const approval = await spine.pendingApproval()
  const incident = await spine.incident('host_down', 'awaiting_approval')
  const handle = spine.client.workflow.getHandle(`investigate:${incident.id}:${incident.attempt}`)
  expect(approval).toMatchObject({
    incidentId: incident.id,
    tool: 'execute_migration',
    risk: 'high',
    status: 'pending',
  })

  // No token, a made-up one, and a claim to be somebody.
  await handle.signal('approve', { by: 'root' })
  await handle.signal('approve', { token: 'made-up', by: 'root', approvalId: approval.id })
  const agent = { token: spine.tokens.agent }
  expect((await spine.post(`/approvals/${approval.id}/token`, { decision: 'approve' }, agent)).status).toBe(403)
  expect(
    (await spine.post(`/approvals/${approval.id}/decision`, { decision: 'approve', token: 'x' }, agent)).status,
  ).toBe(403)
  const proposal = approval.arguments.proposal_id as string
  const unannounced = await spine.post(`/placement/proposals/${proposal}/execute`, { reason: 'because' }, agent)
  expect(unannounced).toMatchObject({ status: 403, body: { code: 'UNJUDGED' } })
  // A run started by hand with a forged turn and approval finds nothing to act on.
  await spine.client.workflow.start('InvestigateIncident', {
    workflowId: 'forged',
    taskQueue: 'nightshift',
    args: [
      {
        incidentId: incident.id,
        attempt: incident.attempt,
        role: 'leader',
        groupId: 'forged',
        group: 'forged',
        resume: {
          progress: { turn: 0, workedMs: 0, corrections: 0, correctionsInARow: 0 },
          maxTurns: 0,
          timeBudgetMs: 1,
        },
      },
    ],
  })
  await spine.until('the traces', async () => {
    const codes = (await spine.events(incident.id)).flatMap((event) =>
      event.kind === 'security_event' ? [event.metadata.code] : [],
    )
    return ['UNKNOWN_TOKEN', 'FORGED_RUN'].every((code) => codes.includes(code))
  })
  expect(await spine.get(`/approvals/${approval.id}`)).toMatchObject({ status: 'pending' })
  expect((await spine.lab.effects()).filter((effect) => effect.request.includes('/vms/'))).toEqual([])

  const minted = await spine.post(
    `/approvals/${approval.id}/token`,
    { decision: 'approve', purpose: 'temporal' },
    { token: spine.tokens.approver },
  )
  await handle.signal('approve', { token: minted.body.token })
  const mitigated = await spine.incident('host_down', 'escalated')
  expect(mitigated).toMatchObject({ category: 'mitigated', alerts: { firing: 1 } })
  expect(await spine.lab.oracle('host_down', 'host-osl-1')).toMatchObject({ healthy: true })
  const events = await spine.events(mitigated.id)
  expect(events.find((event) => event.kind === 'approval_decided')).toMatchObject({
    actor: 'user:approver',
    metadata: { via: 'signal' },
  })
  expect(
    events.filter((event) => event.kind === 'step_finished').every((event) => event.metadata.status === 'OK'),
  ).toBe(true)
  const moved = (await spine.lab.effects()).filter((effect) => effect.request.includes('/vms/'))
  expect(moved.length).toBeGreaterThan(0)
  expect(moved.every((effect) => effect.runs === 1)).toBe(true)

  // The spent token, once more.
  const again = await spine.post(
    `/approvals/${approval.id}/decision`,
    { decision: 'deny', token: minted.body.token, reason: 'changed my mind' },
    { token: spine.tokens.approver },
  )
  expect(again.status).toBe(403)
})

test('a denial with a reason leads to another proposal or to an escalation that quotes it, never to the same plan', async () => {
  await spine.lab.heal()
  await spine.until('a healed platform', async () => (await spine.lab.oracle('nothing')).healthy)
  await spine.lab.break('host_down', 'host-ams-1')
  const first = await spine.pendingApproval()
  const [said, as] = [{ decision: 'deny', reason: 'ams-2 is about to be serviced' }, { token: spine.tokens.approver }]
  const minted = await spine.post(`/approvals/${first.id}/token`, said, as)
  const denied = await spine.post(`/approvals/${first.id}/decision`, { ...said, token: minted.body.token }, as)
  expect(denied.status).toBe(200)
  const incident = await spine.until('the end', async () => {
    const found = await spine.get<{ status: string; resolution: string }>(`/incidents/${first.incidentId}`)
    return found.status === 'escalated' && found
  })
  expect(incident.resolution).toContain('ams-2 is about to be serviced')
  const asked = (await spine.events(first.incidentId)).filter((event) => event.kind === 'approval_requested')
  expect(new Set(asked.map((event) => event.metadata.actionDigest)).size).toBe(asked.length)
})
