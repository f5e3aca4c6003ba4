import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import type { Approval } from '../../domain/approval.ts'
import type { Incident } from '../../domain/incident.ts'
import { type Spine, startSpine } from '../support/spine.ts'
import { type RealAlertmanager, startAlertmanager } from './real-servers.ts'

/** Seconds a firing alert gets after a repair, and in all: minutes and hours at a real site. */
const settleSeconds = 6
const settleMaxSeconds = 20

let spine: Spine
let alertmanager: RealAlertmanager

beforeAll(async () => {
  spine = await startSpine({
    parts: ['lab', 'runbook', 'api', 'worker'],
    // The lab breaks things; what raises alerts about them here is a real Alertmanager.
    environment: { ALERT_URL: 'http://127.0.0.1:9/', WATCHDOG_INTERVAL_SECONDS: '1' },
  })
  for (const [key, value] of [
    ['alert.settle', String(settleSeconds)],
    ['alert.settle_max', String(settleMaxSeconds)],
    ['webhook.resolved.url', 'http://127.0.0.1:9/resolved'],
    ['webhook.escalated.url', 'http://127.0.0.1:9/escalated'],
  ]) {
    await sql`insert into platform_config (key, value) values (${key}, ${value})`.execute(spine.db)
  }
  await spine.until('the inventory', async () => {
    const { items } = await spine.get<{ items: unknown[] }>('/resources?q=node-web&kind=node')
    return items.length >= 4
  })
  alertmanager = await startAlertmanager({
    url: `${spine.url}/api/v1/ingest/alertmanager`,
    token: spine.tokens.ingest,
  })
})
afterAll(async () => {
  if (process.env.SHOW)
    for (const incident of await spine.incidents()) {
      console.log(incident.id, incident.type, incident.status, incident.outcome, incident.category, incident.attempt)
      for (const e of await spine.events(incident.id))
        console.log(e.at.slice(11, 19), e.seq, e.attempt, e.kind, e.actor, e.detail.slice(0, 200))
    }
  await alertmanager?.stop()
  await spine?.stop()
})
afterEach(async () => {
  await spine.lab.heal()
})

const downOn = (node: string, shard: string) => ({
  alertname: 'service_down',
  severity: 'critical',
  node,
  shard,
  instance: node,
})

/**
 * The incident of one node, when it stands as asked. A repair that did not last took the trust of
 * its tool: what is asked from then on is approved.
 */
async function about(node: string, what: string, isSo: (incident: Incident) => boolean): Promise<Incident> {
  return await spine.until(`the incident of ${node} ${what}`, async () => {
    for (const asked of (await spine.get<{ items: Approval[] }>('/approvals?status=pending')).items)
      await approve(asked)
    return (await spine.incidents('?type=service_down')).find((each) => each.resource?.id === node && isSo(each))
  })
}

async function approve({ id }: Approval): Promise<void> {
  const as = { token: spine.tokens.approver }
  const { body } = await spine.post(`/approvals/${id}/token`, { decision: 'approve' }, as)
  await spine.post(`/approvals/${id}/decision`, { decision: 'approve', token: body.token }, as)
}

const noted = async ({ id }: Incident) =>
  (await spine.events(id)).flatMap((event) => (event.kind === 'noted' ? [event.metadata.code] : []))

const messages = async ({ id }: Incident) =>
  await sql<{ trigger: string }>`
    select notification->>'trigger' as trigger from delivery
    where incident_id = ${id} and attempt = 1 order by id`
    .execute(spine.db)
    .then(({ rows }) => rows.map(({ trigger }) => trigger))

test('a repair that the lab reverts: the alert still fires, and after the time to settle the next attempt begins', async () => {
  const labels = downOn('node-web-osl-1a', 'web-osl-1')
  await spine.lab.break('service_down', 'node-web-osl-1a')
  await alertmanager.raise(labels, 'The service on node-web-osl-1a does not answer')
  const first = await about('node-web-osl-1a', 'to be repaired', ({ status }) => status === 'resolved')
  expect(first).toMatchObject({ outcome: 'repaired', attempt: 1, alerts: { firing: 1 } })
  expect(first.watchUntil).not.toBeNull()

  await spine.lab.break('service_down', 'node-web-osl-1a')
  const second = await about('node-web-osl-1a', 'in its second attempt', ({ attempt }) => attempt === 2)
  expect(second.id).toBe(first.id)
  expect(await noted(second)).toContain('reopened')
  expect((await messages(second)).slice(0, 2)).toEqual(['resolved', 'reopened'])
  await about(
    'node-web-osl-1a',
    'to be repaired again',
    ({ status, attempt }) => status === 'resolved' && attempt === 2,
  )
  await alertmanager.end(labels)
  await about('node-web-osl-1a', 'to be over', ({ alerts }) => alerts.firing === 0)
})

test('a repair that holds while its critical alert still fires is watched, and people get the incident after its time', async () => {
  const labels = downOn('node-web-osl-1b', 'web-osl-1')
  await spine.lab.break('service_down', 'node-web-osl-1b')
  await alertmanager.raise(labels, 'The service on node-web-osl-1b does not answer')
  const repaired = await about('node-web-osl-1b', 'to be repaired', ({ status }) => status === 'resolved')
  const escalated = await about('node-web-osl-1b', 'to be handed over', ({ status }) => status === 'escalated')
  expect(escalated).toMatchObject({ category: 'alert_goes_on', attempt: 1 })
  expect(escalated.id).toBe(repaired.id)
  expect(await noted(escalated)).toContain('repair_confirmed')
  expect(await messages(escalated)).toEqual(['resolved', 'escalated'])
  await alertmanager.end(labels)
})

test('a repair whose alert ends by itself is over, without a further message', async () => {
  const labels = downOn('node-web-ams-1a', 'web-ams-1')
  await spine.lab.break('service_down', 'node-web-ams-1a')
  await alertmanager.raise(labels, 'The service on node-web-ams-1a does not answer')
  const repaired = await about('node-web-ams-1a', 'to be repaired', ({ status }) => status === 'resolved')
  await alertmanager.end(labels)
  const over = await about('node-web-ams-1a', 'to be over', ({ alerts }) => alerts.firing === 0)
  expect(over).toMatchObject({ id: repaired.id, status: 'resolved', outcome: 'repaired', watchUntil: null })
  expect(await noted(over)).toEqual(['watch_over'])
  expect(await messages(over)).toEqual(['resolved'])
})
