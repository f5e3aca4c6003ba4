/**
 * What may be asked of a web server unasked: paths that are known to only look, each with the names that its query may have. A GET may
 * act (a shutdown, a delete) or show secrets (an environment, a heap), and so may a HEAD, which many servers answer by the GET. A segment
 * `*` is any one name.
 */
type Harmless = { source: string; paths: string; query?: string }

export const harmlessPaths: readonly Harmless[] = [
  {
    source: 'by convention: liveness, readiness, version, metrics',
    paths: `/ /health /health/ /healthz /health/live /health/ready /health/liveness /health/readiness /health/startup /healthcheck
      /healthcheck/ /health-check /health_check /_health /_healthz /livez /live /liveness /alive /readyz /ready /readiness /startupz /started
      /status /status/ /ping /up /heartbeat /version /api/version /metrics /metrics/ /stats/prometheus /robots.txt /favicon.ico /index.html
      /api/health /api/healthz /api/ping /api/status /api/v1/health /api/v1/status /api/v2/status`,
    query: 'pretty verbose format json full local ready live timeout exclude html',
  },
  { source: 'Kubernetes API health endpoints', paths: '/livez/* /readyz/* /healthz/*', query: 'verbose exclude' },
  {
    source: 'Prometheus HTTP API, Management API',
    paths: `/-/healthy /-/ready /api/v1/query /api/v1/query_range /api/v1/alerts /api/v1/rules /api/v1/targets /api/v1/labels
      /api/v1/label/*/values /api/v1/series /api/v1/metadata /api/v1/alertmanagers /api/v1/status/tsdb /api/v1/status/runtimeinfo
      /api/v1/status/buildinfo /prometheus/-/healthy /prometheus/-/ready`,
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
      /_tasks /_cat/indices /_recovery /*/_recovery /_snapshot/_status`,
    query:
      'pretty v h s help bytes time format level local human health active_only detailed timeout master_timeout include_disk_info',
  },
  {
    source: 'nginx ngx_http_stub_status_module, Apache mod_status, php-fpm, HAProxy management guide',
    paths: `/nginx_status /stub_status /basic_status /server-status /fpm-status /fpm-ping /haproxy_stats /haproxy_stats;csv /stats /stats;csv
      /haproxy?stats /haproxy?stats;csv /haproxy;csv /;csv`,
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
  { source: 'Nomad HTTP API', paths: '/v1/agent/health /v1/nodes /v1/regions', query: 'type prefix pretty' },
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
      /api/healthchecks/node /api/aliveness-test/*`,
    query: 'columns sort page page_size',
  },
  {
    source: 'CNCF Distribution, GitLab health check, MinIO, Keycloak, Kibana, CouchDB, Kafka Connect, Schema Registry',
    paths: `/v2/ /v2/_catalog /v2/*/tags/list /-/health /-/readiness /-/liveness /minio/health/live /minio/health/ready /minio/health/cluster
      /minio/health/cluster/read /_up /connectors /connectors/*/status /subjects`,
    query: 'n last all',
  },
  {
    source: 'Envoy administration interface',
    paths: '/server_info /clusters /listeners /stats',
    query: 'filter format usedonly',
  },
  { source: 'ClickHouse HTTP interface', paths: '/replicas_status' },
]
