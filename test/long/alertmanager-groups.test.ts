import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { type Spine, startSpine } from '../support/spine.ts'
import { type RealAlertmanager, startAlertmanager } from './real-servers.ts'

const count = Number(process.env.GROUP_ALERTS ?? 1_200)

let spine: Spine
let alertmanager: RealAlertmanager

beforeAll(async () => {
  spine = await startSpine({ parts: ['runbook', 'api', 'worker', 'worker2'] })
  await sql`insert into platform_config (key, value) values ('agent.paused', 'true')`.execute(spine.db)
  alertmanager = await startAlertmanager({
    url: `${spine.url}/api/v1/ingest/alertmanager`,
    token: spine.tokens.ingest,
    groupBy: 'alertname',
  })
})
afterAll(async () => {
  await alertmanager?.stop()
  await spine?.stop()
})

const counted = async () => {
  const { rows } = await sql<{ status: string; alerts: number; sights: number }>`
    select status, count(*)::int as alerts, sum(count)::int as sights from alert group by status`.execute(spine.db)
  return rows
}

test(`one group of ${count} of a real Alertmanager: as many alerts and later as many ends, whatever worker dies meanwhile`, async () => {
  const targets = Array.from({ length: count }, (_, n) => ({ alertname: 'TargetDown', instance: `web-${n}:9100` }))
  await alertmanager.raiseAll(targets, 'The target is down')
  await spine.until('the first part', async () => (await counted()).length > 0)
  await spine.kill('worker')
  await spine.until('all that fire', async () => (await counted())[0]?.alerts === count)
  expect(await counted()).toEqual([{ status: 'firing', alerts: count, sights: count }])
  await spine.start('worker')

  await alertmanager.endAll(targets)
  await spine.until('the first ends', async () => (await counted()).some(({ status }) => status === 'resolved'))
  await spine.kill('worker2')
  await spine.until('all ends', async () => (await counted()).every(({ status }) => status === 'resolved'))
  // While they end Alertmanager may send the group twice: each end counts once, whatever is said
  // again.
  expect(await counted()).toMatchObject([{ status: 'resolved', alerts: count }])
  const { incidents } = await sql<{ incidents: number }>`
    select count(distinct incident_id)::int as incidents from alert`
    .execute(spine.db)
    .then(({ rows }) => rows[0]!)
  expect(incidents).toBe(count)
})
