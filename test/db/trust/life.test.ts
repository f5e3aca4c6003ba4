import { expect, test } from '@jest/globals'
import { ingestAlert } from '../../../db/alerts/ingest-body.ts'
import { eventsOf } from '../../../db/log/events.ts'
import { systemScope } from '../../../db/scope.ts'
import { gradeIncident, incidentTrust } from '../../../db/trust/grade.ts'
import { setTrustOf, stepsOf } from '../../../db/trust/levels.ts'
import { anAlert, useDatabase } from '../../support/database.ts'
import { pair, playPair } from '../../support/played-pair.ts'

const database = useDatabase()
const play = playPair(database)

test('a pair goes from shadow through questions to acting, and back by itself when its repair did not last', async () => {
  const { db } = database
  const anna = await play.person('anna')

  // A new pair asks; a person puts it into shadow.
  expect(await play.set(anna, 'shadow')).toMatchObject({ outcome: 'set', before: { level: 'propose' } })
  const shadowed = await play.propose()
  expect(shadowed.outcome).toEqual({ kind: 'next' })
  const rows = await eventsOf(db, shadowed.incidentId)
  expect(rows.findLast(({ kind }) => kind === 'call_judged')?.metadata).toMatchObject({
    verdict: 'refuse',
    code: 'SHADOW',
    details: { would: 'run', because: 'REVERSIBLE_NEAR' },
    shadow: 'start replication on db-osl-1',
  })
  expect(rows.some(({ kind }) => kind === 'tool_started' || kind === 'approval_requested')).toBe(false)
  const grade = { callId: 'c2_0', attempt: 1, verdict: 'right' as const, text: null }
  expect(await gradeIncident(db, anna, shadowed.incidentId, grade)).toEqual({ outcome: 'graded' })
  expect((await incidentTrust(systemScope(db), shadowed.incidentId)).shadow).toMatchObject([
    { tool: 'converge_shard', would: 'run', grade: 'right', gradedBy: 'anna' },
  ])
  expect(await play.record()).toMatchObject({ proposed: 1, shadowed: 1, ungraded: 0, right: 1, ran: 0 })

  // With that on the screen a person lets it ask, then act.
  expect(await play.set(anna, 'propose')).toMatchObject({ outcome: 'set' })
  expect((await play.propose()).outcome).toMatchObject({ kind: 'ask' })
  expect(await play.set(anna, 'act')).toMatchObject({ outcome: 'set' })
  const ran = await play.propose('came-back')
  expect(ran.outcome).toMatchObject({ kind: 'run' })
  await play.verify(ran.incidentId, 'held')
  await play.resolve(ran.incidentId)
  expect(await play.record()).toMatchObject({ proposed: 3, ran: 1, held: 1, lasted: 1, lost: 0 })

  // Its alert ends and comes back.
  const { alert } = ran
  await ingestAlert(db, { ...alert, status: 'resolved', endsAt: new Date().toISOString() })
  const again = await ingestAlert(db, { ...alert, startsAt: new Date(Date.now() + 1_000).toISOString() })
  expect(again).toMatchObject({ incidentId: ran.incidentId, outcome: 'reopened' })
  expect(await setTrustOf(db, pair)).toMatchObject({ level: 'propose', cause: 'lost' })
  expect(await play.record()).toMatchObject({ held: 1, lasted: 0, lost: 1 })
  expect((await play.propose()).outcome).toMatchObject({ kind: 'ask' })

  // People hear of it as of any incident, and no run takes it.
  const ours = await db.selectFrom('incident').selectAll().where('type', '=', 'nightshift_trust_lost').execute()
  expect(ours).toMatchObject([
    { status: 'escalated', title: 'Nightshift: converge_shard is no longer trusted in replication_lag' },
  ])
  expect((await stepsOf(systemScope(db), pair, 10)).map(({ level, cause, by }) => `${level} ${cause} ${by}`)).toEqual([
    'propose lost nightshift',
    'act person anna',
    'propose person anna',
    'shadow person anna',
  ])
})

test('an alert cannot pretend to be an incident about Nightshift', async () => {
  const { incidentId } = await ingestAlert(
    database.db,
    anAlert({ labels: { alertname: 'x', incident_type: 'nightshift_trust_lost' } }),
  )
  const row = await database.db
    .selectFrom('incident')
    .select('type')
    .where('id', '=', incidentId as string)
    .executeTakeFirst()
  expect(row).toEqual({ type: 'alert_nightshift_trust_lost' })
})
