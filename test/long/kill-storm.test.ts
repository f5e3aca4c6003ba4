import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { ScheduleOverlapPolicy } from '@temporalio/client'
import { queueActivities } from '../../activities/queue.ts'
import { connect } from '../../db/connect.ts'
import { verifyIncident } from '../../db/verify/incident.ts'
import type { Approval } from '../../domain/approval.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import { migrateToLatest } from '../../migrations/migrate.ts'
import { type Postgres, startPostgres } from '../../start/postgres.ts'
import { giveBack } from '../../start/process.ts'
import type { InvestigateIncident } from '../../workflows/investigate.ts'
import { alertResolved, type DecisionStatus } from '../../workflows/outcome.ts'
import { signalsPerRun } from '../../workflows/run.ts'
import { simulateLives } from '../simulation/life.ts'
import { freshDatabase } from '../support/broker.ts'
import { moveClock, openedIncident, useDatabase } from '../support/database.ts'
import { eventually, temporaryDirectory } from '../support/directory.ts'
import { type RunningHost, runHost } from '../support/model-hosts/host.ts'
import { vllm } from '../support/model-hosts/local.ts'
import { freshSeed, freshShare } from '../support/random-cases.ts'
import { ask, calls, hourMs, investigation, scriptedGroup, scriptedRun } from '../support/scripted-run.ts'
import { shardPlatform } from '../support/shard-platform.ts'
import { type PartName, type Spine, startSpine } from '../support/spine.ts'
import { newTaskQueue, useTemporal } from '../support/temporal.ts'
import { ownTemporal } from '../support/temporal-proxy.ts'

