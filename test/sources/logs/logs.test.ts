import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { Source } from '../../../domain/source.ts'
import { newSourceStates } from '../../../sources/ask.ts'
import { maxSummaryBytes } from '../../../sources/kind.ts'
import { planRead, readSource } from '../../../sources/kinds.ts'
import { findTemplates } from '../../../sources/logs/last.ts'
import { toLogql } from '../../../sources/logs/logql.ts'
import { judgeLogQuery, type LogQuery, logQuery, quotePattern } from '../../../sources/logs/logs.ts'
import { toLogsql } from '../../../sources/logs/victorialogs.ts'

const nowMs = Date.parse('2026-11-21T12:00:00Z')
const minute = 60_000

describe('templates', () => {
  const lines = (texts: string[]) => texts.map((text, at) => ({ atMs: nowMs + at, text }))

  test('lines that differ in numbers, addresses, times and ids are one, with a count', () => {
    const found = findTemplates(
      lines([
        '2026-11-21T11:58:01Z INFO request 4711 from 10.0.0.7:4022 took 12ms',
        '2026-11-21T11:58:02Z INFO request 4712 from 10.0.0.9:4023 took 340ms',
        'ERROR cannot open /var/lib/db/17.dat: permission denied',
      ]),
    )
    expect(found.map(({ text, count }) => [text, count])).toEqual([
      ['<*> INFO request <*> from <*> took <*>', 2],
      ['ERROR cannot open /var/lib/db/17.dat: permission denied', 1],
    ])
  })

  test('lines that share half of their words are one, and lines with another beginning are not', () => {
    const found = findTemplates(
      lines(['login by user anna from office', 'login by user berit from home', 'disk sda is full at last now']),
    )
    expect(found.map(({ text, count }) => [text, count])).toEqual([
      ['login by user <*> from <*>', 2],
      ['disk sda is full at last now', 1],
    ])
  })

  test('four thousand long lines without common words are compared with two hundred templates, not with all', () => {
    const letters = (number: number): string =>
      number < 20 ? String.fromCharCode(103 + number) : letters(Math.floor(number / 20)) + letters(number % 20)
    const texts = Array.from({ length: 4_000 }, (_, at) =>
      ['a', 'b', ...Array.from({ length: 58 }, (_, word) => letters(at * 61 + word))].join(' '),
    )
    // All of them held against all took ten seconds of a core, in which the API answered nobody.
    const found = findTemplates(lines(texts))
    expect(found).toHaveLength(200)
    expect(found.reduce((sum, { count }) => sum + count, 0)).toBe(4_000)
  })

  test('earlier lines make a template known and are not counted', () => {
    const texts = ['job 1 done', 'job 2 done', 'job 3 failed badly']
    expect(findTemplates(lines(texts), nowMs + 1)).toMatchObject([
      { text: 'job <*> done', count: 1, firstMs: nowMs },
      { text: 'job <*> failed badly', count: 1, firstMs: nowMs + 2 },
    ])
  })
})

