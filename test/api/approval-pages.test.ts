import { describe, expect, test } from '@jest/globals'
import { listApprovals } from '../../db/approvals/find.ts'
import { readDecision, withdrawPending } from '../../db/approvals/settle.ts'
import { append } from '../../db/log/append.ts'
import { eventsOf } from '../../db/log/events.ts'
import { systemScope } from '../../db/scope.ts'
import type { ApprovalDetail } from '../../domain/approval.ts'
import { agentActor } from '../../domain/event.ts'
import type { Role } from '../../domain/operator.ts'
import type { ResourceRef } from '../../domain/registry.ts'
import type { Effect } from '../../domain/tool.ts'
import { asked, wroteRows } from '../support/announced.ts'
import { useApi } from '../support/api.ts'
import { claimedIncident, moveClock } from '../support/database.ts'

describe('approval card', () => {
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

  test('a card says what the approved call does, step by step, and how it ended', async () => {
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
      ...{ outcome: 'running', endedAt: null, verification: null },
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
      ...{
        outcome: 'done',
        said: 'started 0 of 2 VMs',
        verification: { outcome: 'not_held', text: 'vm-1 is stopped' },
      },
      steps: [{ state: 'failed', detail: 'host-2 refused it' }, { state: 'skipped' }],
    })
    expect([run.output.length, run.output.at(-1)]).toEqual([20, 'line 30'])
  })

  test('a card says which writes the same answer proposes next, and the schema that its arguments have', async () => {
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
        ...{
          kind: 'model_answered',
          content: '',
          final: null,
          usage: { prompt: 1, completion: 1 },
          model: 'm',
          latencyMs: 1,
        },
        calls: [
          proposed('before', 'converge_shard', { id: 'db-osl-0', reason: 'it came before' }),
          proposed(callId, 'converge_shard', {}),
          proposed('look', 'get_shard', { id: 'db-osl-2' }),
          proposed('after', 'converge_shard', { id: 'db-osl-2', reason: 'its replica is down' }),
        ],
      },
    ])
    const { next, schema } = (await api.get(`/approvals/${id}`)).body as unknown as {
      next: object[]
      schema: { properties: object }
    }
    expect(next).toEqual([expect.objectContaining({ callId: 'after', tool: 'converge_shard' })])
    expect(Object.keys(schema.properties)).toEqual(['id', 'reason'])
    await api.owner.updateTable('approval').set({ status: 'denied' }).where('id', '=', id).execute()
    expect((await api.get(`/approvals/${id}`)).body.next).toEqual([])
  })

  test('a card lists the other calls that were asked with it, each the newest of its call, and no call of another card', async () => {
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
    const { token } = (await api.post(`/approvals/${id}/token`, { as, body: { decision: 'approve' } })).body
    const args = { id: 'web osl', reason: 'x' }
    const refused = await api.post(`/approvals/${id}/decision`, { as, body: { decision: 'approve', token, args } })
    expect([refused.status, refused.body.code]).toEqual([422, 'EDIT_REFUSED'])
    expect(refused.body.errors).toMatchObject([
      { in: 'body', field: 'args.id' },
      { in: 'body', field: 'args.reason' },
    ])
    expect((await api.get(`/approvals/${id}`)).body.status).toBe('pending')
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
})

