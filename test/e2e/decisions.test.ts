import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { serve } from '@hono/node-server'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import pino from 'pino'
import { actActivities } from '../../activities/act.ts'
import { approvalActivities } from '../../activities/approvals.ts'
import { contextActivities } from '../../activities/context.ts'
import { sanitizeFailures } from '../../activities/failures.ts'
import { servedModels } from '../../activities/served-models.ts'
import { thinkActivities } from '../../activities/think.ts'
import { createCoreClient } from '../../clients/core.ts'
import { createModelClient } from '../../clients/model.ts'
import { eventsOf } from '../../db/log/events.ts'
import type { Approval, ApprovalDetail, Decision, StandingGrant } from '../../domain/approval.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import { runbookServer } from '../../lab/runbook/server.ts'
import { readPrompts } from '../../prompts/render.ts'
import { useApi } from '../api/api.ts'
import { scriptedPlatform } from '../api/scripted-platform.ts'
import { moveClock, openedIncident } from '../support/database.ts'
import { eventually } from '../support/directory.ts'
import { type ChatRequest, type Said, type ScriptedModel, scriptedModel } from '../support/scripted-model.ts'
import { type Spine, startSpine } from '../support/spine.ts'
import { useTemporal } from '../support/temporal.ts'

describe('decisions', () => {
  describe('decisions', () => {
    let spine: Spine

    beforeAll(async () => {
      spine = await startSpine({
        parts: ['lab', 'runbook', 'api', 'worker'],
        environment: { WATCHDOG_INTERVAL_SECONDS: '0.5' },
      })
    })
    afterAll(async () => {
      await spine?.stop()
    })
    afterEach(async () => {
      await spine.lab.heal()
      await sql`delete from platform_config`.execute(spine.db)
    })

    async function tokenFor(approval: Approval, as: string, decision: Decision = 'approve'): Promise<string> {
      return String((await spine.post(`/approvals/${approval.id}/token`, { decision }, { token: as })).body.token)
    }

    async function decided(approval: Approval, as: string, decision: Record<string, unknown>) {
      const token = await tokenFor(approval, as)
      return await spine.post(`/approvals/${approval.id}/decision`, { token, ...decision }, { token: as })
    }

    /** The rows of an incident that ended so. */
    async function ended(incidentId: string, status: string): Promise<IncidentEvent[]> {
      await spine.until(`${incidentId} ${status}`, async () => {
        const incident = await spine.get<{ status: string }>(`/incidents/${incidentId}`)
        return incident.status === status
      })
      return await spine.events(incidentId)
    }

    const approve = (approval: Approval, more: Record<string, unknown> = {}) =>
      decided(approval, spine.tokens.approver, { decision: 'approve', ...more })

    const judgements = (events: IncidentEvent[]) =>
      events.flatMap((event) => (event.kind === 'call_judged' && event.metadata.effect === 'write' ? [event] : []))

    test("an approval with changed arguments is judged and asked again with the editor's vote, runs once, and the agent is told", async () => {
      await spine.lab.break('host_down', 'host-osl-1')
      const asked = await spine.pendingApproval()
      const args = { ...asked.arguments, reason: 'host-osl-1 is dead, agreed with storage' }
      const wrong = await decided(asked, spine.tokens.approver, {
        decision: 'approve',
        args: { ...args, proposal_id: 'prp_x' },
      })
      expect([wrong.status, wrong.body.code]).toEqual([422, 'EDIT_REFUSED'])
      const answer = await decided(asked, spine.tokens.approver, { decision: 'approve', args })
      expect([answer.status, answer.body.status]).toEqual([200, 'withdrawn'])

      const events = await ended(asked.incidentId, 'escalated')
      expect(judgements(events).map(({ metadata }) => metadata.code)).toEqual(['RISK_HIGH', 'RISK_HIGH', 'APPROVED'])
      const started = events.filter((event) => event.kind === 'tool_started' && event.metadata.effect === 'write')
      expect(started).toMatchObject([
        { metadata: { arguments: { reason: 'host-osl-1 is dead, agreed with storage' } } },
      ])
      expect(judgements(events).at(-1)?.metadata.corrected).toMatchObject([{ code: 'EDITED_BY_PERSON' }])
      const { items } = await spine.get<{ items: Approval[] }>(`/approvals?incident=${asked.incidentId}`)
      expect(items.map(({ status }) => status)).toEqual(['consumed', 'withdrawn'])
      expect(items[1]?.edited).toMatchObject({ by: 'approver', arguments: args })
      expect(await spine.lab.oracle('host_down', 'host-osl-1')).toMatchObject({ healthy: true })
    })

    test('where configuration asks for two people, one is not enough, the same one twice neither', async () => {
      await sql`insert into platform_config (key, value) values ('approval.required.execute_migration', '2')`.execute(
        spine.db,
      )
      await spine.lab.break('host_down', 'host-osl-2')
      const asked = await spine.pendingApproval()
      expect(asked.required).toBe(2)
      expect((await decided(asked, spine.tokens.approver, { decision: 'approve' })).body).toMatchObject({
        status: 'pending',
      })
      const again = await decided(asked, spine.tokens.approver, { decision: 'approve' })
      expect(again.body).toMatchObject({ outcome: 'repeated', status: 'pending' })
      expect((await decided(asked, spine.tokens.admin, { decision: 'approve' })).body).toMatchObject({
        status: 'approved',
      })
      const events = await ended(asked.incidentId, 'escalated')
      expect(events.filter((event) => event.kind === 'tool_started' && event.metadata.effect === 'write')).toHaveLength(
        1,
      )
    })

    test('a denial by signal ends it with its reason, and a risk that configuration raised is asked about', async () => {
      await sql`insert into platform_config (key, value) values ('approval.risk.converge_shard', 'high')`.execute(
        spine.db,
      )
      await spine.lab.break('service_down', 'web-osl-1')
      const asked = await spine.pendingApproval()
      expect(asked).toMatchObject({ tool: 'converge_shard', risk: 'high' })
      const incident = await spine.incident('service_down', 'awaiting_approval')
      const handle = spine.client.workflow.getHandle(`investigate:${incident.id}:${incident.attempt}`)
      const token = await tokenFor(asked, spine.tokens.approver, 'deny')
      await handle.signal('deny', { token, reason: 'a deploy is running' })
      const events = await ended(asked.incidentId, 'escalated')
      expect(events.find((event) => event.kind === 'approval_decided')).toMatchObject({
        actor: 'user:approver',
        metadata: { decision: 'deny', category: 'other', via: 'signal' },
      })
      expect(JSON.stringify(events.find((event) => event.kind === 'escalated'))).toContain('a deploy is running')
    })

    test('two incidents that want the very same action ask once; the second learns what was decided and does nothing twice', async () => {
      await sql`insert into platform_config (key, value) values ('agent.leader_wait', '0')`.execute(spine.db)
      await spine.lab.break('host_down', 'host-ams-1')
      const approval = await spine.pendingApproval()
      // A second source tells of the same host.
      await spine.post(
        '/ingest/generic',
        {
          summary: 'host-ams-1 does not answer',
          severity: 'critical',
          dedup: 'second',
          name: 'host_down',
          labels: { host: 'host-ams-1' },
        },
        { token: spine.tokens.ingest },
      )
      const second = await spine.until('the second to wait', async () =>
        (await spine.incidents('?type=host_down')).find(
          (each) => each.id !== approval.incidentId && each.status === 'awaiting_approval',
        ),
      )
      // Several rounds of the watchdog: it is waiting, not lost.
      await new Promise((resolve) => setTimeout(resolve, 2_000))
      expect((await spine.get<{ items: unknown[] }>('/approvals?status=pending')).items).toHaveLength(1)
      expect(await spine.get(`/incidents/${second.id}`)).toMatchObject({ status: 'awaiting_approval' })

      await approve(approval)
      await spine.until('both ends', async () =>
        (await spine.incidents('?type=host_down')).every((each) => ['resolved', 'escalated'].includes(each.status)),
      )
      const events = await spine.events(second.id)
      expect(events.filter((event) => event.kind === 'approval_requested')).toEqual([])
      expect(events.filter((event) => event.kind === 'tool_started' && event.metadata.effect === 'write')).toEqual([])
      expect(events.flatMap((event) => (event.kind === 'call_judged' ? [event.metadata.code] : []))).toContain(
        'DECIDED_ELSEWHERE',
      )
      expect(
        (await spine.lab.effects())
          .filter((effect) => effect.request.includes('/vms/'))
          .every((effect) => effect.runs === 1),
      ).toBe(true)
    })

    const grants = async () => (await spine.get<{ items: StandingGrant[] }>('/grants')).items
    const ends = (id: string, status: string) =>
      spine.until(
        `${id} ${status}`,
        async () => (await spine.get<{ status: string }>(`/incidents/${id}`)).status === status,
      )
    const codes = async (id: string) =>
      (await spine.events(id)).flatMap((event) =>
        event.kind === 'call_judged' && event.metadata.effect === 'write' ? [event.metadata.code] : [],
      )
    const newest = async (type: string) => (await spine.incidents(`?type=${type}`))[0]?.id ?? ''

    test('a standing grant lets the very same action run without asking, once for each use, and no other action', async () => {
      await sql`insert into platform_config (key, value) values ('approval.risk.converge_shard', 'medium')`.execute(
        spine.db,
      )
      await spine.lab.break('service_down', 'web-ams-1')
      const asked = await spine.pendingApproval()
      expect((await approve(asked, { grant: { uses: 30, hours: 1 } })).status).toBe(422)
      expect((await approve(asked, { grant: { uses: 1, hours: 1 } })).body).toMatchObject({ status: 'approved' })
      await ends(asked.incidentId, 'resolved')
      expect(await grants()).toMatchObject([{ tool: 'converge_shard', uses: 1, usesLeft: 1, grantedBy: 'approver' }])

      // The same shard drifts: another incident, the same action.
      await spine.lab.heal()
      await spine.lab.break('config_drift', 'web-ams-1')
      await spine.incident('config_drift', 'resolved')
      expect(await codes(await newest('config_drift'))).toEqual(['GRANTED'])
      expect(await grants()).toMatchObject([{ usesLeft: 0 }])

      // Used up, and for another shard it never counted.
      await spine.lab.break('disk_pressure', 'web-ams-1')
      const again = await spine.pendingApproval()
      expect(again.targets).toEqual([{ kind: 'shard', id: 'web-ams-1' }])
      await approve(again, { grant: { uses: 5, hours: 1 } })
      await ends(again.incidentId, 'resolved')
      await spine.lab.break('config_drift', 'web-osl-1')
      const elsewhere = await spine.pendingApproval()
      expect(elsewhere.targets).toEqual([{ kind: 'shard', id: 'web-osl-1' }])
    })

    test('a revoked grant counts no more, and a high risk is never granted', async () => {
      const open = (await grants()).find(({ usesLeft }) => usesLeft > 0)
      const as = { token: spine.tokens.approver }
      expect((await spine.post(`/grants/${open?.id}/revoke`, {}, as)).body).toMatchObject({ revoked: true })
      expect((await spine.post(`/grants/${open?.id}/revoke`, {}, as)).status).toBe(404)
      expect((await spine.post(`/grants/${open?.id}/revoke`, {}, { token: spine.tokens.agent })).status).toBe(403)
      await spine.lab.break('host_down', 'host-ams-4')
      const asked = await spine.until('the migration', async () =>
        (await spine.get<{ items: Approval[] }>('/approvals?status=pending')).items.find(
          ({ tool }) => tool === 'execute_migration',
        ),
      )
      const refused = await approve(asked, { grant: { uses: 1, hours: 1 } })
      expect([refused.status, refused.body.code]).toEqual([422, 'NOT_GRANTABLE'])
    })

    test('what is stored of all this holds against the log', async () => {
      expect(await spine.get('/verify?limit=100')).toMatchObject({ differences: [], nextCursor: null })
      expect(await spine.get('/audit/verify')).toMatchObject({ ok: true })
    })

    test('the API and the worker count the same in the log, with the model and who serves it', async () => {
      const scrape = async (url: string) =>
        (await (await fetch(`${url}/metrics`)).text())
          .split('\n')
          .filter((line) => line.startsWith('nightshift_agentic'))
      const counted = await spine.until('both to have counted every turn', async () => {
        const { rows } = await sql<{ count: number }>`
      select count(*)::int as count from incident_event where kind = 'model_answered'`.execute(spine.db)
        const [api, worker] = await Promise.all([scrape(spine.url), scrape(spine.workerUrl)])
        const total = api?.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
        return total === rows[0]?.count && JSON.stringify(api) === JSON.stringify(worker) && api
      })
      expect(counted).toEqual([expect.stringContaining(`{provider="${new URL(spine.runbookUrl).host}",model=`)])
    })
  })

  describe('resumption', () => {
    let model: ScriptedModel
    let spine: Spine

    /** Another shard that the same answer wants to repair too; null where one answer holds one call. */
    let besides: string | null = null

    /** Looks, wants a repair that needs a person, and hands over: the same words for every incident. */
    function script(_turn: number, { messages }: ChatRequest): Said[] {
      const text = messages.map(({ content }) => content ?? '').join('\n')
      const incident = /inc_[0-9a-z]{26}/.exec(text)?.[0] ?? ''
      const shard = /web-osl-\d/.exec(text)?.[0] ?? ''
      const answers = messages.filter(({ role }) => role === 'assistant').length
      const shards = besides === null ? [shard] : [shard, besides]
      if (answers === 0) return shards.map((id) => ({ tool: 'get_shard', arguments: { id } }))
      if (answers === 1)
        return shards.map((id) => ({ tool: 'converge_shard', arguments: { id, reason: 'a service is down' } }))
      return [{ tool: 'escalate_incident', arguments: { id: incident, reason: 'a person should look at the cause' } }]
    }

    beforeAll(async () => {
      model = await scriptedModel(script)
      spine = await startSpine({
        parts: ['lab', 'api', 'worker'],
        environment: { LLM_BASE_URL: model.url, LAB_WEB_SHARDS: '8' },
      })
      await sql`insert into platform_config (key, value) values ('approval.risk.converge_shard', 'high')`.execute(
        spine.db,
      )
    })
    afterAll(async () => {
      await spine?.stop()
      await model?.stop()
    })

    /** What the model was told after the decision, without what tells one incident from another. */
    async function afterDecision(shard: string, meanwhile: () => Promise<void>): Promise<string> {
      model.requests.length = 0
      await spine.lab.break('service_down', shard)
      const asked: Approval = await spine.pendingApproval()
      await meanwhile()
      const { body } = await spine.post(
        `/approvals/${asked.id}/token`,
        { decision: 'approve' },
        { token: spine.tokens.approver },
      )
      const decision = { decision: 'approve', token: body.token }
      await spine.post(`/approvals/${asked.id}/decision`, decision, { token: spine.tokens.approver })
      await spine.until('its end', async () => {
        const { status } = await spine.get<{ status: string }>(`/incidents/${asked.incidentId}`)
        return status === 'escalated'
      })
      const told = model.requests.find(
        ({ messages }) => messages.filter(({ role }) => role === 'assistant').length === 2,
      )
      return (
        JSON.stringify(told?.messages.slice(2))
          .replaceAll(/(inc|alr|msg)_[0-9a-z]{26}/g, '$1_X')
          .replaceAll(shard, 'web-X')
          // A postcondition may be looked at once more on a busy machine, which is one row more.
          .replaceAll(/seq\\":\d+/g, 'seq\\":N')
          .replaceAll(/seq \d+/g, 'seq N')
          // The clock and what is left of the limits, which a wait and longer ids change.
          .replaceAll(/(at|budget)\\":\\"[^"\\]*\\"/g, '$1')
          .replaceAll(/\d{4}-\d\d-\d\dT[0-9:.]+Z/g, 'TIME')
      )
    }

    test('after a wait over a dead worker the model reads what it would have read without, byte for byte', async () => {
      const prompt = await afterDecision('web-osl-1', async () => {})
      const waited = await afterDecision('web-osl-2', async () => {
        await spine.kill('worker')
        await spine.start('worker')
        await new Promise((resolve) => setTimeout(resolve, 2_000))
      })
      expect(prompt).toContain('verification')
      expect(waited).toBe(prompt)
    })

    /** The two questions of one answer, the first of its card first. */
    async function askedTogether(shard: string, other: string): Promise<[Approval, Approval]> {
      besides = other
      await spine.lab.break('service_down', shard)
      const items = await spine.until('both questions', async () => {
        const pending = (await spine.get<{ items: Approval[] }>('/approvals?status=pending')).items
        return pending.length === 2 && pending
      })
      const of = (id: string) => items.find(({ targets }) => targets[0]?.id === id) as Approval
      return [of(shard), of(other)]
    }

    async function say(approval: Approval, decision: 'approve' | 'deny') {
      const as = { token: spine.tokens.approver }
      const { body } = await spine.post(`/approvals/${approval.id}/token`, { decision }, as)
      return await spine.post(`/approvals/${approval.id}/decision`, { decision, token: body.token }, as)
    }

    async function rowsAtTheEnd({ incidentId }: Approval): Promise<IncidentEvent[]> {
      await spine.until('its end', async () => {
        const { status } = await spine.get<{ status: string }>(`/incidents/${incidentId}`)
        return status === 'escalated'
      })
      return await spine.events(incidentId)
    }

    const ran = (events: IncidentEvent[]) =>
      events.flatMap((event) =>
        event.kind === 'tool_started' && event.metadata.effect === 'write' ? [event.metadata.arguments.id] : [],
      )

    test('the writes of one answer are asked about on one card, and what was approved early runs when its turn comes', async () => {
      const [first, second] = await askedTogether('web-osl-3', 'web-ams-1')
      expect([first.askedWith, second.askedWith]).toEqual([first.id, first.id])
      const { together, next } = await spine.get<ApprovalDetail>(`/approvals/${first.id}`)
      expect([together.map(({ id }) => id), next]).toEqual([[second.id], []])
      // The later one first: it waits for its turn all the same.
      expect((await say(second, 'approve')).body).toMatchObject({ status: 'approved' })
      await new Promise((resolve) => setTimeout(resolve, 1_500))
      expect(ran(await spine.events(first.incidentId))).toEqual([])
      await say(first, 'approve')
      const events = await rowsAtTheEnd(first)
      expect(ran(events)).toEqual(['web-osl-3', 'web-ams-1'])
      expect(events.filter(({ kind }) => kind === 'approval_requested')).toHaveLength(2)
      expect(await spine.get('/verify?limit=100')).toMatchObject({ differences: [] })
    })

    test('of the writes on one card each is decided by itself', async () => {
      const [first, second] = await askedTogether('web-osl-4', 'web-ams-2')
      await say(first, 'deny')
      // People are notified of the second when its turn comes, and only then.
      const announced = async () =>
        (await spine.db.selectFrom('approval').select('announced').where('id', '=', second.id).executeTakeFirst())
          ?.announced
      expect(await announced()).toBe(false)
      await say(first, 'deny')
      await spine.until('the turn of the second', announced)
      expect(await spine.get(`/incidents/${first.incidentId}`)).toMatchObject({ status: 'awaiting_approval' })
      await say(second, 'approve')
      expect(ran(await rowsAtTheEnd(first))).toEqual(['web-ams-2'])
    })
  })
})

describe('three days', () => {
  const threeDaysMs = 3 * 86_400_000
  const platform = scriptedPlatform()
  const core = useApi(() => ({ platform }))
  const temporal = useTemporal({ timeSkipping: true })
  let server: ReturnType<typeof serve>
  let model: Server
  let activities: Record<string, (...args: never[]) => Promise<unknown>>

  beforeAll(async () => {
    server = serve({ fetch: core.api.app.fetch, port: 0, hostname: '127.0.0.1' })
    model = runbookServer(0)
    await new Promise<void>((resolve) => model.listen(0, '127.0.0.1', resolve))
    const url = (of: { address(): unknown }) => `http://127.0.0.1:${(of.address() as AddressInfo).port}`
    if (!server.listening) await once(server, 'listening')
    const deps = {
      db: core.db,
      environment: {},
      core: createCoreClient({ baseUrl: url(server as never), apiKey: core.tokens.agent }),
    }
    const log = pino({ level: 'silent' })
    activities = {
      ...sanitizeFailures(
        contextActivities({ ...deps, prompts: readPrompts(), protocol: 'native', model: 'runbook-rules' }),
        log,
      ),
      ...sanitizeFailures(actActivities(deps), log),
      ...sanitizeFailures(approvalActivities(deps), log),
      ...sanitizeFailures(
        thinkActivities({
          db: core.db,
          models: [
            {
              ...{ name: 'default', model: 'runbook-rules', fallbacks: [] },
              client: createModelClient({ baseUrl: url(model), apiKey: '' }),
              served: servedModels(core.db, { baseUrl: url(model), apiKey: '' }, log),
            },
          ],
          temperature: 0,
          maxTokens: 500,
          contextTokens: 16_000,
        }),
        log,
      ),
    } as never
    await sql`insert into platform_config (key, value) values ('approval.expiry.execute_migration', '604800')`.execute(
      core.db,
    )
  })
  afterAll(() => {
    server.close()
    model.close()
  })

  const dead = 'host-osl-1'
  beforeEach(async () => {
    await moveClock(core.owner, '0 days')
    Object.assign(platform, { begun: [] })
    platform.inventoryState = scriptedPlatform().inventoryState
    for (const host of platform.inventoryState.hosts) if (host.id === dead) host.state = 'dead'
    for (const vm of platform.inventoryState.vms) if (vm.host === dead) vm.running = false
    await core.get('/hosts')
  })

  /** Runs an investigation of the dead host up to its question, lets three days pass on both clocks, and approves. */
  async function approvedAfterThreeDays(meanwhile: () => void = () => {}) {
    const incidentId = await openedIncident(core.db, {
      name: 'host_down',
      labels: { host: dead },
      title: `Host ${dead} is down`,
    })
    const pending = async () => {
      const { body } = await core.get('/approvals?status=pending')
      return (body.items as unknown as Approval[]).find((approval) => approval.incidentId === incidentId)
    }
    await temporal.working(activities, async (taskQueue) => {
      const handle = await temporal.client.workflow.start('InvestigateIncident', {
        workflowId: `investigate:${incidentId}:1`,
        taskQueue,
        args: [{ incidentId, attempt: 1, role: 'leader', groupId: `grp_${incidentId}`, group: 'none' }],
      })
      const first = await eventually('the question', pending)
      // The question is a row a moment before its run waits for the answer.
      await eventually('the run to wait', async () => {
        const { events } = await handle.fetchHistory()
        return events?.at(-1)?.timerStartedEventAttributes
      })
      await moveClock(core.owner, '3 days')
      await temporal.skip(threeDaysMs)
      meanwhile()
      // What was read counts as current for a quarter of a second, and these three days take less.
      core.api.deps.state.forget()
      await approve(first.id)
      await handle.signal('decided')
      if ((await core.get(`/approvals/${first.id}`)).body.status !== 'consumed') {
        const next = await eventually('the end, or another question', async () => {
          const { status, category } = (await core.get(`/incidents/${incidentId}`)).body
          if (status === 'escalated' && category !== 'mitigated') {
            const rows = (await eventsOf(core.db, incidentId))
              .slice(-5)
              .map(({ kind, metadata }) => ({ kind, metadata }))
            throw new Error(`it was escalated: ${JSON.stringify(rows)}`)
          }
          const again = await pending()
          return status === 'escalated' ? 'ended' : again?.id !== first.id && again
        })
        if (next !== 'ended') {
          await approve(next.id)
          await handle.signal('decided')
        }
      }
      await handle.result()
    })
    return { incidentId, events: await eventsOf(core.db, incidentId) }
  }

  async function approve(approvalId: string): Promise<void> {
    const { body } = await core.post(`/approvals/${approvalId}/token`, {
      as: core.tokens.approver,
      body: { decision: 'approve' },
    })
    const decided = await core.post(`/approvals/${approvalId}/decision`, {
      as: core.tokens.approver,
      body: { decision: 'approve', token: body.token },
    })
    expect(decided.status).toBe(200)
  }

  test('an approval that waited three days still works, and what it is about is read afresh before the act', async () => {
    const { incidentId, events } = await approvedAfterThreeDays()
    expect((await core.get(`/incidents/${incidentId}`)).body).toMatchObject({
      status: 'escalated',
      category: 'mitigated',
    })
    const judged = events.filter((event) => event.kind === 'call_judged' && event.metadata.tool === 'execute_migration')
    expect(judged.map((event) => event.kind === 'call_judged' && event.metadata.code)).toEqual([
      'RISK_HIGH',
      'APPROVED',
    ])
    const [asked, decided] = ['approval_requested', 'approval_decided'].map((kind) =>
      events.find((event) => event.kind === kind),
    )
    expect(Date.parse(decided?.at ?? '') - Date.parse(asked?.at ?? '')).toBeGreaterThan(threeDaysMs - 60_000)
    expect(platform.begun.length).toBeGreaterThan(0)
    expect(new Set(platform.begun).size).toBe(platform.begun.length)
  })

  test('when the platform changed in those three days, the approval is withdrawn and asked again for what is there now', async () => {
    const { events } = await approvedAfterThreeDays(() => {
      for (const host of platform.inventoryState.hosts) if (host.id !== dead) host.ramMib += 1_024
    })
    const judged = events.filter((event) => event.kind === 'call_judged' && event.metadata.tool === 'execute_migration')
    expect(judged.map((event) => event.kind === 'call_judged' && event.metadata.code)).toEqual([
      'RISK_HIGH',
      'DRIFT',
      'APPROVED',
    ])
    expect(events.find((event) => event.kind === 'approval_withdrawn')).toBeDefined()
    const asked = events.filter((event) => event.kind === 'approval_requested')
    expect(asked[1]).toMatchObject({
      metadata: { replaces: asked[0]?.kind === 'approval_requested' && asked[0].metadata.approvalId },
    })
    expect(new Set(platform.begun).size).toBe(platform.begun.length)
  })
})