describe('a question to logs', () => {
  const ask = (query: Record<string, unknown>) => judgeLogQuery(logQuery.parse({ labels: { instance: 'a' }, ...query }))

  test('has to name its subject', () => {
    expect(ask({ labels: {} })).toMatchObject({ ok: false, reason: expect.stringContaining('no log is named') })
  })

  test('over a longer window is limited by code', () => {
    expect(ask({ window: '30d' })).toMatchObject({ ok: false, bounded: { window: '24h' } })
    expect(ask({ window: '24h' })).toEqual({ ok: true })
    expect(ask({ window: 'yesterday' })).toMatchObject({ ok: false, bounded: null })
  })

  test.each([
    ['(a+)+', 'repeats a repeat'],
    ['(.*a){20}', 'repeats a repeat'],
    ['a**', 'repeats a repeat'],
    ['(a|b*)*', 'repeats a repeat'],
    ['a{2}{3}', 'repeats a repeat'],
    ['(?=x)y', 'lookahead'],
    ['(a)\\1', 'backreference'],
    ['a{1001}', 'more than 1000'],
    ['(a{40}){40}', 'more than 1000'],
    ['[', 'not a regular expression'],
    ['x(', 'not a regular expression'],
    // Before, those that follow were asked, but for the first three.
    ...[
      '.*',
      '^',
      'foo|',
      '\\S',
      '\\d',
      'e',
      '(?i)e',
      '[^x]',
      '[\\s\\S]',
      '\\w|\\W',
      '..',
      '\\S+\\s?\\S',
      '[^x][^y]',
      '\\w\\w',
      'ab|.',
    ].map((pattern) => [pattern, 'every line'] as const),
  ])('with the pattern %s is refused: it %s', (pattern, reason) => {
    const verdict = ask({ pattern })
    expect(verdict).toMatchObject({ ok: false, reason: expect.stringContaining(reason) })
  })
  test.each(['timeout after \\d+ms', 'error|warn', '^panic: ', 'user [a-z]+ denied'])(
    'with the pattern %s is asked',
    (pattern) => {
      expect(ask({ pattern })).toEqual({ ok: true })
    },
  )
  // Before: "the pattern uses what RE2 does not have: flags …", or "counts repeats".
  test.each([
    '(?i)error',
    '(?i:timeout)',
    '\\d{3}',
    '5[0-9]{2}',
    'status=(4|5)\\d\\d',
    '\\d{1,3}(\\.\\d{1,3}){3}',
    'a{1000}',
    '(?P<code>5\\d\\d)',
    '[[:upper:]]{4,}',
    '\\[error\\]',
    '\\p{Lu}{4}',
    '[]a]b',
    'x{,3}y',
  ])('with the pattern %s of RE2 is asked', (pattern) => expect(ask({ pattern })).toEqual({ ok: true }))

  test.each([
    [{ on: 'web-1', unit: 'nginx.service', labels: {} }, true],
    [{ on: 'web-1', path: '/var/log/app.log', labels: {}, contains: ['x'], window: '24h' }, true],
    [{ on: 'web-1', labels: {} }, /a unit.*or the path/],
    [{ on: 'web-1', unit: 'a', path: '/b', labels: {} }, /give either a unit/],
    [{ on: 'web-1', unit: 'a' }, /labels cannot be used with "on"/],
    [{ on: 'web-1', unit: 'a', labels: {}, pattern: 'x', excludes: ['y'] }, /excludes, pattern cannot be used/],
    [{ on: 'web-1', unit: 'a', labels: {}, window: '5s' }, /shorter than 1m/],
    [{ unit: 'a' }, /no device: add "on"/],
  ] as const)('of a device names one journal or one file: %j', (query, wanted) => {
    const verdict = ask(query)
    if (wanted === true) expect(verdict).toEqual({ ok: true })
    else expect(verdict).toMatchObject({ ok: false, reason: expect.stringMatching(wanted) })
  })

  test('that names a device is sent to no source', () => {
    const planned = planRead([], 'search_logs', { on: 'web-1', unit: 'nginx.service' })
    expect(planned).toMatchObject({
      ok: false,
      code: 'INVALID',
      reason: expect.stringContaining('/devices/{id}/calls'),
    })
  })

  test('is quoted, so that no text of it is part of a query', () => {
    const hostile = ['"} or {a="b', '` | delete', '\\', 'x" | stats count() "', '\n', '*', 'a"):="b']
    for (const text of hostile) {
      const query: LogQuery = logQuery.parse({ labels: { instance: text }, contains: [text], excludes: [text] })
      const strings = (written: string) =>
        [...written.matchAll(/"(?:[^"\\]|\\.)*"/g)].map(([each]) => JSON.parse(each) as string)
      const logql = toLogql(query)
      expect(strings(logql)).toEqual([text, text, text])
      expect(logql.replace(/"(?:[^"\\]|\\.)*"/g, '_')).toBe('{instance=_} |= _ != _')
      const logsql = toLogsql(query)
      expect(strings(logsql)).toEqual(['instance', text, quotePattern(text), quotePattern(text)])
      expect(logsql.replace(/"(?:[^"\\]|\\.)*"/g, '_')).toBe('_:=_ AND _msg:~_ AND !_msg:~_')
    }
  })

  test('of ten thousand random ones, none that exceeds its limits is asked', () => {
    let seed = 1
    const random = (below: number) => {
      seed = (seed * 48_271) % 2_147_483_647
      return seed % below
    }
    const pick = <T>(values: readonly T[]): T => values[random(values.length)] as T
    let passed = 0
    for (let n = 0; n < 10_000; n++) {
      const given = {
        labels: Object.fromEntries(
          Array.from({ length: random(9) }, (_, at) => [`l${at}`, pick(['a', '.*', '"', 'x y'])]),
        ),
        contains: Array.from({ length: random(8) }, () => pick(['e', '|', '"', '\\', 'a'.repeat(300)])),
        window: pick(['5m', '1h', '24h', '25h', '90d', '-1h', 'x', '0s']),
        ...(random(2) === 0 && { pattern: pick(['a+', '(a+)+', '.*', 'a{99}', 'a{1001}', '(?i)x', 'ok']) }),
      }
      const parsed = logQuery.safeParse(given)
      if (!parsed.success || !judgeLogQuery(parsed.data).ok) continue
      passed += 1
      const { labels, contains, window, pattern } = parsed.data
      expect(Object.keys(labels).length).toBeGreaterThan(0)
      expect(Object.keys(labels).length).toBeLessThanOrEqual(6)
      expect(contains.length).toBeLessThanOrEqual(5)
      expect(['5m', '1h', '24h']).toContain(window)
      expect([undefined, 'a{99}', 'ok']).toContain(pattern)
    }
    expect(passed).toBeGreaterThan(100)
  })
})

