import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createCoreClient } from '../clients/core.ts'
import { createToken } from '../db/access/tokens.ts'
import { connect } from '../db/connect.ts'
import { putSource } from '../db/inventory/sources.ts'
import type { Tool, ToolContext } from '../domain/tool.ts'
import { migrateToLatest } from '../migrations/migrate.ts'
import type { AskSource } from '../sources/kind.ts'
import { sourceTools } from '../sources/kinds.ts'
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
 * Measures how much time the source layer adds to the time of the server. Runs `query_metrics` from
 * the tool registry through the core API (judge, limits, summary, stored digest, subject). Compares
 * it with the same requests sent directly to the same real Prometheus.
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
      writeCredential: null,
      caFile: null,
      scheme: null,
      headers: {},
      certFile: null,
      keyFile: null,
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
    let [bytes, requests] = [0, 0]
    for (let n = 0; n < rounds + warmUp; n += 1) {
      const own = await askDirectly(prometheus.url, args)
      const stepKey = await announced(db, incidentId, 'query_metrics', args, null, 'read')
      const context: ToolContext = { core, incidentId, stepKey, ifMatch: null }
      const through = await timed(async () => {
        const answer = await (tools.get('query_metrics') as Tool).run(args, context)
        if (!answer.ok) throw new Error(`${answer.problem.code} ${answer.problem.detail}`)
        bytes = JSON.stringify((answer.data as { summary: unknown }).summary).length
      })
      if (n < warmUp) continue
      direct.push(own.ms)
      requests = own.requests
      layered.push(through)
    }
    report('sources', {
      'requests of one reading': requests,
      'Prometheus itself, median (ms)': round(median(direct)),
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

/**
 * Sends the requests of `query_metrics` directly to the server. Returns the server's time for one
 * reading, in milliseconds, and the number of requests.
 */
async function askDirectly(url: string, args: Record<string, unknown>): Promise<{ ms: number; requests: number }> {
  const times: [from: number, to: number][] = []
  const ask: AskSource = async ({ path, form }) => {
    const from = performance.now()
    const answer = await fetch(`${url}${path}`, { method: 'POST', body: new URLSearchParams(form) })
    const text = await answer.text()
    times.push([from, performance.now()])
    return JSON.parse(text)
  }
  const tool = sourceTools.get('query_metrics')
  await tool?.read(ask, tool.input.parse(args), { nowMs: Date.now(), options: {}, incidentBeganMs: null })
  let [ms, until] = [0, 0]
  for (const [from, to] of times.sort((a, b) => a[0] - b[0])) {
    ms += Math.max(0, to - Math.max(from, until))
    until = Math.max(until, to)
  }
  return { ms, requests: times.length }
}
