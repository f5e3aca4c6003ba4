import { describe, expect, test } from '@jest/globals'
import { foldLooks } from '../../model/fold-looks.ts'
import { bodiesThatFit, renderMessages } from '../../model/messages.ts'
import type { TranscriptEntry } from '../../model/transcript.ts'

const processes = Array.from({ length: 14 }, (_, at) => ({
  pid: 100 + at,
  name: 'web',
  cmdline: `web --worker ${at} of twelve`,
}))
const list = { on: { kind: 'node', id: 'web-1' }, processes }

/** A turn with one call, and what it answered. */
function turn(nth: number, data: object = { ...list, turn: nth }, { tool = 'proc_list', meta = {}, ok = true } = {}) {
  const call = { id: `c${nth}_0`, tool, arguments: { on: 'web-1', limit: nth }, problem: null }
  return [
    { kind: 'answer', content: '', calls: [call] },
    { kind: 'result', callId: call.id, envelope: { ok, data, meta: { seq: nth * 10, ...meta } }, body: null, call },
  ] satisfies TranscriptEntry[]
}

const turns = (count: number) => Array.from({ length: count }, (_, at) => turn(at + 1)).flat()
const rendered = (entries: TranscriptEntry[]) =>
  renderMessages('native', [], foldLooks(entries), new Map(), Number.POSITIVE_INFINITY).map(
    ({ content }) => content ?? '',
  )
const results = (entries: TranscriptEntry[]) =>
  rendered(entries).flatMap((content) => (content === '' ? [] : [JSON.parse(content)]))
const foldedIn = (entries: TranscriptEntry[]) => results(entries).map(({ meta }) => meta.cut !== undefined)

