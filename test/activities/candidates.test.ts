import { expect, test } from '@jest/globals'
import { MockActivityEnvironment } from '@temporalio/testing'
import { contextActivities } from '../../activities/context.ts'
import { bodyText, eventsOf } from '../../db/events.ts'
import { declareResources } from '../../db/registry.ts'
import { importSource } from '../../domain/registry.ts'
import { readPrompts } from '../../prompts/render.ts'
import { openedIncident, useDatabase } from '../support/database.ts'

const database = useDatabase()

test('an alert whose label means several things gets no resource, and the model gets five of them with the reason', async () => {
  const { db } = database
  const resources = ['1', '2', '3', '4', '5', '6'].map((n) => ({
    ...{ kind: 'node' as const, id: `app-${n}`, aliases: ['app.example.com'] },
  }))
  await db.transaction().execute((trx) => declareResources(trx, importSource, { resources, relations: [] }))
  const incidentId = await openedIncident(db, { labels: { instance: 'app.example.com:9100' } })
  const deps = { db, prompts: readPrompts(), protocol: 'native' as const, model: 'scripted', environment: {} }
  const { claim, assembleContext } = contextActivities(deps)
  await new MockActivityEnvironment({
    workflowExecution: { workflowId: `investigate:${incidentId}:1`, runId: 'r' },
  }).run(async () => {
    await claim({ incidentId, attempt: 1, role: 'leader', groupId: 'grp_test' })
    await assembleContext(incidentId, 1)
  })
  const assembled = (await eventsOf(db, incidentId)).find(({ kind }) => kind === 'context_assembled')
  const digest = assembled?.kind === 'context_assembled' ? assembled.metadata.context.digest : ''
  const { incident, candidates } = JSON.parse(await bodyText(db, digest))
  expect(incident.resource).toBeNull()
  const why = 'label instance says app.example.com, which means 6 things'
  expect(candidates).toEqual(['1', '2', '3', '4', '5'].map((n) => ({ resource: `node:app-${n}`, why })))
})
