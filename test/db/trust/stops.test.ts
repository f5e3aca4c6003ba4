import { beforeEach, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { eventsOf } from '../../../db/log/events.ts'
import { resumeStop, setStop, standingStops, withdrawStopped } from '../../../db/trust/stops.ts'
import type { StopScope } from '../../../domain/stop.ts'
import { useDatabase } from '../../support/database.ts'
import { pair, playPair } from '../../support/played-pair.ts'

const database = useDatabase()
const play = playPair(database, { AGENT_TRUST: 'act' })
let anna: Awaited<ReturnType<typeof play.person>>
const kind: StopScope = { ...pair, resource: null }
const stop = (scope: StopScope = kind, until: string | null = null) =>
  setStop(database.db, anna, { ...scope, until, reason: 'the replicas move' })
const risk = () => 'low'
const ahead = (minutes: number) => new Date(Date.now() + minutes * 60_000).toISOString()

beforeEach(async () => {
  await database.owner.deleteFrom('trustStop').execute()
  await database.owner.deleteFrom('targetLease').execute()
  await database.owner.updateTable('approval').set({ status: 'withdrawn' }).where('status', '=', 'pending').execute()
  anna = await play.person('anna')
})

async function lastRuling(incidentId: string) {
  const rows = await eventsOf(database.db, incidentId)
  return rows.findLast(({ kind: each }) => each === 'call_judged')?.metadata as Record<string, unknown> | undefined
}

test('a stopped kind is recorded and neither asked nor run, until it is resumed', async () => {
  await play.set(anna, 'act')
  const stopped = await stop()
  if (stopped.outcome !== 'stopped') throw new Error(stopped.message)
  const held = await play.propose()
  expect(held.outcome).toEqual({ kind: 'next' })
  expect(await lastRuling(held.incidentId)).toMatchObject({
    code: 'SHADOW',
    details: { would: 'run', stop: stopped.stop.id },
    reason: expect.stringContaining('converge_shard is stopped by anna until it is resumed: the replicas move'),
  })
  expect(await resumeStop(database.db, anna, stopped.stop.id, { reason: 'done', risk })).toMatchObject({
    outcome: 'resumed',
  })
  expect((await play.propose()).outcome).toMatchObject({ kind: 'run' })
})

test.each<[string, StopScope, 'next' | 'run']>([
  ['every write of the type', { ...kind, tool: null }, 'next'],
  ['the resource that it is about', { ...kind, tool: null, resource: { kind: 'shard', id: 'db-osl-1' } }, 'next'],
  ['another resource', { ...kind, resource: { kind: 'shard', id: 'db-ams-9' } }, 'run'],
  ['another tool', { ...kind, tool: 'vm_start' }, 'run'],
  ['another type', { ...kind, type: 'disk_pressure' }, 'run'],
])('a stop of %s', async (_, scope, outcome) => {
  await play.set(anna, 'act')
  await stop(scope)
  expect((await play.propose()).outcome).toMatchObject({ kind: outcome })
})

test('a stop whose end has passed ends by itself', async () => {
  await play.set(anna, 'act')
  await stop(kind, ahead(10))
  expect((await play.propose()).outcome).toEqual({ kind: 'next' })
  await database.owner
    .updateTable('trustStop')
    .set({ at: ahead(-20), until: ahead(-10) })
    .execute()
  expect(await standingStops(database.db)).toEqual([])
  expect((await play.propose()).outcome).toMatchObject({ kind: 'run' })
})

test('waiting questions are withdrawn with the reason, and the run judges its call again', async () => {
  await play.set(anna, 'propose')
  const asked = await play.propose()
  expect(asked.outcome).toMatchObject({ kind: 'ask' })
  await stop()
  expect(await withdrawStopped(database.db)).toEqual([{ incidentId: asked.incidentId, attempt: 1 }])
  const rows = await eventsOf(database.db, asked.incidentId)
  expect(rows.findLast(({ kind: each }) => each === 'approval_withdrawn')?.metadata).toMatchObject({
    reason: `converge_shard in incidents of type replication_lag is stopped by anna until it is resumed: the replicas move`,
  })
  expect(await withdrawStopped(database.db)).toEqual([])
  const again = await play.judgeAgain(asked.incidentId)
  expect(again).toEqual({ kind: 'next' })
  expect(await lastRuling(asked.incidentId)).toMatchObject({ code: 'SHADOW' })
})

test('if two people press at once, one stops it, and the other reads who did', async () => {
  const answers = await Promise.all([stop(), stop()])
  expect(answers.map(({ outcome }) => outcome).toSorted()).toEqual(['conflict', 'stopped'])
  expect(answers.find(({ outcome }) => outcome === 'conflict')).toMatchObject({
    message:
      'converge_shard in incidents of type replication_lag is stopped by anna until it is resumed: the replicas move',
  })
  expect(await standingStops(database.db)).toHaveLength(1)
})

test('a longer stop is kept beside a shorter one, and a stop that ends no later changes nothing', async () => {
  await stop(kind, ahead(60))
  expect(await stop(kind, ahead(30))).toMatchObject({ outcome: 'conflict' })
  expect(await stop(kind, ahead(90))).toMatchObject({ outcome: 'stopped' })
  expect(await stop(kind, ahead(-1))).toMatchObject({ outcome: 'late' })
})

test('a press waits for the ruling that is being written, and the next ruling sees it', async () => {
  await play.set(anna, 'act')
  const read = Promise.withResolvers<void>()
  const goOn = Promise.withResolvers<void>()
  const writing = play.propose(undefined, async () => {
    read.resolve()
    await goOn.promise
  })
  await read.promise
  let isStored = false
  const pressing = stop().then((answer) => {
    isStored = true
    return answer
  })
  await until(async () => (await waitingForStops()) > 0)
  expect(isStored).toBe(false)
  goOn.resolve()
  expect((await writing).outcome).toMatchObject({ kind: 'run' })
  expect(await pressing).toMatchObject({ outcome: 'stopped' })
  expect((await play.propose()).outcome).toEqual({ kind: 'next' })
})

async function waitingForStops(): Promise<number> {
  const { rows } = await sql<{ waiting: number }>`
    select count(*)::int as waiting from pg_locks where locktype = 'advisory' and not granted`.execute(database.owner)
  return rows[0]?.waiting ?? 0
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 20))
}

test('anybody who decides may stop, and a person who resumes must be allowed to decide about such writes', async () => {
  const stopped = await stop()
  if (stopped.outcome !== 'stopped') throw new Error(stopped.message)
  const ben = await play.person('ben', { maxRisk: 'low' })
  const { id } = stopped.stop
  const high = { reason: 'it is fine', risk: () => 'high' }
  expect(await resumeStop(database.db, ben, id, high)).toMatchObject({ outcome: 'forbidden' })
  expect(await resumeStop(database.db, anna, id, high)).toMatchObject({ outcome: 'resumed' })
  expect(await resumeStop(database.db, anna, id, high)).toMatchObject({
    outcome: 'conflict',
    message: expect.stringMatching(/^the stop of converge_shard .* was resumed at /),
  })
  expect(await resumeStop(database.db, anna, 'stp_x', high)).toMatchObject({ outcome: 'not_found' })
})
