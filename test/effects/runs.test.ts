import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { Client, Connection, ScheduleOverlapPolicy } from '@temporalio/client'
import { sql } from 'kysely'
import pino from 'pino'
import { queueActivities } from '../../activities/queue.ts'
import { incidentById } from '../../db/incidents/incidents.ts'
import { vmById } from '../../db/inventory/platform-rows.ts'
import { actionOf, append } from '../../db/log/append.ts'
import { eventsOf } from '../../db/log/events.ts'
import { systemScope } from '../../db/scope.ts'
import { effectByKey, notePlanOfEffect } from '../../db/writes/effects.ts'
import { agentActor } from '../../domain/event.ts'
import type { PlanStep } from '../../domain/placement.ts'
import { queueScheduleId } from '../../domain/step-key.ts'
import { type Runs, temporalRuns } from '../../effects/runs.ts'
import { watch } from '../../effects/watchdog.ts'
import { announced, asked, consumed } from '../support/announced.ts'
import { twoWaves, useApi } from '../support/api.ts'
import { temporalAddress } from '../support/broker.ts'
import { claimedIncident, moveClock, openedIncident, useDatabase } from '../support/database.ts'
import { eventually } from '../support/directory.ts'
import { scriptedPlatform } from '../support/scripted-platform.ts'
import { newTaskQueue, useTemporal } from '../support/temporal.ts'

