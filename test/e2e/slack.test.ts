import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { type ScriptedSlack, startScriptedSlack } from '../support/scripted-slack.ts'
import { type Spine, startSpine } from '../support/spine.ts'

let slack: ScriptedSlack
let spine: Spine

beforeAll(async () => {
  slack = await startScriptedSlack()
  const { botToken, signingSecret, channel, apiUrl } = slack.settings
  spine = await startSpine({
    parts: ['lab', 'runbook', 'api', 'api2', 'worker'],
    environment: {
      PUBLIC_URL: 'https://nightshift.example',
      SLACK_BOT_TOKEN: botToken,
      SLACK_SIGNING_SECRET: signingSecret,
      SLACK_CHANNEL: channel,
      SLACK_API_URL: apiUrl,
    },
  })
})
afterAll(async () => {
  await spine?.stop()
  await slack?.stop()
})

const texts = () => [...slack.messages.values()].map(({ body }) => JSON.stringify(body))

test('the VMs of a dead host are restarted by one press in Slack, although the worker was killed during the wait', async () => {
  const answer = await fetch(`${spine.url}/api/v1/operators/anna`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${spine.tokens.admin}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      role: 'approver',
      maxRisk: 'high',
      incidentTypes: null,
      disabled: false,
      slackUserId: 'U0ANNA',
    }),
  })
  expect(answer.status).toBe(200)
  await spine.lab.break('host_down', 'host-osl-1')
  const asked = await spine.pendingApproval()
  const card = await spine.until('the question', async () =>
    [...slack.messages.values()].find(({ ts }) => slack.buttons(ts).approve),
  )
  // What Slack has answered and nobody has written down yet is what cannot be excluded.
  await spine.until('the worker to know where it is', async () =>
    spine.db.selectFrom('slackCard').selectAll().where('ts', '=', card.ts).executeTakeFirst(),
  )
  await spine.kill('worker')
  const body = slack.press('U0ANNA', card.ts, 'approve').toString()
  const headers = slack.signed(body)
  const statuses = await Promise.all(
    [spine.url, spine.url2, spine.url].map(
      async (url) => (await fetch(`${url}/slack/interactions`, { method: 'POST', headers, body })).status,
    ),
  )
  expect(statuses.sort()).toEqual([200, 401, 401])
  await spine.start('worker')
  await spine.incident('host_down', 'escalated')

  const events = await spine.events(asked.incidentId)
  expect(events.flatMap((event) => (event.kind === 'approval_decided' ? [event.metadata.via] : []))).toEqual(['slack'])
  expect(events.filter(({ kind, action }) => kind === 'tool_started' && action === 'attempted_fix')).toHaveLength(1)
  expect(await spine.lab.oracle('host_down', 'host-osl-1')).toMatchObject({ healthy: true })
  await spine.until('the thread to say how it ended', async () =>
    texts().some((text) => text.includes('Status: escalated') && text.includes('Approved by anna')),
  )
  await spine.until('the buttons to go', async () => !slack.buttons(card.ts).approve)
  expect(texts().filter((text) => text.includes(`Nightshift, ${asked.id}`))).toHaveLength(1)
})
