import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { Source } from '../../domain/source.ts'
import { newSourceStates } from '../../sources/ask.ts'
import { planRead, probeSource, readSource } from '../../sources/kinds.ts'
import { eventually, freePort, temporaryDirectory } from '../support/directory.ts'
import { randomOf } from './generated-series.ts'

// Built from the Go module github.com/VictoriaMetrics/VictoriaMetrics v1.115.0 (app/victoria-logs):
// no package registry brings it as a program.
const program = process.env.VICTORIA_LOGS ?? join(import.meta.dirname, '../../.cache/victoria-logs')
/** Windows of lines whose truth is known; LOG_WINDOWS=500 plays more. */
const windows = Number(process.env.LOG_WINDOWS ?? 25)
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
      writeCredential: null,
      caFile: null,
      scheme: null,
      headers: {},
      certFile: null,
      keyFile: null,
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

  const read = (args: Record<string, unknown>) => readAt(args, nowMs - 5 * minute)

  async function readAt(args: Record<string, unknown>, incidentBeganMs: number | null) {
    const planned = planRead([source], 'search_logs', args)
    if (!planned.ok) throw new Error(planned.reason)
    return await readSource(planned, newSourceStates(), { nowMs, incidentBeganMs })
  }

  test('report that the source answers', async () => {
    expect(await probeSource(source, newSourceStates())).toMatch(/lines in the last five minutes/)
  })

  test('are templates with counts, new ones first, in 2 kB', async () => {
    const { summary } = await read({ labels: { instance: 'web-1' }, window: '1h' })
    expect(summary).toMatchObject({ lines: 300, templatesFound: 2 })
    expect(summary.templates).toMatchObject([
      { template: expect.stringContaining('exhausted'), isNew: true },
      { template: 'served <*> in <*>' },
    ])
    expect(Buffer.byteLength(JSON.stringify(summary))).toBeLessThanOrEqual(2_000)
  })

  test('are found by quoted words, excluded by words, and matched by a pattern', async () => {
    const count = async (args: Record<string, unknown>) =>
      (await read({ labels: { 'service.name': 'shop' }, window: '1h', ...args })).summary.lines
    expect(await count({ contains: ['"pool" exhausted: '] })).toBe(20)
    expect(await count({ excludes: ['exhausted'] })).toBe(580)
    expect(await count({ pattern: 'exhausted: \\d+ waiting$' })).toBe(20)
    expect(await count({ contains: ['.* exhausted'] })).toBe(0)
  })

  test('are counted by a label in time steps, and separated by patterns and exclusions', async () => {
    const written = (fromMs: number, untilMs: number, which: (at: number) => boolean) =>
      Array.from({ length: 1_200 }, (_, at) => at).filter((at) => {
        const atMs = nowMs - 120 * minute + at * 6_000
        return which(at) && atMs >= fromMs && atMs < untilMs
      }).length
    const until = new Date(nowMs - 7 * minute).toISOString()
    const counted = async (labels: object, by: string[], step?: string) => {
      const { summary } = await read({ labels, window: '45m', until, count: { by, step } })
      const series = summary.series as { labels: { instance?: string }; total: number }[]
      const expected = (which: (at: number) => boolean) => written(nowMs - 52 * minute, nowMs - 7 * minute, which)
      return { series, expected }
    }
    const both = await counted({ 'service.name': 'shop' }, ['instance'], '5m')
    for (const { labels, total } of both.series)
      expect([labels.instance, total]).toEqual([
        labels.instance,
        both.expected((at) => (at % 2 === 1) === (labels.instance === 'web-1')),
      ])
    expect(both.series).toHaveLength(2)
    const named = (is: object) => counted({ 'service.name': 'shop', instance: is }, [])
    for (const is of [{ '=~': 'web-[13]' }, { '!=': 'web-2' }, { '!~': '.*-2' }]) {
      const { series, expected } = await named(is)
      expect([is, series.map(({ total }) => total)]).toEqual([is, [expected((at) => at % 2 === 1)]])
    }
    expect((await named({ '=~': 'web' })).series).toEqual([])
  })

  test(`are counted whole in ${windows} windows, for any step, and each point has the window's share of its step`, async () => {
    const random = randomOf(20_261_127)
    const wrong: string[] = []
    for (let n = 0; n < windows; n += 1) {
      const untilMs = nowMs - Math.floor(random() * 60 * minute)
      const seconds = Math.round(60 + random() * 3_000)
      const stepSeconds = Math.max(Math.ceil(seconds / 100), Math.round(random() * seconds))
      const until = new Date(untilMs).toISOString()
      const asked = { labels: { 'service.name': 'shop' }, window: `${seconds}s`, until }
      const { summary, whole } = await read({ ...asked, count: { step: `${stepSeconds}s` } })
      const fromMs = untilMs - seconds * 1_000
      const within = (begin: number, end: number) =>
        Array.from({ length: 1_200 }, (_, at) => nowMs - 120 * minute + at * 6_000).filter(
          (ms) => ms >= Math.max(begin, fromMs) && ms < Math.min(end, untilMs),
        ).length
      if (summary.lines !== within(fromMs, untilMs))
        wrong.push(`${seconds}s by ${stepSeconds}s: ${summary.lines}, were ${within(fromMs, untilMs)}`)
      const { points } = JSON.parse(whole) as { points: [number, number][] }
      for (const [at, count] of points)
        if (count !== within(at * 1_000, (at + stepSeconds) * 1_000))
          wrong.push(`${seconds}s by ${stepSeconds}s: ${count} at ${at}`)
    }
    expect(wrong).toEqual([])
  })

  test('by a label that no line has are none, which is reported', async () => {
    const { summary } = await read({ labels: { instance: 'web-1', lvl: 'error' }, count: {} })
    expect([summary.lines, summary.unknownLabels]).toEqual([0, ['lvl']])
    const other = await read({ labels: { instance: 'web-3' }, count: {} })
    expect([other.summary.lines, other.summary.unknownLabels]).toEqual([0, undefined])
  })

  test('name the known labels if nothing is found', async () => {
    const { summary, isEmpty } = await read({ labels: { host: 'web-1' } })
    expect([isEmpty, summary.labelsThere]).toEqual([true, expect.arrayContaining(['instance', 'service.name'])])
  })

  /** Kinds of lines with how many come in a minute, and since when before now, in minutes. */
  const kinds: { say: (at: number) => string; seen: RegExp; perMinute: number; from: number; to: number }[] = [
    { say: (at) => `GET /cart/${at} 200 in ${at % 40}ms`, seen: /^GET/, perMinute: 40, from: 600, to: 0 },
    { say: (at) => `worker ${at % 7} picked job ${at}`, seen: /^worker/, perMinute: 9, from: 600, to: 0 },
    { say: () => 'WARN certificate has expired', seen: /certificate/, perMinute: 0.05, from: 590, to: 40 },
    { say: (at) => `ERROR pool exhausted: ${at} waiting`, seen: /pool/, perMinute: 6, from: 95, to: 80 },
    { say: (at) => `panic: index ${at} out of range`, seen: /^panic/, perMinute: 0.4, from: 38, to: 0 },
    { say: (at) => `retry ${at} of upload\tdone`, seen: /^retry/, perMinute: 3, from: 25, to: 0 },
  ]

  test(`${windows} windows count what was written, and call new what is new`, async () => {
    const random = randomOf(20_261_126)
    const written = kinds.flatMap(({ say, perMinute, from, to }, kind) =>
      Array.from({ length: Math.round((from - to) * perMinute) }, (_, at) => {
        const atMs = Math.floor(nowMs - from * minute + ((at + random()) / perMinute) * minute)
        return { kind, atMs, text: say(at) }
      }),
    )
    const rows = written.map(({ atMs, text }) => ({ _time: new Date(atMs).toISOString(), _msg: text, app: 'made' }))
    await fetch(`${source.url}/insert/jsonline?_stream_fields=app`, {
      method: 'POST',
      body: rows.map((row) => JSON.stringify(row)).join('\n'),
    })
    const asked = { labels: { app: 'made' } }
    const inside = written.filter(({ atMs }) => atMs >= nowMs - 600 * minute && atMs < nowMs)
    await eventually('the lines to be there', async () => {
      const { summary } = await read({ ...asked, window: '10h' })
      return summary.lines === inside.length
    })
    const wrong: string[] = []
    for (let n = 0; n < windows; n += 1) {
      const untilMs = nowMs - (random() < 0.4 ? 0 : Math.floor(random() * 120) * minute)
      const length = Math.round(5 + random() ** 2 * 235)
      const began = random() < 0.5 ? null : nowMs - Math.floor(random() * 60) * minute
      const until = new Date(untilMs).toISOString()
      const { summary } = await readAt({ ...asked, window: `${length}m`, until }, began)
      const fromMs = untilMs - length * minute
      const sinceMs = began === null ? fromMs : began - 15 * minute
      const earlierMs = Math.min(fromMs, sinceMs) - length * minute
      const count = (kind: number, from: number, to: number) =>
        written.filter((each) => each.kind === kind && each.atMs >= from && each.atMs < to).length
      const told = summary.templates as { template: string; count: number; isNew?: boolean; ofRead?: boolean }[]
      const all = written.filter(({ atMs }) => atMs >= fromMs && atMs < untilMs).length
      if (summary.lines !== all) wrong.push(`lines ${summary.lines}, were ${all}`)
      for (const [kind, { seen }] of kinds.entries()) {
        const there = count(kind, fromMs, untilMs)
        const template = told.find((each) => seen.test(each.template))
        if (there === 0 && !template) continue
        const sayWrong = (what: string) => wrong.push(`${n}: ${length}m ${until} since ${began}: ${seen} ${what}`)
        if (!template) sayWrong(`is not told, were ${there}`)
        if (template && !template.ofRead && template.count !== there) sayWrong(`${template.count}, were ${there}`)
        const isNew =
          count(kind, Math.max(fromMs, sinceMs), untilMs) > 0 &&
          count(kind, earlierMs, Math.min(sinceMs, untilMs)) === 0
        if (template && (template.isNew ?? false) !== isNew) sayWrong(`is ${isNew ? '' : 'not '}new`)
      }
      expect(Buffer.byteLength(JSON.stringify(summary))).toBeLessThanOrEqual(2_000)
    }
    expect(wrong).toEqual([])
  })

  test('each tenant has its own lines, no tenant is 0:0, and a tenant that is no number is reported as such', async () => {
    const row = { _time: new Date(nowMs - minute).toISOString(), _msg: 'of another tenant', 'service.name': 'bank' }
    await fetch(`${source.url}/insert/jsonline`, {
      method: 'POST',
      body: JSON.stringify(row),
      headers: { AccountID: '12', ProjectID: '7' },
    })
    const as = (headers: Source['headers']) => ({ ...source, headers })
    const found = async (headers: Source['headers']) => {
      const planned = planRead([as(headers)], 'search_logs', { labels: { 'service.name': 'bank' }, window: '1h' })
      if (!planned.ok) throw new Error(planned.reason)
      return (await readSource(planned, newSourceStates(), { nowMs: Date.now(), incidentBeganMs: null })).summary.lines
    }
    await eventually('the line to be there', async () => (await found({ AccountID: '12', ProjectID: '7' })) === 1)
    expect([await found({}), await found({ AccountID: '12' })]).toEqual([0, 0])
    const wrong = probeSource(as({ AccountID: 'bank' }), newSourceStates())
    await expect(wrong).rejects.toMatchObject({
      code: 'NO_TENANT',
      message: expect.stringMatching(/refused the tenant/),
    })
  })
})
