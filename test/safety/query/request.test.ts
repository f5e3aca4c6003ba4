import { beforeAll, expect, test } from '@jest/globals'
import { judgeCommand } from '../../../safety/command/judge.ts'
import { loadSql } from '../../../safety/sql/inspect.ts'

beforeAll(loadSql)

const judged = (text: string) =>
  judgeCommand(text, { knownHosts: new Set(['loki', 'prometheus', 'vmselect']), knownNames: new Set() })
const now = 1_763_978_000

test.each([
  "curl 'localhost:9090/api/v1/query?query=up'",
  "curl -s 'http://localhost:9090/api/v1/query?query=up%7Bjob%3D%22api%22%7D'",
  `curl -G localhost:9090/api/v1/query --data-urlencode 'query=sum by (code) (rate(http_requests_total{job="api"}[5m]))'`,
  'curl -sG http://prometheus:9090/prometheus/api/v1/query -d query=up',
  `curl -sG http://vmselect:8481/select/0/prometheus/api/v1/query --data-urlencode 'query=up{instance="a"}'`,
  `curl -s --get --data-urlencode 'query=rate(x[5m])' --data-urlencode start=${now} --data-urlencode end=${now + 3_600} --data-urlencode step=60s localhost:9090/api/v1/query_range`,
  `curl -G localhost:9090/api/v1/query_range -d 'query=up&start=${now}&end=${now + 3_585}&step=15'`,
  "curl 'localhost:9090/api/v1/query_range?query=up&start=2026-11-25T10:00:00Z&end=2026-11-25T11:00:00Z&step=1m'",
  `curl -G localhost:9090/api/v1/series --data-urlencode 'match[]=up{job="api"}'`,
  'curl localhost:9090/api/v1/labels',
  "curl 'localhost:9090/api/v1/label/job/values?match[]=up'",
  `curl -sG http://loki:3100/loki/api/v1/query_range --data-urlencode 'query={app="api"} |= "error" != "health"' -d limit=50`,
  `curl -sG http://loki:3100/loki/api/v1/query_range --data-urlencode 'query={app="api", env=~"p.*"} |~ "(?i)time ?out" | json' --data-urlencode limit=100 --data-urlencode start=${now} --data-urlencode end=${now + 600}`,
  `curl -sG http://loki:3100/loki/api/v1/query --data-urlencode 'query=sum by (level) (count_over_time({app="api"} |= "error" [5m]))'`,
  'curl -s http://loki:3100/loki/api/v1/labels',
])('runs without approval: %s', (text) => expect(judged(text)).toMatchObject({ verdict: 'run' }))

// Before, each of these but those with -G (which were no option) ran: "every command only reads".
test.each([
  [
    `curl 'localhost:9090/api/v1/query_range?query=count(%7B__name__%3D~%27.%2B%27%7D)&start=0&end=${now}&step=1'`,
    /names no metric/,
  ],
  ["curl 'localhost:9090/api/v1/query?query=count(%7B__name__%3D~%22.%2B%22%7D)'", /names no metric/],
  [`curl 'localhost:9090/api/v1/query_range?query=up&start=0&end=${now}&step=60'`, /longer than 31d/],
  [`curl 'localhost:9090/api/v1/query_range?query=up&start=${now - 86_400}&end=${now}&step=1'`, /86401 points/],
  ['curl localhost:9090/api/v1/query_range?query=up', /window that cannot be read/],
  [`curl 'localhost:9090/api/v1/query_range?query=up&start=${now}&end=now&step=60'`, /window that cannot be read/],
  [
    `curl 'localhost:9090/api/v1/query_range?query=up&start=${now}&end=${now + 60}&step=0'`,
    /window that cannot be read/,
  ],
  ["curl 'localhost:9090/api/v1/query?query=rate(up%5B1y%5D)'", /longer than 1d/],
  ["curl 'localhost:9090/api/v1/query?query=up%'", /cannot be read/],
  ["curl 'localhost:9090/api/v1/query?query=up&query=count(%7B__name__!=%27%27%7D)'", /cannot be read/],
  ['curl localhost:9090/api/v1/series', /give match/],
  ["curl 'localhost:9090/api/v1/series?match[]=up&match[]=%7Bjob%3D~%22.%2B%22%7D'", /names no metric/],
  ["curl 'localhost:9090/api/v1/label/x/values?match[]=%7Bjob%3D~%22.%2B%22%7D'", /names no metric/],
  ["curl 'localhost:9090/api/v1/query?query=topk_avg(5,up)'", /MetricsQL/],
  ["wget --max-redirect=0 -qO- 'localhost:9090/api/v1/query?query=%7Bjob%3D~%22.%2B%22%7D'", /names no metric/],
  [`curl -G localhost:9090/api/v1/query --data-urlencode 'query={__name__=~".+"}'`, /names no metric/],
  ['curl localhost:9090/api/v1/query -d query=up', /is sent/],
  ['curl -G localhost:9090/api/v1/query --data-urlencode query@/etc/hosts', /is sent|holds secrets/],
  ['curl -G localhost:9090/api/v1/query -d @/etc/hosts', /does more than read/],
  ['curl -G localhost:9090/api/v1/query localhost:9090/api/v1/labels -d query=up', /is sent/],
  ['curl -G localhost:9090/admin -d x=y', /not a known read-only request/],
  [`curl -G localhost:9090/api/v1/query --data-urlencode "query=$(cat q)"`, /./],
  [`curl -sG http://loki:3100/loki/api/v1/query_range --data-urlencode 'query={app=~".+"}'`, /label of one value/],
  [
    `curl -sG http://loki:3100/loki/api/v1/query_range --data-urlencode 'query={app="a"}' -d limit=100000`,
    /2000 lines/,
  ],
  [
    `curl 'http://loki:3100/loki/api/v1/query_range?query=%7Bapp%3D%22a%22%7D&limit=10&start=0&end=${now}'`,
    /more than a day/,
  ],
  ["curl 'http://loki:3100/loki/api/v1/query_range?query=%7Bapp%3D%22a%22%7D&since=30d'", /more than a day/],
  [`curl -sG http://loki:3100/loki/api/v1/query --data-urlencode 'query=rate({app="a"}[90d])'`, /more than a day/],
  [
    `curl -sG http://loki:3100/loki/api/v1/query --data-urlencode 'query=topk(9, sum by (x) (rate({app="a"}[1m])))'`,
    /LogQL/,
  ],
  [`curl -sG http://loki:3100/loki/api/v1/query_range --data-urlencode 'query={app="a"} |~ ".+.+"'`, /every line/],
  ["curl 'http://vmselect:9428/select/logsql/query?query=error'", /not a known read-only request/],
])('asks: %s', (text, reason) => {
  const verdict = judged(text)
  expect(verdict.verdict).toBe('ask')
  expect(verdict.reason).toMatch(reason)
})
