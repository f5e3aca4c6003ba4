import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { Source } from '../../domain/source.ts'
import { newSourceStates } from '../../sources/ask.ts'
import { planRead, probeSource, readSource } from '../../sources/kinds.ts'
import { eventually, freePort, temporaryDirectory } from '../support/directory.ts'

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
