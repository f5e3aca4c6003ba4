import { globExpression } from './patterns.ts'

/**
 * A list of path patterns, tested against many paths. One regular expression would try hundreds of
 * patterns for each path; here a path is tested only against those that share a word with it. Gives
 * the same answers as `globExpression`.
 */
export type PathTest = { test(path: IndexedPath): boolean }

/** A path, and its segments in lower case, split once for all lists. */
export type IndexedPath = { text: string; lower: string; segments: readonly string[] }

export function pathOf(text: string): IndexedPath {
  const lower = text.toLowerCase()
  return { text, lower, segments: lower.split('/') }
}

const isLiteral = (segment: string | undefined): boolean =>
  segment !== undefined && segment !== '' && !/[*?[]/.test(segment)

/** Number of patterns below which one regular expression is faster. */
const fewPatterns = 6

export function pathIndex(patterns: readonly string[]): PathTest {
  if (patterns.length < fewPatterns) {
    const expression = globExpression(patterns)
    return { test: ({ text }) => expression.test(text) }
  }
  const lower = patterns.map((pattern) => pattern.toLowerCase())
  const hasName = nameIndex(lower.filter(isName).map((pattern) => pattern.slice(3)))
  const hasDirectory = nameIndex(lower.filter(isDirectory).map((pattern) => pattern.slice(3, -3)))
  const others = lower.filter((pattern) => !isName(pattern) && !isDirectory(pattern))
  const below = rootIndex(others.filter((pattern) => keyOf(pattern).startsWith('/')))
  const holding = grouped(others, keyOf)
  const anywhere = holding.get('')
  return {
    test({ lower: path, segments }) {
      if (hasName(segments[segments.length - 1]!) || anywhere?.test(path) === true) return true
      if (segments[0] === '' && below(segments, path)) return true
      for (const segment of segments) {
        if (segment !== '' && (hasDirectory(segment) || holding.get(segment)?.test(path) === true)) return true
      }
      return false
    },
  }
}

/** Whether a pattern is `**` and one name, which matches a file of that name anywhere. */
const isName = (pattern: string): boolean => /^\*\*\/[^/]+$/.test(pattern) && !pattern.endsWith('/**')
/** Whether a pattern matches a directory of one name anywhere, with everything in it. */
const isDirectory = (pattern: string): boolean => /^\*\*\/[^/]+\/\*\*$/.test(pattern)

/** Returns a word that every matching path contains: its beginning or a segment. May be empty. */
function keyOf(pattern: string): string {
  const segments = pattern.split('/')
  if (segments[0] === '') {
    if (!isLiteral(segments[1])) return ''
    return isLiteral(segments[2]) ? `/${segments[1]}/${segments[2]}` : `/${segments[1]}`
  }
  return segments[0] === '**' && isLiteral(segments[1]) ? (segments[1] ?? '') : ''
}

function grouped(patterns: readonly string[], keyOf: (pattern: string) => string): Map<string, RegExp> {
  return new Map([...Map.groupBy(patterns, keyOf)].map(([key, own]) => [key, globExpression(own)]))
}

/** Indexes patterns from the root by the first segment, and by the second if it is known. */
function rootIndex(patterns: readonly string[]): (segments: readonly string[], path: string) => boolean {
  const byFirst = Map.groupBy(patterns, (pattern) => pattern.split('/')[1]!)
  const index = new Map(
    [...byFirst].map(([first, own]) => {
      const bySecond = grouped(own, (pattern) => keyOf(pattern).split('/')[2] ?? '')
      return [first, bySecond] as const
    }),
  )
  return (segments, path) => {
    const bySecond = index.get(segments[1] ?? '')
    if (!bySecond) return false
    const second = segments[2] ?? ''
    return bySecond.get('')?.test(path) === true || (second !== '' && bySecond.get(second)?.test(path) === true)
  }
}

const escaped = (text: string): string => text.replace(/[.+^$()|{}\]\\]/g, '\\$&')

/**
 * Indexes patterns of one segment. Whole names, endings and parts are looked up; the others are
 * tried by their first letter.
 */
