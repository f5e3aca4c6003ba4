import { expect, test } from '@jest/globals'
import { withdrawPending } from '../../../db/approvals/settle.ts'
import { append } from '../../../db/log/append.ts'
import type { ApprovalDetail } from '../../../domain/approval.ts'
import { agentActor } from '../../../domain/event.ts'
import type { ResourceRef } from '../../../domain/registry.ts'
import type { EffectKind } from '../../../domain/tool.ts'
import { asked, wroteRows } from '../../support/announced.ts'
import { useApi } from '../../support/api.ts'
import { claimedIncident } from '../../support/database.ts'

const api = useApi()
const shard: ResourceRef = { kind: 'shard', id: 'db-osl-1' }
const host: ResourceRef = { kind: 'host', id: 'host-osl-1' }
const node: ResourceRef = { kind: 'node', id: 'node-db-osl-1b' }

type Look = { tool: string; effect?: EffectKind; ok?: boolean; targets?: ResourceRef[]; discovered?: ResourceRef[] }

/** A finished call as a run writes it; answers the number of its row. */
async function looked(incidentId: string, { tool, effect = 'read', ok = true, targets = [], discovered = [] }: Look) {
  const { event } = await api.db.transaction().execute((trx) =>
    append(trx, incidentId, 1, {
      kind: 'tool_finished',
      actor: agentActor,
      detail: `Called tool: ${tool}`,
      metadata: {
        callId: 'c1_0',
        tool,
        arguments: {},
        effect,
        targets,
        outcome: 'done',
        body: null,
        durationMs: 3,
        result: ok ? { ok, data: { found: tool }, meta: {} } : { ok, meta: {} },
        discovered: discovered.map((thing) => ({ ...thing, name: thing.id, aliases: [] })),
      },
    }),
  )
  return event.seq
}

async function card(id: string) {
  const { body } = await api.get(`/approvals/${id}`)
  return body as unknown as { evidence: { seq: number; what: string; tool: string | null; found: string }[] }
}

test("a card shows the alert and the newest reads of each target and of the incident's resource, and no later or failed read", async () => {
  const incidentId = await claimedIncident(api.db)
  const about = { resourceKind: host.kind, resourceId: host.id }
  await api.owner.updateTable('incident').set(about).where('id', '=', incidentId).execute()
  await looked(incidentId, { tool: 'get_shard', targets: [shard], discovered: [shard] })
  const named = await looked(incidentId, { tool: 'get_shard', targets: [shard], discovered: [shard] })
  const told = await looked(incidentId, { tool: 'list_nodes_by_shard', discovered: [shard, node] })
  const own = await looked(incidentId, { tool: 'node_health', discovered: [host] })
  await looked(incidentId, { tool: 'get_tenant', targets: [{ kind: 'tenant', id: 't1' }] })
  await looked(incidentId, { tool: 'get_shard', targets: [shard], ok: false })
  await looked(incidentId, { tool: 'converge_shard', effect: 'write', targets: [shard] })
  const id = await asked(api.db, incidentId, { targets: [shard] })
  await looked(incidentId, { tool: 'get_shard', targets: [shard] })

  const { evidence } = await card(id)
  expect(evidence.map(({ seq, what, tool }) => [seq, what, tool])).toEqual([
    [1, 'alert', null],
    [named, 'look', 'get_shard'],
    [told, 'look', 'list_nodes_by_shard'],
    [own, 'look', 'node_health'],
  ])
  expect(evidence[1]?.found).toBe('{"found": "get_shard"}')
})

test('an approval without any read still has a card', async () => {
  const { evidence } = await card(await asked(api.db, await claimedIncident(api.db)))
  expect(evidence).toMatchObject([{ seq: 1, what: 'alert' }])
})

test('a card says whether its approval can become a standing grant, and why not', async () => {
  const refused = async (id: string) => (await api.get(`/approvals/${id}`)).body.grantRefused
  const migration = await asked(api.db, await claimedIncident(api.db))
  expect(await refused(migration)).toMatch(/^execute_migration cannot get a standing grant/)
  const converge = await asked(api.db, await claimedIncident(api.db), { tool: 'converge_shard' })
  expect(await refused(converge)).toBe(
    'converge_shard at high risk cannot get a standing grant: each call needs approval.',
  )
  await api.owner.updateTable('approval').set({ risk: 'medium' }).where('id', '=', converge).execute()
  expect(await refused(converge)).toBeNull()
  await api.owner.updateTable('approval').set({ required: 2 }).where('id', '=', converge).execute()
  expect(await refused(converge)).toBe('An action that two people must approve cannot get a standing grant.')
})

test('an approval that was asked again has links in both directions', async () => {
  const incidentId = await claimedIncident(api.db)
  const first = await asked(api.db, incidentId)
  await api.db.transaction().execute((trx) => withdrawPending(trx, incidentId, 'the platform changed'))
  const second = await asked(api.db, incidentId)
  await api.owner.updateTable('approval').set({ callId: 'c9_0' }).where('id', 'in', [first, second]).execute()
  const { body } = await api.get(`/approvals/${first}`)
  expect([body.replaces, body.replacedBy]).toEqual([null, second])
  expect((await api.get(`/approvals/${second}`)).body).toMatchObject({ replaces: first, replacedBy: null })
})

