import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { eventually } from '../support/directory.ts'
import { type Said, type ScriptedModel, scriptedModel } from '../support/scripted-model.ts'
import { type ScriptedSlack, startScriptedSlack } from '../support/scripted-slack.ts'
import { type Spine, startSpine } from '../support/spine.ts'
import { spoken } from '../support/temporal.ts'

/** Planted secrets, one for each way in. None may be found anywhere afterwards. */
const canaries = {
  alert: 'canary-Alert-7f3a9c',
  label: 'canary-Label-2b8e1d',
  tool: 'canary-Tool-9d4c6e',
  argument: 'canary-Argument-5a1f7b',
  prose: 'canary-Prose-8c2d4e',
  url: 'canary-Url-3e9b1a',
}
const key = '-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7bqcanaryPem\n-----END RSA PRIVATE KEY-----'

let model: ScriptedModel
let slack: ScriptedSlack
let spine: Spine
let incidentId = ''

beforeAll(async () => {
  model = await scriptedModel((turn): Said[] | string => {
    switch (turn) {
      case 1:
        return [{ tool: 'get_tenant', arguments: { id: 'tenant-x' } }]
      case 2:
        return [
          {
            tool: 'add_incident_event',
            arguments: { incident_id: incidentId, action: 'commented', detail: `api_key=${canaries.argument}` },
          },
          { tool: 'get_shard', arguments: { id: 'db-x', password: canaries.argument } },
        ]
      case 3:
        return `The primary uses password=${canaries.prose}.`
      default:
        return [
          {
            tool: 'escalate_incident',
            arguments: { id: incidentId, reason: `Authorization: Bearer ${canaries.prose}` },
          },
        ]
    }
  })
  slack = await startScriptedSlack()
  spine = await startSpine({
    parts: ['api'],
    environment: {
      LLM_BASE_URL: model.url,
      PUBLIC_URL: 'https://nightshift.example',
      SLACK_BOT_TOKEN: slack.settings.botToken,
      SLACK_SIGNING_SECRET: slack.settings.signingSecret,
      SLACK_CHANNEL: slack.settings.channel,
      SLACK_API_URL: slack.settings.apiUrl,
      // As much as there is to log.
      LOG_LEVEL: 'trace',
    },
  })
  await sql`insert into region (id) values ('r') on conflict do nothing`.execute(spine.db)
  await sql`insert into shard (id, region, role) values ('db-x', 'r', 'database')`.execute(spine.db)
  await sql`insert into tenant (id, name, shard) values ('tenant-x', ${`db_password=${canaries.tool}; ${key}`}, 'db-x')`.execute(
    spine.db,
  )
})
afterAll(async () => {
  await spine?.stop()
  await model?.stop()
  await slack?.stop()
})

test('no planted secret is in a row, a body, a prompt, a log or a payload, and the run ends with a person', async () => {
  const answer = await spine.post(
    '/ingest/alertmanager',
    {
      version: '4',
      groupKey: 'canaries',
      status: 'firing',
      receiver: 'nightshift',
      alerts: [
        {
          status: 'firing',
          labels: { alertname: 'canaries', tenant: 'tenant-x', token: canaries.label },
          annotations: {
            summary: `login failed, password=${canaries.alert}`,
            description: `see https://root:${canaries.url}@db-x.example/ \u001b]0;owned\u0007`,
          },
          startsAt: new Date().toISOString(),
          endsAt: '0001-01-01T00:00:00Z',
        },
      ],
    },
    { token: spine.tokens.ingest },
  )
  incidentId = (answer.body.alerts as { incidentId: string }[])[0]?.incidentId ?? ''
  await spine.start('worker')
  await spine.incident('canaries', 'escalated')
  await eventually('Slack to be told', () => slack.messages.size > 0)
  const forged = await fetch(`${spine.url}/slack/interactions`, { method: 'POST', body: 'payload={}' })
  expect(forged.status).toBe(401)

  const places: Record<string, string> = {
    rows: JSON.stringify(await spine.events(incidentId)),
    prompts: JSON.stringify(model.requests),
    logs: spine.printed(),
    problem: await forged.text(),
    slack: JSON.stringify(slack.calls),
    payloads: spoken(await spine.client.workflow.getHandle(`investigate:${incidentId}:1`).fetchHistory()).everything,
  }
  const tables = ['incident', 'alert', 'approval', 'idempotency', 'delivery', 'effect', 'audit', 'slack_channel']
  for (const table of tables) {
    const { rows } = await sql`select t::text as row from ${sql.table(table)} as t`.execute(spine.db)
    places[table] = JSON.stringify(rows)
  }
  const { rows: bodies } = await sql<{
    text: string
  }>`select convert_from(bytes, 'UTF8') as text from result_body`.execute(spine.db)
  places.bodies = JSON.stringify(bodies)

  for (const [place, text] of Object.entries(places)) {
    const { botToken, signingSecret } = slack.settings
    for (const canary of [...Object.values(canaries), 'canaryPem', '\\u001b]0', botToken, signingSecret]) {
      expect([place, canary, text.includes(canary)]).toEqual([place, canary, false])
    }
  }
  expect(model.requests.length).toBeGreaterThanOrEqual(4)
  const codes = (await spine.events(incidentId)).flatMap((event) =>
    event.kind === 'call_judged' ? [event.metadata.code] : [],
  )
  expect(codes.filter((code) => code === 'SECRET_IN_ARGUMENTS')).toHaveLength(2)
})
