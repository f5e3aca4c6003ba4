import { expect, test } from '@jest/globals'
import { MockActivityEnvironment } from '@temporalio/testing'
import { contextActivities } from '../../activities/context.ts'
import { addDevice } from '../../db/inventory/devices.ts'
import { declareResources } from '../../db/inventory/registry.ts'
import { bodyText } from '../../db/log/bodies.ts'
import { eventsOf } from '../../db/log/events.ts'
import { importSource } from '../../domain/declared-resources.ts'
import { deviceTerms } from '../../domain/device.ts'
import { readPrompts } from '../../prompts/render.ts'
import { openedIncident, useDatabase } from '../support/database.ts'

const database = useDatabase()

/** What a run of this incident is given first. */
async function contextOf(incidentId: string) {
  const { db } = database
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
  return JSON.parse(await bodyText(db, digest))
}

test('an alert whose label means several things gets no resource, and the model gets five of them with the reason', async () => {
  const { db } = database
  const resources = ['1', '2', '3', '4', '5', '6'].map((n) => ({
    kind: 'node' as const,
    id: `app-${n}`,
    aliases: ['app.example.com'],
  }))
  await db.transaction().execute((trx) => declareResources(trx, importSource, { resources, relations: [] }))
  const incidentId = await openedIncident(db, { labels: { instance: 'app.example.com:9100' } })
  const { incident, candidates } = await contextOf(incidentId)
  expect(incident.resource).toBeNull()
  const why = 'label instance says app.example.com, which means 6 things'
  expect(candidates).toEqual(['1', '2', '3', '4', '5'].map((n) => ({ resource: `node:app-${n}`, why })))
})

test('the model is given the directories that the agent of its machine may read and write, before it asks', async () => {
  const { db } = database
  const resource = { kind: 'node' as const, id: 'web-1' }
  const declared = { resources: [{ ...resource, aliases: [] }], relations: [] }
  await db.transaction().execute((trx) => declareResources(trx, importSource, declared))
  const roots = [
    { path: '/srv/web', writable: true },
    { path: '/var/log/web', writable: false },
  ]
  const device = {
    id: 'web-1',
    resource,
    url: 'http://127.0.0.1:9',
    urlEnv: null,
    mode: 'user' as const,
    guests: null,
  }
  const rest = {
    timeoutSeconds: 10,
    toolsAllowed: [],
    enabled: true,
    terms: deviceTerms.parse({ capabilities: [], roots }),
    manifestDays: 30,
  }
  await db.transaction().execute((trx) => addDevice(trx, { ...device, ...rest }))
  const incidentId = await openedIncident(db, { labels: { alertname: 'service_down', node: 'web-1' } })
  expect((await contextOf(incidentId)).paths).toEqual({ writable: ['/srv/web'], readable: ['/var/log/web'] })
})
