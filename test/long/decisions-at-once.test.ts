import { afterAll, expect, test } from '@jest/globals'
import { connect } from '../../db/connect.ts'
import type { Approval } from '../../domain/approval.ts'
import { freshDatabase } from '../support/broker.ts'
import { storeSetting } from '../support/database.ts'
import { shardPlatform } from '../support/shard-platform.ts'
import { type Spine, startSpine } from '../support/spine.ts'

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
  for (const [key, value] of Object.entries(settings)) await storeSetting(owner, key, value)
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
    status: 'firing',
    annotations: {},
    fingerprint: `fp-${n}`,
    startsAt: new Date().toISOString(),
    labels: {
      alertname: 'replication_lag',
      incident_type: 'replication_lag',
      severity: 'warning',
      shard: `db-${n}`,
    },
  }))
  const { status } = await spine.post('/ingest/alertmanager', { version: '4', alerts }, { token: spine.tokens.ingest })
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
  const said = { decision: 'approve', reason: 'go on' }
  const { token } = (await (await ask('token', said)).json()) as { token: string }
  return (await ask('decision', { ...said, token })).status
}

test(
  'all waiting approvals are decided at once: each is answered, and each write happens once',
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
