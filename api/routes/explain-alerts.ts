import { z } from '@hono/zod-openapi'
import { explainAlerts } from '../../db/alerts/explain-alerts.ts'
import { type ExplainedAlert, explainedAlert } from '../../domain/alert.ts'
import { maxAlertsAtOnce } from '../../domain/alert-body.ts'
import { dialects } from '../../ingest/dialects.ts'
import { endpoint } from '../http/endpoint.ts'
import { Problem } from '../http/problem.ts'
import { siteWords, unparsable } from './ingest.ts'

/** A stored request body of an alert sender, as text. */
const explainedBody = z.strictObject({
  dialect: z.enum(Object.keys(dialects) as [string, ...string[]]),
  body: z.string().min(1).max(1_000_000),
})

const explainExample: ExplainedAlert = {
  fingerprint: 'd0735916ffe8d871',
  status: 'firing',
  name: 'Disk is 97 % full',
  title: 'Disk is 97 % full',
  type: 'disk_is_97_full',
  severity: 'warning',
  severityWord: null,
  resource: 'node:web-1',
  why: 'label instance names node:web-1',
  tried: [{ label: 'instance', name: 'web-1', result: 'found' }],
  candidates: [],
  becomes: 'opens',
  incidentId: null,
  groupKey: null,
  notes: ['no known severity, so warning by default'],
}

export const explainRoutes = endpoint({
  method: 'post',
  path: '/alerts/explain',
  permission: 'read',
  tag: 'alerts',
  summary: 'What Nightshift would do with the alerts of a request; nothing is stored',
  description:
    'Type, severity, title and resource of each alert, with the labels in the order in which they were tried, and why a name was or was not found.',
  body: explainedBody,
  bodyExample: { dialect: 'generic', body: '{"summary":"Disk is 97 % full","labels":{"instance":"web-1:9100"}}' },
  answer: z.object({ alerts: z.array(explainedAlert), ignored: z.string().optional() }),
  example: { alerts: [explainExample] },
  status: 200,
  problems: [400],
  async run({ body: { dialect: name, body } }, deps) {
    const site = await siteWords(deps.db, null)
    const bytes = Buffer.from(body)
    const parsed = dialects[name]?.parse(bytes, new Date().toISOString(), site)
    if (!parsed?.ok) throw unparsable(name, parsed?.reason ?? 'no such dialect', bytes)
    if (parsed.alerts.length > maxAlertsAtOnce) {
      const detail = `The body has ${parsed.alerts.length} alerts, and at most ${maxAlertsAtOnce} are explained at once: send fewer alerts.`
      throw new Problem(400, 'TOO_MANY', detail)
    }
    const { ignored } = parsed
    const alerts = await deps.db.transaction().execute((trx) => explainAlerts(trx, parsed.alerts))
    return { alerts, ...(ignored !== undefined && { ignored }) }
  },
})