describe('approval extend', () => {
  const api = useApi()
  const extend = (id: string, as = api.tokens.approver) => api.post(`/approvals/${id}/extend`, { as })
  const expiryOf = async (id: string) =>
    Date.parse((await api.get(`/approvals/${id}`)).body.expiresAt as unknown as string)

  test('a person who may decide gives an approval 15 more minutes, with a row in the log and one in the audit', async () => {
    const incidentId = await claimedIncident(api.db)
    const id = await asked(api.db, incidentId)
    const before = await expiryOf(id)
    const { status, body } = await extend(id)
    expect({ status, body }).toMatchObject({ status: 200, body: { approvalId: id } })
    expect((await expiryOf(id)) - before).toBe(900_000)
    const rows = await eventsOf(api.db, incidentId)
    expect(rows.at(-1)).toMatchObject({
      kind: 'noted',
      actor: 'user:approver',
      metadata: { code: 'approval_extended' },
    })
    expect((await api.get('/audit?what=approval')).body.items).toMatchObject([
      { who: 'approver', what: 'approval.extended', subject: id },
    ])
  })

  test('nobody extends beyond four hours after it was asked', async () => {
    const id = await asked(api.db, await claimedIncident(api.db), { expirySeconds: 4 * 3600 - 60 })
    const before = await expiryOf(id)
    expect((await extend(id)).status).toBe(200)
    expect((await expiryOf(id)) - before).toBe(60_000)
    expect(await extend(id)).toMatchObject({ status: 409, body: { code: 'CONFLICT' } })
  })

  test('an approval that is asked for longer by a setting is never shortened', async () => {
    const id = await asked(api.db, await claimedIncident(api.db), { expirySeconds: 86_400 })
    const before = await expiryOf(id)
    expect((await extend(id)).status).toBe(409)
    expect(await expiryOf(id)).toBe(before)
  })

  test.each(['viewer', 'operator', 'agent', 'ingest'] as const)('%s may not extend', async (role) => {
    const id = await asked(api.db, await claimedIncident(api.db))
    const before = await expiryOf(id)
    expect((await extend(id, api.tokens[role])).status).toBe(403)
    expect(await expiryOf(id)).toBe(before)
  })

  test('a person whose limit leaves out its risk may not extend', async () => {
    const id = await asked(api.db, await claimedIncident(api.db))
    await api.owner.updateTable('operator').set({ maxRisk: 'medium' }).where('name', '=', 'approver').execute()
    expect((await extend(id)).status).toBe(403)
    await api.owner.updateTable('operator').set({ maxRisk: 'critical' }).where('name', '=', 'approver').execute()
    expect((await extend(id)).status).toBe(200)
  })

  test('what is decided is not extended, and what never was is not found', async () => {
    const id = await asked(api.db, await claimedIncident(api.db))
    const as = api.tokens.approver
    const { token } = (await api.post(`/approvals/${id}/token`, { as, body: { decision: 'deny' } })).body
    await api.post(`/approvals/${id}/decision`, { as, body: { decision: 'deny', token } })
    expect((await extend(id)).status).toBe(410)
    expect((await extend('apr_nothing')).status).toBe(404)
  })

  // Last: the clock of this database stays moved.
  test('a run that looks after the first expiry finds it pending and how long it still waits; a late question stays expired', async () => {
    const id = await asked(api.db, await claimedIncident(api.db))
    const late = await asked(api.db, await claimedIncident(api.db))
    await extend(id)
    await moveClock(api.owner, '11 minutes')
    const read = await readDecision(api.db, id)
    expect(read?.status).toBe('pending')
    expect(read?.remainingMs).toBeGreaterThan(13 * 60_000)
    expect((await extend(late)).status).toBe(410)
    expect((await readDecision(api.db, late))?.status).toBe('expired')
  })
})

