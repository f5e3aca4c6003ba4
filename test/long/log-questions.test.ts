import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { Source } from '../../domain/source.ts'
import { newSourceStates } from '../../sources/ask.ts'
import { planRead, readSource } from '../../sources/kinds.ts'
import questions from '../sources/public-log-questions.json' with { type: 'json' }
import { eventually, freePort, temporaryDirectory } from '../support/directory.ts'
import { randomOf } from './generated-series.ts'

const program = process.env.VICTORIA_LOGS ?? join(import.meta.dirname, '../../.cache/victoria-logs')
const suite = existsSync(program) ? describe : describe.skip
const minute = 60_000
const linesEach = 200

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
type Line = { atMs: number; text: string; fields: Record<string, string> }

/** Values that the conditions of the questions choose among. */
const values = ['main-1', 'main-2', 'main-1x', 'other-1', 'more-1', 'error', 'warn', '500', '404', 'xmain-1', 'Error']
const texts = ['timeout', 'timed out', 'time out', 'refused', 'denied', 'level=error', 'done', 'timeouts']

/** Whether a line is what a condition says, by the words of the question alone. */
function holds([name, op, value]: [string, string, string], { fields }: Line): boolean {
  const is = fields[name] ?? ''
  const matches = op.endsWith('~') ? new RegExp(`^(?:${value})$`).test(is) : is === value
  return op.startsWith('!') ? !matches : matches
}

const isMeant = (line: Line, { labels, contains = [], excludes = [], pattern }: Question) =>
  labels.every((label) => holds(label, line)) &&
  contains.every((text) => line.text.includes(text)) &&
  !excludes.some((text) => line.text.includes(text)) &&
  (pattern === undefined || new RegExp(pattern).test(line.text))

suite(`public questions to a real VictoriaLogs${existsSync(program) ? '' : ' (VICTORIA_LOGS names the program)'}`, () => {
  const directory = temporaryDirectory()
  const nowMs = Date.now()
  const random = randomOf(20_261_128)
  const pick = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)] as T
  let url = ''
  let stop: () => Promise<void>

  beforeAll(async () => {
    const port = await freePort()
    url = `http://127.0.0.1:${port}`
    const data = `-storageDataPath=${join(directory.path, 'data')}`
    const child = spawn(program, [data, `-httpListenAddr=127.0.0.1:${port}`], { stdio: 'ignore' })
    stop = () => new Promise((resolve) => child.once('exit', () => resolve()) && child.kill('SIGKILL'))
    await eventually('VictoriaLogs', async () => (await fetch(`${url}/health`).catch(() => null))?.ok)
  })
  afterAll(async () => {
    await stop?.()
    directory.remove()
  })

  /** Most lines fit each condition; the others miss it, or have no such field. */
  function writeLine({ labels, by = [], contains = [] }: Question): Line {
    const fields: Record<string, string> = {}
    for (const name of by) if (random() < 0.9) fields[name] = pick(values.slice(0, 3))
    for (const label of labels) {
      const fitting = ['', ...values].filter((value) =>
        holds(label, { atMs: 0, text: '', fields: { [label[0]]: value } }),
      )
      const value = random() < 0.9 ? pick(fitting) : pick(['', ...values])
      if (value === '') delete fields[label[0]]
      else fields[label[0]] = value
    }
    const words = random() < 0.7 ? contains : []
    return { atMs: nowMs - Math.floor(random() * 90) * minute, text: [...words, pick(texts), 'x'].join(' '), fields }
  }

  const sourceOf = (headers: Record<string, string>): Source => {
    const none = { credential: null, writeCredential: null, caFile: null, scheme: null, certFile: null, keyFile: null }
    const made = { createdBy: 'anna', createdAt: '' }
    return { name: 'l', kind: 'victorialogs', url, ...none, headers, options: {}, timeoutSeconds: 10, ...made }
  }

  test('that can be said are answered by counts that are right to the line, in one call each', async () => {
    const said = (questions as unknown as Question[]).filter(
      ({ cannot = '' }) => !/^(a comparison|a count by|more than)/.test(cannot),
    )
    // Each question has a tenant to itself.
    const written = said.map((question, at) => ({
      question,
      headers: { AccountID: String(at + 1) },
      lines: Array.from({ length: linesEach }, () => writeLine(question)),
    }))
    for (const { headers, lines } of written) {
      const rows = lines.map(({ atMs, text, fields }) =>
        JSON.stringify({ _time: new Date(atMs).toISOString(), _msg: text, ...fields }),
      )
      await fetch(`${url}/insert/jsonline`, { method: 'POST', body: rows.join('\n'), headers })
    }
    const total = async (headers: Record<string, string>) => {
      const body = new URLSearchParams({ query: '* | stats count() n' })
      const answer = await fetch(`${url}/select/logsql/query`, { method: 'POST', body, headers })
      return Number(JSON.parse((await answer.text()) || '{}').n)
    }
    for (const { headers } of written)
      await eventually('the lines to be there', async () => (await total(headers)) === linesEach)
    const wrong: string[] = []
    let found = 0
    for (const [at, { question, headers, lines }] of written.entries()) {
      const { labels, what, by = [], contains = [], excludes = [], pattern, step } = question
      const asked = Object.fromEntries(labels.map(([name, op, value]) => [name, op === '=' ? value : { [op]: value }]))
      const count = what === 'lines' ? {} : { count: { by, ...(step && { step }) } }
      const args = { labels: asked, contains, excludes, ...(pattern && { pattern }), window: '61m', ...count }
      const planned = planRead([sourceOf(headers)], 'search_logs', args)
      if (!planned.ok) throw new Error(planned.reason)
      const { summary } = await readSource(planned, newSourceStates(), { nowMs, incidentBeganMs: null })
      const meant = lines.filter(
        (line) => line.atMs >= nowMs - 61 * minute && line.atMs < nowMs && isMeant(line, question),
      )
      found += meant.length
      if (summary.lines !== meant.length) wrong.push(`${at}: ${summary.lines} lines, were ${meant.length}`)
      for (const each of (summary.series ?? []) as { labels: Record<string, string>; total: number }[]) {
        const of = meant.filter(({ fields }) => by.every((name) => (fields[name] ?? '') === (each.labels[name] ?? '')))
        if (of.length !== each.total) wrong.push(`${at}: ${JSON.stringify(each)}, were ${of.length}`)
      }
    }
    expect([said.length, wrong]).toEqual([78, []])
    expect(found).toBeGreaterThan(linesEach * 10)
  })
})
