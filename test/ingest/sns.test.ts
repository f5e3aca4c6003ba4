import { generateKeyPairSync } from 'node:crypto'
import { expect, test } from '@jest/globals'
import { readSnsMessage } from '../../ingest/sns.ts'
import { certificateUrl, snsMessage, topicArn } from '../support/senders.ts'

const key = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
const read = (change: Record<string, unknown>, type = 'Notification') =>
  readSnsMessage(Buffer.from(snsMessage(key, '{}', { type, change })))
const path = '/SimpleNotificationService-0a1b2c.pem'

test.each([
  `https://sns.us-east-1.amazonaws.com${path}`,
  `https://sns.us-gov-west-1.amazonaws.com${path}`,
  `https://SNS.EU-NORTH-1.amazonaws.com:443${path}`,
])('a certificate is fetched from %s', (url) => {
  expect(read({ SigningCertURL: url })).toMatchObject({ signingCertUrl: new URL(url).href })
})

const hostile = [
  `http://sns.us-east-1.amazonaws.com${path}`,
  `https://sns.us-east-1.amazonaws.com.evil.example${path}`,
  `https://sns.us-east-1.amazonaws.com@evil.example${path}`,
  `https://evil.example@sns.us-east-1.amazonaws.com${path}`,
  `https://user:pass@sns.us-east-1.amazonaws.com${path}`,
  `https://sns.us-east-1.amazonaws.com:8443${path}`,
  `https://sns.us-east-1.amazonaws.com.${path}`,
  `https://sns.us-east-1.amazonaws.org${path}`,
  `https://sns.us-east-1.evil.amazonaws.com${path}`,
  `https://evil.sns.us-east-1.amazonaws.com${path}`,
  `https://evilsns.us-east-1.amazonaws.com${path}`,
  `https://sns.amazonaws.com${path}`,
  `https://sns.us-east-1.s3.amazonaws.com${path}`,
  `https://my-bucket.s3.amazonaws.com${path}`,
  `https://s3.us-east-1.amazonaws.com${path}`,
  `https://169.254.169.254${path}`,
  `https://[::1]${path}`,
  `https://localhost${path}`,
  `https://sns.us-east-1.amazonaws.com\\@evil.example${path}`,
  `https://evil.example/sns.us-east-1.amazonaws.com${path}`,
  `https://evil.example#sns.us-east-1.amazonaws.com${path}`,
  `https://sns.us-eаst-1.amazonaws.com${path}`,
  `https://sns.us-east-1.amazonaws.com${path}?x=1`,
  `https://sns.us-east-1.amazonaws.com${path}#a`,
  'https://sns.us-east-1.amazonaws.com/a/../evil.pem/x',
  'https://sns.us-east-1.amazonaws.com/key.txt',
  'file:///etc/ssl/certs/key.pem',
  `//sns.us-east-1.amazonaws.com${path}`,
  `https://sns.us-east-1.amazonaws.com/${'a'.repeat(2_000)}.pem`,
  '',
]
test.each(hostile)('no certificate is fetched from %s', (url) => {
  expect(read({ SigningCertURL: url })).toMatch(/SigningCertURL/)
})

const query = `?Action=ConfirmSubscription&TopicArn=${topicArn}&Token=abc`
test.each([
  ...hostile
    .map((url) => url.replace(path, `/${query}`))
    .filter((url) => url.includes(query) && !/com\/\?.*[?#]/.test(url)),
  'https://sns.eu-north-1.amazonaws.com/',
  'https://sns.eu-north-1.amazonaws.com/?Action=Unsubscribe&SubscriptionArn=x',
  `https://sns.eu-north-1.amazonaws.com/?Action=ConfirmSubscription&TopicArn=${topicArn}-other&Token=abc`,
  `https://sns.eu-north-1.amazonaws.com/?Action=ConfirmSubscription&TopicArn=${topicArn}`,
  `https://sns.eu-north-1.amazonaws.com/x${query}`,
  `https://sns.eu-north-1.amazonaws.com/${query}#a`,
])('no subscription is confirmed at %s', (url) => {
  expect(read({ SubscribeURL: url }, 'SubscriptionConfirmation')).toMatch(/SubscribeURL/)
})

test.each([
  { SigningCertURL: `https://sns.cn-north-1.amazonaws.com.cn${path}` },
  { TopicArn: 'arn:aws-cn:sns:cn-north-1:123456789012:alarms' },
])('a topic of another partition is refused, and the refusal says so: %j', (change) => {
  expect(read(change)).toMatch(/aws-cn.*not accepted, only those of https:\/\/sns\.<region>\.amazonaws\.com$/)
})

test('a message has its type, and a confirmation has its address', () => {
  expect(read({})).toMatchObject({ type: 'Notification', topicArn, signingCertUrl: certificateUrl, subscribeUrl: null })
  expect(read({}, 'UnsubscribeConfirmation')).toMatchObject({ subscribeUrl: expect.stringContaining('Token=') })
  for (const [change, word] of [
    [{ Type: 'Other' }, 'Type'],
    [{ TopicArn: 'arn:aws:sqs:eu-north-1:123456789012:alarms' }, 'TopicArn'],
    [{ TopicArn: `${topicArn} evil` }, 'TopicArn'],
    [{ Timestamp: 'yesterday' }, 'Timestamp'],
  ] as const)
    expect(read(change)).toContain(word)
  expect(readSnsMessage(Buffer.from('[]'))).toBe('the request body is not an object')
})