describe('kill storm', () => {
  describe('kill storm', () => {
    /** How long things are killed for: `KILL_STORM_SECONDS=600` for the ten minutes that a release has to stand. */
    const stormSeconds = Number(process.env.KILL_STORM_SECONDS ?? 45)
    /** Two writes every three seconds, and an approval for each. */
    const alerts = Math.max(20, Math.round(stormSeconds * 0.42))
    const settledWithinMs = 300_000

    const stops: (() => Promise<unknown> | unknown)[] = []
    afterAll(async () => {
      for (const stop of stops.reverse()) await stop()
    })

    type World = {
      spine: Spine
      postgres: { current: Postgres; again(): Promise<void> }
      temporal: Awaited<ReturnType<typeof ownTemporal>>
      platform: Awaited<ReturnType<typeof shardPlatform>>
    }

    async function build(): Promise<World> {
      const directory = temporaryDirectory()
      stops.push(() => directory.remove())
      const dir = `${directory.path}/postgres`
      const postgres = {
        current: await startPostgres({ dir }),
        async again() {
          const { port } = postgres.current
          giveBack(port)
          postgres.current = await startPostgres({ dir, port })
        },
      }
      stops.push(() => postgres.current.stop())
      await migrateToLatest(postgres.current.url)
      const temporal = await ownTemporal(directory.path)
      stops.push(() => temporal.stop())
      const platform = await shardPlatform(alerts, 300)
      stops.push(() => platform.stop())
      const owner = connect(postgres.current.url, { owner: true, max: 1 })
      const settings = { 'approval.risk.converge_shard': 'high', 'agent.max_followers': '40', 'alert.quiet': '0' }
      for (const type of ['replication_lag', 'config_drift'])
        Object.assign(settings, { [`agent.concurrency.${type}`]: '20' })
      for (const [key, value] of Object.entries(settings))
        await owner
          .insertInto('platformConfig')
          .values({ key, value } as never)
          .execute()
      await owner.destroy()
      const spine = await startSpine({
        parts: ['runbook', 'api', 'api2', 'worker', 'worker2'],
        databaseUrl: postgres.current.url,
        temporalAddress: temporal.current.address,
        environment: { PLATFORM_URL: platform.url, WATCHDOG_INTERVAL_SECONDS: '5' },
      })
      stops.push(() => spine.stop())
      return { spine, postgres, temporal, platform }
    }

    /** Sends each alert until it is acknowledged. */
    async function raise({ spine }: World, isOver: () => boolean): Promise<number> {
      let acknowledged = 0
      for (let n = 0; n < alerts; n += 1) {
        const type = n % 2 === 0 ? 'replication_lag' : 'config_drift'
        const labels = { alertname: type, incident_type: type, severity: 'warning', shard: `db-${n}` }
        const alert = {
          status: 'firing',
          labels,
          annotations: {},
          fingerprint: `fp-${n}`,
          startsAt: new Date().toISOString(),
        }
        for (;;) {
          const answer = await spine
            .post('/ingest/alertmanager', { version: '4', alerts: [alert] }, { token: spine.tokens.ingest })
            .catch(() => null)
          if (answer?.status === 202) break
          await sleep(200)
        }
        acknowledged += 1
        if (!isOver()) await sleep((stormSeconds * 900) / alerts)
      }
      return acknowledged
    }

    /** A person who approves whatever waits, at whichever server answers. */
    async function approve({ spine }: World, decided: Set<string>, isOver: () => boolean): Promise<void> {
      const token = spine.tokens.approver
      while (!isOver()) {
        for (const url of [spine.url, spine.url2]) {
          spine.talkTo(url)
          const pending = await spine
            .get<{ items: Approval[] }>('/approvals?status=pending&limit=100', token)
            .catch(() => ({ items: [] }))
          for (const { id } of pending.items) {
            const minted = await spine
              .post(`/approvals/${id}/token`, { decision: 'approve' }, { token })
              .catch(() => null)
            const body = { token: minted?.body.token, decision: 'approve', reason: 'go on' }
            const answer =
              minted?.status === 201
                ? await spine.post(`/approvals/${id}/decision`, body, { token }).catch(() => null)
                : null
            if (answer?.status === 200) decided.add(id)
          }
        }
        await sleep(250)
      }
    }

    /** Kills something every five to ten seconds, and starts it again. */
    async function kill({ spine, postgres, temporal }: World): Promise<number> {
      const parts: PartName[] = ['worker', 'api', 'runbook', 'worker2', 'api2']
      const until = Date.now() + stormSeconds * 1000
      let kills = 0
      for (; Date.now() < until; kills += 1) {
        await sleep(5_000 + Math.random() * 5_000)
        const which = kills % 7
        if (which === 5) {
          process.kill(postgres.current.process.pid, 'SIGKILL')
          await sleep(500)
          await postgres.again()
        } else if (which === 6) {
          process.kill(temporal.current.process.pid, 'SIGKILL')
          await sleep(1_000)
          await temporal.again()
        } else {
          const part = parts[which] as PartName
          await spine.kill(part)
          await spine.start(part)
        }
      }
      return kills
    }

    /** Each write was started once with an approval of its own, which was used for it alone. A shard may be written again, if a person said so. */
    async function writesWithoutApproval({ db, events }: Spine): Promise<string[]> {
      const wrong: string[] = []
      const used = new Map<string, string>()
      for (const { id } of await db.selectFrom('incident').select('id').execute()) {
        const rows = await events(id)
        const writes = rows.filter((row) => row.kind === 'tool_started' && row.metadata.effect === 'write')
        for (const row of writes) {
          if (row.kind !== 'tool_started') continue
          const { approvalId } = row.metadata
          const isDecision = (each: IncidentEvent) =>
            each.kind === 'approval_decided' &&
            each.metadata.approvalId === approvalId &&
            each.metadata.decision === 'approve'
          if (approvalId === null || !rows.some(isDecision)) wrong.push(`${row.stepKey} has no approval`)
          else if (used.has(approvalId)) wrong.push(`${row.stepKey} and ${used.get(approvalId)} used ${approvalId}`)
          else used.set(approvalId, String(row.stepKey))
        }
        if (writes.length > 1) console.log(`${id} was written ${writes.length} times:\n${rows.map(storyOf).join('\n')}`)
      }
      return wrong
    }

    function storyOf({ seq, at, attempt, turn, kind, detail }: IncidentEvent): string {
      return `${seq} ${at.slice(11, 23)} #${attempt} t${turn ?? '-'} ${kind} ${detail.slice(0, 140)}`
    }

    test(
      'whatever is killed for as long as there are writes and decisions: nothing is lost, and nothing happens twice',
      async () => {
        const world = await build()
        const { spine, platform } = world
        const decided = new Set<string>()
        let isStormOver = false
        let isSettled = false
        const approving = approve(world, decided, () => isSettled)
        const raising = raise(world, () => isStormOver)
        const kills = await kill(world)
        const decidedInStorm = decided.size
        isStormOver = true
        const acknowledged = await raising
        expect(acknowledged).toBe(alerts)
        const open = async () =>
          await spine.db
            .selectFrom('incident')
            .select(['id', 'status'])
            .where('status', 'not in', ['resolved', 'escalated'])
            .execute()
        await spine.until('every incident to have ended', async () => (await open()).length === 0, settledWithinMs)
        isSettled = true
        await approving

        const incidents = await spine.db.selectFrom('incident').select(['id', 'status', 'outcome']).execute()
        expect(incidents).toHaveLength(alerts)
        const times = [...platform.begun.values()].map((each) => each.times)
        expect(Math.max(...times)).toBe(1)
        const done = await spine.db
          .selectFrom('incidentEvent')
          .select('stepKey')
          .where('kind', '=', 'tool_finished')
          .where('metadata', '@>', JSON.stringify({ effect: 'write', outcome: 'done' }) as never)
          .execute()
        // What a row calls done was begun at the platform.
        expect(platform.begun.size).toBeGreaterThanOrEqual(done.length)
        expect(await writesWithoutApproval(spine)).toEqual([])
        const flaws = []
        for (const { id } of incidents) flaws.push(...(await verifyIncident(spine.db, id)).found)
        expect(flaws).toEqual([])
        const ends = Object.entries(
          Object.groupBy(incidents, ({ status, outcome }) => `${status} ${outcome ?? ''}`.trim()),
        )
        console.log(
          `kill storm: ${kills} kills in ${stormSeconds} s; ${acknowledged} alerts; ${platform.begun.size} writes, each once; ${decided.size} approvals, ${decidedInStorm} of them during the kills; ${ends.map(([end, list]) => `${list?.length} ${end}`).join(', ')}`,
        )
      },
      (stormSeconds + 120) * 1000 + settledWithinMs,
    )
  })

  describe('decisions at once', () => {
    describe('model slots', () => {
      let spine: Spine
      let host: RunningHost
      let isHanging = true

      beforeAll(async () => {
        host = await runHost(vllm({ window: 16_384 }), async (asked) => {
          if (isHanging) await new Promise(() => {})
          const id = /inc_[0-9a-z]+/.exec(JSON.stringify(asked.messages))?.[0]
          if (!asked.messages.some(({ role }) => role === 'tool')) {
            return { calls: [{ name: 'find_resource', arguments: { text: 'osl' } }] }
          }
          return { calls: [{ name: 'escalate_incident', arguments: { id, reason: 'I looked and found nothing.' } }] }
        })
        spine = await startSpine({
          parts: ['api', 'worker'],
          environment: { LLM_BASE_URL: host.url, LLM_MODEL: 'qwen3', LLM_MAX_CONCURRENT: '1' },
        })
      })
      afterAll(async () => {
        await spine?.stop()
        await host?.stop()
      })

      test('a worker that is killed while it asks the model loses its slot, and both runs go on at another', async () => {
        const at = new Date().toISOString()
        for (const type of ['held_by_it', 'waits_for_it']) {
          const alert = {
            status: 'firing',
            labels: { alertname: type, severity: 'warning' },
            annotations: {},
            startsAt: at,
          }
          const body = { version: '4', groupKey: type, status: 'firing', receiver: 'x', alerts: [alert] }
          await spine.post('/ingest/alertmanager', body, { token: spine.tokens.ingest })
        }
        const model = async () => (await spine.get<{ model: { asking: number; waiting: number } }>('/status')).model
        await spine.until('one that asks and one that waits', async () => {
          const { asking, waiting } = await model()
          return asking === 1 && waiting === 1
        })
        await spine.start('worker2')
        await spine.kill('worker')
        isHanging = false
        const owner = connect(spine.databaseUrl, { owner: true, max: 1 })
        await moveClock(owner, '61 seconds')
        await owner.destroy()
        for (const type of ['held_by_it', 'waits_for_it']) {
          const { id } = await spine.incident(type, 'escalated')
          const end = (await spine.events(id)).find(
            (event) => event.kind === 'tool_finished' && event.metadata.effect === 'terminal',
          )
          expect(end).toMatchObject({ metadata: { outcome: 'done' } })
        }
        expect(await model()).toMatchObject({ asking: 0, waiting: 0 })
      })
    })

    describe('decisions at once', () => {
      /** `DECISIONS=500` for as many as a release has to stand. */
      const count = Number(process.env.DECISIONS ?? 20)
      const settledWithinMs = 60_000 + count * 3_000

      const stops: (() => Promise<unknown> | unknown)[] = []
      afterAll(async () => {
        for (const stop of stops.reverse()) await stop()
      })

      async function build() {
        const database = await freshDatabase()
        stops.push(database.drop)
        const owner = connect(database.url, { owner: true, max: 1 })
        const settings = {
          'approval.risk.converge_shard': 'high',
          'agent.max_followers': '40',
          'agent.leader_wait': '0',
          'agent.concurrency.replication_lag': '40',
          'approval.expiry.converge_shard': '3600',
        }
        for (const [key, value] of Object.entries(settings))
          await owner
            .insertInto('platformConfig')
            .values({ key, value } as never)
            .execute()
        await owner.destroy()
        const platform = await shardPlatform(count, 100)
        stops.push(() => platform.stop())
        const spine = await startSpine({
          parts: ['runbook', 'api', 'api2', 'worker'],
          databaseUrl: database.url,
          environment: { PLATFORM_URL: platform.url },
        })
        stops.push(() => spine.stop())
        return { spine, platform }
      }

      async function raise(spine: Spine): Promise<void> {
        const alerts = Array.from({ length: count }, (_, n) => ({
          ...{ status: 'firing', annotations: {}, fingerprint: `fp-${n}`, startsAt: new Date().toISOString() },
          labels: {
            alertname: 'replication_lag',
            incident_type: 'replication_lag',
            severity: 'warning',
            shard: `db-${n}`,
          },
        }))
        const { status } = await spine.post(
          '/ingest/alertmanager',
          { version: '4', alerts },
          { token: spine.tokens.ingest },
        )
        expect(status).toBe(202)
      }

      async function pendingApprovals({ db }: Spine): Promise<Pick<Approval, 'id'>[]> {
        return await db.selectFrom('approval').select('id').where('status', '=', 'pending').execute()
      }

      /** By both servers in turn, as the pages of many people would. */
      async function decide(spine: Spine, id: string, url: string): Promise<number> {
        const headers = { authorization: `Bearer ${spine.tokens.approver}`, 'content-type': 'application/json' }
        const ask = (path: string, body: object) =>
          fetch(`${url}/api/v1/approvals/${id}/${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
        const { token } = (await (await ask('token', { decision: 'approve' })).json()) as { token: string }
        return (await ask('decision', { token, decision: 'approve', reason: 'go on' })).status
      }

      test(
        'as many approvals as wait are decided at once: each is answered, and each write happens once',
        async () => {
          const { spine, platform } = await build()
          await raise(spine)
          const pending = await spine.until(
            'every run to wait for a person',
            async () => {
              const found = await pendingApprovals(spine)
              return found.length === count ? found : null
            },
            settledWithinMs,
          )
          const startedAt = performance.now()
          const answers = await Promise.all(
            pending.map(({ id }, at) => decide(spine, id, at % 2 === 0 ? spine.url : spine.url2)),
          )
          const answeredMs = performance.now() - startedAt
          expect(answers.filter((status) => status !== 200)).toEqual([])
          await spine.until('every write to have begun', async () => platform.begun.size === count, settledWithinMs)
          const usedMs = performance.now() - startedAt
          await spine.until(
            'every incident to be resolved',
            async () =>
              (await spine.db.selectFrom('incident').select('id').where('status', '=', 'resolved').execute()).length ===
              count,
            settledWithinMs,
          )
          expect([...platform.begun.values()].filter(({ times }) => times !== 1)).toEqual([])
          console.log(
            `${count} decisions at once: all answered after ${(answeredMs / 1000).toFixed(1)} s, all used after ${(usedMs / 1000).toFixed(1)} s`,
          )
        },
        3 * settledWithinMs,
      )
    })
  })
})

describe('signals', () => {
  describe('signals', () => {
    const temporal = useTemporal({ cached: 0 })

    test('a decision after five thousand signals is read from its row', async () => {
      let status: DecisionStatus = 'pending'
      const scripted = scriptedRun({
        think: [calls('execute_migration'), { kind: 'closed' }],
        act: [ask('apr_1', 7 * 24 * hourMs), { kind: 'verify' }],
        readDecision: async () => ({ status, remainingMs: 300 }),
        endEarly: async () => false,
        isStopWanted: async () => false,
      })
      const taskQueue = newTaskQueue()
      const run = await temporal.client.workflow.start<typeof InvestigateIncident>('InvestigateIncident', {
        taskQueue,
        workflowId: `investigate:inc_${randomBytes(4).toString('hex')}:1`,
        args: [investigation()],
      })
      for (let sent = 0; sent < signalsPerRun; sent += 500) {
        await Promise.all(Array.from({ length: 500 }, () => run.signal(alertResolved)))
      }
      await temporal.working(
        scripted.activities,
        async () => {
          const isParked = async () => (await run.describe()).searchAttributes.Status?.[0] === 'awaiting_approval'
          await eventually('the run to wait', isParked)
          status = 'approved'
          await run.result()
        },
        taskQueue,
        // Nothing cached would replay five thousand signals at every step.
        1,
      )
      expect(scripted.did).toContain('act 1.0 with apr_1')
    })
  })

  describe('ticks', () => {
    const database = useDatabase()
    const temporal = useTemporal({ cached: 100 })

    test('a hundred ticks by hand at once and a second Schedule with arguments of its own start each incident once', async () => {
      const types = ['disk', 'host', 'rack', 'link'].map((name) => `${name}_${randomBytes(4).toString('hex')}`)
      for (const type of [...types, ...types]) await openedIncident(database.db, { labels: { incident_type: type } })
      const taskQueue = newTaskQueue()
      const { client } = temporal
      const environment = { AGENT_MAX_CONCURRENT: '5' }
      const queue = queueActivities({ db: database.db, client, taskQueue, environment })
      const crew = scriptedGroup(database.db, async () => ({ end: 'resolved' }), queue)
      const second = await client.schedule.create({
        scheduleId: `second-${taskQueue}`,
        spec: { intervals: [{ every: '1 second' }] },
        action: {
          type: 'startWorkflow',
          workflowType: 'ProcessIncidentQueue',
          taskQueue,
          args: [{ groups: types }, 'all', -1],
        },
        policies: { overlap: ScheduleOverlapPolicy.ALLOW_ALL },
      })
      const work = async () => {
        await Promise.all(
          Array.from({ length: 100 }, (_, at) =>
            client.workflow.execute('ProcessIncidentQueue', {
              taskQueue,
              workflowId: `${taskQueue}-${at}`,
              args: [at] as never,
            }),
          ),
        )
        await second.trigger(ScheduleOverlapPolicy.ALLOW_ALL)
        await Promise.all(types.map((type) => client.workflow.getHandle(`group:${type}`).result()))
      }
      try {
        await temporal.working({ ...crew.activities, ...queue } as never, work, taskQueue)
      } finally {
        await second.delete()
      }
      expect(new Set(crew.order.map(({ incidentId }) => incidentId)).size).toBe(8)
      expect(crew.order).toHaveLength(8)
      expect(crew.order.filter(({ role }) => role === 'leader')).toHaveLength(4)
    })
  })

  describe('lives', () => {
    const seeds = Number(process.env.LIVES ?? 3_000)

    test('thousands of lives with hostile models, lost answers, crashes and races break no invariant', async () => {
      const simulate = await simulateLives(seeds)
      expect(simulate).toMatchObject({ seeds, broken: 0 })
      expect(simulate.effects).toBeGreaterThan(seeds / 2)
      const fresh = freshShare(seeds)
      if (fresh > 0) expect(await simulateLives(fresh, freshSeed!)).toMatchObject({ seeds: fresh, broken: 0 })
    }, 7_200_000)
  })
})
