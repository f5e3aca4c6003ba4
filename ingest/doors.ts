import { type SeverityTable, severityTable } from './fields.ts'

/**
 * A sender as data: the places of its words in its body. A place is a path of fields
 * (`monitor.name`), or a text with paths in it (`{monitor.name}: {heartbeat.msg}`), which says
 * nothing where one of them does not; words without a path are themselves. The first of several
 * with a text counts.
 */
export type Door = {
  /** Its page, which the paths come from. */
  from: string
  /**
   * Its name in `state-senders.ts`, which has its words for a state; without such words, those that
   * end an alert.
   */
  state: { at: readonly string[] } & ({ sender: string } | { ends: readonly string[] })
  /** Fields without which a body is not its. */
  marks: readonly string[]
  /** A field around the alert as text, and the field at `kind` beside it, if any. */
  wrapped?: { kind: string; is: string; in: string }
  /**
   * The field's word where a body tells of an alert; one with another word is taken, and tells of
   * none.
   */
  only?: readonly { at: string; is: RegExp; else: string }[]
  /** A value that stands for none, as a macro that was not resolved. */
  isBlank?: RegExp
  identity: readonly string[]
  name: readonly string[]
  title: readonly string[]
  description: readonly string[]
  severity: readonly string[]
  severities: SeverityTable
  startsAt: readonly string[]
  endsAt: readonly string[]
  labels: Readonly<Record<string, readonly string[]>>
  /** Lists of `{ name, value }` that are labels, and what some of them are called here. */
  tags?: { at: string; name: string; value: string; called?: Readonly<Record<string, string>> }
  link: readonly string[]
  contentTypes?: readonly string[]
}

