import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { startHeartbeat } from '../../api/heartbeat.ts'
import { useApi } from '../support/api.ts'
import { openedIncident } from '../support/database.ts'
import { eventually } from '../support/directory.ts'
import { type LocalServer, startLocalServer } from '../support/local-server.ts'

let isReached = true
let looks = 0
const api = useApi(() => ({
  runs: {
    async tell() {
      return 'told'
    },
    startManualChange: async () => false,
    triggerQueue() {},
    async isReachable() {
      looks += 1
      return isReached
    },
  },
}))
let check: LocalServer
beforeAll(async () => {
  check = await startLocalServer()
})
afterAll(() => check.close())

/**
 * Waits until the parts were looked at twice more: a heartbeat of before is through, and one for
 * the first of these would be.
 */
async function lookedTwice(): Promise<void> {
  const before = looks
  await eventually('two looks at the parts', () => looks >= before + 2)
}

/** How many were received while the duty was lost, and that they come again once it is done. */
async function silenceWhile(lose: () => Promise<unknown>, restore: () => Promise<unknown>): Promise<number> {
  await eventually('a heartbeat', () => check.seen.length > 0)
  await lose()
  await lookedTwice()
  check.seen.length = 0
  await lookedTwice()
  const heard = check.seen.length
  await restore()
  await eventually('the next heartbeat', () => check.seen.length > heard)
  return heard
}

test('a heartbeat is sent while all duties are done, and not while Temporal is away or a message was delivered to nobody', async () => {
  const stop = startHeartbeat(api.api.deps, `${check.url}/ping/secret`, 20)
  try {
    const away = await silenceWhile(
      async () => (isReached = false),
      async () => (isReached = true),
    )
    const incidentId = await openedIncident(api.db)
    const givenUp = (at: string) =>
      sql`
      insert into delivery (message_id, destination, incident_id, notification, attempt, status, given_up_at)
      values ('msg_lost', 'webhook.critical', ${incidentId}, '{}', 1, 'failed', ${at})
      on conflict (message_id, attempt) do update set given_up_at = excluded.given_up_at`.execute(api.owner)
    const unheard = await silenceWhile(
      () => givenUp(new Date().toISOString()),
      () => givenUp('2026-01-01T00:00:00Z'),
    )
    expect([away, unheard]).toEqual([0, 0])
    expect(check.seen[0]).toMatchObject({ method: 'GET', path: '/ping/secret' })
  } finally {
    stop()
  }
})
