import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { Source } from '../../../domain/source.ts'
import { newSourceStates } from '../../../sources/ask.ts'
import { maxSummaryBytes } from '../../../sources/kind.ts'
import { planRead, readSource } from '../../../sources/kinds.ts'
import questions from '../public-log-questions.json' with { type: 'json' }

type Question = {
  labels: [string, string, string][]
  what: string
  by?: string[]
  contains?: string[]
  excludes?: string[]
  pattern?: string
  step?: string
  cannot?: string
}

const nowMs = Date.parse('2026-11-21T12:00:00Z')
const minute = 60_000
/**
 * The newest query of each request, and thirty values that came in the last hour; the first was
 * there before.
 */
const queries: string[] = []
/** What time each count was of. */
const requests: { from: string; until: string; isBefore: boolean }[] = []
function noteTimes(query: string, form: URLSearchParams): void {
  if (!query.includes('count')) return
  const toMs = (text: string | null) => (text?.includes('T') ? Date.parse(text) : Number(text?.slice(0, -6)))
  const [, amount, unit] = /\[(\d+)(m?s)\]/.exec(query) ?? []
  const length = Number(amount) * (unit === 's' ? 1_000 : 1)
  const until = toMs(form.get('end') ?? form.get('time'))
  const begin = form.get('start')
  const from = begin?.includes('T') ? toMs(begin) : (begin === null ? until : toMs(begin)) - length
  const toClock = (ms: number) => new Date(ms).toISOString().slice(11, 23)
  requests.push({ from: toClock(from), until: toClock(until), isBefore: until < nowMs - 65 * minute })
}
let isEmpty = false
/** What Loki and VictoriaLogs answer instead: labels, and minutes before now with a count. */
let given: [Record<string, string>, [number, string][]][] | null = null
/**
 * Labels of streams, and of those that a selector chooses where it is another set; fields at
 * VictoriaLogs.
 */
let there = ['app', 'env', 'level', 'instance']
let thereOfChosen: string[] | null = null
/** Lines that the streams of the question have at all, and with a field. */
let counted: (query: string) => number = () => 7
const values = Array.from({ length: 30 }, (_, at) => `v${at}`)

function answer(path: string, form: URLSearchParams): string {
  const query = form.get('query') ?? ''
  if (path.endsWith('/labels')) return JSON.stringify({ data: query === '' ? there : (thereOfChosen ?? there) })
  if (query !== '') queries.push(query)
  if (path.endsWith('query_range') && !query.includes('count_over_time'))
    return JSON.stringify({ data: { resultType: 'streams', result: [] } })
  noteTimes(query, form)
  if (path === '/loki/api/v1/query') {
    // Lines of the question: a count of what streams have besides is written `sum(`.
    if (isEmpty && query.startsWith('sum (')) return JSON.stringify({ data: { result: [] } })
    const at = Number(form.get('time')?.slice(0, -6)) / 1_000
    return JSON.stringify({ data: { result: [{ metric: {}, value: [at, String(counted(query))] }] } })
  }
  const isBefore =
    Number(form.get('end')?.slice(0, -6)) <= nowMs - 60 * minute ||
    Date.parse(form.get('end') ?? '') < nowMs - 60 * minute
  if (given !== null && path.endsWith('query_range'))
    return JSON.stringify({
      data: {
        result: given.map(([metric, points]) => ({
          metric,
          values: points.map(([ago, count]) => [(nowMs - (ago - 1) * minute) / 1_000, count]),
        })),
      },
    })
  if (given !== null && path.endsWith('/query'))
    return given
      .flatMap(([labels, points]) =>
        points.map(([ago, count]) =>
          JSON.stringify({
            _time: new Date(nowMs - ago * minute).toISOString(),
            ...labels,
            'lines counted': count,
          }),
        ),
      )
      .join('\n')
  const seen = isEmpty ? [] : isBefore ? values.slice(0, 1) : values
  if (path.includes('field_names')) return JSON.stringify({ values: there.map((value) => ({ value, hits: 3 })) })
  if (path.startsWith('/select')) {
    const _time = new Date(nowMs - 10 * minute).toISOString()
    const all = /stats by \(.*"level"\)/.test(query) ? seen : seen.slice(0, 1)
    return all.map((level, at) => JSON.stringify({ _time, level, 'lines counted': String(100 - at) })).join('\n')
  }
  const result = seen.map((level, at) => ({
    metric: { level },
    values: [[(nowMs - 9 * minute) / 1_000, String(100 - at)]],
  }))
  return JSON.stringify({ data: { resultType: 'matrix', result } })
}