/** Forty lines a minute for two hours; since a quarter of an hour another kind is among them. */
const stored = Array.from({ length: 120 * 40 }, (_, at) => {
  const atMs = nowMs - 120 * minute + at * 1_500
  const isNew = atMs >= nowMs - 15 * minute && at % 10 === 0
  return {
    atMs,
    text: isNew ? `ERROR pool exhausted after ${at} tries` : `INFO served request ${at} in ${at % 30}ms`,
  }
})
const between = (fromMs: number, untilMs: number) => stored.filter(({ atMs }) => atMs >= fromMs && atMs < untilMs)

/** One ingester or storage node is away. */
let isPartial = false

const isForTrouble = (query: string) => query.includes('|fatal|')
const unquoted = (text: string) => new RegExp(JSON.parse(text) as string)
const countOf = (fromMs: number, untilMs: number, pattern: RegExp) =>
  between(fromMs, untilMs).filter(({ text }) => pattern.test(text))

/** Kinds of lines, counted by patterns in windows, as each of the two is asked. */
function countForLoki(query: string) {
  const terms = [...query.matchAll(/\|~ ("(?:[^"\\]|\\.)*") \[(\d+)s\](?: offset (\d+)s)?\)\), "kind", "([\d-]+)"/g)]
  const result = terms.flatMap(([, pattern = '', length, back = '0', kind]) => {
    const untilMs = nowMs - Number(back) * 1_000
    const { length: count } = countOf(untilMs - Number(length) * 1_000, untilMs, unquoted(pattern))
    return count > 0 ? [{ metric: { kind }, value: [nowMs / 1_000, String(count)] }] : []
  })
  return { data: { resultType: 'vector', result } }
}

function countForVictoria(query: string): string {
  const terms = [
    ...query.matchAll(/(count|min|max)\(\S*\) if \(_time:\[(\S+), (\S+)\) AND _msg:~("(?:[^"\\]|\\.)*")\) as (\w+)/g),
  ]
  const row = terms.flatMap(([, what, from = '', until = '', pattern = '', name]) => {
    const found = countOf(Date.parse(from), Date.parse(until), unquoted(pattern))
    const at = found.at(what === 'min' ? 0 : -1)
    if (what === 'count') return [[name, String(found.length)]]
    return at ? [[name, new Date(at.atMs).toISOString()]] : []
  })
  return `${JSON.stringify(Object.fromEntries(row))}\n`
}

/** Speaks the part of Loki's and VictoriaLogs' API that is used. */
async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  let body = ''
  for await (const chunk of request) body += chunk
  const url = new URL(request.url as string, 'http://x')
  const form = new URLSearchParams(body)
  const json = (value: object) => {
    const warnings = isPartial ? ['an ingester gave no answer'] : undefined
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ ...value, warnings }))
  }
  const has = (name: string) => (form.get(name) ?? url.searchParams.get(name)) as string
  // A cluster refuses a whole answer then; whoever takes a part gets it with 200 and nothing that
  // says so.
  if (isPartial && url.pathname === '/select/logsql/query' && has('allow_partial_response') !== '1')
    return void response.writeHead(502).end('cannot reach a storage node')
  if (has('query')?.includes('nothing-there')) {
    if (url.pathname === '/select/logsql/query') return void response.end('')
    if (url.pathname.endsWith('/query')) return json({ data: { resultType: 'vector', result: [] } })
    return json({ data: { resultType: 'streams', result: [] } })
  }
  switch (url.pathname) {
    case '/loki/api/v1/labels':
      return json({ status: 'success', data: ['instance', 'unit'] })
    case '/loki/api/v1/query':
      if (has('query').startsWith('label_replace')) return json(countForLoki(has('query')))
      return json({ data: { resultType: 'vector', result: [{ metric: {}, value: [nowMs / 1000, '2400'] }] } })
    case '/loki/api/v1/query_range': {
      const lines = between(Number(has('start').slice(0, -6)), Number(has('end').slice(0, -6)))
        .filter(({ text }) => !isForTrouble(has('query')) || text.startsWith('ERROR'))
        .slice(-Number(has('limit')))
      const values = lines.toReversed().map(({ atMs, text }) => [`${atMs}000000`, text])
      return json({ data: { resultType: 'streams', result: [{ stream: {}, values }] } })
    }
    case '/select/logsql/field_names':
      return json({ values: [{ value: 'instance', hits: 3 }] })
    case '/select/logsql/query': {
      const lines = between(Date.parse(has('start')), Date.parse(has('end')) + 1)
      if (has('query').includes('stats count() if')) return void response.end(countForVictoria(has('query')))
      if (has('query').includes('stats count()')) return void response.end(`{"total":"${lines.length}"}\n`)
      const rows = lines
        .filter(({ text }) => !isForTrouble(has('query')) || text.startsWith('ERROR'))
        .slice(-Number(has('limit')))
        .map(({ atMs, text }) => JSON.stringify({ _time: new Date(atMs).toISOString(), _msg: text }))
      return void response.end(`${rows.join('\n')}\n`)
    }
    default:
      response.writeHead(404).end()
  }
}

