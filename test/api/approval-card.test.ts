import { expect, test } from '@jest/globals'
import { append } from '../../db/append.ts'
import { withdrawPending } from '../../db/approvals/settle.ts'
import { agentActor } from '../../domain/event.ts'
import type { ResourceRef } from '../../domain/resource.ts'
import type { Effect } from '../../domain/tool.ts'
import { claimedIncident } from '../support/database.ts'
import { asked } from './announced.ts'
import { useApi } from './api.ts'

const api = useApi()
const shard: ResourceRef = { kind: 'shard', id: 'db-osl-1' }
const host: ResourceRef = { kind: 'host', id: 'host-osl-1' }
const node: ResourceRef = { kind: 'node', id: 'node-db-osl-1b' }

type Look = { tool: string; effect?: Effect; ok?: boolean; targets?: ResourceRef[]; discovered?: ResourceRef[] }

/** A finished call as a run writes it; answers the number of its row. */
async function looked(incidentId: string, { tool, effect = 'read', ok = true, targets = [], discovered = [] }: Look) {
  const { event } = await api.db.transaction().execute((trx) =>
    append(trx, incidentId, 1, {
      ...{ kind: 'tool_finished', actor: agentActor, detail: `Called tool: ${tool}` },
      metadata: {
        ...{ callId: 'c1_0', tool, arguments: {}, effect, targets, outcome: 'done', body: null, durationMs: 3 },
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

test('a card shows the alert, the newest looks at each target and at what the incident is about, and nothing that came later or failed', async () => {
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

test('an approval without any look still has a card', async () => {
  const { evidence } = await card(await asked(api.db, await claimedIncident(api.db)))
  expect(evidence).toMatchObject([{ seq: 1, what: 'alert' }])
})

test('a card says whether approving it can be made a standing grant, and why not', async () => {
  const refused = async (id: string) => (await api.get(`/approvals/${id}`)).body.grantRefused
  const migration = await asked(api.db, await claimedIncident(api.db))
  expect(await refused(migration)).toMatch(/^execute_migration is not one of the tools/)
  const converge = await asked(api.db, await claimedIncident(api.db), { tool: 'converge_shard' })
  expect(await refused(converge)).toBe('converge_shard at high risk is asked about every time.')
  await api.owner.updateTable('approval').set({ risk: 'medium' }).where('id', '=', converge).execute()
  expect(await refused(converge)).toBeNull()
  await api.owner.updateTable('approval').set({ required: 2 }).where('id', '=', converge).execute()
  expect(await refused(converge)).toBe('What two people must agree on is asked about every time.')
})

test('what was asked again is linked both ways', async () => {
  const incidentId = await claimedIncident(api.db)
  const first = await asked(api.db, incidentId)
  await api.db.transaction().execute((trx) => withdrawPending(trx, incidentId, 'the platform changed'))
  const second = await asked(api.db, incidentId)
  await api.owner.updateTable('approval').set({ callId: 'c9_0' }).where('id', 'in', [first, second]).execute()
  const { body } = await api.get(`/approvals/${first}`)
  expect([body.replaces, body.replacedBy]).toEqual([null, second])
  expect((await api.get(`/approvals/${second}`)).body).toMatchObject({ replaces: first, replacedBy: null })
})

test('who gave a standing grant and who ended it is in the audit', async () => {
  const id = await asked(api.db, await claimedIncident(api.db), { tool: 'converge_shard' })
  await api.owner.updateTable('approval').set({ risk: 'medium' }).where('id', '=', id).execute()
  const as = api.tokens.approver
  const { token } = (await api.post(`/approvals/${id}/token`, { as, body: { decision: 'approve' } })).body
  const body = { decision: 'approve', token, grant: { uses: 3, hours: 2 } }
  expect((await api.post(`/approvals/${id}/decision`, { as, body })).status).toBe(200)
  const [grant] = (await api.get('/grants')).body.items as unknown as { id: string }[]
  await api.post(`/grants/${grant?.id}/revoke`)
  expect((await api.get('/audit?what=grant')).body.items).toMatchObject([
    { who: 'admin', what: 'grant.revoked', subject: grant?.id },
    { who: 'approver', what: 'grant.given', detail: expect.stringContaining('3 more times within 2 h') },
  ])
})
