import { node, read, shard } from './build.ts'

/**
 * What the rows of the web shard share: its nodes as the platform describes them, and its metrics.
 */

export const a = node('node-web-ams-1a')
export const b = node('node-web-ams-1b')
export const both = shard('web-ams-1')
export const nodeOf = (id: string, more: Record<string, unknown>) => ({
  id,
  shard: 'web-ams-1',
  region: 'ams',
  role: 'web',
  hostname: `${id}.ams.example.net`,
  ...more,
  diskQuotaBytes: 4_194_304,
})
export const ratio =
  'sum by (instance) (rate(http_requests_total{code=~"5.."}[1m])) / sum by (instance) (rate(http_requests_total[1m]))'
export const metrics = (
  seq: number,
  summary: Record<string, unknown>,
  more: { isEmpty?: boolean; isPartial?: boolean } = {},
) =>
  read(
    seq,
    'query_metrics',
    { source: 'prometheus', isEmpty: false, summary, isPartial: false, ...more },
    { args: { promql: summary.promql, window: summary.window } },
  )
