import type { Hono } from 'hono'
import { askForSnsTopic, isOvertaken, isSnsTopicConfirmed } from '../../db/alerts/sns-topics.ts'
import type { Alert } from '../../domain/alert.ts'
import { identityOf } from '../../ingest/fields.ts'
import { isSignedBySns, readSnsAlarm, readSnsMessage, type SnsMessage } from '../../ingest/sns.ts'
import type { ApiDeps, Context, Env, Middleware } from '../deps.ts'
import { requireMediaType } from '../http/body.ts'
import { limitBytes, maxBodyBytes } from '../http/middleware.ts'
import { Problem } from '../http/problem.ts'
import { afterFailure } from '../http/rate-limits.ts'
import { noteRefused, takeBody } from './ingest.ts'

const dialect = 'cloudwatch'
/**
 * Maximum age of an accepted message in milliseconds. SNS retries for an hour, so an older signed
 * message may be a replay.
 */
const maxAgeMs = 2 * 60 * 60_000

const maxCertificates = 50
const certificateMs = 24 * 60 * 60_000
/**
 * Maximum number of fetches of certificates at once. An attacker may name certificates that do not
 * exist.
 */
const maxFetches = 3

/**
 * The route for Amazon SNS, which sends no token. Accepts only messages that SNS signed, for a
 * confirmed topic. Runs before token authentication, and passes on every other request.
 */
export function snsRoutes(app: Hono<Env>, deps: ApiDeps): void {
  const certificateAt = certificates(deps)
  const takeSns: Middleware = async (c, next) => {
    if (c.req.method !== 'POST' || c.req.header('x-amz-sns-message-type') === undefined) return await next()
    try {
      return c.json(await takeMessage(deps, c, certificateAt), 202)
    } catch (error) {
      if (!(error instanceof Problem) || error.status === 503) throw error
      await noteRefused(deps, { sender: 'Amazon SNS', dialect, code: error.code, reason: error.message })
      throw (await afterFailure(deps.db, c)) ?? error
    }
  }
  app.use(`/api/v1/ingest/${dialect}`, limitBytes(maxBodyBytes), takeSns)
}

type CertificateReader = (url: string) => Promise<string>

async function takeMessage(deps: ApiDeps, c: Context, certificateAt: CertificateReader): Promise<object> {
  requireMediaType(c, ['text/plain', 'application/json'])
  const message = readSnsMessage(new Uint8Array(await c.req.arrayBuffer()))
  if (typeof message === 'string')
    throw new Problem(400, 'UNPARSABLE', `The request is not a message of SNS: ${message}.`)
  const { type, topicArn, sentAt, signingCertUrl } = message
  if (type === 'Notification' && !(await isSnsTopicConfirmed(deps.db, topicArn)))
    throw new Problem(401, 'UNCONFIRMED', `Nobody has confirmed the topic ${topicArn} in Nightshift.`)
  const now = new Date().toISOString()
  if (!isSignedBySns(message, await certificateAt(signingCertUrl), now))
    throw new Problem(401, 'NOT_PROVEN', `The signature of this message of ${topicArn} is wrong.`)
  if (Math.abs(Date.parse(now) - Date.parse(sentAt)) > maxAgeMs)
    throw new Problem(
      400,
      'TOO_OLD',
      `The time of this message of ${topicArn} differs from the current time by more than two hours.`,
    )
  if (type !== 'Notification') return await askPerson(deps, message)
  const sift = (alerts: Alert[]) => siftAlarms(deps, message, alerts)
  return await takeBody(deps, c, { name: dialect, sender: `sns/${topicArn.split(':').at(-1)}`, sift })
}

/**
 * Treats an alarm of another account than the topic's as a separate alert, so that it ends no alert
 * of the topic's account. Ignores an alarm if a later state of the alarm is known.
 */
async function siftAlarms({ db, log }: ApiDeps, message: SnsMessage, received: readonly Alert[]) {
  const { topicArn } = message
  const { changedAt, foreignTo } = readSnsAlarm(message)
  if (foreignTo !== null && received.length > 0)
    log.warn({ topicArn }, 'an alarm belongs to another account than its topic')
  const alerts = received.map((alert) => (foreignTo === null ? alert : keepApart(alert, topicArn, foreignTo)))
  for (const alert of alerts)
    if (changedAt !== null && (await isOvertaken(db, alert, changedAt)))
      return { alerts: [], ignored: `Nightshift already knows a state of ${alert.name} later than ${changedAt}` }
  return { alerts }
}

const keepApart = (alert: Alert, topicArn: string, account: string): Alert => ({
  ...alert,
  fingerprint: identityOf(`${topicArn} ${alert.fingerprint}`),
  labels: { ...alert.labels, sns_topic: topicArn },
  annotations: {
    ...alert.annotations,
    told_by: `A topic of the account ${account} sent an alarm of another account: it is a separate alert, and ends no other alert`,
  },
})

/** Stores a request to confirm a topic until a person decides, because anybody can send one. */
async function askPerson(deps: ApiDeps, { type, topicArn, subscribeUrl }: SnsMessage): Promise<object> {
  if (subscribeUrl === null || !(await askForSnsTopic(deps.db, topicArn, subscribeUrl)))
    throw new Problem(503, 'TOO_MANY_TOPICS', 'Too many topics wait for a person already. Try again later.')
  const what =
    type === 'SubscriptionConfirmation' ? 'asks for confirmation' : 'was unsubscribed, and sends no more alarms'
  await noteRefused(deps, {
    sender: 'Amazon SNS',
    dialect,
    code: 'UNCONFIRMED',
    reason: `The topic ${topicArn} ${what}.`,
  })
  return { alerts: [], ignored: `${topicArn} waits for a person: nightshift ingest topics` }
}

/**
 * Returns a reader of SNS certificates by address. `readSnsMessage` checks the addresses, and a
 * certificate is fetched once a day.
 */
function certificates({ askSns, log }: ApiDeps): CertificateReader {
  const kept = new Map<string, { pem: string; until: number }>()
  let fetches = 0
  return async (url) => {
    const known = kept.get(url)
    if (known && known.until > Date.now()) return known.pem
    const away = (detail: string) => new Problem(503, 'NO_CERTIFICATE', detail, { headers: { 'retry-after': '20' } })
    if (fetches >= maxFetches) throw away('Too many certificates of SNS are being read now.')
    fetches += 1
    try {
      const { status, text } = await askSns(url)
      if (text === null) throw new Error(`SNS answered ${status}`)
      kept.set(url, { pem: text, until: Date.now() + certificateMs })
      if (kept.size > maxCertificates) kept.delete(kept.keys().next().value ?? '')
      return text
    } catch (error) {
      log.warn({ err: error, url }, 'a certificate of SNS could not be read')
      throw away('The certificate of SNS could not be read.')
    } finally {
      fetches -= 1
    }
  }
}
