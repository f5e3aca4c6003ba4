import { type Destination, toEventsUrl } from '../domain/destination.ts'
import type { DeliverOptions, Delivery, Notification } from '../domain/notification.ts'
import { renderMail } from './email/message.ts'
import { sendMessage } from './email/send.ts'
import { renderEvent, renderTest } from './pagerduty/events.ts'
import { post } from './post.ts'
import { renderCard } from './teams/card.ts'
import { deliver } from './webhook/deliver.ts'

/** `isFirst`: true if the destination has received no earlier message about this incident. */
type ToOptions = DeliverOptions & { isFirst: boolean }

/**
 * Makes one attempt to deliver to a configured destination. Never throws. Removes the destination's
 * secrets from the receiver's response.
 */
export async function deliverTo(
  destination: Destination,
  notification: Notification,
  options: ToOptions,
): Promise<Delivery> {
  return withoutSecrets(destination, await attempt(destination, notification, options))
}

function withoutSecrets({ secrets }: Destination, delivery: Delivery): Delivery {
  let said = delivery.responseSnippet
  for (const secret of Object.values(secrets))
    for (const form of [secret, Buffer.from(secret).toString('base64')]) said = said.replaceAll(form, '…')
  return { ...delivery, responseSnippet: said }
}

async function attempt(destination: Destination, notification: Notification, options: ToOptions): Promise<Delivery> {
  const { secrets, name } = destination
  switch (destination.kind) {
    case 'webhook': {
      const { template } = destination.options
      return await deliver({ url: secrets.url ?? '', template, secret: secrets.secret ?? null }, notification, options)
    }
    case 'teams':
      return await post(secrets.url ?? '', renderCard(notification), options)
    case 'pagerduty': {
      const event = renderEvent(notification, secrets.integrationKey ?? '', options)
      return await post(toEventsUrl(destination.options), event, options)
    }
    case 'email': {
      const { deliveryId, isFirst, timeoutMs = 30_000 } = options
      const domain = destination.options.from.split('@').at(-1) ?? 'localhost'
      const mail = renderMail(notification, { deliveryId, destination: name, domain, isFirst })
      return await sendMessage(destination.options, secrets.password ?? null, mail, timeoutMs)
    }
  }
}

/**
 * Sends a test message that wakes nobody. At PagerDuty the alert of the test is resolved at once.
 */
export async function testDestination(
  destination: Destination,
  notification: Notification,
  options: DeliverOptions,
): Promise<Delivery> {
  if (destination.kind !== 'pagerduty') return await deliverTo(destination, notification, { ...options, isFirst: true })
  const url = toEventsUrl(destination.options)
  const { begin, end } = renderTest(notification, destination.secrets.integrationKey ?? '', options.deliveryId)
  const begun = await post(url, begin, options)
  return withoutSecrets(destination, begun.outcome === 'sent' ? await post(url, end, options) : begun)
}
