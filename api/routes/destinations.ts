import { randomUUID } from 'node:crypto'
import { z } from '@hono/zod-openapi'
import { recordAudit } from '../../db/log/audit.ts'
import {
  deliveriesTo,
  destinationByName,
  listDestinations,
  putDestination,
  removeDestination,
  SecretAsked,
} from '../../db/outbox/destination-rows.ts'
import type { Scope } from '../../db/scope.ts'
import {
  type Destination,
  destinationDelivery,
  destinationName,
  destinationPut,
  isReadable,
  type ListedDestination,
  listedDestination,
  shownAddressOf,
} from '../../domain/destination.ts'
import { capitalize } from '../../domain/format.ts'
import { webhookTest } from '../../domain/setting-row.ts'
import { testDestination } from '../../notify/destination.ts'
import { numberCursor, page, pageOf, pageQuery } from '../http/cursor.ts'
import { endpoint } from '../http/endpoint.ts'
import { notFound, Problem } from '../http/problem.ts'
import { limitWebhookTests } from '../http/rate-limits.ts'
import { incidentId } from './examples.ts'
import { toTestMessage } from './webhook-test.ts'

const tag = 'destinations'
const params = z.object({ name: destinationName })

const example: ListedDestination = {
  name: 'ops-mail',
  kind: 'email',
  options: {
    host: 'smtp.example.com',
    port: 587,
    tls: 'starttls',
    user: 'nightshift',
    from: 'nightshift@example.com',
    to: ['ops@example.com'],
    ca: null,
  },
  secrets: ['password'],
  address: 'ops@example.com by smtp.example.com:587',
  route: {
    severities: ['critical'],
    types: null,
    triggers: null,
    hours: { from: '22:00', to: '06:00', zone: 'Europe/Oslo' },
    wakes: null,
  },
  enabled: true,
  createdBy: 'anna',
  createdAt: '2026-11-26T01:46:02.000000Z',
  updatedAt: '2026-11-26T01:46:02.000000Z',
}

function toListed(destination: Destination): ListedDestination {
  const { secrets, ...rest } = destination
  const address = isReadable(destination) ? shownAddressOf(destination) : 'cannot be read: set the destination again'
  const set = Object.keys(secrets).sort() as ListedDestination['secrets']
  return { ...rest, options: { ...rest.options }, secrets: set, address }
}

async function requireDestination(scope: Scope, name: string): Promise<Destination> {
  const found = await destinationByName(scope, name)
  if (!found) throw notFound(`destination ${name}`)
  return found
}

const listEndpoint = endpoint({
  method: 'get',
  path: '/destinations',
  permission: 'read_config',
  tag,
  summary: 'Destinations by name: where messages go, besides webhooks, Slack and browsers',
  description: 'For secrets, including secret addresses, the response shows only whether they are set.',
  answer: pageOf(listedDestination),
  example: { items: [example], nextCursor: null },
  async run({ scope }) {
    return { items: (await listDestinations(scope)).map(toListed), nextCursor: null }
  },
})

const getEndpoint = endpoint({
  method: 'get',
  path: '/destinations/{name}',
  permission: 'read_config',
  tag,
  summary: 'One destination',
  params,
  answer: listedDestination,
  example,
  problems: [404],
  async run({ scope, params: { name } }) {
    return toListed(await requireDestination(scope, name))
  },
})

const putEndpoint = endpoint({
  method: 'put',
  path: '/destinations/{name}',
  permission: 'write_config',
  tag,
  summary: 'Adds a destination, or changes the destination with that name',
  description:
    'Kinds: `webhook`, `pagerduty` (Events API V2), `teams` (a webhook of Workflows), `email` (SMTP). Secrets that are left out stay as they are; 422 `SECRET_ASKED` if no secret is stored yet, or if the secret would be sent to another address. A field of `route` that is null accepts everything. `wakes` says whether a page to this destination wakes somebody; null means the default of its kind: true for `pagerduty` and for `webhook` with the template `generic`.',
  params,
  body: destinationPut,
  bodyExample: {
    kind: 'email',
    options: {
      host: 'smtp.example.com',
      user: 'nightshift',
      from: 'nightshift@example.com',
      to: ['ops@example.com'],
    },
    secrets: { password: 'a password' },
    route: { severities: ['critical'], hours: { from: '22:00', to: '06:00', zone: 'Europe/Oslo' } },
  },
  answer: listedDestination,
  example,
  async run({ params: { name }, body, principal }, { db }) {
    try {
      return toListed(await putDestination(db, name, body, principal.name))
    } catch (error) {
      if (!(error instanceof SecretAsked)) throw error
      const field = `secrets.${error.secret}`
      const message = error.isElsewhere
        ? 'was set for another address: send it again, or null for none'
        : `is missing: send ${examples[error.secret] ?? 'it'}`
      throw new Problem(422, 'SECRET_ASKED', `${field} ${message}.`, {
        fields: { errors: [{ in: 'body', field, message }] },
      })
    }
  },
})

