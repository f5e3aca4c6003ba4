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
/** The newest query of each request, and thirty values that came in the last hour; the first was there before. */
const queries: string[] = []
let isEmpty = false
/** What Loki and VictoriaLogs answer instead: labels, and minutes before now with a count. */
let given: [Record<string, string>, [number, string][]][] | null = null
const values = Array.from({ length: 30 }, (_, at) => `v${at}`)

function answer(path: string, form: URLSearchParams): string {
  const query = form.get('query') ?? ''
  if (query !== '') queries.push(query)
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
  if (path.includes('field_names')) return JSON.stringify({ values: [{ value: 'instance', hits: 3 }] })
  if (path.includes('labels')) return JSON.stringify({ data: ['instance'] })
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

  test('by a label: twenty series at most, the largest first, the others counted, and what was not there before is new', async () => {
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

  test('in 120 steps at most, and a step that gives more is widened and said', async () => {
    const { summary, whole } = await read({ labels: { app: 'web' }, window: '24h', count: { step: '1s' } })
    expect(summary.stepSeconds).toBe(720)
    expect(JSON.parse(whole.split('\n')[0] as string).points).toHaveLength(120)
  })

  test('where nothing is found as evidence of absence, with the labels that there are', async () => {
    isEmpty = true
    const found = await read({ labels: { app: 'web' }, count: {} })
    isEmpty = false
    expect(found).toMatchObject({ isEmpty: true, summary: { lines: 0, labelsThere: ['instance'] } })
  })

  test('and a sentence says the time that was counted, which may be less than the window', async () => {
    isEmpty = true
    const args = { labels: { app: 'web' }, window: '24h', count: { step: '13h' } }
    const { summary } = await read(args)
    isEmpty = false
    const said = planned(args).tool.say?.(summary, args)
    expect([summary.from, said]).toEqual([
      '2026-11-21T08:00:00Z',
      'web: no line from 2026-11-21T08:00:00Z until 2026-11-21T12:00:00Z',
    ])
  })

  test('and a label that no line has is said, with those that there are', async () => {
    given = [[{}, [[5, '7']]]]
    const args = { labels: { app: 'web' }, count: { by: ['lvl'] } }
    const { summary } = await read(args)
    given = null
    expect(summary).toMatchObject({ lines: 7, withoutLabel: ['lvl'], labelsThere: ['instance'] })
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

  test('of labels by a pattern of the whole value, as Loki anchors it', async () => {
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
    [{ count: { by: ['level', 'level'] } }, 'by one label twice'],
    [{ count: { by: ['_time'] } }, 'by the time'],
  ])('not with %j, and the right form is shown', async (args, reason) => {
    await expect(read({ labels: { app: 'web' }, ...args })).rejects.toThrow(reason)
  })

  test.each([
    [{ app: { '=~': '.*' } }, /narrows/],
    [{ app: { '=~': '.+' } }, /narrows/],
    [{ level: { '!=': 'debug' } }, /narrows/],
    [{ app: { '=~': '(?=x)y' } }, /looks ahead/],
    [{ app: { '=~': '(a+)+' } }, /repeats a repeat/],
    [{ app: 'web', level: { '!~': '(a)\\1' } }, /refers to a group/],
  ])('not with labels %j', async (labels, reason) => {
    await expect(read({ labels, count: {} })).rejects.toThrow(reason)
  })
})

test('78 of 85 questions of public dashboards to logs can be said: 74 in one call, four ratios in two', () => {
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
