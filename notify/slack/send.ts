import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { causeOf, evidenceOf } from '../../db/approvals/evidence.ts'
import type { Db, Trx } from '../../db/connect.ts'
import { type DeliveryResult, type DueDelivery, finishDelivery, postponeDelivery } from '../../db/outbox/deliveries.ts'
import {
  type LeasedChannel,
  leaseSlackChannel,
  releaseSlackChannel,
  useSlackChannel,
} from '../../db/outbox/slack-channel.ts'
import { type SlackView, saveCard, saveThread, slackCard, slackView } from '../../db/outbox/slack-threads.ts'
import { systemScope } from '../../db/scope.ts'
import { type MessageSite, readStored } from '../../domain/notification.ts'
import { givenBack, messageGraceMs, unlessStopping } from '../give-back.ts'
import { type SlackClient, type SlackOutcome, slackOutcome } from './client.ts'
import { planSlack, type SlackAddresses, type SlackStep, type SlackTask } from './plan.ts'

/** The pace of sending: Slack accepts one message per second in a channel. */
const slackPace = { paceSeconds: 1, pollEveryMs: 500 }
type Pace = typeof slackPace
/**
 * Seconds to wait before each further attempt: 42 minutes in all, which is longer than most outages
 * and approvals.
 */
const retryAfterSeconds = [5, 30, 120, 600, 1800]
const attempts = retryAfterSeconds.length + 1

/**
 * Sends the messages of the outbox to Slack until stopped, one call at a time over all processes.
 * Without a client, logs once that Slack gets no messages, and ends.
 */
export function startSlack(
  db: Db,
  log: Logger,
  client: SlackClient | null,
  site: MessageSite,
  pace: Pace = slackPace,
): { stop(): Promise<void> } {
  const stopping = new AbortController()
  const { signal } = stopping
  const pause = () => sleep(pace.pollEveryMs, undefined, { signal }).catch(() => {})
  const telling = (async () => {
    let isKnown = false
    while (!signal.aborted) {
      try {
        if (!isKnown) await useSlackChannel(db, client?.settings.channel ?? null)
        isKnown = true
        if (!client) return
        if (await tellNext({ db, log, client, site, signal }, pace)) continue
      } catch (error) {
        log.warn({ err: error }, 'the outbox of Slack could not be read')
      }
      await pause()
    }
  })()
  return {
    async stop() {
      stopping.abort()
      await telling
    },
  }
}

type Telling = { db: Db; log: Logger; client: SlackClient; site: MessageSite; signal: AbortSignal }

/** Makes one call to Slack for the next due delivery. False if no delivery is due. */
async function tellNext({ db, log, client, site, signal }: Telling, { paceSeconds }: Pace): Promise<boolean> {
  const lease = await leaseSlackChannel(db)
  if (!lease) return false
  const { delivery } = lease
  const { channel, signingSecret } = client.settings
  const step = await next({ db, log, site }, delivery, { channel, publicUrl: site.publicUrl, signingSecret })
  const answer =
    'nothing' in step ? null : await unlessStopping(client.call(step.method, step.body), signal, messageGraceMs)
  if (answer === givenBack) {
    await db.transaction().execute(async (trx) => {
      await releaseSlackChannel(trx, lease, 0)
      await postponeDelivery(trx, delivery, 0)
    })
    return false
  }
  const outcome = answer && slackOutcome(answer)
  if (outcome && outcome.outcome !== 'sent') {
    log.warn({ delivery: delivery.id, destination: delivery.destination, response: outcome.reason }, 'delivery failed')
  }
  await db.transaction().execute(async (trx) => {
    await releaseSlackChannel(trx, lease, outcome ? Math.max(paceSeconds, waitOf(outcome)) : 0)
    if ('nothing' in step) await finishDelivery(trx, delivery, result('sent', null, step.nothing))
    else await recordOutcome(trx, lease, step, outcome as SlackOutcome)
  })
  return true
}

