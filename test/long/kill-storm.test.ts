import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, expect, test } from '@jest/globals'
import { connect } from '../../db/connect.ts'
import { verifyIncident } from '../../db/verify/incident.ts'
import type { Approval } from '../../domain/approval.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import { migrateToLatest } from '../../migrations/migrate.ts'
import { type Postgres, startPostgres } from '../../start/postgres.ts'
import { releasePort } from '../../start/process.ts'
import { storeSetting } from '../support/database.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { shardPlatform } from '../support/shard-platform.ts'
import { type PartName, type Spine, startSpine } from '../support/spine.ts'
import { ownTemporal } from '../support/temporal-proxy.ts'

/**
 * How long things are killed for: `KILL_STORM_SECONDS=600` for the ten minutes that a release has
 * to stand.
 */
const stormSeconds = Number(process.env.KILL_STORM_SECONDS ?? 30)
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
  pages: Pages
}

/** Incidents that a page named, and how often each message of its own number arrived. */
type Pages = { incidents: Set<string>; times: Map<string, number> }

/** One alert in three is critical, and its opening is a page. */
const isCritical = (n: number) => n % 3 === 0

async function receivePages(): Promise<{ url: string; pages: Pages }> {
  const pages: Pages = { incidents: new Set(), times: new Map() }
  const receiver = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    for (const [id] of body.matchAll(/inc_[0-9a-z]{26}/g)) pages.incidents.add(id)
    const message = String(request.headers['webhook-id'])
    pages.times.set(message, (pages.times.get(message) ?? 0) + 1)
    response.writeHead(200).end('ok')
  })
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  stops.push(() => receiver.close())
  return { url: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`, pages }
}

async function build(): Promise<World> {
  const directory = temporaryDirectory()
  stops.push(() => directory.remove())
  const dir = `${directory.path}/postgres`
  const postgres = {
    current: await startPostgres({ dir }),
    async again() {
      const { port } = postgres.current
      releasePort(port)
      postgres.current = await startPostgres({ dir, port })
    },
  }
  stops.push(() => postgres.current.stop())
  await migrateToLatest(postgres.current.url)
  const temporal = await ownTemporal(directory.path)
  stops.push(() => temporal.stop())
  const platform = await shardPlatform(alerts, 300)
  stops.push(() => platform.stop())
  const { url: receiver, pages } = await receivePages()
  const owner = connect(postgres.current.url, { owner: true, max: 1 })
  const settings = { 'approval.risk.converge_shard': 'high', 'agent.max_followers': '40', 'alert.quiet': '0' }
  Object.assign(settings, { 'webhook.critical.url': receiver })
  for (const type of ['replication_lag', 'config_drift'])
    Object.assign(settings, { [`agent.concurrency.${type}`]: '20' })
  for (const [key, value] of Object.entries(settings)) await storeSetting(owner, key, value)
  await owner.destroy()
  const spine = await startSpine({
    parts: ['runbook', 'api', 'api2', 'worker', 'worker2'],
    databaseUrl: postgres.current.url,
    temporalAddress: temporal.current.address,
    environment: { PLATFORM_URL: platform.url, WATCHDOG_INTERVAL_SECONDS: '5' },
  })
  stops.push(() => spine.stop())
  return { spine, postgres, temporal, platform, pages }
}

/** Sends each alert until it is acknowledged. */
async function raise({ spine }: World, isOver: () => boolean): Promise<number> {
  let acknowledged = 0
  for (let n = 0; n < alerts; n += 1) {
    const type = n % 2 === 0 ? 'replication_lag' : 'config_drift'
    const labels = {
      alertname: type,
      incident_type: type,
      severity: isCritical(n) ? 'critical' : 'warning',
      shard: `db-${n}`,
    }
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
        const said = { decision: 'approve', reason: 'go on' }
        const minted = await spine.post(`/approvals/${id}/token`, said, { token }).catch(() => null)
        const body = { ...said, token: minted?.body.token }
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

/**
 * Each write was started once with an approval of its own, which was used for it alone. A shard may
 * be written again, if a person said so.
 */
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
  'random kills during writes and decisions lose nothing, and repeat nothing',
  async () => {
    const world = await build()
    const { spine, platform, pages } = world
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

    const incidents = await spine.db.selectFrom('incident').select(['id', 'status', 'outcome', 'severity']).execute()
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
    for (const { id } of incidents) flaws.push(...(await verifyIncident(spine.db, id)).differences)
    expect(flaws).toEqual([])
    const critical = incidents.filter(({ severity }) => severity === 'critical').map(({ id }) => id)
    const isPaged = async () => critical.every((id) => pages.incidents.has(id))
    await spine.until('a page of every critical incident', isPaged, settledWithinMs)
    // Twice only where a deliverer was killed between sending and writing that down.
    const twice = [...pages.times.values()].filter((times) => times > 1).length
    expect(twice).toBeLessThanOrEqual(kills)
    const ends = Object.entries(Object.groupBy(incidents, ({ status, outcome }) => `${status} ${outcome ?? ''}`.trim()))
    console.log(
      `kill storm: ${kills} kills in ${stormSeconds} s; ${acknowledged} alerts; ${platform.begun.size} writes, each once; ${decided.size} approvals, ${decidedInStorm} of them during the kills; ${critical.length} pages, ${twice} of them twice; ${ends.map(([end, list]) => `${list?.length} ${end}`).join(', ')}`,
    )
  },
  (stormSeconds + 120) * 1000 + settledWithinMs,
)