describe('an old read', () => {
  test('is whole for two requests, and then shows its beginning, its row, and how to read it again', () => {
    expect(foldedIn(turns(3))).toEqual([false, false, false])
    expect(foldedIn(turns(6))).toEqual([true, true, true, true, false, false])
    const [first] = results(turns(6))
    expect(first.data.processes).toContainEqual(processes[0])
    expect(first.meta).toEqual({ seq: 10, cut: expect.stringContaining('repeat the call to read it') })
    expect(JSON.stringify(first).length).toBeLessThan(500)
  })

  test('of a file keeps its beginning, whatever other fields it has', () => {
    const content = `{ "routes": [] }\n${'a line of the file\n'.repeat(60)}`
    const file = { path: `/srv/${'site/'.repeat(20)}routes.json`, content, sha256: 'a'.repeat(64), bytes: 1_200 }
    const [read] = results([...turn(1, file, { tool: 'fs_read' }), ...turns(6).slice(2)])
    expect(read.meta.cut).toBeDefined()
    expect(read.data.content).toMatch(/^\{ "routes": \[\] \}\n/)
  })

  test('is folded with others in one step, so that between two steps no earlier message changes', () => {
    const sent = Array.from({ length: 20 }, (_, at) => rendered(turns(at + 1)))
    const changes = sent
      .slice(1)
      .filter((messages, at) => !sent[at]?.every((content, nth) => content === messages[nth]))
    expect(changes.length).toBeGreaterThan(2)
    expect(changes.length).toBeLessThan(10)
    // A folded look stays folded.
    const folded = sent.map((messages) => messages.map((content) => content.includes('repeat the call to read it')))
    for (const [at, now] of folded.slice(1).entries())
      expect(folded[at]?.every((was, nth) => !was || now[nth])).toBe(true)
  })

  const long = { text: 'x'.repeat(4_000) }
  test.each<[string, object, object]>([
    ['what a write left', long, { meta: { verification: { outcome: 'held' } } }],
    ['a plan', { ...long, planDigest: 'd' }, {}],
    ['a runbook', { name: 'disk-full', body: 'x'.repeat(4_000) }, {}],
    ['a summary of metrics', { summary: { series: Array.from({ length: 60 }, (_, at) => ({ last: at })) } }, {}],
    ['what could not be read', long, { ok: false }],
  ])('%s stays whole', (_, data, how) => {
    expect(foldedIn([...turn(1, data, how), ...turns(7).slice(2)])[0]).toBe(false)
  })

  test('that was requested again stays whole, because a third time is refused', () => {
    const calls = [{ id: 'c6_0', tool: 'proc_list', arguments: { on: 'web-1', limit: 1 }, problem: null }]
    const again: TranscriptEntry[] = [
      { kind: 'answer', content: '', calls },
      {
        kind: 'result',
        callId: 'c6_0',
        envelope: { ok: true, data: list, meta: { seq: 60 } },
        body: null,
        call: calls[0],
      },
    ]
    const entries = [...turns(5), ...again, ...turns(12).slice(12)]
    expect([foldedIn(entries)[0], foldedIn(entries)[5]]).toEqual([true, false])
  })

  /** Turns that call `limits` in this order, each with one call; null: an answer without a call. */
  const asked = (limits: (number | null)[]): TranscriptEntry[] =>
    limits.flatMap((limit, at): TranscriptEntry[] => {
      if (limit === null)
        return [
          { kind: 'answer', content: 'So.', calls: [] },
          { kind: 'correction', text: 'Call a tool.' },
        ]
      const call = { id: `c${at + 1}_0`, tool: 'proc_list', arguments: { on: 'web-1', limit }, problem: null }
      const envelope = { ok: true, data: { ...list, limit, more: processes }, meta: { seq: at } }
      return [
        { kind: 'answer', content: '', calls: [call] },
        { kind: 'result', callId: call.id, envelope, body: null, call },
      ]
    })
  const isFolded = (entries: TranscriptEntry[]) =>
    foldLooks(entries).flatMap((entry) => (entry.kind === 'result' ? [entry.isFolded === true] : []))

  test('that was requested again with its fields in another order stays whole', () => {
    const call = { id: 'c6_0', tool: 'proc_list', arguments: { limit: 1, reason: null, on: 'web-1' }, problem: null }
    const envelope = { ok: true, data: { ...list, more: processes }, meta: { seq: 60 } }
    const again: TranscriptEntry[] = [
      { kind: 'answer', content: '', calls: [call] },
      { kind: 'result', callId: 'c6_0', envelope, body: null, call },
    ]
    expect(isFolded([...asked([1, 2, 3, 4, 5]), ...again, ...asked([7, 8, 9, 10])])[5]).toBe(false)
  })

  test('is not folded while its repetition would be refused, because the same call precedes it', () => {
    expect(isFolded(asked([1, 2, null, null, null]))).toEqual([true, false])
  })

  test('is not folded while its repetition would complete a circle of calls', () => {
    expect(isFolded(asked([1, 2, 3, 1, 2, null, null]))).toEqual([true, true, false, false, false])
    expect(isFolded(asked([1, 2, 3, 1, 2, 4, null]))[2]).toBe(true)
  })

  test('of which nothing would be left out does not ask for a repetition', () => {
    const data = { state: 'running', request_id: 'r'.repeat(700), cmd_executed: 'c'.repeat(800) }
    const [first] = results([...turn(1, data), ...turns(6).slice(2)])
    expect(first).toEqual({ data: { state: 'running' }, meta: { seq: 10 } })
  })

  test('has the same words for the rest of the conversation, and leaves its room to other results', () => {
    const stored = new Map<string, string>()
    const withBodies = (count: number): TranscriptEntry[] =>
      turns(count).map((entry) => {
        if (entry.kind !== 'result') return entry
        const lines = Array.from({ length: 200 }, (_, at) => `${entry.callId} line ${at} of the answer`)
        const text = JSON.stringify({ ...(entry.callId === 'c1_0' ? { summary: 'all' } : {}), lines })
        stored.set(entry.callId, text)
        const body = { digest: entry.callId, bytes: text.length, head: text.slice(0, 1_200), tail: '' }
        return { ...entry, envelope: { ...entry.envelope, data: undefined }, body }
      })
    const sent = (count: number) => {
      const entries = foldLooks(withBodies(count))
      const bodies = new Map([...bodiesThatFit(entries, 60_000)].map((id) => [id, stored.get(id) as string]))
      return renderMessages('native', [], entries, bodies, 60_000).map(({ content }) => content ?? '')
    }
    const all = Array.from({ length: 12 }, (_, at) => sent(at + 1))
    const folded = all.map((messages) => messages.map((content) => content.includes('repeat the call to read it')))
    for (const [at, now] of all.slice(1).entries())
      for (const [nth, is] of (folded[at] ?? []).entries()) if (is) expect(now[nth]).toBe(all[at]?.[nth])
    expect(folded.at(-1)?.filter((is) => is).length).toBeGreaterThan(5)
    expect(all.at(-1)?.[1]).toContain('line 100 of the answer')
  })
})
