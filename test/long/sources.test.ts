import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { syncTargets } from '../../api/sync-targets.ts'
import type { Incident } from '../../domain/incident.ts'
import type { Source } from '../../domain/source.ts'
import { newSourceStates } from '../../sources/ask.ts'
import { planRead, probeSource, readSource } from '../../sources/kinds.ts'
import { useApi } from '../api/api.ts'
import { eventually, freePort, temporaryDirectory } from '../support/directory.ts'
import { type Spine, startSpine } from '../support/spine.ts'
import {
  findProgram,
  type Metrics,
  type RealAlertmanager,
  startAlertmanager,
  startPrometheus,
  startVictoriaMetrics,
} from './real-servers.ts'

describe('sources', () => {
  describe('logs', () => {
    // Built from the Go module github.com/VictoriaMetrics/VictoriaMetrics v1.115.0 (app/victoria-logs): no package registry brings it as a program.
    const program = process.env.VICTORIA_LOGS ?? join(import.meta.dirname, '../../.cache/victoria-logs')
    const suite = existsSync(program) ? describe : describe.skip
    const minute = 60_000

    suite(`logs of a real VictoriaLogs${existsSync(program) ? '' : ' (VICTORIA_LOGS names the program)'}`, () => {
      const directory = temporaryDirectory()
      const nowMs = Date.now()
      let source: Source
      let stop: () => Promise<void>

      beforeAll(async () => {
        const port = await freePort()
        const url = `http://127.0.0.1:${port}`
        const child = spawn(
          program,
          [`-storageDataPath=${join(directory.path, 'data')}`, `-httpListenAddr=127.0.0.1:${port}`],
          { stdio: 'ignore' },
        )
        stop = () => new Promise((resolve) => child.once('exit', () => resolve()) && child.kill('SIGKILL'))
        await eventually('VictoriaLogs', async () => (await fetch(`${url}/health`).catch(() => null))?.ok)
        source = {
          name: 'logs',
          kind: 'victorialogs',
          url,
          credential: null,
          caFile: null,
          options: {},
          timeoutSeconds: 10,
          createdBy: 'anna',
          createdAt: '',
        }
        const rows = Array.from({ length: 1_200 }, (_, at) => {
          const atMs = nowMs - 120 * minute + at * 6_000
          const isNew = atMs >= nowMs - 10 * minute && at % 5 === 0
          const _msg = isNew ? `ERROR "pool" exhausted: ${at} waiting` : `served ${at} in ${at % 30}ms`
          return {
            _time: new Date(atMs).toISOString(),
            _msg,
            instance: at % 2 ? 'web-1' : 'web-2',
            'service.name': 'shop',
          }
        })
        await fetch(`${url}/insert/jsonline?_stream_fields=instance`, {
          method: 'POST',
          body: rows.map((row) => JSON.stringify(row)).join('\n'),
        })
        const all = { source: 'logs', labels: { 'service.name': 'shop' }, window: '3h' }
        await eventually('the lines to be there', async () => (await read(all)).summary.lines === 1_200)
      })
      afterAll(async () => {
        await stop?.()
        directory.remove()
      })

      async function read(args: Record<string, unknown>) {
        const planned = planRead([source], 'search_logs', args)
        if (!planned.ok) throw new Error(planned.reason)
        return await readSource(planned, newSourceStates(), { nowMs, incidentBeganMs: nowMs - 5 * minute })
      }

      test('says that it answers', async () => {
        expect(await probeSource(source, newSourceStates())).toMatch(/lines in the last five minutes/)
      })

      test('are templates with counts, what is new first, in 2 kB', async () => {
        const { summary } = await read({ labels: { instance: 'web-1' }, window: '1h' })
        expect(summary).toMatchObject({ lines: 300, templatesFound: 2 })
        expect(summary.templates).toMatchObject([
          { template: expect.stringContaining('exhausted'), isNew: true },
          { template: 'served <*> in <*>' },
        ])
        expect(Buffer.byteLength(JSON.stringify(summary))).toBeLessThanOrEqual(2_000)
      })

      test('are found by words with quotes, excluded by words, and matched by a pattern', async () => {
        const count = async (args: Record<string, unknown>) =>
          (await read({ labels: { 'service.name': 'shop' }, window: '1h', ...args })).summary.lines
        expect(await count({ contains: ['"pool" exhausted: '] })).toBe(20)
        expect(await count({ excludes: ['exhausted'] })).toBe(580)
        expect(await count({ pattern: 'exhausted: \\d+ waiting$' })).toBe(20)
        expect(await count({ contains: ['.* exhausted'] })).toBe(0)
      })

      test('where nothing is found name the labels that there are', async () => {
        const { summary, isEmpty } = await read({ labels: { host: 'web-1' } })
        expect([isEmpty, summary.labelsThere]).toEqual([true, expect.arrayContaining(['instance', 'service.name'])])
      })
    })
  })

  describe('metrics', () => {
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

      test('says that it answers', async () => {
        const { body } = await api.post(`/sources/${name}/test`)
        expect(body).toMatchObject({ ok: true, detail: 'it answers queries; 1 targets' })
      })

      test('tells which metrics exist about an instance, and what one of them did, in two calls of 2 kB', async () => {
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

      test('many series are the five that moved most, and say how many are left out', async () => {
        const { summary } = await read('query_metrics', { promql: 'rate(node_cpu_seconds_total[1m])', window: '5m' })
        expect((summary.series as unknown[]).length).toBeLessThanOrEqual(5)
        expect(summary.notShown).toBeGreaterThan(0)
      })

      test('lists what it scrapes as targets of the registry', async () => {
        await syncTargets(api.api.deps)
        const { body } = await api.get(`/inventory/resources/target/${metrics.instance}`)
        expect(body).toMatchObject({ said: [{ source: `prometheus:${name}`, attributes: { job: 'node' } }] })
      })

      test('nothing found is an empty answer', async () => {
        expect(await read('query_metrics', { promql: 'nothing_of_that_name', window: '1h' })).toMatchObject({
          isEmpty: true,
        })
        expect(await read('query_metrics', { promql: 'up{instance="gone"}', window: 'now' })).toMatchObject({
          isEmpty: true,
        })
      })

      test('a query that parses and means nothing is refused with the words of the server', async () => {
        const { status, body } = await api.post('/sources/read', {
          body: { tool: 'query_metrics', arguments: { source: name, promql: 'rate(up)', window: 'now' } },
        })
        // VictoriaMetrics takes a missing range as the step.
        expect([200, 424]).toContain(status)
        if (status === 424)
          expect(body).toMatchObject({ code: 'REJECTED', detail: expect.stringMatching(/range vector|expected/) })
      })
    })
  })

  describe('alertmanager source', () => {
    let alertmanager: RealAlertmanager
    let source: Source

    beforeAll(async () => {
      alertmanager = await startAlertmanager({ url: 'http://127.0.0.1:9/hook', token: 'none' })
      const { url } = alertmanager
      source = {
        name: 'am',
        kind: 'alertmanager',
        url,
        credential: null,
        caFile: null,
        options: {},
        timeoutSeconds: 5,
        createdBy: 'anna',
        createdAt: '',
      }
      for (let n = 0; n < 40; n++)
        await alertmanager.raise({ alertname: n % 4 ? 'HighLoad' : 'DiskFull', instance: `web-${n}` }, 'It is.')
      const silence = {
        matchers: [{ name: 'instance', value: 'web-7', isRegex: false, isEqual: true }],
        startsAt: new Date(Date.now() - 1_000).toISOString(),
        endsAt: new Date(Date.now() + 3_600_000).toISOString(),
        createdBy: 'berit',
        comment: 'new disk',
      }
      const headers = { 'content-type': 'application/json' }
      const made = await fetch(`${url}/api/v2/silences`, { method: 'POST', headers, body: JSON.stringify(silence) })
      expect(made.status).toBe(200)
    })
    afterAll(async () => await alertmanager?.stop())

    async function read(tool: string, args: Record<string, unknown>) {
      const planned = planRead([source], tool, args)
      if (!planned.ok) throw new Error(planned.reason)
      const reading = await readSource(planned, newSourceStates(), { nowMs: Date.now(), incidentBeganMs: null })
      expect(Buffer.byteLength(JSON.stringify(reading.summary))).toBeLessThanOrEqual(2_000)
      return reading
    }

    test('a real Alertmanager says that it answers, and its version', async () => {
      expect(await probeSource(source, newSourceStates())).toMatch(/^it answers; Alertmanager \d/)
    })

    test('its alerts are counted by name, the newest shown, and found by a label', async () => {
      expect((await read('list_alerts', {})).summary).toMatchObject({
        alertsFound: 40,
        byName: { HighLoad: 30, DiskFull: 10 },
      })
      const one = await read('list_alerts', { labels: { instance: 'web-8' } })
      expect(one.summary).toMatchObject({
        alertsFound: 1,
        alerts: [{ name: 'DiskFull', state: 'active', labels: { instance: 'web-8' } }],
      })
      expect((await read('list_alerts', { labels: { instance: '"} or {' } })).isEmpty).toBe(true)
    })

    test('its silences say what they match, until when, by whom and why', async () => {
      expect((await read('list_silences', {})).summary).toMatchObject({
        silencesFound: 1,
        silences: [{ matches: ['instance="web-7"'], state: 'active', by: 'berit', why: 'new disk' }],
      })
      expect((await read('list_alerts', { labels: { instance: 'web-7' } })).summary).toMatchObject({
        alerts: [{ state: 'silenced' }],
      })
    })
  })
})

