import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { syncTargets } from '../../api/sync-targets.ts'
import { useApi } from '../support/api.ts'
import { findProgram, type Metrics, startPrometheus, startVictoriaMetrics } from './real-servers.ts'

const api = useApi()

const servers = [
  ['Prometheus', ['prometheus', 'prometheus-node-exporter'], startPrometheus],
  ['VictoriaMetrics', ['victoria-metrics', 'prometheus-node-exporter'], startVictoriaMetrics],
] as const

describe.each(servers)('a real %s', (title, programs, start) => {
  const missing = programs.filter((program) => findProgram(program) === null)
  if (missing.length > 0) {
    test.skip(`needs ${missing.join(' and ')} (Debian's packages of these names)`, () => {})
    return
  }
  let metrics: Metrics
  const name = title.toLowerCase()
  beforeAll(async () => {
    metrics = await start()
    await api.put(`/sources/${name}`, { body: { kind: 'prometheus', url: metrics.url } })
  })
  afterAll(async () => await metrics?.stop())

  const read = async (tool: string, args: Record<string, unknown>) => {
    const { status, body } = await api.post('/sources/read', {
      body: { tool, arguments: { source: name, ...args } },
    })
    expect([status, body.code, body.detail]).toEqual([200, undefined, undefined])
    return body as unknown as { isEmpty: boolean; summary: Record<string, unknown> }
  }

  test('reports that the source answers', async () => {
    const { body } = await api.post(`/sources/${name}/test`)
    expect(body).toMatchObject({ ok: true, detail: 'the source answers queries; 1 targets' })
  })

  test('lists the metrics of an instance, and the values of one of them, in two calls of 2 kB', async () => {
    const described = await read('describe_metrics', {
      labels: { instance: metrics.instance },
      text: 'node_memory_MemA',
    })
    expect(described.summary).toMatchObject({
      metrics: [expect.stringContaining('node_memory_MemAvailable_bytes')],
    })
    const promql = `node_memory_MemAvailable_bytes{instance="${metrics.instance}"}`
    const { summary, isEmpty } = await read('query_metrics', { promql, window: '5m' })
    expect(isEmpty).toBe(false)
    expect(summary).toMatchObject({ seriesFound: 1, series: [{ last: expect.any(Number) }] })
    for (const each of [described.summary, summary])
      expect(Buffer.byteLength(JSON.stringify(each))).toBeLessThanOrEqual(2_000)
  })

  test('shows of many series the five that moved most, and the number of the others', async () => {
    const { summary } = await read('query_metrics', { promql: 'rate(node_cpu_seconds_total[1m])', window: '5m' })
    expect((summary.series as unknown[]).length).toBeLessThanOrEqual(5)
    expect(summary.notShown).toBeGreaterThan(0)
  })

  test('lists its scrape targets as targets of the registry', async () => {
    await syncTargets(api.api.deps)
    const { body } = await api.get(`/inventory/resources/target/${metrics.instance}`)
    expect(body).toMatchObject({ said: [{ source: `prometheus:${name}`, attributes: { job: 'node' } }] })
  })

  test('returns an empty answer if nothing is found', async () => {
    expect(await read('query_metrics', { promql: 'nothing_of_that_name', window: '1h' })).toMatchObject({
      isEmpty: true,
    })
    expect(await read('query_metrics', { promql: 'up{instance="gone"}', window: 'now' })).toMatchObject({
      isEmpty: true,
    })
  })

  test('refuses a valid but meaningless query with the words of the server', async () => {
    const { status, body } = await api.post('/sources/read', {
      body: { tool: 'query_metrics', arguments: { source: name, promql: 'rate(up)', window: 'now' } },
    })
    // VictoriaMetrics takes a missing range as the step.
    expect([200, 424]).toContain(status)
    if (status === 424)
      expect(body).toMatchObject({ code: 'REJECTED', detail: expect.stringMatching(/range vector|expected/) })
  })
})
