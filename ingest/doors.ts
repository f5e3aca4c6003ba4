import { type SeverityTable, severityTable } from './fields.ts'

/**
 * A sender described as data: where its request body has each value. A place is a path of fields
 * (`monitor.name`), or a text that contains paths (`{monitor.name}: {heartbeat.msg}`), which is
 * empty if one of the paths leads to nothing. Words without a path are literal. Of several places,
 * the first place with a text is used.
 */
export type Door = {
  /** The address of the documentation of these paths. */
  from: string
  /**
   * The place of the state. `sender`: the name in `state-senders.ts` under which this sender's
   * words for a state are listed. `ends`: the words that end an alert.
   */
  state: { at: readonly string[] } & ({ sender: string } | { ends: readonly string[] })
  /** Fields that the body must have, so that it counts as a body of this sender. */
  marks: readonly string[]
  /**
   * The wrapping around an alert: `in` is the field with the alert as text; `kind` and `is`
   * identify a wrapped body.
   */
  wrapped?: { kind: string; is: string; in: string }
  /**
   * The value of a field in bodies with an alert. A body with another value is accepted, but
   * reports no alert.
   */
  only?: readonly { at: string; is: RegExp; else: string }[]
  /** A text that stands for no value, such as an unresolved macro. */
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
  /**
   * The place of the list of `{ name, value }` that becomes labels. `called`: Nightshift's names
   * for some of these labels.
   */
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
        else: 'an event of this type does not show whether an incident fires or has ended',
      },
      // Ignores a message that came from Nightshift: PagerDuty returns it with Nightshift's key.
      { at: 'event.data.incident_key', is: /^(?!inc_[0-9a-z]{26}$)/, else: 'Nightshift itself opened this incident' },
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
    only: [{ at: 'msg', is: /^\[|(?<! Testing)$/, else: 'the message is a test of the notification' }],
    // Includes the name of the monitor, because each server numbers its monitors from 1.
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
    // The address that a monitor has if it requests no web page.
    isBlank: /^https?:\/\/$/,
    tags: { at: 'monitor.tags', name: 'name', value: 'value' },
    link: [],
  },
  zabbix: {
    from: 'https://www.zabbix.com/documentation/current/en/manual/config/notifications/media/webhook',
    marks: ['event_id', 'event_value', 'event_name'],
    isBlank: /^(\*UNKNOWN\*|\{[A-Z$][A-Z0-9._$<>:]*\})$/,
    // Uses the trigger, because one trigger is one alert however often it fires. Includes the host,
    // because two servers may use one number.
    identity: ['trigger {trigger_id} {host_host}', 'trigger {trigger_id}', 'event {event_id}'],
    name: ['trigger_name', 'event_name'],
    title: ['event_name'],
    description: ['event_opdata', 'trigger_description', 'message'],
    // Prefers the number of the severity, because an installation may rename its severities but not
    // their numbers.
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
    // The wrapping of SNS: https://docs.aws.amazon.com/sns/latest/dg/http-notification-json.html. A
    // raw delivery has no wrapping.
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
      // Renames the label, because a namespace of CloudWatch contains metrics, not workloads.
      aws_namespace: ['Trigger.Namespace'],
      metric: ['Trigger.MetricName'],
    },
    tags: { at: 'Trigger.Dimensions', name: 'name', value: 'value', called: { InstanceId: 'instance' } },
    link: [],
  },
  proxmox: {
    from: 'https://pve.proxmox.com/pve-docs/chapter-notifications.html',
    marks: ['title', 'message'],
    only: [{ at: 'fields.type', is: /^(?!test$)/, else: 'the message is a test of the target' }],
    // Includes the host, because one job runs on each node of a cluster and each node reports its
    // result.
    identity: ['{fields.type} {fields.job-id} {fields.hostname}', '{fields.type} {fields.job-id}'],
    name: ['Proxmox {fields.type}', 'title'],
    title: ['title'],
    description: ['message'],
    // The form for Gotify has a number: https://gotify.net/api-docs#/message/createMessage
    severity: ['severity', 'priority'],
    severities: severityTable({
      critical: 'error 8 9 10',
      warning: 'warning unknown 4 5 6 7',
      info: 'info notice 0 1 2 3',
    }),
    // The only end of an alert that Proxmox sends: a successful backup ends the alert of a failed
    // one.
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
