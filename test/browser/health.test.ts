import { expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { append } from '../../db/log/append.ts'
import { agentActor } from '../../domain/event.ts'
import { screenshot, signedIn, useBrowser } from '../support/browser.ts'
import { claimedIncident, storeSetting } from '../support/database.ts'

const on = useBrowser()

test.each([
  [1440, 'light'],
  [1440, 'dark'],
  [390, 'light'],
  [390, 'dark'],
] as const)(
  'at %i pixels in %s Health and Home name the lost duties, and Health shows the remedy',
  async (width, scheme) => {
    const { db } = on.spine
    const { count } = await db
      .selectFrom('delivery')
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .executeTakeFirstOrThrow()
    if (count === 0) {
      const incidentId = await claimedIncident(db)
      await storeSetting(db, 'webhook.critical.url', 'http://127.0.0.1:9/hook')
      await sql`
      insert into delivery (message_id, destination, incident_id, notification, attempt, status, response, given_up_at)
      values ('msg_1', 'webhook.critical', ${incidentId}, '{"trigger": "critical"}', 3, 'failed', 'connect ECONNREFUSED', now())`.execute(
        db,
      )
      await db.transaction().execute(async (trx) => {
        for (const at of [1, 2])
          await append(trx, incidentId, null, {
            kind: 'model_failed',
            actor: agentActor,
            turn: at,
            detail: '402 Insufficient credit: top up at your provider',
            metadata: { code: 'refused', status: 402, activityAttempt: 1 } as never,
          })
      })
      const health = {
        status: 'ready',
        capabilities: ['shell.exec'],
        manifest: null,
        sandbox: 'none',
        unavailable: { sandbox: 'unshare: Operation not permitted' },
      }
      await sql`
      insert into device (id, resource_kind, resource_id, url, mode, timeout_seconds, tools_allowed, terms, manifest_days, health, health_at, enrolled_at, manifest_expires_at)
      values ('node-osl-1', 'node', 'node-osl-1', 'http://127.0.0.1:7474', 'user', 60, '["*"]',
        '{"capabilities": [], "roots": [{"path": "/srv", "writable": true}]}', 90, ${JSON.stringify(health)}, now(), now(), now() + interval '90 days')`.execute(
        db,
      )
    }
    on.page = await signedIn(on.browser, on.spine, 'admin', { viewport: { width, height: 900 }, colorScheme: scheme })
    for (const [path, words] of [
      [
        'health',
        [
          '402 Insufficient credit',
          '1 message of the last day did not arrive at webhook.critical',
          'No worker runs',
          'bubblewrap',
        ],
      ],
      ['home', ['failed']],
      ['devices', ['Operation not permitted']],
    ] as const) {
      await on.page.goto(`${on.spine.url}/${path}`)
      for (const each of words) await on.page.getByText(each).first().waitFor({ timeout: 20_000 })
      await screenshot(on.page, `lost-${path}-${width}-${scheme}`)
      expect([path, await on.page.evaluate('document.documentElement.scrollWidth')]).toEqual([path, width])
    }
  },
)

test('a waiting SNS topic is confirmed or removed on Health by two presses, and only by people with the right', async () => {
  const { db, url } = on.spine
  const arn = 'arn:aws:sns:eu-north-1:123456789012:alarms'
  await sql`insert into sns_topic (arn, subscribe_url) values (${arn}, 'https://sns.eu-north-1.amazonaws.com/')`.execute(
    db,
  )
  on.page = await signedIn(on.browser, on.spine, 'approver')
  await on.page.goto(`${url}/health`)
  await on.page.getByText('1 topic waits').waitFor()
  await on.page.getByRole('button', { name: `Confirm ${arn}. Your role (approver)` }).waitFor()
  await on.page.context().close()
  on.page = await signedIn(on.browser, on.spine, 'admin', { viewport: { width: 390, height: 900 } })
  await on.page.goto(`${url}/health`)
  await on.page.getByRole('button', { name: `Confirm ${arn}` }).waitFor()
  expect(await on.page.evaluate('document.documentElement.scrollWidth')).toBe(390)
  await screenshot(on.page, 'sns-topics-390')
  await on.page.getByRole('button', { name: `Remove ${arn}` }).click()
  await on.page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
  await on.page.getByRole('button', { name: `Remove ${arn}` }).waitFor({ state: 'detached' })
  expect(await db.selectFrom('snsTopic').select('arn').execute()).toEqual([])
})
