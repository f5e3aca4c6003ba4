import { z } from '@hono/zod-openapi'
import { recordAudit } from '../../db/log/audit.ts'
import { ownDevices, pushKeys, subscribe, unsubscribe } from '../../db/outbox/push-subscriptions.ts'
import { isPushService, newSubscription, type PushDevice, pushDevice } from '../../domain/push.ts'
import { generatePushKeys, isPushKey } from '../../notify/push.ts'
import { writtenText } from '../http/body.ts'
import { endpoint } from '../http/endpoint.ts'
import { notFound, Problem } from '../http/problem.ts'

const tag = 'approvals'
const example: PushDevice = {
  id: 'psh_01kam3x0q2v8d5t7w9y1b3c5e7',
  name: 'Chrome on Android',
  createdAt: '2026-11-21T01:46:02.000000Z',
  lastSentAt: null,
}

const pushEndpoint = endpoint({
  method: 'get',
  path: '/push',
  permission: 'decide',
  tag,
  summary: 'The key that signs messages to browsers, and your subscribed browsers',
  answer: z.object({ publicKey: z.string(), devices: z.array(pushDevice) }),
  example: { publicKey: 'BNcRdreALRFXTkOOUHK1EtK2wtaz5Ry4YfYCA_0QTpQtUb…', devices: [example] },
  async run({ scope }, { db }) {
    const [{ publicKey }, devices] = await Promise.all([pushKeys(db, generatePushKeys), ownDevices(scope)])
    return { publicKey, devices }
  },
})

const subscribeEndpoint = endpoint({
  method: 'post',
  path: '/push/subscriptions',
  permission: 'decide',
  tag,
  summary: 'Subscribes this browser to approvals that you may decide',
  description:
    'The body is the result of `PushManager.subscribe()` in a browser. Its address must be in `PUSH_SERVICES` (default: the services of the browsers). Subscribing again only changes the name.',
  body: newSubscription.extend({ name: writtenText(1, 80).default('a browser') }),
  bodyExample: {
    endpoint: 'https://fcm.googleapis.com/fcm/send/…',
    keys: { p256dh: `B${'x'.repeat(86)}`, auth: 'x'.repeat(22) },
    name: 'Chrome on Android',
  },
  answer: pushDevice,
  example,
  status: 201,
  problems: [409],
  async run({ body: { name, ...subscription }, principal }, deps) {
    const { operatorId } = principal
    if (operatorId === null)
      throw new Problem(409, 'NO_PERSON', 'This token belongs to no person: sign in as a person.')
    if (!isPushService(subscription.endpoint, deps.pushServices)) {
      const host = URL.parse(subscription.endpoint)?.host ?? 'this address'
      throw new Problem(409, 'PUSH_SERVICE_UNKNOWN', `PUSH_SERVICES does not list ${host}.`)
    }
    if (!isPushKey(subscription.keys.p256dh))
      throw new Problem(409, 'PUSH_KEY_INVALID', 'keys.p256dh is not a point of P-256. Subscribe the browser again.')
    const device = await subscribe(deps.db, operatorId, subscription, name)
    await deps.db.transaction().execute((trx) =>
      recordAudit(trx, {
        who: principal.name,
        what: 'push.subscribed',
        subject: device.id,
        detail: `Approvals are sent to ${device.name}`,
      }),
    )
    return device
  },
})

const removeEndpoint = endpoint({
  method: 'post',
  path: '/push/subscriptions/{id}/remove',
  permission: 'decide',
  tag,
  summary: 'Ends the subscription of one of your browsers',
  params: z.object({ id: z.string().max(100) }),
  answer: z.object({ id: z.string() }),
  example: { id: example.id },
  problems: [404],
  async run({ params: { id }, principal }, { db }) {
    if (principal.operatorId === null || !(await unsubscribe(db, principal.operatorId, id)))
      throw notFound(`subscription ${id} of yours`)
    await db.transaction().execute((trx) =>
      recordAudit(trx, {
        who: principal.name,
        what: 'push.removed',
        subject: id,
        detail: 'Approvals are no longer sent to this browser',
      }),
    )
    return { id }
  },
})

export const pushRoutes = [pushEndpoint, subscribeEndpoint, removeEndpoint]
