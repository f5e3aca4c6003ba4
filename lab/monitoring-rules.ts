/** Faults that only metrics or logs show: see `metric-faults.ts`. */
export const metricFaults = [
  'slow_leak',
  'error_rate',
  'noisy_neighbour',
  'connection_pool',
  'clock_skew',
  'certificate_ending',
  'red_herring',
  'missing_data',
  'stale_lock',
] as const
export type MetricFault = (typeof metricFaults)[number]

export const isMetricFault = (name: string): name is MetricFault => metricFaults.some((each) => each === name)

/**
 * Alert rules of the lab's Prometheus, in the form of public rule collections: an alert names the
 * series and the crossed limit, but no cause. Short windows let a scenario take only a minute. On a
 * busy machine a late scrape ends every series of its target until the next scrape. Rules therefore
 * use the last known value, and an alert fires for a while after its condition ends, so that a gap
 * ends no alert.
 */

const rule = (alert: string, severity: string, expr: string, summary: string, description: string) => ({
  alert,
  expr,
  for: '3s',
  keep_firing_for: '20s',
  labels: { severity },
  annotations: { summary, description },
})

/** Selects the PostgreSQL that the web nodes use. The lab's other databases have separate rules. */
const nodeDatabase = '{instance=~".*lab.internal:5432"}'

/** Selects the last known value of each series. */
const lastOf = (selector: string) => `last_over_time(${selector}[15s])`

const errors = 'sum by (instance, checkout) (rate(http_requests_total{job="web",code=~"5.."}[15s]))'
const all = 'sum by (instance, checkout) (rate(http_requests_total{job="web"}[15s]))'

export const rules = {
  groups: [
    {
      name: 'web',
      rules: [
        rule(
          'ServiceMemoryHigh',
          'warning',
          `${lastOf('process_resident_memory_bytes{job="web"}')} > 180e6`,
          'Memory of a web service is high',
          'The service uses {{ $value | humanize1024 }}B.',
        ),
        rule(
          'HighErrorRate',
          'critical',
          `${errors} / ${all} > 0.05`,
          'A web service answers with errors',
          '{{ $value | humanizePercentage }} of the answers are 5xx.',
        ),
        rule(
          'HighRequestRate',
          'warning',
          'sum by (instance) (rate(http_requests_total{job="web"}[15s])) > 40',
          'A web service gets many requests',
          '{{ $value | humanize }} requests a second.',
        ),
        rule(
          'NodeClockSkewDetected',
          'warning',
          `abs(${lastOf('node_timex_offset_seconds{job="web"}')}) > 0.05`,
          'The clock of a node is off',
          'The offset of the clock is {{ $value | humanize }} s.',
        ),
        rule(
          'SslCertificateWillExpireSoon',
          'warning',
          `${lastOf('web_certificate_not_after_seconds{job="web"}')} - time() < 86400 * 3`,
          'A certificate expires soon',
          'The certificate expires in {{ $value | humanizeDuration }}.',
        ),
        rule(
          'ProcessCpuHigh',
          'critical',
          'rate(process_cpu_seconds_total{job="web"}[10s]) > 0.2',
          'A web service uses too much CPU',
          'The service uses {{ $value | humanizePercentage }} of a core.',
        ),
        {
          ...rule(
            'TargetDown',
            'warning',
            'max_over_time(up{job="web"}[8s]) == 0',
            'A target gives no metrics',
            'Prometheus cannot scrape the target.',
          ),
        },
        rule(
          'TooManyConnections',
          'critical',
          `sum by (instance) (${lastOf(`pg_stat_activity_count${nodeDatabase}`)}) / on (instance) ${lastOf(`pg_settings_max_connections${nodeDatabase}`)} > 0.8`,
          'A PostgreSQL server is nearly out of connections',
          '{{ $value | humanizePercentage }} of the connections are in use.',
        ),
      ],
    },
  ],
}