describe.each(['loki', 'victorialogs'])('lines of %s are counted', (kind) => {
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const url = new URL(request.url as string, 'http://x')
    response.setHeader('content-type', 'application/json')
    response.end(answer(url.pathname, new URLSearchParams(body || url.search)))
  })
  let source: Source
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const none = {
      credential: null,
      writeCredential: null,
      caFile: null,
      scheme: null,
      headers: {},
      certFile: null,
      keyFile: null,
    }
    source = { name: 'logs', kind, url, ...none, options: {}, timeoutSeconds: 60, createdBy: 'anna', createdAt: '' }
  })
  afterAll(() => {
    server.closeAllConnections()
    server.close()
  })
  const planned = (args: Record<string, unknown>) => {
    const found = planRead([source], 'search_logs', { until: new Date(nowMs).toISOString(), ...args })
    if (!found.ok) throw new Error(found.reason)
    return found
  }
  const read = async (args: Record<string, unknown>) =>
    await readSource(planned(args), newSourceStates(), { nowMs, incidentBeganMs: null })

  test('by a label: at most twenty series, the largest first, the others counted, and new values marked', async () => {
    const { summary, whole } = await read({ labels: { app: 'web' }, count: { by: ['level'], step: '1m' } })
    const series = summary.series as Record<string, unknown>[]
    expect(series[0]).toMatchObject({ labels: { level: 'v0' }, total: 100, max: 100, maxAt: '2026-11-21T11:50:00Z' })
    expect(series[0]).not.toHaveProperty('isNew')
    expect(series[1]).toMatchObject({ labels: { level: 'v1' }, isNew: true })
    expect([summary.seriesFound, Number(summary.otherSeries) + series.length]).toEqual([30, 30])
    expect(whole.split('\n').length).toBe(20)
    expect(JSON.parse(whole.split('\n')[0] as string).points).toHaveLength(60)
    expect(Buffer.byteLength(JSON.stringify(summary))).toBeLessThanOrEqual(maxSummaryBytes)
  })

  test('in at most 120 steps, and a smaller step is widened with a note', async () => {
    const { summary, whole } = await read({ labels: { app: 'web' }, window: '24h', count: { step: '1s' } })
    expect(summary.stepSeconds).toBe(720)
    expect(JSON.parse(whole.split('\n')[0] as string).points).toHaveLength(120)
  })

  test('as evidence of absence if nothing is found, with the known labels', async () => {
    isEmpty = true
    const found = await read({ labels: { app: 'web' }, count: {} })
    isEmpty = false
    expect(found).toMatchObject({ isEmpty: true, summary: { lines: 0, labelsThere: there } })
  })

  test('in steps that cover the window, and a sentence names the counted time', async () => {
    isEmpty = true
    const args = { labels: { app: 'web' }, window: '24h', count: { step: '13h' } }
    const { summary } = await read(args)
    isEmpty = false
    const said = planned(args).tool.say?.(summary, args)
    expect([summary.from, said]).toEqual([
      '2026-11-20T12:00:00Z',
      'web: no line from 2026-11-20T12:00:00Z until 2026-11-21T12:00:00Z',
    ])
    expect(summary).toMatchObject({ firstStepIncomplete: true, lastStepIncomplete: true })
  })

  // Before, a window from 10:50:30 until 11:59:30 was counted from 11:00 until 12:00.
  test('for all of a window that begins and ends within a step, and nothing outside of it', async () => {
    requests.length = 0
    const until = new Date(nowMs - minute / 2).toISOString()
    const { summary } = await read({ labels: { app: 'web' }, until, window: '69m', count: { step: '10m' } })
    expect(summary).toMatchObject({
      window: '69m',
      from: '2026-11-21T10:50:30Z',
      until: '2026-11-21T11:59:30Z',
      firstStepIncomplete: true,
      lastStepIncomplete: true,
    })
    const spans = requests.filter(({ isBefore }) => !isBefore).map(({ from, until }) => [from, until])
    const ofLoki = [
      ['10:50:30.000', '11:00:00.000'],
      ['11:00:00.000', '11:50:00.000'],
      ['11:50:00.000', '11:59:30.000'],
    ]
    expect(spans.toSorted()).toEqual(kind === 'loki' ? ofLoki : [['10:50:30.000', '11:59:29.999']])
    if (kind === 'loki') expect(summary.lines).toBe(2_565 + 7 + 7)
  })

  test('in whole steps, which are not marked as parts', async () => {
    const { summary } = await read({ labels: { app: 'web' }, window: '1h', count: { step: '10m' } })
    expect(Object.keys(summary).filter((name) => name.endsWith('StepIncomplete'))).toEqual([])
  })

  test('as none by a label that no line has, which is reported', async () => {
    isEmpty = true
    counted = (query) => (query.includes('ap!=""') ? 0 : 7)
    const args = { labels: { instance: 'web-1', ap: 'web', level: 'error' }, count: {} }
    const { summary } = await read(args)
    const lines = await read({ labels: args.labels })
    isEmpty = false
    counted = () => 7
    expect([summary.unknownLabels, summary.labelsThere]).toEqual([['ap'], there])
    expect(planned(args).tool.say?.(summary, args)).toMatch(/no line from .*; no line has a label ap$/)
    if (kind === 'victorialogs') expect(lines.summary).toMatchObject({ unknownLabels: ['ap'] })
  })

  test('with a note about a label that no line has, and the known labels', async () => {
    given = [[{}, [[5, '7']]]]
    const args = { labels: { app: 'web' }, count: { by: ['lvl'] } }
    const { summary } = await read(args)
    given = null
    expect(summary).toMatchObject({ lines: 7, withoutLabel: ['lvl'], labelsThere: there })
    expect(planned(args).tool.say?.(summary, args)).toMatch(/no counted line has lvl/)
  })

  test.each<[string, [number, string][], RegExp]>([
    ['a negative count', [[5, '-7']], /cannot be read/],
    ['no count', [[5, '']], /cannot be read/],
    ['a part of a line', [[5, '0.5']], /cannot be read/],
    ['a count of yesterday', [[1_440, '7']], /another time/],
    [
      'two counts of one step',
      [
        [5, '7'],
        [5, '7'],
      ],
      /two counts of one step/,
    ],
  ])('and %s is no evidence', async (_, points, reason) => {
    given = [[{ level: 'error' }, points]]
    await expect(
      read({ labels: { app: 'web' }, count: { by: ['level'] } }).finally(() => (given = null)),
    ).rejects.toThrow(reason)
  })

  test('with 300 hostile values, each of which arrives within its quotes', async () => {
    const parts = ['"', '\\', '`', '{', '}', '|', ' ', '\n', '\u{d800}', '=', '~', ')', '#', 'or', '| delete', '*']
    for (let n = 0; n < 300; n += 1) {
      const value = Array.from(
        { length: 1 + (n % 7) },
        (_, at) => parts[(n * 7 + at * 5 + n * at) % parts.length],
      ).join('')
      queries.length = 0
      await read({ labels: { app: value, env: { '!=': value } }, contains: [value], count: { by: ['level'] } })
      const bare = queries.map((query) => query.replace(/"(?:[^"\\\n]|\\(?:["\\bfnrt]|u[0-9a-f]{4}))*"/g, 'Q'))
      const wanted =
        kind === 'loki'
          ? /^sum by \(level\) \(count_over_time\(\{app=Q, env!=Q\} \|= Q \[\d+s\]\)\)$/
          : /^Q:=Q AND !Q:=Q AND _msg:~Q \| stats by \(_time:\d+s, Q\) count\(\) as Q$/
      expect(bare).toEqual([expect.stringMatching(wanted), expect.stringMatching(wanted)])
    }
  })

  test('with a label pattern for the whole value, as Loki anchors it', async () => {
    queries.length = 0
    await read({ labels: { app: { '=~': 'web-.*|api' }, level: { '!~': 'debug' } }, count: {} })
    const loki = '{app=~"web-.*|api", level!~"debug"}'
    const victoria = '"app":~"^(?:web-.*|api)$" AND !"level":~"^(?:debug)$"'
    expect(queries[0]).toContain(kind === 'loki' ? loki : victoria)
  })

  test('not in a step that is longer than the window, which would read more than it', async () => {
    queries.length = 0
    const asked = read({ labels: { app: 'web' }, window: '5m', count: { step: '1000d' } })
    await expect(asked).rejects.toThrow(/step 1000d is longer than the window 5m/)
    expect(queries).toEqual([])
  })

  test.each<[Record<string, unknown>, string]>([
    [{ count: true }, 'count: write {"by": ["level"], "step": "5m"}'],
    [{ count: 'level' }, 'count: write {"by": ["level"], "step": "5m"}'],
    [{ count: { by: 'level' } }, 'count.by: write ["level"]'],
    [{ count: { step: 300 } }, 'count.step: write "5m"'],
    [{ labels: ['web'] }, 'labels: write {"instance": "web-1"}'],
    [{ labels: { app: ['web', 'api'] } }, 'labels.app: write a label as "web-1", or as {"=~": "web-.*"}'],
    [{ labels: { app: { '=~': 'a', '!=': 'b' } } }, 'labels.app: write a label as "web-1", or as {"=~": "web-.*"}'],
    [{ labels: { app: { '=~': 'a'.repeat(201) } } }, 'labels.app.=~: give at most 200 characters'],
    [{ count: { by: ['level', 'level'] } }, 'names a label twice'],
    [{ count: { by: ['_time'] } }, 'or the time'],
  ])('not with %j, and the right form is shown', async (args, reason) => {
    await expect(read({ labels: { app: 'web' }, ...args })).rejects.toThrow(reason)
  })

  test.each([
    [{ app: { '=~': '.*' } }, /narrows/],
    [{ app: { '=~': '.+' } }, /narrows/],
    // Before, what nearly all values match was taken for a choice.
    ...['[^x]+', '\\w+', '[a-z]+', '[^0-9].*', '.{2,}'].map((is) => [{ app: { '=~': is } }, /narrows/] as const),
    [{ level: { '!=': 'debug' } }, /narrows/],
    [{ app: { '=~': '(?=x)y' } }, /lookahead/],
    [{ app: { '=~': '(a+)+' } }, /repeats a repeat/],
    [{ app: 'web', level: { '!~': '(a)\\1' } }, /backreference/],
  ])('not with labels %j', async (labels, reason) => {
    await expect(read({ labels, count: {} })).rejects.toThrow(reason)
  })
})