const examples: Record<string, string> = {
  url: 'the address to post to, as https://hooks.example.com/nightshift',
  password: 'the password of options.user',
  integrationKey: 'the integration key of a service (Events API V2): 32 letters and digits',
}

const removeEndpoint = endpoint({
  method: 'post',
  path: '/destinations/{name}/remove',
  permission: 'write_config',
  tag,
  summary: 'Removes a destination; waiting messages are dropped, and sent messages stay listed with their incidents',
  params,
  answer: z.object({ removed: z.string() }),
  example: { removed: 'ops-mail' },
  status: 200,
  problems: [404],
  async run({ params: { name }, principal }, { db }) {
    if (!(await removeDestination(db, name, principal.name))) throw notFound(`destination ${name}`)
    return { removed: name }
  },
})

const testEndpoint = endpoint({
  method: 'post',
  path: '/destinations/{name}/test',
  permission: 'write_config',
  tag,
  summary: "Sends a test message to a destination, and reports the receiver's response",
  description:
    'The message is sent once, without a retry, regardless of the route and even if the destination is switched off. It wakes nobody: PagerDuty gets an alert of severity `info` that ends at once. At most ten tests a minute, including tests of webhooks.',
  params,
  answer: webhookTest,
  example: { outcome: 'sent', status: 250, detail: 'the receiver answered 250', said: '250 Accepted' },
  status: 200,
  problems: [404],
  async run({ scope, params: { name }, principal, c }, { db, publicUrl }) {
    const destination = await requireDestination(scope, name)
    await limitWebhookTests(db)
    const url = `${publicUrl ?? new URL(c.req.url).origin}/config#destination-${name}`
    const now = new Date()
    const message = toTestMessage({ key: name, by: principal.name, url, at: now.toISOString() })
    const options = { deliveryId: `msg_${randomUUID()}`, now, timeoutMs: 10_000 }
    const made = await testDestination(destination, message, options)
    const detail = made.outcome === 'sent' ? `the receiver answered ${made.status}` : made.reason
    const entry = { who: principal.name, what: 'destination.tested' as const, subject: name }
    await recordAudit(db, { ...entry, detail: capitalize(detail) })
    return { outcome: made.outcome, status: made.status, detail, said: made.responseSnippet }
  },
})

const deliveriesEndpoint = endpoint({
  method: 'get',
  path: '/destinations/{name}/deliveries',
  permission: 'read_config',
  tag,
  summary: 'Every attempt to deliver to a destination, newest first',
  description: 'The name may be that of a removed destination.',
  params,
  query: z.object({ limit: pageQuery.limit, cursor: numberCursor }),
  answer: pageOf(destinationDelivery),
  example: {
    items: [
      {
        id: 7,
        messageId: 'msg_01kam3x0q2v8d5t7w9y1b3c5e7',
        incidentId,
        trigger: 'critical',
        title: 'Disk 96% full',
        attempt: 1,
        status: 'sent',
        responseStatus: 250,
        response: '250 Accepted',
        createdAt: '2026-11-26T01:50:00.000000Z',
        finishedAt: '2026-11-26T01:50:00.200000Z',
      },
    ],
    nextCursor: null,
  },
  async run({ scope, params: { name }, query: { limit, cursor } }) {
    const rows = await deliveriesTo(scope, name, { before: cursor ?? null, limit: limit + 1 })
    return page(rows, limit, (last) => last.id)
  },
})

export const destinationRoutes = [
  listEndpoint,
  getEndpoint,
  putEndpoint,
  removeEndpoint,
  testEndpoint,
  deliveriesEndpoint,
]
