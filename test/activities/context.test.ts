import { beforeEach, describe, expect, test } from '@jest/globals'
import { MockActivityEnvironment } from '@temporalio/testing'
import { sql } from 'kysely'
import { contextActivities } from '../../activities/context.ts'
import { gatherContext } from '../../activities/gather-context.ts'
import { alertsOf } from '../../db/alerts/alerts.ts'
import { closeIncident } from '../../db/incidents/close-incident.ts'
import { incidentById } from '../../db/incidents/incidents.ts'
import { addDevice, noteHealth } from '../../db/inventory/devices.ts'
import { declareResources } from '../../db/inventory/registry.ts'
import { append } from '../../db/log/append.ts'
import { bodyText } from '../../db/log/bodies.ts'
import { eventsOf } from '../../db/log/events.ts'
import { importSource } from '../../domain/declared-resources.ts'
import { deviceTerms } from '../../domain/device.ts'
import { newId } from '../../domain/digest.ts'
import { agentActor } from '../../domain/event.ts'
import type { Incident } from '../../domain/incident.ts'
import type { CorePort } from '../../domain/tool.ts'
import { readPrompts } from '../../prompts/render.ts'
import { announced } from '../support/announced.ts'
import { claimedIncident, moveClock, openedIncident, useDatabase } from '../support/database.ts'

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

test('an alert whose label matches several resources gets no resource, and the model gets five of them with the reason', async () => {
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
  const why = 'label instance is app.example.com, which names 6 resources'
  expect(candidates).toEqual(['1', '2', '3', '4', '5'].map((n) => ({ resource: `node:app-${n}`, why })))
})

