import { appendFileSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { verifyChain } from '../../../mesh/agent/chain.ts'
import { openJournal } from '../../../mesh/agent/journal.ts'
import { openNonces } from '../../../mesh/agent/verify-request.ts'
import { temporaryDirectory } from '../../support/directory.ts'

let state: ReturnType<typeof temporaryDirectory>
beforeEach(() => {
  state = temporaryDirectory()
})
afterEach(() => state.remove())

const accepted = (n: number, effect: 'read' | 'write' = 'write') => ({
  kind: 'accepted' as const,
  request_id: `req_${String(n).padStart(24, '0')}`,
  key: `key-${n}`,
  digest: 'd',
  capability: 'shell.exec' as const,
  effect,
  approval: 'granted' as const,
  command: `touch ${n}`,
  grant: { id: `grt_${n}`, authority: 'apr_1', ends_ms: Date.now() + 60_000 },
  key_id: 'cp-1',
})
const done = (n: number) => ({
  kind: 'done' as const,
  request_id: `req_${String(n).padStart(24, '0')}`,
  key: `key-${n}`,
  answer: {
    request_id: `req_${String(n).padStart(24, '0')}`,
    device: 'web-1',
    status: 'done' as const,
    ok: true,
    result: { n },
    error: null,
    approval_status: 'granted' as const,
    cmd_executed: null,
    truncated: false,
    duration_ms: 1,
  },
})

async function written(count: number, options = {}): Promise<void> {
  const journal = openJournal(state.path, options)
  for (let n = 1; n <= count; n += 1) {
    journal.append(accepted(n))
    journal.append(done(n))
  }
  await journal.durable()
  journal.close()
}
const directory = () => join(state.path, 'journal')
const segments = () => readdirSync(directory()).sort()
const file = () => join(directory(), segments().at(-1) as string)

test('a finished write is known after a restart, with its answer, and an accepted one is open', async () => {
  await written(3)
  const before = openJournal(state.path)
  before.append(accepted(4))
  before.close()
  const journal = openJournal(state.path)
  expect(journal.lost()).toBeNull()
  expect(journal.entries()).toBe(7)
  const known = journal.index.ofKey('key-2')
  expect(known).toMatchObject({ state: 'done', effect: 'write' })
  expect(journal.answerAt(known?.answer?.place as never)).toMatchObject({ result: { n: 2 } })
  expect(journal.index.open().map(({ key }) => key)).toEqual(['key-4'])
  expect(journal.index.isUsedGrant('grt_4')).toBe(true)
  journal.close()
})

test('an unfinished last line did not happen', async () => {
  await written(2)
  appendFileSync(file(), '{"n":5,"prev":"')
  const journal = openJournal(state.path)
  expect([journal.lost(), journal.entries()]).toEqual([null, 4])
  journal.append(accepted(3))
  journal.close()
  expect(verifyChain(directory())).toMatchObject({ ok: true, entries: 5, tornBytes: 0 })
})

test.each([
  ['an entry was changed', () => writeFileSync(file(), readFileSync(file(), 'utf8').replace('touch 1', 'touch 9'))],
  [
    'an entry was taken out',
    () =>
      writeFileSync(
        file(),
        readFileSync(file(), 'utf8')
          .split('\n')
          .filter((_, at) => at !== 2)
          .join('\n'),
      ),
  ],
  ['the end was cut off', () => truncateSync(file(), readFileSync(file(), 'utf8').indexOf('\n', 400) + 1)],
  ['the last line was changed', () => writeFileSync(file(), readFileSync(file(), 'utf8').replace('"n":3}', '"n":8}'))],
  ['the journal is gone', () => rmSync(directory(), { recursive: true })],
  ['its head is gone', () => rmSync(join(state.path, 'head.json'))],
  ['its head is unreadable', () => writeFileSync(join(state.path, 'head.json'), 'x')],
  [
    'all is gone but the nonces',
    () => {
      rmSync(directory(), { recursive: true })
      rmSync(join(state.path, 'head.json'))
    },
  ],
])('when %s, the journal is lost until a person accepts that, over restarts', async (_, harm) => {
  await written(3)
  openNonces(state.path, Date.now())
  harm()
  const first = openJournal(state.path)
  expect(first.lost()).not.toBeNull()
  expect(first.index.ofKey('key-1')).toBeNull()
  await first.durable()
  first.close()
  const second = openJournal(state.path)
  expect(second.lost()).not.toBeNull()
  second.append({ kind: 'loss_accepted' })
  expect(second.lost()).toBeNull()
  second.close()
  const third = openJournal(state.path)
  expect(third.lost()).toBeNull()
  third.close()
})

test('a full segment is followed by another in the same chain, and the removal of the oldest is recorded', async () => {
  await written(200, { segmentBytes: 4_000, segmentsKept: 4 })
  expect(segments().length).toBeLessThanOrEqual(5)
  const verified = verifyChain(directory())
  expect(verified).toMatchObject({ ok: true })
  expect(verified.ok && verified.first).toBeGreaterThan(1)
  const journal = openJournal(state.path)
  expect(journal.lost()).toBeNull()
  expect(journal.index.ofKey('key-1')).toBeNull()
  expect(journal.index.ofKey('key-200')).toMatchObject({ state: 'done' })
  journal.close()
  rmSync(join(directory(), segments()[0] as string))
  expect(verifyChain(directory())).toMatchObject({ ok: false, reason: expect.stringContaining('missing') })
})

test('entries for which many wait are on disk for all of them', async () => {
  const journal = openJournal(state.path, { segmentBytes: 2_000 })
  await Promise.all(
    Array.from({ length: 50 }, async (_, n) => {
      journal.append(accepted(n))
      await journal.durable()
      journal.append(done(n))
    }),
  )
  await journal.durable()
  expect(JSON.parse(readFileSync(join(state.path, 'head.json'), 'utf8'))).toEqual({
    n: journal.entries(),
    hash: journal.head(),
  })
  journal.close()
  expect(verifyChain(directory())).toMatchObject({ ok: true })
})

test('a nonce is remembered over a restart, for as long as its request could come again', () => {
  const now = Date.now()
  const nonces = openNonces(state.path, now)
  expect(nonces.forgottenBeforeMs).toBe(now)
  nonces.remember('fresh', now, now)
  nonces.remember('old', now - 301_000, now)
  const again = openNonces(state.path, now)
  expect([again.has('fresh'), again.has('old'), again.forgottenBeforeMs]).toEqual([true, false, null])
})
