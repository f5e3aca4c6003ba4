import { verify, X509Certificate } from 'node:crypto'
import { isFields, momentOf, type RawFields, readBody } from './fields.ts'

/**
 * A message in the wrapping of SNS
 * (https://docs.aws.amazon.com/sns/latest/dg/http-notification-json.html).
 */
export type SnsMessage = {
  type: 'Notification' | 'SubscriptionConfirmation' | 'UnsubscribeConfirmation'
  topicArn: string
  sentAt: string
  signingCertUrl: string
  /** The address that confirms the subscription; null if the message asks for no confirmation. */
  subscribeUrl: string | null
  fields: RawFields
}

const types = ['Notification', 'SubscriptionConfirmation', 'UnsubscribeConfirmation'] as const
const topicForm = /^arn:aws[a-z-]{0,12}:sns:[a-z0-9-]{5,25}:\d{12}:[A-Za-z0-9_-]{1,256}(\.fifo)?$/

const isOfChina = /^(?:arn:aws-cn:|https:\/\/sns\.[a-z0-9-]+\.amazonaws\.com\.cn\/)/i
const otherPartition =
  'topics of the partition aws-cn (amazonaws.com.cn) are not accepted, only those of https://sns.<region>.amazonaws.com'

/** Parses a message; returns an error text if it is invalid. Does not verify the signature. */
export function readSnsMessage(bytes: Uint8Array): SnsMessage | string {
  const body = readBody(bytes)
  if (!body.ok) return body.reason
  const fields = body.value
  if (!isFields(fields)) return 'the request body is not an object'
  const text = (name: string): string => (typeof fields[name] === 'string' ? fields[name] : '')
  const type = types.find((each) => each === text('Type'))
  if (!type) return `"Type" must be one of ${types.join(', ')}`
  if (!topicForm.test(text('TopicArn'))) return '"TopicArn" is not an SNS topic'
  if (['TopicArn', 'SigningCertURL', 'SubscribeURL'].some((name) => isOfChina.test(text(name)))) return otherPartition
  const sentAt = momentOf(text('Timestamp'))
  if (sentAt === null) return '"Timestamp" cannot be read'
  const signingCertUrl = snsUrl(text('SigningCertURL'), isCertificate)
  if (signingCertUrl === null)
    return '"SigningCertURL" is not a certificate (.pem) at https://sns.<region>.amazonaws.com'
  const topicArn = text('TopicArn')
  const isConfirmation = type !== 'Notification'
  const subscribeUrl = isConfirmation ? snsUrl(text('SubscribeURL'), (url) => isSubscription(url, topicArn)) : null
  if (isConfirmation && subscribeUrl === null)
    return '"SubscribeURL" is not a confirmation of this topic at https://sns.<region>.amazonaws.com'
  return { type, topicArn, sentAt, signingCertUrl, subscribeUrl, fields }
}

/**
 * Reads when the alarm in a message changed its state, and the alarm's account if it differs from
 * the topic's.
 */
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

/**
 * Normalizes an address of SNS. Null for an address with another host, port or scheme, or with
 * credentials.
 */
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
 * Whether the key of this certificate signed the message, and the certificate is valid now:
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

/** Builds the text that SNS signs: each signed name and value on a line, in the order of names. */
function signedText(type: SnsMessage['type'], fields: RawFields): string {
  const present = signed[type].filter((name) => typeof fields[name] === 'string')
  return present.map((name) => `${name}\n${fields[name]}\n`).join('')
}