describe('runs', () => {
  describe('lost runs', () => {
    const database = useDatabase()
    const temporal = useTemporal({ cached: 100 })
    const log = pino({ level: 'silent' })

    let passedSeconds = 0

    /** Rounds of the watchdog, each ten seconds after the one before, all of them after the rows were silent for a while. */
    async function rounds(count: number, runs: Runs = temporalRuns(temporal.client, log)): Promise<void> {
      const metrics = { watchdog: { inc: () => {} } } as never
      passedSeconds += 20
      for (let round = 0; round < count; round += 1) {
        passedSeconds += 10
        await moveClock(database.owner, `${passedSeconds} seconds`)
        await watch({ db: database.db, locks: database.db, runs, metrics, log })
      }
    }

    const standing = async (id: string) => {
      const { status, attempt, assignedTo } = (await incidentById(database.db, id)) ?? {}
      return { status, attempt, assignedTo }
    }
    const started = (incidentId: string, attempt = 1) =>
      temporal.client.workflow.start('InvestigateIncident', {
        taskQueue: newTaskQueue(),
        workflowId: `investigate:${incidentId}:${attempt}`,
        args: [],
      })

    test('an incident whose run Temporal does not know is open again after two looks, and not after one', async () => {
      const id = await claimedIncident(database.db)
      await rounds(1)
      expect(await standing(id)).toMatchObject({ status: 'investigating', attempt: 1 })
      await rounds(2)
      expect(await standing(id)).toEqual({ status: 'open', attempt: 2, assignedTo: null })
      expect((await eventsOf(database.db, id)).at(-1)).toMatchObject({ kind: 'noted', metadata: { code: 'run_lost' } })
      // The run that was taken for dead may write nothing more.
      const late = database.db.transaction().execute((trx) =>
        append(trx, id, 1, {
          kind: 'noted',
          actor: agentActor,
          detail: 'late',
          metadata: { code: 'quiet', text: 'late' },
        }),
      )
      await expect(late).rejects.toThrow('attempt 2')
    })

    test('what waits for a person is asked again by the next attempt: the question of the lost run is taken back', async () => {
      const id = await claimedIncident(database.db)
      const approvalId = await asked(database.db, id)
      await rounds(3)
      expect(await standing(id)).toMatchObject({ status: 'open' })
      const row = database.db.selectFrom('approval').select('status').where('id', '=', approvalId)
      expect(await row.executeTakeFirst()).toEqual({ status: 'withdrawn' })
    })

    test('a run that is open at Temporal keeps its incident, and one that ended there does not', async () => {
      const [living, ended] = [await claimedIncident(database.db), await claimedIncident(database.db)]
      const [run, over] = [await started(living), await started(ended)]
      await over.terminate()
      await rounds(3)
      expect([(await standing(living)).status, (await standing(ended)).status]).toEqual(['investigating', 'open'])
      await run.terminate()
    })

    test('a Temporal that cannot be reached says nothing about any run, and neither does one without the namespace', async () => {
      const id = await claimedIncident(database.db)
      const dead = Connection.lazy({ address: '127.0.0.1:1' })
      await rounds(3, temporalRuns(new Client({ connection: dead }), log))
      const { connection } = temporal.client
      await rounds(3, temporalRuns(new Client({ connection, namespace: 'not-registered' }), log))
      expect(await standing(id)).toMatchObject({ status: 'investigating', attempt: 1 })
    })

    test('a lost run of whose write nobody knows what became is handed to a person, and the write is not begun again', async () => {
      const id = await claimedIncident(database.db)
      await database.db.transaction().execute((trx) =>
        append(trx, id, 1, {
          kind: 'tool_started',
          actor: agentActor,
          turn: 1,
          stepKey: `${id}.1:1:tool_started:0`,
          action: actionOf('tool_started', { effect: 'write' }),
          detail: 'converge_shard',
          metadata: {
            callId: 'c1_0',
            tool: 'converge_shard',
            arguments: {},
            effect: 'write',
            targets: [],
            approvalId: null,
          },
        } as never),
      )
      await rounds(3)
      expect(await standing(id)).toMatchObject({ status: 'escalated' })
      const last = (await eventsOf(database.db, id)).findLast(({ kind }) => kind === 'escalated')
      expect(last?.detail).toMatch(/What became of converge_shard is not known/)
    })

    test('a run that is lost again and again is started three times more and no further', async () => {
      const id = await claimedIncident(database.db)
      for (let lost = 0; lost < 4; lost += 1) {
        await rounds(3)
        await database.db
          .updateTable('incident')
          .set({ status: 'investigating', assignedTo: 'x' })
          .where('id', '=', id)
          .where('status', '=', 'open')
          .execute()
      }
      expect(await standing(id)).toMatchObject({ status: 'escalated' })
    })

    test('an attempt that Temporal remembers and the restored rows do not is skipped, and one of which nothing came is not', async () => {
      const { db } = database
      const { freeAttempt } = queueActivities({ db, client: temporal.client, taskQueue: 'nightshift', environment: {} })
      const id = await openedIncident(db)
      const run = await started(id)
      // It may be about to claim.
      expect(await freeAttempt(id, 1)).toBe('leave')
      expect(await standing(id)).toMatchObject({ attempt: 0 })
      await run.terminate()
      expect(await freeAttempt(id, 1)).toBe('skipped')
      expect(await standing(id)).toMatchObject({ status: 'open', attempt: 1 })
      expect((await eventsOf(db, id)).at(-1)).toMatchObject({ attempt: 1, metadata: { code: 'attempt_skipped' } })
    })
  })

  describe('runs', () => {
    const log = pino({ level: 'silent' })
    const run = { incidentId: 'inc_00000000000000000000000001', attempt: 1 }
    let client: Client
    let runs: Runs

    beforeAll(async () => {
      client = new Client({ connection: Connection.lazy({ address: await temporalAddress() }) })
      runs = temporalRuns(client, log)
    })
    afterAll(() => client.connection.close())

    test('a run is told, and one that there is not is known to be gone', async () => {
      const handle = await client.workflow.start('InvestigateIncident', {
        workflowId: `investigate:${run.incidentId}:1`,
        taskQueue: 'nobody-works-here',
      })
      expect(await runs.tell(run, 'decided', 2_000)).toBe('told')
      expect(await runs.tell({ ...run, attempt: 2 }, 'cancelInvestigation', 2_000)).toBe('gone')
      await handle.terminate()
      expect(await runs.isReachable(1_000)).toBe(true)
    })

    test('the queue ticks when it is triggered', async () => {
      const schedule = await client.schedule.create({
        scheduleId: queueScheduleId,
        spec: { intervals: [{ every: '1 hour' }] },
        policies: { overlap: ScheduleOverlapPolicy.SKIP },
        action: { type: 'startWorkflow', workflowType: 'ProcessIncidentQueue', taskQueue: 'nobody-works-here' },
      })
      for (let n = 0; n < 20; n++) runs.triggerQueue()
      const ticks = await eventually('a tick', async () => (await schedule.describe()).info.recentActions.length)
      await schedule.delete()
      expect(ticks).toBe(1)
    })

    test('a Temporal that is down is said to be out of reach, in time', async () => {
      const lost = new Client({ connection: Connection.lazy({ address: '127.0.0.1:1' }) })
      expect(await temporalRuns(lost, log).tell(run, 'decided', 500)).toBe('unreached')
      await lost.connection.close()
    })
  })

  describe('platform state', () => {
    const platform = scriptedPlatform()
    const api = useApi(() => ({ platform }))

    test('who looks after a write sees it, also when another write comes in while they look', async () => {
      const { state, db } = api.api.deps
      const answerNow: (() => void)[] = []
      const { inventory } = platform
      platform.inventory = async () => {
        const told = await inventory()
        await new Promise<void>((resolve) => answerNow.push(resolve))
        return told
      }
      const afterWrite = async () => {
        state.forget()
        await state.requireCurrent()
        return await vmById(systemScope(db), 'vm-2')
      }
      await platform.startVm('vm-2', 'host-osl-3', 'first')
      const first = afterWrite()
      await platform.startVm('vm-3', 'host-osl-1', 'second')
      const second = afterWrite()
      await Promise.race([
        sleep(5_000),
        (async () => {
          while (answerNow.length < 2) await sleep(5)
        })(),
      ])
      answerNow[0]?.()
      await Promise.race([first, sleep(200)])
      answerNow[1]?.()
      expect(await first).toMatchObject({ host: 'host-osl-3', running: true })
      expect(await second).toMatchObject({ host: 'host-osl-3', running: true })
    })
  })
})

