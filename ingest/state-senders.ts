import type { StateMeaning } from '../domain/state-words.ts'

/**
 * A sender and its words for each state of an alert, from its documentation. Words are normalized
 * (`foldWord`) and separated by commas.
 */
type StateSender = { name: string; also?: string } & Partial<Record<StateMeaning, string>> & { from: string }

/**
 * The only list of senders' state words. `also`: other names of the sender in a body, a label or a
 * token.
 */
export const stateSenders: StateSender[] = [
  {
    name: 'Zabbix',
    ends: 'ok, resolved, 0',
    fires: 'problem, 1',
    no_data: 'unknown',
    from: 'https://www.zabbix.com/documentation/current/en/manual/appendix/macros/supported_by_location',
  },
  {
    name: 'Nagios',
    also: 'naemon, shinken, centreon',
    ends: 'recovery, up, ok',
    fires: 'problem, acknowledgement, down, unreachable, warning, critical, unknown',
    from: 'https://assets.nagios.com/downloads/nagioscore/docs/nagioscore/4/en/macrolist.html',
  },
  {
    name: 'Icinga',
    also: 'icinga2, icinga 2, icingaweb',
    ends: 'recovery, up, ok',
    fires: 'problem, acknowledgement, down, unreachable, warning, critical, unknown',
    from: 'https://icinga.com/docs/icinga-2/latest/doc/03-monitoring-basics/#notifications',
  },
  {
    name: 'Checkmk',
    also: 'check mk',
    ends: 'recovery, up, ok',
    fires: 'problem, acknowledgement, down, unreach, unreachable, warn, warning, crit, critical, unknown',
    from: 'https://docs.checkmk.com/latest/en/notifications.html',
  },
  {
    name: 'Netdata',
    ends: 'clear',
    fires: 'warning, critical',
    no_data: 'undefined',
    off: 'removed, uninitialized',
    from: 'https://learn.netdata.cloud/docs/alerts-&-notifications/notifications/agent-dispatched-notifications/custom',
  },
  {
    name: 'UptimeRobot',
    also: 'uptime robot',
    ends: 'up, 2',
    fires: 'down, seems down, 1, 8, 9',
    off: 'paused, 0',
    from: 'https://uptimerobot.com/api/#parameters',
  },
  {
    name: 'Pingdom',
    ends: 'up, success',
    fires: 'down, failing',
    from: 'https://www.pingdom.com/resources/webhooks/',
  },
  {
    name: 'Healthchecks',
    also: 'healthchecks io',
    ends: 'up',
    fires: 'down, grace',
    off: 'paused, new',
    from: 'https://healthchecks.io/docs/api/#list-checks',
  },
  {
    name: 'CloudWatch',
    also: 'aws, amazon cloudwatch, aws cloudwatch',
    ends: 'ok',
    fires: 'alarm',
    no_data: 'insufficient data',
    from: 'https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-concepts.html',
  },
  {
    name: 'PRTG',
    also: 'paessler',
    ends: 'up',
    fires: 'down, down acknowledged, down partial, warning, unusual',
    no_data: 'unknown',
    off: 'paused',
    from: 'https://www.paessler.com/manuals/prtg/sensor_states',
  },
  {
    name: 'Uptime Kuma',
    also: 'kuma',
    ends: 'up, 1',
    fires: 'down, pending, 0, 2',
    off: 'maintenance, 3',
    from: 'https://github.com/louislam/uptime-kuma/blob/master/src/util.ts',
  },
  {
    name: 'StatusCake',
    also: 'status cake',
    ends: 'up',
    fires: 'down',
    from: 'https://developers.statuscake.com/guides/webhooks/',
  },
  {
    name: 'Datadog',
    ends: 'recovered, success',
    fires: 'triggered, re triggered, renotify, warn, re warn, warning, error',
    no_data: 'no data, re no data',
    from: 'https://docs.datadoghq.com/integrations/webhooks/#variables',
  },
  {
    name: 'Grafana',
    ends: 'ok, normal',
    fires: 'alerting, pending, error, recovering',
    no_data: 'no data, nodata',
    off: 'paused',
    from: 'https://grafana.com/docs/grafana/latest/alerting/fundamentals/alert-rule-evaluation/',
  },
  {
    name: 'Prometheus',
    also: 'alertmanager, vmalert',
    ends: 'inactive, resolved',
    fires: 'firing, pending, active',
    from: 'https://prometheus.io/docs/prometheus/latest/configuration/alerting_rules/',
  },
  {
    // Lets `inactive` fire, because an inactive systemd service is down. For most senders, an
    // inactive alert has ended.
    name: 'systemd',
    ends: 'active',
    fires: 'failed, inactive',
    from: 'https://www.freedesktop.org/software/systemd/man/latest/org.freedesktop.systemd1.html',
  },
  {
    name: 'Gatus',
    ends: 'resolved',
    fires: 'triggered',
    from: 'https://github.com/TwiN/gatus#configuring-custom-alerts',
  },
  {
    name: 'PagerDuty',
    ends: 'resolve, resolved',
    fires: 'trigger, triggered, acknowledge, acknowledged',
    from: 'https://developer.pagerduty.com/docs/events-api-v2/trigger-events/',
  },
  {
    name: 'Opsgenie',
    ends: 'close, closed',
    fires: 'create, open, acknowledge, acked',
    from: 'https://support.atlassian.com/opsgenie/docs/opsgenie-edge-connector-alert-action-data/',
  },
  {
    name: 'Azure Monitor',
    also: 'azure',
    ends: 'resolved',
    fires: 'fired',
    from: 'https://learn.microsoft.com/azure/azure-monitor/alerts/alerts-common-schema',
  },
  {
    name: 'New Relic',
    also: 'newrelic',
    ends: 'closed',
    fires: 'activated, created, acknowledged, open',
    from: 'https://docs.newrelic.com/docs/alerts/get-notified/custom-variables-incident-workflows/',
  },
  {
    name: 'Docker',
    ends: 'healthy',
    fires: 'unhealthy',
    no_data: 'starting',
    from: 'https://docs.docker.com/reference/dockerfile/#healthcheck',
  },
  {
    name: 'Argo CD',
    also: 'argocd',
    ends: 'healthy',
    fires: 'degraded, progressing, missing',
    no_data: 'unknown',
    off: 'suspended',
    from: 'https://argo-cd.readthedocs.io/en/stable/operator-manual/health/',
  },
  {
    name: 'Consul',
    ends: 'passing',
    fires: 'warning, critical',
    off: 'maintenance',
    from: 'https://developer.hashicorp.com/consul/docs/services/usage/checks',
  },
]
