import { appendFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { type LabJournal, type LabOutcome, openJournal, outcomeOfRequest } from '../../lab/effects.ts'
import { temporaryDirectory } from '../support/directory.ts'

let directory: ReturnType<typeof temporaryDirectory>
let file: string
beforeEach(() => {
  directory = temporaryDirectory()
  file = join(directory.path, 'effects.jsonl')
})
afterEach(() => directory.remove())

const cannotTell = () => null
const fine: LabOutcome = { status: 'done', detail: 'done', result: {}, changed: [] }
const open = (told: (request: string) => LabOutcome | null = cannotTell): LabJournal => openJournal(file, told)
const entry = (event: string) =>
  `${JSON.stringify({ at: new Date().toISOString(), key: 'k', request: 'POST /x {}', event, detail: event, result: {} })}\n`

test('a write is in the journal before it starts', async () => {
  const journal = open()
  await journal.once('k', 'vm-101', 'POST /x {}', async () => {
    expect(readFileSync(file, 'utf8')).toContain('"event":"accepted"')
    return fine
  })
  expect(journal.get('k')).toMatchObject({ status: 'done', runs: 1 })
})

test('writes about one resource run in sequence, and writes about two run in parallel', async () => {
  const journal = open()
  const order: string[] = []
  const bothThings = Promise.withResolvers<void>()
  const slow = async (name: string) => {
    order.push(`${name} begins`)
    if (name === 'c') bothThings.resolve()
    // The first write about the one thing ends only when one about the other has begun.
    await bothThings.promise
    order.push(`${name} ends`)
    return fine
  }
  const write = (key: string, about: string) => journal.once(key, about, key, () => slow(key))
  await Promise.all([write('a', 'vm-101'), write('b', 'vm-101'), write('c', 'vm-102')])
  expect(order.indexOf('b begins')).toBeGreaterThan(order.indexOf('a ends'))
  expect(order.indexOf('c begins')).toBeLessThan(order.indexOf('a ends'))
})

test('a write that throws has failed, and is not tried again under its key', async () => {
  const journal = open()
  const record = await journal.once('k', 'vm-101', 'X', () => Promise.reject(new Error('no room')))
  expect(record).toMatchObject({ status: 'failed', detail: 'no room' })
  expect(await journal.once('k', 'vm-101', 'X', async () => fine)).toMatchObject({ status: 'failed', runs: 1 })
})

test('a write that was accepted but not started when the controller died has failed', () => {
  appendFileSync(file, entry('accepted'))
  expect(open().get('k')).toMatchObject({ status: 'failed', runs: 0 })
})

test('a write that was running when the controller died stays running if nothing can show its outcome', async () => {
  appendFileSync(file, entry('accepted') + entry('started'))
  const journal = open()
  expect(journal.get('k')).toMatchObject({ status: 'running', runs: 1 })
  expect(await journal.once('k', 'vm-101', 'POST /x {}', async () => fine)).toMatchObject({
    status: 'running',
    runs: 1,
  })
})

test('a line that was cut by a crash is left out, and the journal continues after it', async () => {
  appendFileSync(file, `${entry('accepted') + entry('started') + entry('done')}{"at":"20`)
  await open().once('next', 'vm-101', 'Y', async () => fine)
  expect(open().all()).toMatchObject([
    { key: 'k', status: 'done' },
    { key: 'next', status: 'done' },
  ])
})

const placement = { 'vm-101': 'host-osl-4' }
test.each([
  ['POST /v1/vms/vm-101/start {"host":"host-osl-4"}', 'done'],
  ['POST /v1/vms/vm-101/start {"host":"host-osl-2"}', 'failed'],
  ['POST /v1/vms/vm-101/migrate {"from":"host-osl-1","to":"host-osl-4"}', 'done'],
  ['POST /v1/vms/vm-101/migrate {"from":"host-osl-4","to":"host-osl-1"}', 'failed'],
  // Every VM begins again with the lab.
  ['POST /v1/vms/vm-101/stop {"host":"host-osl-4"}', 'failed'],
  ['POST /v1/vms/vm-101/restart {"host":"host-osl-4"}', 'done'],
  // Nothing that a converge changes remains when its nodes are gone.
  ['POST /v1/shards/db-osl-1/converge {}', undefined],
])('the outcome of %s: %s', (request, status) => {
  expect(outcomeOfRequest({ placement }, request)?.status).toBe(status)
})
