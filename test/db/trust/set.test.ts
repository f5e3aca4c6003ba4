import { beforeEach, expect, test } from '@jest/globals'
import { gatherContext } from '../../../activities/gather-context.ts'
import { putOperator } from '../../../db/access/operators.ts'
import { incidentById } from '../../../db/incidents/incidents.ts'
import { precedentsOf } from '../../../db/incidents/precedents.ts'
import { gradeIncident } from '../../../db/trust/grade.ts'
import { setTrustOf } from '../../../db/trust/levels.ts'
import { trustLostType } from '../../../domain/trust.ts'
import { openedIncident, useDatabase } from '../../support/database.ts'
import { pair, playPair } from '../../support/played-pair.ts'

const database = useDatabase()
const play = playPair(database)
const acting = playPair(database, { AGENT_TRUST: 'act' })
let anna: Awaited<ReturnType<typeof play.person>>

beforeEach(async () => {
  anna = await play.person('anna')
})

test('a person who may not let a pair act cannot set the level of new pairs to act either', async () => {
  const ben = await acting.person('ben', { maxRisk: 'low' })
  expect(await acting.set(ben, 'act', { risk: 'high' })).toMatchObject({ outcome: 'forbidden' })
  expect(await acting.set(anna, 'act', { seen: 'of yesterday' })).toMatchObject({ outcome: 'moved_on' })
  expect(await setTrustOf(database.db, pair)).toBeNull()
})

test('a person who raises a level must have seen the current record', async () => {
  expect(await play.set(anna, 'act', { seen: 'of yesterday' })).toMatchObject({ outcome: 'moved_on' })
  expect(await setTrustOf(database.db, pair)).toBeNull()
  expect(await play.set(anna, 'act')).toMatchObject({ outcome: 'set' })
  expect(await play.set(anna, 'act')).toMatchObject({ outcome: 'conflict', message: 'the level is act already' })
  // Taking away asks for no record.
  expect(await play.set(anna, 'propose', { seen: '' })).toMatchObject({ outcome: 'set' })
})

test('a person cannot let a pair act if they may not decide about it', async () => {
  const ben = await play.person('ben', { maxRisk: 'low' })
  const cleo = await play.person('cleo', { incidentTypes: ['disk_pressure'] })
  const dora = await play.person('dora', { role: 'operator' })
  expect(await play.set(ben, 'act', { risk: 'high' })).toMatchObject({ outcome: 'forbidden' })
  expect(await play.set(cleo, 'act')).toMatchObject({ outcome: 'forbidden' })
  expect(await play.set(dora, 'act')).toMatchObject({ outcome: 'forbidden' })
})

test('a person who is disabled in the same moment changes nothing', async () => {
  const eve = await play.person('eve')
  const given = { name: 'eve', role: 'approver' as const, maxRisk: 'high' as const, incidentTypes: null }
  const began = Promise.withResolvers<void>()
  const goOn = Promise.withResolvers<void>()
  const disabling = database.db.transaction().execute(async (trx) => {
    await putOperator(trx, { ...given, disabled: true })
    began.resolve()
    await goOn.promise
  })
  await began.promise
  const setting = play.set(eve, 'act')
  goOn.resolve()
  await disabling
  expect(await setting).toEqual({ outcome: 'forbidden', message: 'eve is disabled' })
})

test('a level is withdrawn once, in the transaction of the row of the repair that did not hold', async () => {
  await acting.set(anna, 'act')
  const first = await acting.propose()
  const second = await acting.propose()
  expect([first.outcome, second.outcome]).toMatchObject([{ kind: 'run' }, { kind: 'next' }])
  await acting.verify(first.incidentId, 'not_held')
  expect(await setTrustOf(database.db, pair)).toMatchObject({ level: 'propose', cause: 'lost' })
  expect((await acting.propose()).outcome).toMatchObject({ kind: 'ask' })
  const lost = await database.db.selectFrom('trustChange').selectAll().where('cause', '=', 'lost').execute()
  expect(lost).toHaveLength(1)
})

test('a wrong cause lowers the trust in the writes for it, and the incident is no precedent any more', async () => {
  const { db } = database
  await acting.set(anna, 'act')
  const { incidentId, outcome } = await acting.propose()
  expect(outcome).toMatchObject({ kind: 'run' })
  const wrong = { callId: null, verdict: 'wrong' as const, text: 'the disk was full' }
  expect(await gradeIncident(db, anna, incidentId, wrong)).toMatchObject({ outcome: 'conflict' })
  await acting.verify(incidentId, 'held')
  await acting.resolve(incidentId)
  const next = (await incidentById(
    db,
    await openedIncident(db, { labels: { alertname: 'x', incident_type: pair.type } }),
  ))!
  expect((await precedentsOf(db, next, 5)).map(({ id }) => id)).toContain(incidentId)
  const before = await acting.record()
  expect(await gradeIncident(db, anna, incidentId, wrong)).toEqual({ outcome: 'graded' })
  expect(await setTrustOf(db, pair)).toMatchObject({ level: 'propose', cause: 'lost' })
  expect((await acting.record()).wrong).toBe(before.wrong + 1)
  expect((await precedentsOf(db, next, 5)).map(({ id }) => id)).not.toContain(incidentId)
  // The newest word counts; trust comes back by a person alone.
  await gradeIncident(db, anna, incidentId, { ...wrong, verdict: 'right' as const })
  expect((await acting.record()).wrong).toBe(before.wrong)
  expect(await setTrustOf(db, pair)).toMatchObject({ level: 'propose' })
})

test('a repair that a person calls wrong is one incident about Nightshift, also if its pair already asks', async () => {
  const { db } = database
  const ours = async () =>
    await db.selectFrom('incident').select('title').where('type', '=', trustLostType).orderBy('createdAt').execute()
  const before = (await ours()).length
  await play.set(anna, 'act')
  const { incidentId } = await play.propose()
  await play.verify(incidentId, 'held')
  await play.resolve(incidentId)
  await play.set(anna, 'propose', { seen: '' })
  for (const verdict of ['wrong', 'right', 'wrong'] as const)
    await gradeIncident(db, anna, incidentId, { callId: null, verdict, text: 'the disk was full' })
  expect((await ours()).slice(before)).toEqual([{ title: 'Nightshift: a repair in replication_lag was graded wrong' }])
  const row = await db.selectFrom('incident').select('id').where('type', '=', trustLostType).execute()
  for (const { id } of row)
    expect(await gradeIncident(db, anna, id, { callId: null, verdict: 'wrong', text: null })).toMatchObject({
      outcome: 'conflict',
    })
})

test('a later run of the same type reads that a person called a cause wrong, while this is the newest grade', async () => {
  const { db } = database
  await play.set(anna, 'act')
  const { incidentId } = await play.propose()
  await play.verify(incidentId, 'held')
  await play.resolve(incidentId)
  const next = (await incidentById(
    db,
    await openedIncident(db, { labels: { alertname: 'x', incident_type: pair.type } }),
  ))!
  await gradeIncident(db, anna, incidentId, { callId: null, verdict: 'wrong', text: 'the disk was full' })
  const { context } = await gatherContext({ db }, next)
  expect(context.calledWrong?.[0]).toMatchObject({
    id: incidentId,
    said: expect.stringMatching(/^a person graded this cause as wrong on \d{4}-\d\d-\d\d$/),
    reason: 'the disk was full',
    wrote: [pair.tool],
  })
  await gradeIncident(db, anna, incidentId, { callId: null, verdict: 'right', text: null })
  expect((await gatherContext({ db }, next)).context.calledWrong?.map(({ id }) => id) ?? []).not.toContain(incidentId)
})
