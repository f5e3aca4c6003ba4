import { afterAll, beforeAll, expect, test } from '@jest/globals'
import type { JournalEntry } from '../../../domain/mesh.ts'
import { entriesAfter } from '../../../mesh/agent/chain.ts'
import { type Journal, openJournal } from '../../../mesh/agent/journal.ts'
import { temporaryDirectory } from '../../support/directory.ts'

let place: ReturnType<typeof temporaryDirectory>
let journal: Journal
beforeAll(() => {
  place = temporaryDirectory()
  journal = openJournal(place.path, { segmentBytes: 1_000, segmentsKept: 3 })
})
afterAll(() => {
  journal.close()
  place.remove()
})

function all(from = 0): JournalEntry[] {
  const entries: JournalEntry[] = []
  for (let pages = 0; pages < 100; pages += 1) {
    const page = entriesAfter(place.path, entries.at(-1)?.n ?? from)
    if (page.entries.length === 0) return entries
    entries.push(...page.entries)
  }
  throw new Error('it never ends')
}
const write = (count: number) => {
  for (let n = 0; n < count; n += 1) journal.append({ kind: 'started', version: '1', boot: 'b' })
}

test('a journal of several files is returned from the first entry to the last, each with its hash', () => {
  expect(entriesAfter(place.path, 0).entries).toEqual([])
  write(12)
  const entries = all()
  expect(entries.map(({ n }) => n)).toEqual(Array.from({ length: 12 }, (_, index) => index + 1))
  expect(entries.at(-1)?.hash).toBe(journal.head())
  expect(all(7).map(({ n }) => n)).toEqual([8, 9, 10, 11, 12])
})

test('pruned entries are not returned, and the oldest kept entry is named', () => {
  write(60)
  const entries = all()
  const { first } = entriesAfter(place.path, 0)
  expect(first).toBeGreaterThan(1)
  expect(entries[0]?.n).toBe(first)
  expect(entries.at(-1)).toMatchObject({ n: journal.entries(), hash: journal.head() })
  expect(entries.map(({ n }) => n)).toEqual(entries.map((_, index) => first + index))
})