/** A machine with an agent. */
async function withAgent(id: string, roots: { path: string; writable: boolean }[]): Promise<void> {
  const { db } = database
  const resource = { kind: 'node' as const, id }
  const declared = { resources: [{ ...resource, aliases: [] }], relations: [] }
  await db.transaction().execute((trx) => declareResources(trx, importSource, declared))
  const device = {
    id,
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
}

test('the model gets the directories that the agent of the machine may read and write before its first call', async () => {
  const { db } = database
  await withAgent('web-1', [
    { path: '/srv/web', writable: true },
    { path: '/var/log/web', writable: false },
  ])
  const incidentId = await openedIncident(db, { labels: { alertname: 'service_down', node: 'web-1' } })
  expect((await contextOf(incidentId)).paths).toEqual({ writable: ['/srv/web'], readable: ['/var/log/web'] })
})

/** A core API whose answer about `first` comes once `then` was asked for, and what it was asked. */
function patientCore(first: string, then: string): CorePort & { asked: string[] } {
  const asked: string[] = []
  const nothing = { ok: true as const, status: 200, data: { items: [], rule: null, chosen: null, others: [] } }
  const later = Promise.withResolvers<void>()
  const get = async (path: string) => {
    asked.push(path.replace(/\?.*/, '').split('/').at(-1) ?? '')
    if (path.includes(then)) later.resolve()
    if (path.includes(first)) await later.promise
    return nothing
  }
  return { asked, get, post: async () => nothing }
}

describe('reads that collect the context', () => {
  async function gathered(id: string, core: CorePort) {
    const { db } = database
    await withAgent(id, [{ path: `/srv/${id}`, writable: false }])
    const incidentId = await openedIncident(db, { labels: { alertname: 'service_down', node: id } })
    return async () => await gatherContext({ db, core }, (await incidentById(db, incidentId)) as Incident)
  }

  test('all sources are asked at once, so a silent source delays no other source', async () => {
    const core = patientCore('/jobs', '/log-files')
    const gather = await gathered('web-11', core)
    await gather()
    expect(core.asked).toEqual(expect.arrayContaining(['jobs', 'log-files']))
  })

  test('an agent that did not answer the last request is not waited for', async () => {
    const core = patientCore('nobody', 'nothing')
    const gather = await gathered('web-12', core)
    await noteHealth(database.db, 'web-12', { problem: 'no answer within 5 s' })
    const { context } = await gather()
    expect([core.asked.includes('jobs'), core.asked.includes('log-files')]).toEqual([true, false])
    expect(context.paths).toEqual({ writable: [], readable: ['/srv/web-12'] })
  })
})

describe('other incidents in the context', () => {
  const own = { alertname: 'service_down', node: 'web-7' }
  const other = { alertname: 'disk_full', node: 'web-7' }

  beforeEach(async () => {
    await moveClock(database.owner, '0 seconds')
    await sql`delete from alert where labels->>'node' = 'web-7'`.execute(database.owner)
    await sql`update incident set resource_id = 'gone' where resource_id = 'web-7'`.execute(database.owner)
  })

  /** Two incidents about one machine, both at work; the second is asked about. */
  async function two() {
    const { db } = database
    const declared = { resources: [{ kind: 'node' as const, id: 'web-7', aliases: [] }], relations: [] }
    await db.transaction().execute((trx) => declareResources(trx, importSource, declared))
    const first = await claimedIncident(db, { name: 'disk_full', labels: other, title: 'Disk full' })
    const startsAt = new Date().toISOString()
    const second = await openedIncident(db, { name: 'service_down', labels: own, title: 'Down', startsAt })
    return { first, second }
  }

  test('an alert that fired nine times is one line with the count, the period and the durations', async () => {
    const { db, owner } = database
    const { second } = await two()
    const [alert] = await alertsOf(db, second)
    const { id: _, ...row } = alert!
    for (let back = 8; back >= 1; back -= 1) {
      const startsAt = new Date(Date.now() - back * 300_000).toISOString()
      const endsAt = new Date(Date.parse(startsAt) + back * 15_000).toISOString()
      const again = { ...row, raw: '{}', labels: JSON.stringify(row.labels), annotations: JSON.stringify({}) }
      const values = {
        ...again,
        links: JSON.stringify(row.links),
        id: newId('alr'),
        status: 'resolved',
        startsAt,
        endsAt,
      }
      await owner
        .insertInto('alert')
        .values(values as never)
        .execute()
    }
    const { alerts } = await contextOf(second)
    expect(alerts).toHaveLength(1)
    expect(alerts[0]).toMatchObject({ name: 'service_down', labels: own })
    expect(alerts[0].fired).toMatch(/^9 times since \d{4}-.*, 15 s to 2 min each$/)
  })

  test('another alert on the same machine names its worker, and its incident is listed with its findings and writes', async () => {
    const { db } = database
    const { first, second } = await two()
    const content = 'x'.repeat(60_000)
    const key = await announced(db, first, 'fs_write', { on: 'web-7', path: '/srv/app.conf', content })
    await db.transaction().execute(async (trx) => {
      const cause = { id: 'h1', text: 'a trace fills the disk', state: 'supported' as const, quotes: [] }
      await append(trx, first, 1, {
        kind: 'commented',
        actor: agentActor,
        detail: cause.text,
        metadata: { text: cause.text, confidence: null, action: null, hypothesis: cause },
      })
    })
    const { activeAlerts, nearby } = await contextOf(second)
    const worker = { incident: first, status: 'investigating', since: expect.any(String) }
    expect(activeAlerts).toEqual([expect.objectContaining({ name: 'disk_full', workedOnBy: worker })])
    const cut = expect.stringMatching(/^x{190,200}…?$/)
    expect(nearby.incidents).toEqual([
      expect.objectContaining({
        incidentId: first,
        resource: 'node:web-7',
        status: 'investigating',
        writes: [{ tool: 'fs_write', arguments: { on: 'web-7', path: '/srv/app.conf', content: cut }, verified: null }],
        causes: [expect.stringContaining('a trace fills the disk')],
        ending: null,
      }),
    ])
    expect(key).toContain(first)
  })

  test('an incident on the same machine that closed an hour ago or earlier is not listed', async () => {
    const { db, owner } = database
    const { first, second } = await two()
    const end = { status: 'escalated' as const, code: 'LOOP', reason: 'It went round in circles.' }
    await db.transaction().execute((trx) => closeIncident(trx, first, 1, end, { actor: agentActor, stepKey: null }))
    await moveClock(owner, '50 minutes')
    expect((await contextOf(second)).nearby.incidents).toMatchObject([
      { incidentId: first, ending: 'escalated, LOOP', next: expect.any(String) },
    ])
    await moveClock(owner, '61 minutes')
    const third = await openedIncident(db, { name: 'x', labels: { ...own, alertname: 'x' } })
    expect(
      (await contextOf(third)).nearby.incidents.map(({ incidentId }: { incidentId: string }) => incidentId),
    ).not.toContain(first)
  })
})