describe('Loki reads a field that is no label of the streams from the line', () => {
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const url = new URL(request.url as string, 'http://x')
    response.setHeader('content-type', 'application/json')
    response.end(answer(url.pathname, new URLSearchParams(body || url.search)))
  })
  let source: Source
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const none = {
      credential: null,
      writeCredential: null,
      caFile: null,
      scheme: null,
      headers: {},
      certFile: null,
      keyFile: null,
    }
    source = {
      name: 'l',
      kind: 'loki',
      url,
      ...none,
      options: {},
      timeoutSeconds: 60,
      createdBy: 'anna',
      createdAt: '',
    }
  })
  afterAll(() => {
    there = ['app', 'env', 'level', 'instance']
    thereOfChosen = null
    server.closeAllConnections()
    server.close()
  })
  const read = async (args: Record<string, unknown>, streams: string[], chosen: string[] | null = null) => {
    there = streams
    thereOfChosen = chosen
    queries.length = 0
    const planned = planRead([source], 'search_logs', { until: new Date(nowMs).toISOString(), ...args })
    if (!planned.ok) throw new Error(planned.reason)
    await readSource(planned, newSourceStates(), { nowMs, incidentBeganMs: null })
    return queries[0]
  }
  const parsed = '| json | logfmt | drop __error__, __error_details__'

  test.each<[string, Record<string, unknown>, string[], string]>([
    [
      'what is counted by',
      { labels: { app: 'web' }, count: { by: ['level'], step: '1m' } },
      ['app'],
      `{app="web"} ${parsed} [60s]`,
    ],
    [
      'a condition',
      { labels: { app: 'web', status: { '=~': '5..' } } },
      ['app'],
      `{app="web"} ${parsed} | status=~"5.."`,
    ],
    ['what is absent', { labels: { app: 'web', error: '' } }, ['app'], `{app="web"} ${parsed} | error=""`],
    [
      'a name with dots',
      { labels: { app: 'web', 'http.status': { '!=': '200' } } },
      ['app'],
      `{app="web"} ${parsed} | http_status!="200"`,
    ],
    [
      'words before fields',
      { labels: { user: { '!~': 'b.*' }, app: 'web' }, contains: ['x'] },
      ['app'],
      `{app="web"} |= "x" ${parsed} | user!~"b.*"`,
    ],
    ['nothing else', { labels: { app: 'web', level: 'error' } }, ['app', 'level'], '{app="web", level="error"}'],
  ])('%s', async (_, args, streams, expected) => {
    const query = await read(args, streams)
    expect(query).toContain(expected)
    if (!expected.includes('| json')) expect(query).not.toContain('| json')
  })

  test('also if the label belongs only to other streams', async () => {
    const query = await read({ labels: { app: 'web', level: 'error' } }, ['app', 'level'], ['app'])
    expect(query).toContain(`{app="web"} ${parsed} | level="error"`)
  })

  test('with 300 hostile values, each of which arrives within its quotes', async () => {
    const parts = ['"', '\\', '`', '{', '}', '|', ' ', '\n', '\u{d800}', '=', '~', ')', '#', 'or', '| drop', '*']
    for (let n = 0; n < 300; n += 1) {
      const length = 1 + (n % 7)
      const value = Array.from({ length }, (_, at) => parts[(n * 7 + at * 5 + n * at) % parts.length]).join('')
      const query = await read({ labels: { app: 'web', user: { '!=': value } }, count: { by: ['level'] } }, ['app'])
      const bare = query?.replace(/"(?:[^"\\\n]|\\(?:["\\bfnrt]|u[0-9a-f]{4}))*"/g, 'Q')
      expect(bare).toBe(`sum by (level) (count_over_time({app=Q} ${parsed} | user!=Q [60s]))`)
    }
  })

  test('and a question that names no stream is refused with the known labels', async () => {
    const asked = read({ labels: { status: '500' } }, ['app', 'env'])
    await expect(asked).rejects.toMatchObject({
      code: 'REJECTED',
      message: expect.stringMatching(/status is no label of the streams.*add one of app, env/),
    })
    expect(queries).toEqual([])
  })

  test('and each public question that needs it has its fields behind the parser, and a stream before it', async () => {
    const all = (questions as unknown as (Question & { isParsed?: boolean })[]).filter(({ isParsed }) => isParsed)
    let asked = 0
    for (const { labels, by = [], cannot = '', what } of all) {
      if (/^(a comparison|a count by|more than)/.test(cannot)) continue
      const said = labels.map(([name, op, value]) => [name, op === '=' ? value : { [op]: value }] as const)
      const stream = labels.find(([, op, value]) => value.startsWith('main') && (op === '=' || op === '=~'))?.[0] ?? ''
      const count = what === 'lines' ? {} : { count: { by } }
      const query = await read({ labels: Object.fromEntries(said), ...count }, [stream])
      const fields = labels.filter(([name]) => name !== stream)
      const isRead = fields.length > 0 || (what !== 'lines' && by.length > 0)
      const [before, behind = ''] = (query ?? '').split(parsed)
      expect([query, before?.includes(`{${stream}`), query?.includes(parsed)]).toEqual([query, true, isRead])
      for (const [name, op, value] of fields) expect(behind).toContain(`| ${name}${op}${JSON.stringify(value)}`)
      asked += 1
    }
    expect(asked).toBeGreaterThan(30)
  })
})

test('78 of 85 questions of public dashboards to logs can be asked: 74 in one call, four ratios in two', () => {
  const source = { name: 'l', kind: 'loki', url: 'http://127.0.0.1:1', options: {} } as Source
  const isSaid = ({ labels, what, by, contains = [], excludes = [], pattern, step }: Question) => {
    const said = Object.fromEntries(
      labels.map(([name, op, value]) => [name, op === '=' ? value : { [op]: value }] as const),
    )
    const count = what === 'lines' ? {} : { count: { ...(by && { by }), ...(step && { step }) } }
    const args = { labels: said, contains, excludes, ...(pattern && { pattern }), ...count }
    return planRead([source], 'search_logs', args).ok
  }
  const all = questions as unknown as Question[]
  expect(all).toHaveLength(85)
  const said = all.filter(({ cannot = '' }) => !/^(a comparison|a count by|more than)/.test(cannot)).filter(isSaid)
  // How many series a count has is `seriesFound`.
  const inTwo = said.filter(({ cannot }) => cannot === 'a ratio of two counts')
  expect([said.length, inTwo.length]).toEqual([78, 4])
})