describe('alertmanager', () => {
  /** Seconds a firing alert gets after a repair, and in all: minutes and hours at a real site. */
  const settleSeconds = 6
  const settleMaxSeconds = 20

  let spine: Spine
  let alertmanager: RealAlertmanager

  beforeAll(async () => {
    spine = await startSpine({
      parts: ['lab', 'runbook', 'api', 'worker'],
      // The lab breaks things; what raises alerts about them here is a real Alertmanager.
      environment: { ALERT_URL: 'http://127.0.0.1:9/', WATCHDOG_INTERVAL_SECONDS: '1' },
    })
    for (const [key, value] of [
      ['alert.settle', String(settleSeconds)],
      ['alert.settle_max', String(settleMaxSeconds)],
      ['webhook.resolved.url', 'http://127.0.0.1:9/resolved'],
      ['webhook.escalated.url', 'http://127.0.0.1:9/escalated'],
    ]) {
      await sql`insert into platform_config (key, value) values (${key}, ${value})`.execute(spine.db)
    }
    await spine.until('the inventory', async () => {
      const { items } = await spine.get<{ items: unknown[] }>('/resources?q=node-web&kind=node')
      return items.length >= 4
    })
    alertmanager = await startAlertmanager({
      url: `${spine.url}/api/v1/ingest/alertmanager`,
      token: spine.tokens.ingest,
    })
  })
  afterAll(async () => {
    if (process.env.SHOW)
      for (const incident of await spine.incidents()) {
        console.log(incident.id, incident.type, incident.status, incident.outcome, incident.category, incident.attempt)
        for (const e of await spine.events(incident.id))
          console.log(e.at.slice(11, 19), e.seq, e.attempt, e.kind, e.actor, e.detail.slice(0, 200))
      }
    await alertmanager?.stop()
    await spine?.stop()
  })
  afterEach(async () => {
    await spine.lab.heal()
  })

  const downOn = (node: string, shard: string) => ({
    alertname: 'service_down',
    severity: 'critical',
    node,
    shard,
    instance: node,
  })

  /** The incident of one node, when it stands as asked. */
  async function about(node: string, what: string, isSo: (incident: Incident) => boolean): Promise<Incident> {
    return await spine.until(`the incident of ${node} ${what}`, async () =>
      (await spine.incidents('?type=service_down')).find((each) => each.resource?.id === node && isSo(each)),
    )
  }

  const noted = async ({ id }: Incident) =>
    (await spine.events(id)).flatMap((event) => (event.kind === 'noted' ? [event.metadata.code] : []))

  const messages = async ({ id }: Incident) =>
    await sql<{ trigger: string }>`
    select notification->>'trigger' as trigger from delivery
    where incident_id = ${id} and attempt = 1 order by id`
      .execute(spine.db)
      .then(({ rows }) => rows.map(({ trigger }) => trigger))

  test('a repair that the lab undoes: the alert fires on, and after the time to settle comes the next attempt', async () => {
    const labels = downOn('node-web-osl-1a', 'web-osl-1')
    await spine.lab.break('service_down', 'node-web-osl-1a')
    await alertmanager.raise(labels, 'The service on node-web-osl-1a does not answer')
    const first = await about('node-web-osl-1a', 'to be repaired', ({ status }) => status === 'resolved')
    expect(first).toMatchObject({ outcome: 'repaired', attempt: 1, alerts: { firing: 1 } })
    expect(first.watchUntil).not.toBeNull()

    await spine.lab.break('service_down', 'node-web-osl-1a')
    const second = await about('node-web-osl-1a', 'in its second attempt', ({ attempt }) => attempt === 2)
    expect(second.id).toBe(first.id)
    expect(await noted(second)).toContain('reopened')
    expect((await messages(second)).slice(0, 2)).toEqual(['resolved', 'reopened'])
    await about(
      'node-web-osl-1a',
      'to be repaired again',
      ({ status, attempt }) => status === 'resolved' && attempt === 2,
    )
    await alertmanager.end(labels)
    await about('node-web-osl-1a', 'to be over', ({ alerts }) => alerts.firing === 0)
  })

  test('a repair that holds while its alert goes on: watched, told once, and escalated in the end', async () => {
    const labels = downOn('node-web-osl-1b', 'web-osl-1')
    await spine.lab.break('service_down', 'node-web-osl-1b')
    await alertmanager.raise(labels, 'The service on node-web-osl-1b does not answer')
    const repaired = await about('node-web-osl-1b', 'to be repaired', ({ status }) => status === 'resolved')
    await spine.until('people to be told', async () => (await messages(repaired)).includes('watch'))
    expect(await spine.get<Incident>(`/incidents/${repaired.id}`)).toMatchObject({ status: 'resolved', attempt: 1 })
    const escalated = await about('node-web-osl-1b', 'to be handed over', ({ status }) => status === 'escalated')
    expect(escalated).toMatchObject({ category: 'alert_goes_on', attempt: 1 })
    expect(await messages(escalated)).toEqual(['resolved', 'watch', 'escalated'])
    await alertmanager.end(labels)
  })

  test('a repair whose alert ends by itself is over, and nobody hears more of it', async () => {
    const labels = downOn('node-web-ams-1a', 'web-ams-1')
    await spine.lab.break('service_down', 'node-web-ams-1a')
    await alertmanager.raise(labels, 'The service on node-web-ams-1a does not answer')
    const repaired = await about('node-web-ams-1a', 'to be repaired', ({ status }) => status === 'resolved')
    await alertmanager.end(labels)
    const over = await about('node-web-ams-1a', 'to be over', ({ alerts }) => alerts.firing === 0)
    expect(over).toMatchObject({ id: repaired.id, status: 'resolved', outcome: 'repaired', watchUntil: null })
    expect(await noted(over)).toEqual(['watch_over'])
    expect(await messages(over)).toEqual(['resolved'])
  })
})
