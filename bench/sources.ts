import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createCoreClient } from '../clients/core.ts'
import { createToken } from '../db/access/tokens.ts'
import { connect } from '../db/connect.ts'
import { putSource } from '../db/inventory/sources.ts'
import type { Tool, ToolContext } from '../domain/tool.ts'
import { migrateToLatest } from '../migrations/migrate.ts'
import { startPostgres } from '../start/postgres.ts'
import { findProgram, startPrometheus } from '../test/long/real-servers.ts'
import { announced } from '../test/support/announced.ts'
import { temporaryDirectory } from '../test/support/directory.ts'
import { tools } from '../tools/registry.ts'
import { claimed } from './mesh.ts'
import { median, percentile, report, startApi } from './stage.ts'

const rounds = 200
const warmUp = 20

/**
 * What the layer of sources adds to the time of the server itself: `query_metrics` from the tool registry through the core API (judge,
 * limits, summary, the whole stored by digest, what it is about), beside the same three requests to the same real Prometheus.
 */
export async function benchSources(): Promise<void> {
  if (!findProgram('prometheus'))
    return console.log('sources: there is no Prometheus here (Debian: apt-get install prometheus)')
  const dir = temporaryDirectory().path
  const prometheus = await startPrometheus()
  const postgres = await startPostgres({ dir: join(dir, 'postgres'), durable: false })
  await migrateToLatest(postgres.url)
  const db = connect(postgres.url)
  const api = await startApi({ databaseUrl: postgres.url, dir })
  try {
    const input = {
      kind: 'prometheus',
      url: prometheus.url,
      credential: null,
      caFile: null,
      options: {},
      timeoutSeconds: 10,
    }
    await putSource(db, 'main', input, 'bench')
    await sleep(20_000)
    const core = createCoreClient({
      baseUrl: api.url,
      apiKey: await createToken(db, { name: 'worker', role: 'agent', operatorId: null }),
    })
    const incidentId = await claimed(db)
    const promql = `rate(node_cpu_seconds_total{instance="${prometheus.instance}"}[15s])`
    const args = { promql, window: '15m', step: '15s' }
    const [direct, layered] = [[] as number[], [] as number[]]
    let bytes = 0
    for (let n = 0; n < rounds + warmUp; n += 1) {
      const own = await timed(() => askDirectly(prometheus.url, promql))
      const stepKey = await announced(db, incidentId, 'query_metrics', args, null, 'read')
      const context: ToolContext = { core, incidentId, stepKey, ifMatch: null }
      const through = await timed(async () => {
        const answer = await (tools.get('query_metrics') as Tool).run(args, context)
        if (!answer.ok) throw new Error(`${answer.problem.code} ${answer.problem.detail}`)
        bytes = JSON.stringify((answer.data as { summary: unknown }).summary).length
      })
      if (n < warmUp) continue
      direct.push(own)
      layered.push(through)
    }
    report('sources', {
      'Prometheus itself, three windows, median (ms)': round(median(direct)),
      'query_metrics, median (ms)': round(median(layered)),
      'added by the layer, median (ms, under 15)': round(median(layered) - median(direct)),
      'query_metrics, 95th percentile (ms)': round(percentile(layered, 95)),
      'summary (bytes, at most 2,000)': bytes,
    })
  } finally {
    await api.stop()
    await db.destroy()
    await postgres.stop()
    await prometheus.stop()
    rmSync(dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
  }
}

const round = (ms: number) => Number(ms.toFixed(1))

async function timed(act: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now()
  await act()
  return performance.now() - startedAt
}

/** The requests that `query_metrics` makes: the window, a day and a week before. */
async function askDirectly(url: string, query: string): Promise<void> {
  const now = Date.now() / 1_000
  await Promise.all(
    [0, 86_400, 7 * 86_400].map(async (back) => {
      const form = { query, start: String(now - back - 900), end: String(now - back), step: '15' }
      const answer = await fetch(`${url}/api/v1/query_range`, { method: 'POST', body: new URLSearchParams(form) })
      await answer.json()
    }),
  )
}
