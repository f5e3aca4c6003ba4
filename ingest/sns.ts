import { verify, X509Certificate } from 'node:crypto'
import { isFields, momentOf, type RawFields, readBody } from './fields.ts'

/**
 * SNS' message wrapping (https://docs.aws.amazon.com/sns/latest/dg/http-notification-json.html).
 */
export type SnsMessage = {
  type: 'Notification' | 'SubscriptionConfirmation' | 'UnsubscribeConfirmation'
  topicArn: string
  sentAt: string
  signingCertUrl: string
  /** For a confirmation: the address that asks for the subscription. */
  subscribeUrl: string | null
  fields: RawFields
}

const types = ['Notification', 'SubscriptionConfirmation', 'UnsubscribeConfirmation'] as const
const topicForm = /^arn:aws[a-z-]{0,12}:sns:[a-z0-9-]{5,25}:\d{12}:[A-Za-z0-9_-]{1,256}(\.fifo)?$/

const isOfChina = /^(?:arn:aws-cn:|https:\/\/sns\.[a-z0-9-]+\.amazonaws\.com\.cn\/)/i
const otherPartition =
  'topics of the partition aws-cn (amazonaws.com.cn) are not taken, only those of https://sns.<region>.amazonaws.com'

/** The message, or what is wrong with it. Nothing of it is proven yet. */
export function readSnsMessage(bytes: Uint8Array): SnsMessage | string {
  const body = readBody(bytes)
  if (!body.ok) return body.reason
  const fields = body.value
  if (!isFields(fields)) return 'the body is no object'
  const text = (name: string): string => (typeof fields[name] === 'string' ? fields[name] : '')
  const type = types.find((each) => each === text('Type'))
  if (!type) return `"Type" is none of ${types.join(', ')}`
  if (!topicForm.test(text('TopicArn'))) return '"TopicArn" names no topic of SNS'
  if (['TopicArn', 'SigningCertURL', 'SubscribeURL'].some((name) => isOfChina.test(text(name)))) return otherPartition
  const sentAt = momentOf(text('Timestamp'))
  if (sentAt === null) return '"Timestamp" cannot be read'
  const signingCertUrl = snsUrl(text('SigningCertURL'), isCertificate)
  if (signingCertUrl === null) return '"SigningCertURL" is no certificate (.pem) at https://sns.<region>.amazonaws.com'
  const topicArn = text('TopicArn')
  const isConfirmation = type !== 'Notification'
  const subscribeUrl = isConfirmation ? snsUrl(text('SubscribeURL'), (url) => isSubscription(url, topicArn)) : null
  if (isConfirmation && subscribeUrl === null)
    return '"SubscribeURL" is no confirmation of this topic at https://sns.<region>.amazonaws.com'
  return { type, topicArn, sentAt, signingCertUrl, subscribeUrl, fields }
}

/** A message's facts: when its alarm changed, and its account where that is not the topic's. */
export function readSnsAlarm({ fields, topicArn }: SnsMessage): { changedAt: string | null; foreignTo: string | null } {
  const body = readBody(Buffer.from(typeof fields.Message === 'string' ? fields.Message : ''))
  const alarm = body.ok && isFields(body.value) ? body.value : {}
  const changedAt = typeof alarm.StateChangeTime === 'string' ? momentOf(alarm.StateChangeTime) : null
  const own = topicArn.split(':')[4] ?? ''
  const { AlarmArn: arn, AWSAccountId: account } = alarm
  const isArnOwn = typeof arn === 'string' && alarmForm.exec(arn)?.[1] === own
  const isOwn = (arn === undefined ? account === own : isArnOwn) && (account === undefined || account === own)
  return { changedAt, foreignTo: isOwn ? null : own }
}

const alarmForm = /^arn:aws[a-z-]{0,12}:cloudwatch:[a-z0-9-]{5,25}:(\d{12}):alarm:/

const hostForm = /^sns\.[a-z]{2,4}(-[a-z]{2,12}){1,3}-\d{1,2}\.amazonaws\.com$/

/** An address of SNS in normal form; null for another host, port, scheme, and for credentials. */
function snsUrl(text: string, fits: (url: URL) => boolean): string | null {
  const url = text.length <= 2_000 ? URL.parse(text) : null
  if (url?.protocol !== 'https:' || url.port !== '' || url.hash !== '') return null
  if (url.username !== '' || url.password !== '' || !hostForm.test(url.hostname)) return null
  return fits(url) ? url.href : null
}

const isCertificate = ({ pathname, search }: URL): boolean => search === '' && /^\/[A-Za-z0-9_-]+\.pem$/.test(pathname)

const isSubscription = ({ pathname, searchParams }: URL, topicArn: string): boolean =>
  pathname === '/' &&
  searchParams.get('Action') === 'ConfirmSubscription' &&
  searchParams.get('TopicArn') === topicArn &&
  (searchParams.get('Token') ?? '') !== ''

const hashes: Record<string, string> = { '1': 'sha1', '2': 'sha256' }
const signed = {
  Notification: ['Message', 'MessageId', 'Subject', 'Timestamp', 'TopicArn', 'Type'],
  SubscriptionConfirmation: ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type'],
  UnsubscribeConfirmation: ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type'],
}

/**
 * Whether this certificate's key signed the message, and is in force now:
 * https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message-verify-message-signature.html
 */
export function isSignedBySns({ type, fields }: SnsMessage, pem: string, nowIso: string): boolean {
  const { SignatureVersion: version, Signature: signature } = fields
  const hash = typeof version === 'string' && Object.hasOwn(hashes, version) ? hashes[version] : undefined
  if (!hash || typeof signature !== 'string' || signature.length > 4_096) return false
  try {
    const certificate = new X509Certificate(pem)
    const now = Date.parse(nowIso)
    if (now < Date.parse(certificate.validFrom) || now > Date.parse(certificate.validTo)) return false
    if (certificate.publicKey.asymmetricKeyType !== 'rsa') return false
    return verify(hash, Buffer.from(signedText(type, fields)), certificate.publicKey, Buffer.from(signature, 'base64'))
  } catch {
    return false
  }
}

/** Names and values of what is signed, a line each, in the order of the names. */
function signedText(type: SnsMessage['type'], fields: RawFields): string {
  const present = signed[type].filter((name) => typeof fields[name] === 'string')
  return present.map((name) => `${name}\n${fields[name]}\n`).join('')
}
