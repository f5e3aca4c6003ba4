import { randomUUID } from 'node:crypto'
import { z } from '@hono/zod-openapi'
import { recordAudit } from '../../db/log/audit.ts'
import { readSettings } from '../../db/settings.ts'
import { capitalize } from '../../domain/format.ts'
import type { Notification, WebhookTemplate } from '../../domain/notification.ts'
import { webhookNames } from '../../domain/setting.ts'
import { webhookTest } from '../../domain/setting-row.ts'
import { deliver } from '../../notify/webhook/deliver.ts'
import { endpoint } from '../http/endpoint.ts'
import { Problem } from '../http/problem.ts'
import { limitWebhookTests } from '../http/rate-limits.ts'
import { tag } from './environment.ts'

export const testWebhookEndpoint = endpoint({
  method: 'post',
  path: '/webhooks/{name}/test',
  permission: 'write_config',
  tag,
  summary: "Sends a test message to a webhook, and reports the receiver's response",
  description:
    'Uses the stored address, format and secret: one `incident.notice` with `page: false`, without a retry. 409 `NOT_SET` if no address is set. At most ten tests a minute.',
  params: z.object({ name: z.enum(webhookNames) }),
  answer: webhookTest,
  example: { outcome: 'sent', status: 204, detail: 'the receiver answered 204', said: '' },
  status: 200,
  problems: [409],
  async run({ params: { name }, principal, c }, { db, publicUrl }) {
    const key = `webhook.${name}`
    const stored = await readSettings(db)
    const url = stored.value<string | null>(`${key}.url`)
    if (!url) throw new Problem(409, 'NOT_SET', `${key}.url is not set: set the address, then send the test message.`)
    await limitWebhookTests(db)
    const template = stored.value<WebhookTemplate>(`${key}.template`)
    const secret = stored.value<string | null>(`${key}.secret`)
    const page = `${publicUrl ?? new URL(c.req.url).origin}/config#${key}.url`
    const now = new Date()
    const message = toTestMessage({ key, by: principal.name, url: page, at: now.toISOString() })
    const options = { deliveryId: `msg_${randomUUID()}`, now, timeoutMs: 10_000 }
    const made = await deliver({ url, template, secret }, message, options)
    const detail = made.outcome === 'sent' ? `the receiver answered ${made.status}` : made.reason
    await recordAudit(db, { who: principal.name, what: 'webhook.tested', subject: key, detail: capitalize(detail) })
    return { outcome: made.outcome, status: made.status, detail, said: made.responseSnippet }
  },
})

/** Builds a notice that is about no incident and wakes nobody. */
export function toTestMessage({ key, by, url, at }: Record<'key' | 'by' | 'url' | 'at', string>): Notification {
  return {
    trigger: 'notice',
    incident: {
      id: `inc_${'0'.repeat(26)}`,
      type: 'test_message',
      severity: 'info',
      status: 'resolved',
      title: 'Test message from Nightshift: nothing has happened',
      resource: null,
    },
    reason: `${by} sent this message to test ${key}.`,
    approval: null,
    page: false,
    alertsFiring: 0,
    incidents: [],
    lines: [],
    url,
    at,
    headHash: null,
  }
}