describe('approval plain', () => {
  const api = useApi()
  const origin = 'http://localhost'

  async function signedIn(role: Role): Promise<string> {
    const response = await api.api.app.request(`${origin}/auth/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin },
      body: JSON.stringify({ token: api.tokens[role] }),
    })
    return (response.headers.get('set-cookie') ?? '').split(';')[0] as string
  }

  async function open(id: string, cookie = '', form?: Record<string, string> | [string, string][], from = origin) {
    const response = await api.api.app.request(`${origin}/approvals/${id}/plain`, {
      method: form ? 'POST' : 'GET',
      headers: { cookie, ...(form && { origin: from, 'content-type': 'application/x-www-form-urlencoded' }) },
      ...(form && { body: new URLSearchParams(form).toString() }),
    })
    return { status: response.status, headers: response.headers, text: await response.text() }
  }

  const anApproval = async (more = {}) => asked(api.db, await claimedIncident(api.db), more)
  const statusOf = async (id: string) =>
    (await listApprovals(systemScope(api.db), { id }, { before: null, limit: 1 }))[0]

  test('the approval can be read without JavaScript, and nothing on its page can run', async () => {
    const id = await anApproval()
    const { status, text, headers } = await open(id, await signedIn('approver'))
    expect(status).toBe(200)
    expect(text).toContain('Start 2 VMs')
    expect(text).toMatch(/<li><a href="\/incidents\/inc_[0-9a-z]+#e-1">row 1<\/a> Alert received/)
    expect(text).not.toContain('<script')
    expect(headers.get('content-security-policy')).toMatch(
      /^default-src 'none'; style-src 'sha256-[^']+'; img-src 'self'; form-action 'self'/,
    )
  })

  test('it says in a line what the cause may be: what rows support before what is only proposed, and nothing that is refuted', async () => {
    const incidentId = await claimedIncident(api.db)
    const id = await asked(api.db, incidentId)
    const cookie = await signedIn('approver')
    const cause = async () =>
      /<p>((?:Likely|Possible) cause: [^<]*)<\/p>/.exec((await open(id, cookie)).text)?.[1] ?? null
    const record = (hypothesis: string, detail: string, quotes: object[] = []) =>
      api.post(`/incidents/${incidentId}/events`, { body: { action: 'investigated', detail, hypothesis, quotes } })
    expect(await cause()).toBeNull()
    await record('proposed', 'The <b>disk</b> is full')
    expect(await cause()).toBe('Possible cause: The &lt;b&gt;disk&lt;/b&gt; is full (proposed)')
    await record('proposed', 'A power supply failed')
    await record('supported', 'A power supply failed', [
      { seq: 1, text: 'firing' },
      { seq: 2, text: 'x' },
    ])
    await record('proposed', 'The rack is hot')
    expect(await cause()).toBe('Likely cause: A power supply failed (supported, rows 1, 2)')
    for (const each of ['The <b>disk</b> is full', 'A power supply failed', 'The rack is hot'])
      await record('refuted', each, [{ seq: 1, text: 'firing' }])
    expect(await cause()).toBeNull()
  })

  test('what the approved call does is read without JavaScript too, its arguments folded', async () => {
    const id = await anApproval()
    await wroteRows(api.db, id, [
      { kind: 'tool_started' },
      { kind: 'step_started', step: 1, action: 'start', vm: '<b>vm-1', to: 'host-2' },
    ])
    const { text } = await open(id, await signedIn('approver'))
    expect(text).toContain('<li>start &lt;b&gt;vm-1 to host-2: <b>running</b></li>')
    expect(text.indexOf('<h2>Dry run')).toBeLessThan(text.indexOf('<h2>Exact arguments</h2><details><summary>'))
  })

  test('of a plan it says who stays down before the steps, what is proved, and whose death would now be worse', async () => {
    const id = await anApproval()
    const step = { step: 1, action: 'start', vm: 'vm-1', from: 'host-1', to: 'host-2' }
    const plan = {
      ...{ state: 'partial', migrations: 0, lowerBound: 0, proof: 'trivial', obstacle: null },
      steps: [{ ...step, needs: [], wave: 1 }],
      unplaced: [{ vm: '<b>vm-2', reason: 'no room for 4096 MiB' }],
      standing: {
        domain: 'host',
        before: [{ name: 'host-2', outcome: 'restarted' }],
        after: [{ name: 'host-2', outcome: 'moved' }],
      },
    }
    const shown = async (details: object) => {
      const dryRun = JSON.stringify({ possible: true, summary: 'start 1 VM', details })
      await api.owner.updateTable('approval').set({ dryRun }).where('id', '=', id).execute()
      return (await open(id, await signedIn('approver'))).text
    }
    const text = await shown(plan)
    expect(text).toMatch(
      /1 VM stays down<\/b><ul><li><b>&lt;b&gt;vm-2<\/b>: no room .*start vm-1 from host-1 to host-2 \(wave 1\)/s,
    )
    expect(text).toContain('a place for all may exist')
    expect(text).toContain('Worse than before the plan: host-2.')
    // An approval of an older release knows steps alone; what is not understood is shown as it is.
    expect(await shown({ steps: [step] })).toContain('<li>start vm-1 from host-1 to host-2</li>')
    expect(await shown({ ...plan, unplaced: ['vm-2'] })).toContain('&quot;unplaced&quot;')
  })

  test('a rehearsal is read line by line, and what was not tried stands apart from it', async () => {
    const id = await anApproval()
    const details = {
      rehearsal: {
        told: ['<b>runs as user 7', 'would go: 2 files'],
        untried: ['make was not tried: no way is known.'],
      },
    }
    const dryRun = JSON.stringify({ possible: false, summary: 'run a text', details })
    await api.owner.updateTable('approval').set({ dryRun }).where('id', '=', id).execute()
    const { text } = await open(id, await signedIn('approver'))
    expect(text).toContain('<pre dir="ltr">&lt;b&gt;runs as user 7\nwould go: 2 files</pre>')
    expect(text).toContain('<li>make was not tried: no way is known.</li>')
    expect(text).toContain('There is none for this action.')
  })

  test('who is not signed in reads nothing of it and can sign in with a token', async () => {
    const id = await anApproval()
    const closed = await open(id)
    expect(closed.status).toBe(401)
    expect(closed.text).not.toContain('Start 2 VMs')
    const entered = await open(id, '', { token: api.tokens.approver })
    expect(entered.status).toBe(303)
    expect(entered.headers.get('set-cookie')).toContain('HttpOnly')
    expect((await open(id, '', { token: api.tokens.agent })).status).toBe(403)
    expect((await open(id, '', { token: 'forged' })).status).toBe(401)
  })

  test('a form approves when it says that it was read, by the door of the page', async () => {
    const id = await anApproval()
    const cookie = await signedIn('approver')
    expect((await open(id, cookie, { decision: 'approve' })).status).toBe(422)
    expect((await statusOf(id))?.status).toBe('pending')
    const done = await open(id, cookie, { decision: 'approve', sure: 'yes' })
    expect([done.status, done.text.includes('Your decision is recorded')]).toEqual([200, true])
    expect(await statusOf(id)).toMatchObject({ status: 'approved', decisions: [{ operator: 'approver', via: 'page' }] })
    expect(api.told.at(-1)).toMatchObject({ signal: 'decided' })
  })

  test('a form decides what is ticked beside it: calls of the same card, none that is critical and none of another', async () => {
    const incidentId = await claimedIncident(api.db)
    const first = await asked(api.db, incidentId, { summary: 'the first' })
    const of = { askedWith: first }
    const [second, third] = [
      await asked(api.db, incidentId, { ...of, summary: 'the second' }),
      await asked(api.db, incidentId, { ...of, summary: 'the third' }),
    ]
    const critical = await asked(api.db, incidentId, { ...of, summary: 'the worst', risk: 'critical' })
    const foreign = await anApproval()
    const cookie = await signedIn('approver')
    const { text } = await open(first, cookie)
    expect(text).toContain(`name="also" value="${second}"`)
    expect(text).not.toContain(`name="also" value="${critical}"`)
    expect(text).toContain('the worst')
    for (const other of [critical, foreign, 'apr_none']) {
      const refused = await open(first, cookie, [
        ...[['decision', 'approve'] as [string, string], ['sure', 'yes'] as [string, string]],
        ...[['also', second] as [string, string], ['also', other] as [string, string]],
      ])
      expect([refused.status, refused.text.includes('Nothing was decided')]).toEqual([422, true])
    }
    const statuses = async () =>
      await Promise.all([first, second, third, critical, foreign].map(async (id) => (await statusOf(id))?.status))
    expect(await statuses()).toEqual(Array(5).fill('pending'))
    const done = await open(first, cookie, { decision: 'approve', sure: 'yes', also: second })
    expect(done.status).toBe(200)
    expect(await statuses()).toEqual(['approved', 'approved', 'pending', 'pending', 'pending'])
  })

  test('a form denies with a reason only', async () => {
    const id = await anApproval()
    const cookie = await signedIn('approver')
    expect((await open(id, cookie, { decision: 'deny' })).status).toBe(422)
    expect((await open(id, cookie, { decision: 'deny', category: 'other', reason: ' ' })).status).toBe(422)
    expect((await open(id, cookie, { decision: 'deny', category: 'too_risky' })).status).toBe(200)
    expect(await statusOf(id)).toMatchObject({ status: 'denied', decisions: [{ reason: 'too risky' }] })
  })

  test('a foreign page, a viewer and a late hand decide nothing', async () => {
    const id = await anApproval({ expirySeconds: 60 })
    const approve = { decision: 'approve', sure: 'yes' }
    expect((await open(id, await signedIn('approver'), approve, 'https://evil.example')).status).toBe(403)
    expect((await open(id, await signedIn('viewer'), approve)).status).toBe(403)
    expect((await statusOf(id))?.status).toBe('pending')
    const cookie = await signedIn('approver')
    await moveClock(api.owner, '2 minutes')
    expect((await open(id, cookie, approve)).status).toBe(410)
    await moveClock(api.owner, '0 minutes')
  })

  test('who comes second is told who was first', async () => {
    const id = await anApproval()
    await open(id, await signedIn('approver'), { decision: 'deny', category: 'wrong_time', reason: 'backup runs' })
    const second = await open(id, await signedIn('admin'), { decision: 'approve', sure: 'yes' })
    expect(second.status).toBe(410)
    expect(second.text).toContain('Denied by approver')
  })

  test('text that wants to be markup, or to turn what one reads around, is shown as what it is', async () => {
    const id = await anApproval()
    const hostile = '<img src=x onerror=alert(1)>\u202Eevil'
    await api.owner
      .updateTable('approval')
      .set({ reason: hostile, args: JSON.stringify({ host: hostile }) })
      .where('id', '=', id)
      .execute()
    const { text } = await open(id, await signedIn('approver'))
    expect(text).not.toContain('<img')
    expect(text).toContain('&lt;img src=x')
    expect(text).not.toContain('\u202E')
    expect(text).toContain('\\u202e')
  })
})
