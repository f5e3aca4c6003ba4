import { createHmac, createSign, type KeyObject } from 'node:crypto'

/**
 * Bodies as the documents of their senders show them (each entry of `ingest/doors.ts` has its
 * address), with values of ours.
 */

type Story = { at?: string; id?: string; isOver?: boolean }
const { stringify } = JSON

const pagerduty = ({
  at = '2026-11-27T09:12:03Z',
  id = 'Q1WFQ2G0K3NVZX',
  isOver = false,
  ...more
}: Story & { type?: string; key?: string } = {}) => {
  const { type = isOver ? 'incident.resolved' : 'incident.triggered', key = 'srv01/http' } = more
  return stringify({
    event: {
      id: '01BWBQLZXHFPVM4NMYZ6Y3ZC6V',
      event_type: type,
      resource_type: 'incident',
      occurred_at: isOver ? new Date(Date.parse(at) + 60_000).toISOString() : at,
      agent: { id: 'PLH1HKV', type: 'user_reference', summary: 'Tenex Engineer' },
      client: null,
      data: {
        id,
        type: 'incident',
        html_url: `https://acme.pagerduty.com/incidents/${id}`,
        number: 1710,
        status: isOver ? 'resolved' : 'triggered',
        incident_key: key,
        created_at: at,
        title: 'Checkout answers slowly',
        service: { id: 'PF9KMXH', type: 'service_reference', summary: 'Shop' },
        teams: [{ id: 'PFCVPS0', type: 'team_reference', summary: 'Commerce' }],
        priority: { id: 'PSO75BM', type: 'priority_reference', summary: 'P1' },
        urgency: 'high',
        conference_bridge: null,
        resolve_reason: null,
      },
    },
  })
}

const uptimeKuma = ({ at = '2026-11-27 09:12:03.512', id = '7', isOver = false }: Story = {}) =>
  stringify({
    heartbeat: {
      monitorID: Number(id),
      status: isOver ? 1 : 0,
      time: at,
      msg: isOver ? '200 - OK' : 'connect ECONNREFUSED 10.0.0.1:443',
      important: true,
      duration: 60,
      timezone: 'Europe/Oslo',
      timezoneOffset: '+01:00',
      localDateTime: at,
    },
    monitor: {
      id: Number(id),
      name: 'Shop front',
      url: 'https://web-1.example.com/health',
      hostname: null,
      type: 'http',
      tags: [{ tag_id: 1, monitor_id: Number(id), value: 'critical', name: 'severity', color: '#DC2626' }],
    },
    msg: isOver ? '[Shop front] [✅ Up] 200 - OK' : '[Shop front] [🔴 Down] connect ECONNREFUSED 10.0.0.1:443',
  })

const zabbix = ({ at = '1795770723', id = '23412', isOver = false }: Story = {}) =>
  stringify({
    event_id: '90817',
    event_name: 'Disk /var is 96 % full',
    event_value: isOver ? '0' : '1',
    event_nseverity: '4',
    event_severity: 'High',
    event_opdata: 'Space used: 96 %',
    event_timestamp: at,
    event_recovery_timestamp: isOver ? String(Number(at) + 60) : '{EVENT.RECOVERY.TIMESTAMP}',
    event_update_status: '0',
    event_tags:
      '[{"tag":"component","value":"storage"},{"tag":"scope","value":"capacity"},{"tag":"scope","value":"notice"}]',
    host_host: 'web-1',
    host_name: 'Web server 1',
    host_ip: '10.0.0.1',
    host_groups: 'Linux servers',
    trigger_id: id,
    trigger_name: 'Disk is full',
    trigger_description: 'The volume is nearly full.',
    trigger_url: '',
    event_url: 'https://zabbix.example.com/tr_events.php?triggerid=23412&eventid=90817',
  })