describe.each(['loki', 'victorialogs'])('logs of %s', (kind) => {
  const server = createServer((request, response) => void answer(request, response))
  let source: Source
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    source = {
      name: 'logs',
      kind,
      url,
      credential: null,
      writeCredential: null,
      caFile: null,
      scheme: null,
      headers: {},
      certFile: null,
      keyFile: null,
      options: {},
      timeoutSeconds: 60,
      createdBy: 'anna',
      createdAt: '',
    }
  })
  afterAll(() => {
    server.closeAllConnections()
    server.close()
  })
  const read = async (args: Record<string, unknown>) => {
    const planned = planRead([source], 'search_logs', { until: new Date(nowMs).toISOString(), ...args })
    if (!planned.ok) throw new Error(planned.reason)
    return await readSource(planned, newSourceStates(), { nowMs, incidentBeganMs: nowMs - 5 * minute })
  }

  test('are templates of 2 kB: new ones come first, with a sample, and the whole is every line', async () => {
    const { summary, whole, isEmpty } = await read({ labels: { instance: 'web-1' }, window: '1h' })
    expect([isEmpty, summary.lines, whole.split('\n').length]).toEqual([false, 2_400, 1_000])
    expect(summary.templates).toMatchObject([
      {
        template: 'ERROR pool exhausted after <*> tries',
        count: 60,
        isNew: true,
        sample: expect.stringContaining('ERROR'),
      },
      // Counts all lines, though only the newest were read.
      { template: 'INFO served request <*> in <*>', count: 2_340 },
    ])
    expect(summary).toMatchObject({ read: 1_000, counts: 'by the store, of all lines' })
    expect((summary.templates as { isNew?: boolean }[])[1]?.isNew).toBeUndefined()
    expect(Buffer.byteLength(JSON.stringify(summary))).toBeLessThanOrEqual(maxSummaryBytes)
  })

  test('that were not all read are new only if the store has none before, and in an incident before its alert', async () => {
    const newOf = async (args: Record<string, unknown>, beganMs: number | null) => {
      const planned = planRead([source], 'search_logs', { labels: { instance: 'web-1' }, ...args })
      if (!planned.ok) throw new Error(planned.reason)
      const { summary } = await readSource(planned, newSourceStates(), { nowMs, incidentBeganMs: beganMs })
      return (summary.templates as { template: string; isNew?: boolean }[])
        .filter(({ isNew }) => isNew)
        .map(({ template }) => template.split(' ')[0])
    }
    const until = new Date(nowMs).toISOString()
    expect(await newOf({ window: '1h', until }, null)).toEqual(['ERROR'])
    // The errors began a quarter of an hour ago. Before, what was cut was compared with what was
    // cut: all of it was new.
    expect(await newOf({ window: '1h', until }, nowMs - 5 * minute)).toEqual(['ERROR'])
    expect(await newOf({ window: '1h', until }, nowMs + 10 * minute)).toEqual([])
    // A window that begins after the alert is compared with the time before the alert.
    expect(await newOf({ window: '5m', until }, nowMs - 20 * minute)).toEqual(['ERROR'])
    expect(await newOf({ window: '5m', until }, null)).toEqual([])
  })

  test('are empty if nothing is found, and name the known labels', async () => {
    const { summary, isEmpty } = await read({ labels: { instance: 'nothing-there' } })
    expect([isEmpty, summary.lines]).toEqual([true, 0])
    expect(summary.labelsThere).toContain('instance')
    expect(summary).not.toHaveProperty('partial')
  })

  test('of which the server holds only a part are partial and say why, and are no evidence of absence', async () => {
    isPartial = true
    const nothing = await read({ labels: { instance: 'nothing-there' } })
    const some = await read({ labels: { instance: 'web-1' } })
    isPartial = false
    const partial = [expect.stringMatching(kind === 'loki' ? /^an ingester/ : /^some of its storage nodes.*502/)]
    expect(nothing).toMatchObject({ isEmpty: true, isPartial: true, summary: { partial } })
    // A part of the time before would make all of the rest new, and a count of a part is no count.
    expect(some).toMatchObject({
      isEmpty: false,
      isPartial: true,
      summary: { partial, notCompared: 'the window before' },
    })
    expect(JSON.stringify(some.summary)).not.toContain('isNew')
  })
})