test('a card shows the steps of the approved call and its end', async () => {
  const id = await asked(api.db, await claimedIncident(api.db))
  const runOf = async () => (await api.get(`/approvals/${id}`)).body.run
  const step = (number: number, vm: string) => ({ step: number, action: 'start', vm, from: null, to: 'host-2' })
  const steps = [step(1, 'vm-1'), step(2, 'vm-2')]
  const dryRun = { possible: true, summary: 'start 2 VMs', details: { steps } }
  await api.owner
    .updateTable('approval')
    .set({ dryRun: JSON.stringify(dryRun) })
    .where('id', '=', id)
    .execute()
  expect(await runOf()).toBeNull()
  await wroteRows(api.db, id, [{ kind: 'tool_started' }, { kind: 'step_started', ...step(1, 'vm-1') }])
  expect(await runOf()).toMatchObject({
    outcome: 'running',
    endedAt: null,
    verification: null,
    steps: [
      { step: 1, text: 'start vm-1 to host-2', state: 'running' },
      { step: 2, text: 'start vm-2 to host-2', state: 'waiting' },
    ],
  })
  await wroteRows(api.db, id, [
    { kind: 'step_finished', step: 1, status: 'FAILED', detail: 'host-2 refused it' },
    { kind: 'tool_output', lines: Array.from({ length: 30 }, (_, line) => `line ${line + 1}`), left: 0 },
    { kind: 'tool_finished', said: 'started 0 of 2 VMs' },
    { kind: 'verification', writeSeq: 1, outcome: 'not_held', postcondition: 'all run', observed: 'vm-1 is stopped' },
  ])
  const run = (await runOf()) as unknown as { output: string[] }
  expect(run).toMatchObject({
    outcome: 'done',
    said: 'started 0 of 2 VMs',
    verification: { outcome: 'not_held', text: 'vm-1 is stopped' },
    steps: [{ state: 'failed', detail: 'host-2 refused it' }, { state: 'skipped' }],
  })
  expect([run.output.length, run.output.at(-1)]).toEqual([20, 'line 30'])
})

test('a card shows the next writes of the same answer, and the schema of its arguments', async () => {
  const id = await asked(api.db, await claimedIncident(api.db), { tool: 'converge_shard' })
  const proposed = (callId: string, tool: string, args: object) => ({
    id: callId,
    tool,
    arguments: args,
    problem: null,
  })
  const { callId } = (await api.get(`/approvals/${id}`)).body as unknown as { callId: string }
  await wroteRows(api.db, id, [
    {
      kind: 'model_answered',
      content: '',
      final: null,
      usage: { prompt: 1, completion: 1 },
      model: 'm',
      latencyMs: 1,
      calls: [
        proposed('before', 'converge_shard', { id: 'db-osl-0', reason: 'it came before' }),
        proposed(callId, 'converge_shard', {}),
        proposed('look', 'get_shard', { id: 'db-osl-2' }),
        proposed('after', 'converge_shard', { id: 'db-osl-2', reason: 'its replica is down' }),
        proposed('huge', 'converge_shard', { id: 'db-osl-3', reason: 'x'.repeat(70_000) }),
      ],
    },
  ])
  const { next, schema } = (await api.get(`/approvals/${id}`)).body as unknown as {
    next: object[]
    schema: { properties: object }
  }
  expect(next).toEqual([
    expect.objectContaining({ callId: 'after', tool: 'converge_shard' }),
    // What takes too much to judge keeps nobody from the card.
    { callId: 'huge', tool: 'converge_shard', about: '', verdict: null, risk: 'low' },
  ])
  expect(Object.keys(schema.properties)).toEqual(['id', 'reason'])
  await api.owner.updateTable('approval').set({ status: 'denied' }).where('id', '=', id).execute()
  expect((await api.get(`/approvals/${id}`)).body.next).toEqual([])
})

test('a card lists the newest version of each call that was asked with it, and no call of another card', async () => {
  const incidentId = await claimedIncident(api.db)
  const first = await asked(api.db, incidentId, { tool: 'converge_shard' })
  const second = await asked(api.db, incidentId, { askedWith: first, summary: 'the second' })
  await asked(api.db, await claimedIncident(api.db))
  const togetherOf = async (id: string) =>
    ((await api.get(`/approvals/${id}`)).body as unknown as ApprovalDetail).together.map((each) => each.id)
  expect([await togetherOf(first), await togetherOf(second)]).toEqual([[second], [first]])
})

test('changed arguments that do not fit are refused with the name of each, and nothing changes', async () => {
  const id = await asked(api.db, await claimedIncident(api.db), { tool: 'converge_shard' })
  const as = api.tokens.approver
  const said = { decision: 'approve', args: { id: 'web osl', reason: 'x' } }
  const { token } = (await api.post(`/approvals/${id}/token`, { as, body: said })).body
  const refused = await api.post(`/approvals/${id}/decision`, { as, body: { ...said, token } })
  expect([refused.status, refused.body.code]).toEqual([422, 'EDIT_REFUSED'])
  expect(refused.body.errors).toMatchObject([
    { in: 'body', field: 'args.id' },
    { in: 'body', field: 'args.reason' },
  ])
  expect((await api.get(`/approvals/${id}`)).body.status).toBe('pending')
})

test('the audit log has the person who gave a standing grant and the person who ended it', async () => {
  const id = await asked(api.db, await claimedIncident(api.db), { tool: 'converge_shard' })
  await api.owner.updateTable('approval').set({ risk: 'medium' }).where('id', '=', id).execute()
  const as = api.tokens.approver
  const said = { decision: 'approve', grant: { uses: 3, hours: 2 } }
  const { token } = (await api.post(`/approvals/${id}/token`, { as, body: said })).body
  expect((await api.post(`/approvals/${id}/decision`, { as, body: { ...said, token } })).status).toBe(200)
  const [grant] = (await api.get('/grants')).body.items as unknown as { id: string }[]
  await api.post(`/grants/${grant?.id}/revoke`)
  expect((await api.get('/audit?what=grant')).body.items).toMatchObject([
    { who: 'admin', what: 'grant.revoked', subject: grant?.id },
    { who: 'approver', what: 'grant.given', detail: expect.stringContaining('3 more times within 2 h') },
  ])
})