describe('execute plan', () => {
  const platform = scriptedPlatform()
  const api = useApi(() => ({ platform }))
  const { startVm, migrateVm } = platform

  beforeEach(() => {
    Object.assign(platform, { inventoryState: twoWaves(), script: {}, down: false, begun: [] })
    api.api.deps.state.forget()
  })
  afterEach(() => {
    Object.assign(platform, { startVm, migrateVm })
  })

  type Proposed = {
    proposal_id: string
    planDigest: string
    stateFingerprint: string
    steps: PlanStep[]
    state: string
  }

  async function planned(incidentId: string | null = null): Promise<Proposed> {
    const body = { intent: 'recover', host_ids: ['c'], use_rack_constraints: false, incident_id: incidentId }
    const answer = await api.post('/placement/proposals', { body })
    expect(answer.body).toMatchObject({ state: 'planned', migrations: 2, lowerBound: 2 })
    return answer.body as unknown as Proposed
  }

  async function execute(plan: Proposed, key = `k-${plan.proposal_id}`) {
    const answer = await api.post(`/placement/proposals/${plan.proposal_id}/execute`, {
      ...{ body: { reason: 'host c is dead' }, key, headers: { 'if-match': plan.stateFingerprint } },
    })
    return answer.body as unknown as {
      detail: string
      steps: { step: number; vm: string; status: string; detail: string }[]
      next_proposal_id?: string
      result?: { steps: { vm: string; status: string }[] }
    }
  }

  const statusOf = (steps: { vm: string; status: string }[]) =>
    Object.fromEntries(steps.map(({ vm, status }) => [vm, status]))
  const hostOf = (vm: string) => platform.inventoryState.vms.find(({ id }) => id === vm)?.host

  test('steps whose needs are met run at once, the others when these are done, and each is a row', async () => {
    const incident = await claimedIncident(api.db)
    const running = { now: 0, most: 0 }
    const two = Promise.withResolvers<void>()
    platform.migrateVm = async (...args) => {
      running.now += 1
      running.most = Math.max(running.most, running.now)
      if (running.now === 2) two.resolve()
      await two.promise
      running.now -= 1
      return await migrateVm(...args)
    }
    const done = await execute(await planned(incident))
    expect(statusOf(done.steps)).toEqual({ 'small-1': 'OK', 'small-2': 'OK', big: 'OK', lone: 'OK' })
    expect(running.most).toBe(2)
    expect([hostOf('big'), hostOf('small-1'), hostOf('small-2')]).toEqual(['a', 'b', 'b'])
    const rows = (await eventsOf(api.db, incident)).filter(({ kind }) => kind.startsWith('step_'))
    const big = rows.findIndex(({ kind, detail }) => kind === 'step_started' && detail?.includes('big'))
    expect(rows).toHaveLength(8)
    expect(rows.slice(0, big).filter(({ detail }) => detail?.includes('small')).length).toBe(4)
  })

  test('a step that fails stops what needs it, and nothing else', async () => {
    platform.script['small-1'] = 'failed'
    const done = await execute(await planned())
    expect(statusOf(done.steps)).toEqual({ 'small-1': 'FAILED', 'small-2': 'OK', big: 'SKIPPED', lone: 'OK' })
    expect(done.detail).toContain('2 of 4 steps were done, 1 failed, 1 was not begun')
    expect(hostOf('big')).toBe('c')
  })

  test('a VM that is not where the platform said is a step that failed', async () => {
    platform.startVm = async (vm, host, key) => {
      const answer = await startVm(vm, host, key)
      if (vm === 'lone') Object.assign(platform.inventoryState.vms.find(({ id }) => id === vm)!, { running: false })
      return answer
    }
    const done = await execute(await planned())
    expect(done.steps.find(({ vm }) => vm === 'lone')).toMatchObject({
      status: 'FAILED',
      detail: expect.stringContaining('lone is stopped on'),
    })
  })

  test('a host that dies in the middle stops the rest, keeps what is done, and has a new plan wait for a decision', async () => {
    const incident = await claimedIncident(api.db)
    platform.migrateVm = async (...args) => {
      const answer = await migrateVm(...args)
      // Now there is no room for the big one anywhere, and one more VM is down.
      Object.assign(platform.inventoryState.hosts.find(({ id }) => id === 'a')!, { ramMib: 4_000 })
      return answer
    }
    const done = await execute(await planned(incident))
    expect(statusOf(done.steps)).toMatchObject({ 'small-1': 'OK', 'small-2': 'OK', big: 'SKIPPED' })
    expect(done.steps.find(({ vm }) => vm === 'big')?.detail).toContain('a has another size')
    const rows = (await eventsOf(api.db, incident)).filter(({ kind }) => kind === 'step_finished')
    expect(rows.filter(({ detail }) => detail?.includes('SKIPPED')).length).toBeGreaterThan(0)
  })

  test('a change that needs other moves is planned again and not carried out unasked', async () => {
    platform.migrateVm = async (vm, move, key) => {
      const answer = await migrateVm(vm, move, key)
      // Somebody starts a VM of their own on a: now small-1 or it would have to leave for the big one.
      if (!platform.inventoryState.vms.some(({ id }) => id === 'foreign')) {
        const like = platform.inventoryState.vms.find(({ id }) => id === 'lone')!
        platform.inventoryState.vms.push({ ...like, id: 'foreign', host: 'a', running: true, ramMib: 500 })
      }
      return answer
    }
    const done = await execute(await planned())
    expect(statusOf(done.steps)).toMatchObject({ big: 'SKIPPED' })
    expect(done.next_proposal_id).toMatch(/^prp_/)
    expect(hostOf('foreign')).toBe('a')
    const next = (await api.get(`/placement/proposals/${done.next_proposal_id}`)).body as unknown as Proposed
    expect(next.steps.map(({ vm }) => vm)).toContain('foreign')
    expect(platform.begun.some((key) => key.includes('foreign'))).toBe(false)
  })

  test('a change after which a part of the plan is enough is no reason to ask again', async () => {
    platform.migrateVm = async (...args) => {
      const answer = await migrateVm(...args)
      // Somebody starts the small one by hand, where the plan would have put it or elsewhere.
      Object.assign(platform.inventoryState.vms.find(({ id }) => id === 'lone')!, { host: 'd', running: true })
      return answer
    }
    // The one that needs nothing would run in the first wave: hold it back.
    platform.startVm = async (vm, host, key) => {
      if (vm === 'lone') throw new Error('this start was not to be sent')
      return await startVm(vm, host, key)
    }
    const plan = await planned()
    await api.db
      .updateTable('proposal')
      .set({
        steps: JSON.stringify(plan.steps.map((step) => (step.vm === 'lone' ? { ...step, needs: [1, 2] } : step))),
      })
      .where('id', '=', plan.proposal_id)
      .execute()
    const done = await execute(plan)
    expect(statusOf(done.steps)).toEqual({ 'small-1': 'OK', 'small-2': 'OK', big: 'OK', lone: 'SKIPPED' })
    expect(done.steps.find(({ vm }) => vm === 'lone')?.detail).toContain('not needed any more')
  })

  async function approvedCall(): Promise<{ incident: string; key: string; plan: Proposed }> {
    const incident = await claimedIncident(api.db)
    const plan = await planned(incident)
    const identity = { plan: plan.planDigest }
    const approval = await asked(api.db, incident, { identity })
    const token = await api.post(`/approvals/${approval}/token`, {
      as: api.tokens.approver,
      body: { decision: 'approve' },
    })
    const decision = { decision: 'approve', token: (token.body as unknown as { token: string }).token }
    await api.post(`/approvals/${approval}/decision`, { body: decision, as: api.tokens.approver })
    await consumed(api.db, incident, approval)
    return { incident, plan, key: await announced(api.db, incident, 'execute_migration', identity, approval) }
  }

  test('an investigation that is stopped begins no further step', async () => {
    const { incident, key, plan } = await approvedCall()
    platform.migrateVm = async (...args) => {
      const answer = await migrateVm(...args)
      await api.post(`/incidents/${incident}/cancel`, { body: { reason: 'this is the wrong night for it' } })
      return answer
    }
    const answer = await api.post(`/placement/proposals/${plan.proposal_id}/execute`, {
      ...{
        body: { reason: 'host c is dead' },
        key,
        headers: { 'if-match': plan.stateFingerprint },
        as: api.tokens.agent,
      },
    })
    expect(answer.body).toMatchObject({ skipped: expect.any(Number) })
    const { steps } = answer.body as unknown as Awaited<ReturnType<typeof execute>>
    expect(steps.find(({ vm }) => vm === 'big')).toMatchObject({
      status: 'SKIPPED',
      detail: 'the investigation was stopped',
    })
  })

  test('a plan whose process died in the middle is gone on with when somebody asks, each step once', async () => {
    const { key, plan } = await approvedCall()
    // As it was left: accepted, one step done and told, one done without a word, the others not begun.
    await sql`insert into effect (key, incident_id, tool, action_digest, status, result, started_at)
    values (${key}, null, 'execute_migration', 'x', 'running', '{}', nightshift_now() - interval '20 seconds')`.execute(
      api.owner,
    )
    await notePlanOfEffect(api.db, key, plan.proposal_id)
    for (const { step, action, vm, from, to } of plan.steps) {
      if (action === 'migrate') await migrateVm(vm, { from: from as string, to }, `${key}:${step}`)
    }
    const begun = [...platform.begun]
    const ended = await eventually('the plan to be settled', async () => {
      await api.get(`/effects/${encodeURIComponent(key)}`)
      const effect = await effectByKey(api.db, key)
      return effect?.status === 'done' ? effect : null
    })
    expect(statusOf(ended.result.steps as never)).toEqual({ 'small-1': 'OK', 'small-2': 'OK', big: 'OK', lone: 'OK' })
    expect(platform.begun.slice(0, begun.length)).toEqual(begun)
    expect(new Set(platform.begun).size).toBe(platform.begun.length)
    expect(platform.begun).toHaveLength(4)
  })

  test('a plan that was left too long ago is not gone on with', async () => {
    const { key, plan } = await approvedCall()
    await sql`insert into effect (key, incident_id, tool, action_digest, status, result, started_at)
    values (${key}, null, 'execute_migration', 'x', 'running', '{}', nightshift_now() - interval '2 hours')`.execute(
      api.owner,
    )
    await notePlanOfEffect(api.db, key, plan.proposal_id)
    const ended = await eventually('the plan to be settled', async () => {
      await api.get(`/effects/${encodeURIComponent(key)}`)
      const effect = await effectByKey(api.db, key)
      return effect?.status === 'failed' ? effect : null
    })
    expect(ended.detail).toContain('too long ago')
    expect(platform.begun).toEqual([])
  })

  test('hosts that somebody wrote down are planned for and never acted on; what is wrong is named by its field', async () => {
    const written = {
      hosts: [
        { name: 'x', ram_mib: 8_192, cpu_mc: 8_000, state: 'dead' },
        { name: 'y', ram_mib: 8_192, cpu_mc: 8_000 },
      ],
      vms: [{ vmid: 101, ram_mib: 4_096, cpu_mc: 2_000, host: 'x' }],
    }
    const ask = (problem: unknown) =>
      api.post('/placement/proposals', {
        body: { intent: 'recover', host_ids: ['x'], use_rack_constraints: false, problem },
      })
    const plan = (await ask(written)).body as unknown as Proposed
    expect(plan.steps).toMatchObject([{ action: 'start', vm: '101', to: 'y' }])
    const refused = await api.post(`/placement/proposals/${plan.proposal_id}/execute`, {
      ...{ body: { reason: 'just to see' }, headers: { 'if-match': plan.stateFingerprint } },
    })
    expect([refused.status, refused.body.code]).toEqual([409, 'NOT_OF_THE_INVENTORY'])

    const wrong = async (problem: unknown) => {
      const answer = await ask(problem)
      return [answer.status, (answer.body.errors as { path: string }[] | undefined)?.map(({ path }) => path)]
    }
    const [vm] = written.vms
    expect(await wrong({ ...written, vms: [{ ...vm, ram_mib: -1 }] })).toEqual([400, ['vms.0.ram_mib']])
    expect(await wrong({ ...written, vms: [{ ...vm, cpu_mc: 'NaN' }] })).toEqual([400, ['vms.0.cpu_mc']])
    expect(await wrong({ ...written, vms: [vm, vm] })).toEqual([400, ['vms.1.vmid']])
    expect(await wrong({ ...written, vms: [{ ...vm, host: 'z' }] })).toEqual([400, ['vms.0.host']])
    expect(await wrong({ ...written, vms: [{ ...vm, pinned_to: ['z'] }] })).toEqual([400, ['vms.0.pinned_to.0']])
    const group = [1, 2, 3].map((vmid) => ({ ...vm, vmid, ha_group: 'db' }))
    expect(await wrong({ ...written, vms: group })).toEqual([400, ['vms.2.ha_group']])
    expect(await wrong({ ...written, hosts: [] })).toMatchObject([400, ['hosts']])
  })

  test('a body with a key given twice, or with bytes that are no text, is planned for by none of its readings', async () => {
    const hosts = '"hosts": [{"name": "x", "ram_mib": 9, "cpu_mc": 9, "state": "dead"}]'
    const asked = (problem: string) =>
      `{"intent": "recover", "host_ids": ["x"], "use_rack_constraints": false, "problem": ${problem}}`
    const twice = await api.post('/placement/proposals', { raw: asked(`{${hosts}, "vms": [], "vms": []}`) })
    expect([twice.status, twice.body.code]).toEqual([400, 'INVALID_PROBLEM'])
    expect(twice.body.errors).toEqual([expect.objectContaining({ path: 'problem.vms' })])
    const answer = await api.api.app.request('/api/v1/placement/proposals', {
      method: 'POST',
      headers: { authorization: `Bearer ${api.tokens.admin}`, 'content-type': 'application/json' },
      body: Buffer.from(asked(`{${hosts.replace('"x"', '"\xfc"')}, "vms": []}`), 'latin1'),
    })
    expect(answer.status).toBe(400)
    expect(await answer.json()).toMatchObject({
      code: 'BAD_REQUEST',
      detail: expect.stringMatching(/byte \d+ is not UTF-8/),
    })
  })

  test('a plan that an older release stored is read, and its steps wait for each other as they were approved', async () => {
    const plan = await planned()
    const bare = plan.steps.map(({ step, action, vm, from, to }) => ({ step, action, vm, from, to }))
    await api.db
      .updateTable('proposal')
      .set({ steps: JSON.stringify(bare), unplaced: JSON.stringify([{ vm: 'lone', reason: 'no room' }]) })
      .where('id', '=', plan.proposal_id)
      .execute()
    const { status, body } = await api.get(`/placement/proposals/${plan.proposal_id}`)
    expect(status).toBe(200)
    const steps = body.steps as unknown as PlanStep[]
    expect(steps.map(({ needs }) => needs)).toEqual(
      steps.map((_, index) => steps.slice(0, index).map(({ step }) => step)),
    )
    expect(body.unplaced).toEqual([{ vm: 'lone', reason: 'no room' }])
  })
})