async function next(
  { db, log, site }: Pick<Telling, 'db' | 'log' | 'site'>,
  delivery: DueDelivery,
  to: SlackAddresses,
): Promise<SlackStep | { nothing: string }> {
  const view = await slackView(db, delivery.incidentId)
  if (!view) return { nothing: 'the incident has no thread' }
  const task = getTask(delivery, view, site)
  if (!task) return { nothing: 'the stored notification cannot be read' }
  const approval = 'approval' in task ? task.approval : null
  const card = approval ? await slackCard(db, approval.id) : null
  const scope = systemScope(db)
  const grounds = {
    cause: approval ? await causeOf(scope, approval) : null,
    evidence: approval ? await evidenceOf(scope, approval) : [],
  }
  try {
    return planSlack(task, { ...view, card, grounds }, to)
  } catch (error) {
    // Skips a message that cannot be rendered, so that it does not block later messages.
    log.error({ err: error, delivery: delivery.id }, 'a message for Slack could not be written')
    return { nothing: 'the message could not be written' }
  }
}

function getTask({ destination, notification: stored }: DueDelivery, view: SlackView, site: MessageSite) {
  const approvalOf = (id: string | undefined) => view.approvals.find((each) => each.id === id) ?? null
  switch (destination) {
    case 'slack.root':
      return { kind: 'root' } satisfies SlackTask
    case 'slack.card': {
      const approval = approvalOf((stored as { approvalId: string }).approvalId)
      return approval && ({ kind: 'card', approval } satisfies SlackTask)
    }
    default: {
      const asked = (stored as { approval?: { id: string } | null }).approval
      const told = readStored(stored, view.incident.id, site)
      const approval = approvalOf(asked?.id)
      if (!told || (asked && !approval)) return null
      return { kind: 'tell', notification: told, approval } satisfies SlackTask
    }
  }
}

/**
 * Stores the result of a call to Slack: the place of the message, and whether this delivery needs
 * more calls.
 */
async function recordOutcome(
  trx: Trx,
  { delivery }: LeasedChannel,
  step: SlackStep,
  outcome: SlackOutcome,
): Promise<void> {
  switch (outcome.outcome) {
    case 'sent':
      if (step.method === 'chat.postMessage') {
        // Drops the delivery if Slack does not name the place of the message: it is posted but
        // cannot be found again, and a second post would not help.
        const unfound = result('dropped', outcome.status, 'Slack accepted the message but did not return its timestamp')
        if (!outcome.place) return await finishDelivery(trx, delivery, unfound)
        await saveMessage(trx, delivery, step, outcome.place)
      }
      if (step.more) return await postponeDelivery(trx, delivery, 0)
      return await finishDelivery(trx, delivery, result('sent', outcome.status, step.shows))
    case 'wait':
      return await postponeDelivery(trx, delivery, outcome.afterMs / 1000)
    case 'gone':
      // Forgets the message that no longer exists: the thread if the call was a reply, otherwise
      // the message to change.
      await saveMessage(trx, delivery, { shows: step.method === 'chat.update' ? step.shows : 'root' }, null)
      return await finishDelivery(trx, delivery, result('failed', outcome.status, outcome.reason), attempts)
    case 'drop':
      return await finishDelivery(trx, delivery, result('dropped', outcome.status, outcome.reason))
    case 'retry': {
      const wait = retryAfterSeconds[delivery.attempt - 1] ?? 0
      const seconds = outcome.afterMs === null ? wait : Math.max(1, outcome.afterMs / 1000)
      return await finishDelivery(trx, delivery, result('failed', outcome.status, outcome.reason, seconds), attempts)
    }
  }
}

async function saveMessage(
  trx: Trx,
  { incidentId, notification: stored }: DueDelivery,
  { shows }: Pick<SlackStep, 'shows'>,
  place: { channel: string; ts: string } | null,
): Promise<void> {
  const about = stored as { approvalId?: string; approval?: { id: string } | null }
  const approvalId = about.approvalId ?? about.approval?.id
  if (shows === 'root') await saveThread(trx, incidentId, place)
  if (shows === 'card' && approvalId) await saveCard(trx, approvalId, place)
}

/** Returns the seconds for which the whole channel gets no calls. */
function waitOf(outcome: SlackOutcome): number {
  return outcome.outcome === 'wait' ? outcome.afterMs / 1000 : 0
}

function result(
  status: DeliveryResult['status'],
  responseStatus: number | null,
  response: string,
  retryAfterSeconds = 0,
): DeliveryResult {
  return { status, responseStatus, response, retryAfterSeconds }
}
