import type {
  DeliverOptions,
  Delivery,
  Notification,
  Render,
  RenderedMessage,
  WebhookTarget,
  WebhookTemplate,
} from '../../domain/notification.ts'
import { post } from '../post.ts'
import { renderSlack } from '../slack/notification.ts'
import { renderGeneric } from './generic.ts'

/**
 * The renderer of each template. A new template needs a file, an entry here, and its name in
 * `webhookTemplates`.
 */
const templates: Record<WebhookTemplate, Render> = { generic: renderGeneric, slack: renderSlack }

/** Makes one attempt to deliver to a webhook. Never throws. */
export async function deliver(
  target: WebhookTarget,
  notification: Notification,
  options: DeliverOptions,
): Promise<Delivery> {
  const { deliveryId, now } = options
  let rendered: RenderedMessage
  try {
    rendered = templates[target.template](notification, { deliveryId, now, secret: target.secret })
  } catch {
    // Drops the message, because an unsigned message would be worse than no message.
    const reason = 'the webhook secret cannot sign: it must be whsec_ and at least 24 bytes in base64'
    return { outcome: 'drop', status: null, reason, responseSnippet: '' }
  }
  return await post(target.url, rendered, options)
}