function nameIndex(patterns: readonly string[]): (name: string) => boolean {
  const whole = new Set<string>()
  const endings = new Map<string, string[]>()
  const parts: string[] = []
  const byLetter = new Map<string, string[]>()
  const add = (index: Map<string, string[]>, key: string, text: string) =>
    index.set(key, [...(index.get(key) ?? []), text])
  for (const pattern of patterns) {
    if (isLiteral(pattern)) whole.add(pattern)
    else if (/^\*[^*?[]+$/.test(pattern)) add(endings, pattern.slice(-1), pattern.slice(1))
    else if (/^\*[^*?[]+\*$/.test(pattern)) parts.push(pattern.slice(1, -1))
    else add(byLetter, /^[*?[]/.test(pattern) ? '' : pattern.slice(0, 1), pattern)
  }
  const others = new Map([...byLetter].map(([letter, own]) => [letter, globExpression(own)]))
  const anyLetter = others.get('')
  const part = parts.length > 0 ? new RegExp(parts.map(escaped).join('|')) : null
  const hasEnding = (name: string): boolean => {
    for (const ending of endings.get(name.slice(-1)) ?? []) if (name.endsWith(ending)) return true
    return false
  }
  return (name) =>
    whole.has(name) ||
    hasEnding(name) ||
    part?.test(name) === true ||
    anyLetter?.test(name) === true ||
    others.get(name.slice(0, 1))?.test(name) === true
}

/**
 * Paths of web servers that only read, each with the names that its query may have. A GET may
 * change something (a shutdown, a delete) or show secrets (an environment, a heap). So may a HEAD,
 * which many servers answer like a GET. A segment `*` is any one name.
 */
type Harmless = { source: string; paths: string; query?: string }

export const harmlessPaths: readonly Harmless[] = [
  {
    source: 'by convention: liveness, readiness, version, metrics',
    paths: `/ /health /health/ /healthz /health/live /health/ready /health/liveness /health/readiness /health/startup /healthcheck
      /healthcheck/ /health-check /health_check /_health /_healthz /livez /live /liveness /alive /readyz /ready /readiness /startupz /started
      /status /status/ /ping /up /heartbeat /version /api/version /metrics /metrics/ /stats/prometheus /robots.txt /favicon.ico /index.html
      /api/health /api/healthz /api/ping /api/status /api/v1/health /api/v1/status /api/v2/status /ready /live`,
    query: 'pretty verbose format json full local ready live timeout exclude html',
  },
  { source: 'Kubernetes API health endpoints', paths: '/livez/* /readyz/* /healthz/*', query: 'verbose exclude' },
  {
    source: 'Kubernetes: kubelet statistics, metrics API, kube-proxy and kubelet health',
    paths: `/debug/api_priority_and_fairness/dump_priority_levels /debug/api_priority_and_fairness/dump_queues /api /apis /api/v1 /apis/apps/v1 /apis/metrics.k8s.io/v1beta1 /apis/custom.metrics.k8s.io/v1beta1 /apis/external.metrics.k8s.io/v1beta1
      /api/v1/nodes/*/proxy/stats/summary /api/v1/nodes/*/proxy/healthz /apis/metrics.k8s.io/v1beta1/nodes /apis/metrics.k8s.io/v1beta1/nodes/*
      /apis/metrics.k8s.io/v1beta1/pods /apis/metrics.k8s.io/v1beta1/namespaces/*/pods /stats/summary /proxyMode`,
  },
  {
    source: 'Hadoop YARN ResourceManager REST APIs; Netdata API; VictoriaMetrics',
    paths: `/ws/v1/cluster /ws/v1/cluster/info /ws/v1/cluster/metrics /ws/v1/cluster/nodes /ws/v1/cluster/scheduler /api/v1/info /api/v1/alarms
      /api/v1/status/active_queries /api/v1/status/top_queries`,
    query: 'states active all',
  },
  {
    source: 'Prometheus HTTP API, Management API',
    paths: `/-/healthy /-/ready /api/v1/query /api/v1/query_range /api/v1/alerts /api/v1/rules /api/v1/targets /api/v1/labels
      /api/v1/label/*/values /api/v1/series /api/v1/metadata /api/v1/alertmanagers /api/v1/status/tsdb /api/v1/status/runtimeinfo
      /api/v1/status/buildinfo /prometheus/-/healthy /prometheus/-/ready /prometheus/api/v1/query /prometheus/api/v1/query_range
      /select/*/prometheus/api/v1/query /select/*/prometheus/api/v1/query_range`,
    query: 'query start end step time timeout limit state type match[] metric target',
  },
  {
    source: 'Alertmanager API v2, Grafana and Loki HTTP API',
    paths: `/api/v2/alerts /api/v2/alerts/groups /api/v2/silences /api/v2/receivers /loki/api/v1/labels /loki/api/v1/label/*/values
      /loki/api/v1/query /loki/api/v1/query_range /loki/api/v1/status/buildinfo`,
    query: 'active silenced inhibited unprocessed filter receiver query limit start end since step time direction',
  },
  {
    source: 'Elasticsearch and OpenSearch REST API: cat, cluster health, nodes stats',
    paths: `/_cluster/health /_cluster/health/* /_cluster/stats /_cluster/pending_tasks /_cluster/allocation/explain /_cat /_cat/* /_cat/*/*
      /_nodes/stats /_nodes/stats/* /_nodes/*/stats /_nodes/hot_threads /_stats /*/_stats /*/_count /_ilm/status /_health_report
      /_slm/status /_slm/stats /*/_ilm/explain /_nodes/usage /_node/stats /_node/stats/* /_node/hot_threads /_node/jvm /_node/os
      /_tasks /_cat/indices /_recovery /*/_recovery /_snapshot/_status`,
    query:
      'pretty v h s help bytes time format level local human health active_only detailed timeout master_timeout include_disk_info',
  },
  {
    source: 'nginx ngx_http_stub_status_module, Apache mod_status, php-fpm, HAProxy management guide',
    paths: `/nginx_status /stub_status /basic_status /server-status /fpm-status /fpm-ping /haproxy_stats /haproxy_stats;csv /stats /stats;csv
      /haproxy?stats /haproxy?stats;csv /haproxy?stats;csv;norefresh /stats;csv;norefresh /haproxy/stats /haproxy/stats;csv /;csv;norefresh
       /haproxy;csv /;csv`,
    query: 'auto json',
  },
  {
    source: 'NATS monitoring endpoints; Elasticsearch snapshots',
    paths: '/varz /routez /subsz /leafz /gatewayz /jsz /healthz /_snapshot /_snapshot/_all',
    query: 'limit offset sort state pretty accounts streams consumers',
  },
  {
    source: 'Spring Boot Actuator',
    paths:
      '/actuator /actuator/health /actuator/health/* /actuator/health/*/* /actuator/info /actuator/metrics /actuator/metrics/* /actuator/prometheus',
    query: 'tag',
  },
  {
    source: 'Consul HTTP API: status, health, catalog',
    paths: `/v1/status/leader /v1/status/peers /v1/health/service/* /v1/health/node/* /v1/health/checks/* /v1/health/state/* /v1/catalog/nodes
      /v1/catalog/services /v1/catalog/datacenters /v1/catalog/service/* /v1/agent/members /v1/operator/raft/configuration
      /v1/operator/autopilot/health`,
    query: 'passing dc pretty stale consistent filter near',
  },
  {
    source: 'Nomad HTTP API',
    paths:
      '/v1/agent/health /v1/nodes /v1/regions /v1/jobs /v1/allocations /v1/evaluations /v1/deployments /v1/metrics',
    query: 'type prefix pretty',
  },
  {
    source: 'Vault HTTP API: health, seal status, leader',
    paths: '/v1/sys/health /v1/sys/seal-status /v1/sys/leader',
    query: 'standbyok perfstandbyok standbycode sealedcode uninitcode',
  },
  { source: 'etcd', paths: '/v2/stats/self /v2/stats/leader /v2/stats/store', query: 'serializable' },
  {
    source: 'Patroni REST API',
    paths:
      '/patroni /primary /master /leader /replica /replica-sync /sync /async /standby-leader /read-only /read-write /cluster /history',
    query: 'lag replication_state',
  },
  {
    source: 'RabbitMQ management HTTP API: health checks, overview',
    paths: `/api/overview /api/nodes /api/queues /api/queues/* /api/health/checks/* /api/health/checks/*/* /api/health/checks/*/*/*
      /api/healthchecks/node`,
    query: 'columns sort page page_size',
  },
  {
    source: 'CNCF Distribution, GitLab health check, MinIO, Keycloak, Kibana, CouchDB, Kafka Connect, Schema Registry',
    paths: `/v2/ /v2/_catalog /v2/*/tags/list /-/health /-/readiness /-/liveness /minio/health/live /minio/health/ready /minio/health/cluster
      /minio/health/cluster/read /_up /connectors /connectors/*/status /connectors/*/tasks/*/status
      /connector-plugins /subjects /subjects/*/versions /minio/v2/metrics/cluster /minio/v2/metrics/node`,
    query: 'n last all',
  },
  {
    source: 'Envoy administration interface',
    paths: '/server_info /clusters /listeners /stats /certs /memory',
    query: 'filter format usedonly',
  },
  {
    source: 'Airflow, Druid, Trino, Flink, Spark: health and overviews',
    paths: '/status/health /v1/info /overview /jobs/overview /taskmanagers /status/selfDiscovered',
  },
  {
    source: 'Go net/http/pprof: stacks and counts, without the command line and without what is measured for a while',
    paths:
      '/debug/pprof /debug/pprof/ /debug/pprof/goroutine /debug/pprof/threadcreate /debug/pprof/block /debug/pprof/mutex',
    query: 'debug',
  },
  {
    source: 'Traefik API: routers and services; Apache Solr: states of cores and of the cluster',
    paths: `/api/http/routers /api/http/services /api/tcp/routers /api/tcp/services /solr/admin/cores?action=STATUS
      /solr/admin/cores?action=STATUS&wt=json /solr/admin/collections?action=CLUSTERSTATUS
      /solr/admin/collections?action=CLUSTERSTATUS&wt=json`,
  },
  { source: 'ClickHouse HTTP interface', paths: '/replicas_status' },
]
