import { expect, test } from '@jest/globals'
import { compareJournal, findChainBreak } from '../../../cli/mesh/journal.ts'
import type { AuditedCall } from '../../../domain/device.ts'
import type { JournalEntry } from '../../../domain/mesh.ts'

const id = (n: number) => `req_${String(n).padStart(24, '0')}`
const hash = (n: number) => n.toString(16).padStart(64, '0')
const at = (n: number) => new Date(Date.UTC(2026, 10, 21, 1, n)).toISOString()

/** Entry n accepts request n, a minute after the one before. */
function journal(from: number, to: number, first: Partial<JournalEntry> = {}): JournalEntry[] {
  return Array.from({ length: to - from + 1 }, (_, index) => {
    const n = from + index
    const entry = { n, at: at(n), prev: hash(n - 1), hash: hash(n), kind: 'accepted' as const, request_id: id(n) }
    return index === 0 ? { ...entry, ...first } : entry
  })
}
const call = (n: number, changes: Partial<AuditedCall> = {}): AuditedCall => ({
  key: `k${n}`,
  requestId: id(n),
  begunAt: at(n),
  finishedAt: at(n),
  auditHash: hash(n),
  incidentHash: null,
  ...changes,
})
const calls = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => call(from + index))

test('calls and a journal with the same entries agree', () => {
  expect(compareJournal(journal(1, 50), calls(1, 50))).toEqual({ problems: [], unknownEntries: [], older: 0 })
})

test('a call that is not in the journal, one with another hash, and one without an observed end are problems', () => {
  const rows = [
    call(1, { requestId: id(9) }),
    call(2, { auditHash: hash(9) }),
    call(3, { finishedAt: null, auditHash: null }),
    call(4, { incidentHash: hash(9) }),
    call(5, { auditHash: null }),
  ]
  const { problems, unknownEntries } = compareJournal(journal(1, 5), rows)
  expect(problems).toEqual([
    "k1: the device's journal has no such call",
    "k2: the device's journal and the call have different hashes",
    'k3: its result is unknown',
    "k4: the incident's row and the call have different hashes",
  ])
  expect(unknownEntries.map(({ n }) => n)).toEqual([1])
})

test('pruned entries are not reported, and all later entries are', () => {
  const rows = calls(1, 60).filter(({ requestId }) => requestId !== id(31))
  const held = compareJournal(journal(30, 60), [...rows, call(40, { requestId: id(99) })])
  expect(held).toMatchObject({ older: 29, problems: ["k40: the device's journal has no such call"] })
  expect(held.unknownEntries.map(({ n }) => n)).toEqual([31])
})

test('a lost journal is one problem, and not one for each earlier call', () => {
  const after = journal(1, 10, { kind: 'lost', request_id: null, at: at(0) })
  const before = Array.from({ length: 20 }, (_, n) => call(100 + n, { begunAt: '2026-11-20T00:00:00.000000Z' }))
  expect(compareJournal(after, [...before, ...calls(2, 10)])).toEqual({
    problems: [`the journal before ${at(0)} was lost`],
    unknownEntries: [],
    older: 20,
  })
})

test('a chain with a gap, a swapped entry or another beginning is invalid', () => {
  const whole = journal(1, 5)
  expect([findChainBreak(whole), findChainBreak(journal(4, 9)), findChainBreak([])]).toEqual([null, null, null])
  expect(findChainBreak(whole.filter(({ n }) => n !== 3))).toBe('entry 4 follows 2')
  expect(findChainBreak(whole.map((entry) => (entry.n === 3 ? { ...entry, hash: hash(9) } : entry)))).toBe(
    'entry 3 is not the predecessor that entry 4 names',
  )
  expect(findChainBreak(journal(1, 2, { prev: hash(7) }))).toBe(
    'entry 1 names a predecessor, but the first entry has none',
  )
})
