import { expect, test } from '@jest/globals'
import { findBegan } from '../../../db/incidents/began.ts'
import { incidentById } from '../../../db/incidents/incidents.ts'
import { append } from '../../../db/log/append.ts'
import { storeBody } from '../../../db/log/bodies.ts'
import { agentActor } from '../../../domain/event.ts'
import { claimedIncident, useDatabase } from '../../support/database.ts'

const database = useDatabase()

test('the start of an incident is its first alert, minus the time for which the rule had to hold', async () => {
  const { db } = database
  const startsAt = new Date(Date.now() - 600_000).toISOString()
  const id = await claimedIncident(db, { startsAt, startGiven: true })
  const began = async () => {
    const incident = await incidentById(db, id)
    if (!incident) throw new Error('no incident')
    return await findBegan(db, incident)
  }
  expect(await began()).toBe(Date.parse(startsAt))
  await db.transaction().execute(async (trx) => {
    const context = await storeBody(trx, JSON.stringify({ rule: { rule: 'DiskFull', forSeconds: 900 } }))
    const metadata = {
      context,
      protocol: 'native' as const,
      model: 'm',
      parts: {},
      hintFrom: null,
      maxTurns: 1,
      deadline: startsAt,
      tokenBudget: 1,
      prompt: context,
      tools: context,
    }
    const head = { kind: 'context_assembled' as const, actor: agentActor, turn: null, stepKey: `${id}.1:context` }
    await append(trx, id, 1, { ...head, detail: 'The context', metadata })
  })
  // Most rules of public mixins wait a quarter of an hour: what led to them was no news.
  expect(await began()).toBe(Date.parse(startsAt) - 900_000)
})