const alarm = ({
  at = '2026-11-27T09:12:03.123+0000',
  id = 'shop-cpu',
  isOver = false,
  ...more
}: Story & { state?: string } = {}) =>
  stringify({
    AlarmName: id,
    AlarmDescription: 'CPU of the shop is above 90 %',
    AWSAccountId: '123456789012',
    NewStateValue: more.state ?? (isOver ? 'OK' : 'ALARM'),
    NewStateReason: 'Threshold Crossed: 1 out of the last 1 datapoints [97.0] was greater than the threshold (90.0).',
    StateChangeTime: at,
    Region: 'EU (Stockholm)',
    AlarmArn: `arn:aws:cloudwatch:eu-north-1:123456789012:alarm:${id}`,
    OldStateValue: isOver ? 'ALARM' : 'OK',
    Trigger: {
      MetricName: 'CPUUtilization',
      Namespace: 'AWS/EC2',
      StatisticType: 'Statistic',
      Statistic: 'AVERAGE',
      Unit: null,
      Dimensions: [{ value: 'i-0f1e2d3c', name: 'InstanceId' }],
      Period: 60,
      EvaluationPeriods: 1,
      ComparisonOperator: 'GreaterThanThreshold',
      Threshold: 90,
    },
  })

const proxmox = ({ at = '1795770723', id = 'backup-5e6f', isOver = false }: Story = {}) =>
  stringify({
    title: `vzdump backup status (pve1): backup ${isOver ? 'successful' : 'failed'}`,
    message: isOver ? 'Total running time: 2m 3s' : 'VMID 101: ERROR: storage is not online',
    severity: isOver ? 'info' : 'error',
    timestamp: Number(at),
    fields: { type: 'vzdump', hostname: 'pve1', 'job-id': id },
  })

/** By dialect: a body that fires, and the one that ends it. */
export const bodiesOf = {
  pagerduty,
  'uptime-kuma': uptimeKuma,
  zabbix,
  cloudwatch: alarm,
  proxmox,
} as const

export const topicArn = 'arn:aws:sns:eu-north-1:123456789012:alarms'
export const certificateUrl = 'https://sns.eu-north-1.amazonaws.com/SimpleNotificationService-0a1b2c.pem'

type SnsShape = { type?: string; topic?: string; version?: '1' | '2'; change?: Record<string, unknown>; at?: string }

/** A message of SNS, signed with the key as SNS signs: by SHA1 where the version is 1. */
export function snsMessage(key: KeyObject | string, message: string, shape: SnsShape = {}): string {
  const { type = 'Notification', topic = topicArn, version = '1', at = new Date().toISOString() } = shape
  const isNotice = type === 'Notification'
  const query = `Action=ConfirmSubscription&TopicArn=${topic}&Token=2336412f37fb687f5d51e6e241d09c805a5a57b30d712f794cc5f6a98866`
  const fields: Record<string, unknown> = {
    Type: type,
    MessageId: '22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324',
    TopicArn: topic,
    ...(isNotice
      ? { Subject: 'ALARM: "shop-cpu" in EU (Stockholm)' }
      : { Token: '2336412f37fb687f5d51e6e241d09c805a5a57b30d712f794cc5f6a98866' }),
    Message: message,
    Timestamp: at,
    SignatureVersion: version,
    SigningCertURL: certificateUrl,
    ...(isNotice
      ? { UnsubscribeURL: 'https://sns.eu-north-1.amazonaws.com/?Action=Unsubscribe' }
      : { SubscribeURL: `https://sns.eu-north-1.amazonaws.com/?${query}` }),
  }
  // The order of
  // https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message-verify-message-signature.html
  const names = isNotice
    ? ['Message', 'MessageId', 'Subject', 'Timestamp', 'TopicArn', 'Type']
    : ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type']
  const signature = createSign(version === '1' ? 'RSA-SHA1' : 'RSA-SHA256')
    .update(names.map((name) => `${name}\n${fields[name]}\n`).join(''))
    .sign(key, 'base64')
  return stringify({ ...fields, Signature: signature, ...shape.change })
}

/** The header by which PagerDuty signs a webhook. */
export const pagerdutySignature = (secret: string, body: string): string =>
  `v1=${createHmac('sha256', secret).update(body).digest('hex')}`