export const doors: Readonly<Record<string, Door>> = {
  pagerduty: {
    from: 'https://developer.pagerduty.com/docs/webhooks-overview',
    marks: ['event.event_type', 'event.data'],
    only: [
      {
        at: 'event.event_type',
        is: /^incident\.(triggered|reopened|resolved)$/,
        else: 'an event of this type says neither that an incident fires nor that it has ended',
      },
      // A message that PagerDuty got from here comes back with our key.
      { at: 'event.data.incident_key', is: /^(?!inc_[0-9a-z]{26}$)/, else: 'it is an incident of this server' },
    ],
    identity: ['event.data.id'],
    name: ['event.data.title'],
    title: ['event.data.title'],
    description: ['event.data.body.details', 'event.data.service.summary'],
    severity: ['event.data.priority.summary', 'event.data.urgency'],
    severities: severityTable({
      critical: 'high p0 p1 sev0 sev1 sev-0 sev-1',
      warning: 'p2 p3 sev2 sev3 sev-2 sev-3',
      info: 'low p4 p5 sev4 sev5 sev-4 sev-5',
    }),
    state: { at: ['event.data.status'], sender: 'PagerDuty' },
    startsAt: ['event.data.created_at'],
    endsAt: ['event.occurred_at'],
    labels: {
      service: ['event.data.service.summary'],
      team: ['event.data.teams.0.summary'],
      incident_key: ['event.data.incident_key'],
    },
    link: ['event.data.html_url'],
  },
  'uptime-kuma': {
    from: 'https://github.com/louislam/uptime-kuma/blob/master/server/notification-providers/webhook.js',
    marks: ['heartbeat', 'monitor', 'msg'],
    only: [{ at: 'msg', is: /^\[|(?<! Testing)$/, else: 'it is a test of the notification' }],
    // Each server counts its monitors from 1.
    identity: ['{monitor.id} {monitor.name}', 'monitor.id', 'heartbeat.monitorID'],
    name: ['monitor.name', 'Message of Uptime Kuma'],
    title: ['{monitor.name}: {heartbeat.msg}', 'msg'],
    description: ['msg'],
    severity: [],
    severities: severityTable({
      critical: 'critical high p1',
      warning: 'warning medium p2 p3',
      info: 'info low p4 p5',
    }),
    state: { at: ['heartbeat.status'], sender: 'Uptime Kuma' },
    startsAt: ['heartbeat.time'],
    endsAt: ['heartbeat.time'],
    labels: {
      monitor: ['monitor.name'],
      monitor_type: ['monitor.type'],
      target: ['monitor.hostname', 'monitor.url'],
    },
    // What a monitor that asks no page has as its address.
    isBlank: /^https?:\/\/$/,
    tags: { at: 'monitor.tags', name: 'name', value: 'value' },
    link: [],
  },
  zabbix: {
    from: 'https://www.zabbix.com/documentation/current/en/manual/config/notifications/media/webhook',
    marks: ['event_id', 'event_value', 'event_name'],
    isBlank: /^(\*UNKNOWN\*|\{[A-Z$][A-Z0-9._$<>:]*\})$/,
    // One trigger is one alert however often it fires; other servers reuse the numbers.
    identity: ['trigger {trigger_id} {host_host}', 'trigger {trigger_id}', 'event {event_id}'],
    name: ['trigger_name', 'event_name'],
    title: ['event_name'],
    description: ['event_opdata', 'trigger_description', 'message'],
    // A site may rename its severities, and not their numbers.
    severity: ['event_nseverity', 'event_severity'],
    severities: severityTable({
      critical: 'disaster high 5 4',
      warning: 'average warning 3 2',
      info: 'information 1 0',
    }),
    state: { at: ['event_value'], sender: 'Zabbix' },
    startsAt: ['event_timestamp'],
    endsAt: ['event_recovery_timestamp'],
    labels: {
      host: ['host_host', 'host_name'],
      host_ip: ['host_ip'],
      host_group: ['host_groups'],
    },
    tags: { at: 'event_tags', name: 'tag', value: 'value' },
    link: ['event_url', 'trigger_url'],
  },
  cloudwatch: {
    from: 'https://github.com/aws/aws-lambda-go/blob/main/events/testdata/cloudwatch-alarm-sns-payload-single-metric.json',
    contentTypes: ['application/json', 'text/plain'],
    // SNS' wrapping: https://docs.aws.amazon.com/sns/latest/dg/http-notification-json.html; none
    // where delivery is raw.
    wrapped: { kind: 'Type', is: 'Notification', in: 'Message' },
    marks: ['AlarmName', 'NewStateValue', 'StateChangeTime'],
    identity: ['AlarmArn', '{AWSAccountId}/{Region}/{AlarmName}', 'AlarmName'],
    name: ['AlarmName'],
    title: ['{AlarmName}: {AlarmDescription}', 'AlarmName'],
    description: ['NewStateReason'],
    severity: [],
    severities: severityTable({ critical: '', warning: '', info: '' }),
    state: { at: ['NewStateValue'], sender: 'CloudWatch' },
    startsAt: ['StateChangeTime'],
    endsAt: ['StateChangeTime'],
    labels: {
      aws_account: ['AWSAccountId'],
      aws_region: ['Region'],
      // A namespace there holds metrics, not workloads.
      aws_namespace: ['Trigger.Namespace'],
      metric: ['Trigger.MetricName'],
    },
    tags: { at: 'Trigger.Dimensions', name: 'name', value: 'value', called: { InstanceId: 'instance' } },
    link: [],
  },
  proxmox: {
    from: 'https://pve.proxmox.com/pve-docs/chapter-notifications.html',
    marks: ['title', 'message'],
    only: [{ at: 'fields.type', is: /^(?!test$)/, else: 'it is a test of the target' }],
    // One job runs on each node of a cluster, and each node sends how it went there.
    identity: ['{fields.type} {fields.job-id} {fields.hostname}', '{fields.type} {fields.job-id}'],
    name: ['Proxmox {fields.type}', 'title'],
    title: ['title'],
    description: ['message'],
    // Gotify's form has a number: https://gotify.net/api-docs#/message/createMessage
    severity: ['severity', 'priority'],
    severities: severityTable({
      critical: 'error 8 9 10',
      warning: 'warning unknown 4 5 6 7',
      info: 'info notice 0 1 2 3',
    }),
    // It says no other end: a backup that went well is one of the backup that failed.
    state: { at: ['{fields.type} {severity}'], ends: ['vzdump info'] },
    startsAt: ['timestamp'],
    endsAt: ['timestamp'],
    labels: {
      node: ['fields.hostname'],
      job_id: ['fields.job-id'],
      kind: ['fields.type'],
    },
    link: [],
  },
}
