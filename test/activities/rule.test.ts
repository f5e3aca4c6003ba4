import { expect, test } from '@jest/globals'
import { rule } from '../../activities/rule.ts'
import { append } from '../../db/log/append.ts'
import { eventsOf } from '../../db/log/events.ts'
import { agentActor } from '../../domain/event.ts'
import { stepKey } from '../../domain/step-key.ts'
import { claimedIncident, useDatabase } from '../support/database.ts'
import { answeredWith } from '../support/events.ts'

const database = useDatabase()

test('an attempt that is slower than another judges nothing, and sends only after it asked for the state of the call', async () => {
  const { db } = database
  const incidentId = await claimedIncident(db)
  const place = { incidentId, attempt: 1, turn: 1, call: 0, approvalId: null }
  const call = { id: 'c1_0', tool: 'find_resource', arguments: { text: 'db' }, problem: null }
  await db.transaction().execute((trx) =>
    append(trx, incidentId, 1, {
      kind: 'model_answered',
      actor: agentActor,
      turn: 1,
      stepKey: stepKey(place, 1, 'model_answered', 0),
      detail: '',
      metadata: answeredWith([call]),
    }),
  )
  const judge = () =>
    db
      .transaction()
      .execute((trx) =>
        rule({ environment: {} }, trx, place, { call: { ...call, edit: null }, prepared: null, later: null }),
      )
  const first = await judge()
  const late = await judge()
  expect([first, late]).toMatchObject([
    { kind: 'run', again: false },
    { kind: 'run', again: true },
  ])
  const kinds = (await eventsOf(db, incidentId)).map(({ kind }) => kind)
  expect(kinds.filter((kind) => kind === 'call_judged' || kind === 'tool_started')).toEqual([
    'call_judged',
    'tool_started',
  ])
})
