import { afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import pino from 'pino'
import { ingestAlert } from '../../db/alerts/ingest-body.ts'
import { eventsOf } from '../../db/log/events.ts'
import type { Alert } from '../../domain/alert.ts'
import type { Home, SearchAnswer } from '../../domain/incident-detail.ts'
import type { CorePort } from '../../domain/tool.ts'
import { watch } from '../../effects/watchdog.ts'
import { takeLooks } from '../../worker/looks.ts'
import { asked } from '../support/announced.ts'
import { useApi } from '../support/api.ts'
import { allAtOnce, anAlert, claimedIncident, moveClock, openedIncident } from '../support/database.ts'
import { scriptedPlatform } from '../support/scripted-platform.ts'

describe('owners', () => {
  describe('owners', () => {
    const api = useApi()

    afterEach(async () => {
      api.runs.answer = 'told'
      await moveClock(api.owner, '0 seconds')
      await sql`delete from platform_config`.execute(api.owner)
    })

    const take = (id: string, as = api.tokens.operator) => api.post(`/incidents/${id}/take`, { as })
    const giveBack = (id: string, as = api.tokens.operator) => api.post(`/incidents/${id}/give-back`, { as })
    const standing = async (id: string) => (await api.get(`/incidents/${id}`)).body
    const refused = async (id: string, action: string, as = api.tokens.operator) => {
      const { actions } = (await api.get(`/incidents/${id}/surroundings`, { as })).body as unknown as {
        actions: { action: string; refused: string | null }[]
      }
      return actions.find((each) => each.action === action)?.refused
    }

    test('what nobody works on is theirs at once, and is given back', async () => {
      const id = await openedIncident(api.db)
      expect(await refused(id, 'give_back')).toBe('Nobody has it: there is nothing to give back.')
      expect(await take(id)).toMatchObject({ status: 200, body: { status: 'escalated', owner: { name: 'operator' } } })
      expect([await refused(id, 'take'), await refused(id, 'take', api.tokens.admin)]).toEqual([
        'You have it already.',
        null,
      ])
      expect((await giveBack(id)).body).toMatchObject({ status: 'escalated', owner: null })
      expect(await giveBack(id)).toMatchObject({ status: 409, body: { code: 'NOT_TAKEN' } })
    })

    test('a run is asked to end first; without one to end the incident is theirs at once', async () => {
      const id = await claimedIncident(api.db)
      expect((await take(id)).body).toMatchObject({ status: 'investigating', owner: null })
      expect(api.told.at(-1)).toMatchObject({ signal: 'cancelInvestigation', incidentId: id })
      api.runs.answer = 'gone'
      expect((await take(id)).body).toMatchObject({ status: 'escalated', owner: { name: 'operator' } })
    })

    test('a second person takes over from the first', async () => {
      const id = await openedIncident(api.db)
      await take(id)
      expect((await take(id, api.tokens.approver)).body).toMatchObject({ owner: { name: 'approver' } })
    })

    test('only people who manage incidents take them', async () => {
      const id = await openedIncident(api.db)
      for (const role of ['viewer', 'agent', 'ingest'] as const) {
        expect((await take(id, api.tokens[role])).status).toBe(403)
        expect((await giveBack(id, api.tokens[role])).status).toBe(403)
      }
      expect(await refused(id, 'take', api.tokens.viewer)).toBe(
        'Your role (viewer) lacks the permission manage_incident.',
      )
      expect(await standing(id)).toMatchObject({ status: 'open', owner: null })
    })

    test('what is resolved is not taken', async () => {
      const id = await openedIncident(api.db)
      await api.post(`/incidents/${id}/resolve`, { body: { resolution: 'Restarted by hand', outcome: 'repaired' } })
      expect((await take(id)).status).toBe(409)
      expect(await refused(id, 'take')).toMatch(/^It is resolved/)
    })

    test('who closes an incident says what it was: nothing is assumed', async () => {
      const id = await openedIncident(api.db)
      const resolve = (body: object) =>
        api.post(`/incidents/${id}/resolve`, { body: { resolution: 'Looked at it', ...body } })
      expect((await resolve({})).status).toBe(422)
      expect((await resolve({ outcome: 'expected' })).status).toBe(422)
      expect((await resolve({ outcome: 'no_fault' })).body).toMatchObject({ status: 'resolved', outcome: 'no_fault' })
    })

    test('a cancellation counts until its time, and what fires then is investigated', async () => {
      const id = await openedIncident(api.db)
      const until = new Date(Date.now() + 3_600_000).toISOString()
      const cancel = (body: object) => api.post(`/incidents/${id}/cancel`, { body: { reason: 'a drill', ...body } })
      expect((await cancel({ until: '2020-01-01T00:00:00Z' })).body.code).toBe('UNTIL_OUT_OF_RANGE')
      expect((await cancel({ until: '2099-01-01T00:00:00Z' })).body.code).toBe('UNTIL_OUT_OF_RANGE')
      const { cancelledUntil } = (await cancel({ until })).body as { cancelledUntil?: string }
      expect(Math.abs(Date.parse(cancelledUntil ?? '') - Date.parse(until))).toBeLessThan(60_000)
      await moveClock(api.owner, '2 hours')
      await watch(api.api.deps)
      expect(await standing(id)).toMatchObject({ status: 'open', reopened: 1, cancelledUntil: null })
    })

    test('a run that is cancelled until a time carries the time', async () => {
      const id = await claimedIncident(api.db)
      const until = new Date(Date.now() + 3_600_000).toISOString()
      await api.post(`/incidents/${id}/cancel`, { body: { reason: 'a drill', until } })
      expect((await eventsOf(api.db, id)).at(-1)).toMatchObject({ metadata: { action: 'cancel_requested', until } })
    })

    test('an escalation says its category and what to do first', async () => {
      const id = await openedIncident(api.db)
      const body = { reason: 'the disk is failing', category: 'no_tool', next_step: 'Order a disk' }
      expect((await api.post(`/incidents/${id}/escalate`, { body })).body).toMatchObject({ category: 'no_tool' })
      expect((await eventsOf(api.db, id)).at(-1)).toMatchObject({
        metadata: { report: { nextStep: 'Order a disk', found: ['the disk is failing'] } },
      })
    })

    test('an incident that is queued is not queued twice; one that is kept is investigated when a person asks', async () => {
      const queued = await openedIncident(api.db)
      expect(await refused(queued, 'investigate')).toBe('It is queued already.')
      expect((await api.post(`/incidents/${queued}/investigate`)).status).toBe(409)
      expect(await standing(queued)).toMatchObject({ status: 'open', reopened: 0 })

      await api.put('/config/agent.investigate', { body: { value: 'none' } })
      const kept = await openedIncident(api.db)
      expect(await standing(kept)).toMatchObject({ keptReason: expect.stringContaining('agent.investigate is none') })
      expect(await refused(kept, 'investigate')).toBeNull()
      expect((await api.post(`/incidents/${kept}/investigate`)).status).toBe(202)
      expect(await standing(kept)).toMatchObject({ status: 'open', keptReason: null, reopened: 0 })
      expect((await api.post(`/incidents/${kept}/investigate`)).status).toBe(409)
    })
  })

  describe('expectations', () => {
    const platform = scriptedPlatform()
    const api = useApi(() => ({ platform }))
    const day = 86_400_000
    const inADay = () => new Date(Date.now() + day).toISOString()
    const mark = (more: object = {}) => ({ until: inADay(), reason: 'The backup makes it lag.', ...more })
    const onReplica = { labels: { alertname: 'disk_pressure', node: 'node-osl-2' } }

    // The inventory is what the platform told last.
    beforeAll(async () => void (await api.get('/nodes/node-osl-2/health')))
    afterEach(async () => {
      await moveClock(api.owner, '0 seconds')
      for (const { id } of await inForce()) await api.post(`/expectations/${id}/end`)
      platform.down = false
      const replica = platform.inventoryState.nodes.find(({ id }) => id === 'node-osl-2')
      Object.assign(replica ?? {}, { status: 'degraded', reason: 'replica is 42 s behind' })
      api.api.deps.state.forget()
    })

    type Mark = { id: string; inForce: boolean }
    async function inForce(): Promise<Mark[]> {
      const { items } = (await api.get('/expectations')).body as unknown as { items: Mark[] }
      return items.filter((each) => each.inForce)
    }

    /** The core API as a worker asks it. */
    const core: CorePort = {
      async get(path) {
        const { status, body } = await api.get(path.replace('/api/v1', ''), { as: api.tokens.agent })
        if (status < 300) return { ok: true, status, data: body }
        return { ok: false, status, problem: { title: String(body.title), detail: String(body.detail) } }
      },
      post: async () => ({ ok: false, status: 500, problem: { title: 'no', detail: 'a look writes nothing' } }),
    }
    const look = () => takeLooks({ db: api.db, core, log: pino({ level: 'silent' }) })
    const standing = async (id: string) => (await api.get(`/incidents/${id}`)).body
    const noted = async (id: string) => {
      const { items } = (await api.get(`/incidents/${id}/events`)).body as unknown as {
        items: { kind: string; detail: string; metadata: { code?: string } }[]
      }
      return items.flatMap(({ kind, detail, metadata }) => (kind === 'noted' ? [`${metadata.code}: ${detail}`] : []))
    }

    /** An alert on the replica whose incident is marked; then it ends. */
    async function expected(more: object = {}): Promise<{ id: string; alert: Alert }> {
      const alert = anAlert({ startsAt: new Date(Date.now() - 60_000).toISOString(), ...onReplica })
      const id = (await ingestAlert(api.db, alert)).incidentId ?? ''
      expect((await api.post(`/incidents/${id}/expected`, { body: mark(more) })).status).toBe(201)
      return { id, alert }
    }

    async function firesAgain(alert: Alert): Promise<string> {
      await ingestAlert(api.db, { ...alert, status: 'resolved', endsAt: new Date().toISOString() })
      const again = await ingestAlert(api.db, { ...alert, startsAt: new Date().toISOString() })
      return again.incidentId ?? ''
    }

    test('a mark ends its incident, stops its run and is listed with what was true then', async () => {
      const id = await claimedIncident(api.db, onReplica)
      const made = await api.post(`/incidents/${id}/expected`, { body: mark(), as: api.tokens.operator })
      expect(made).toMatchObject({
        status: 201,
        body: {
          subject: 'alert',
          inForce: true,
          createdBy: 'operator',
          state: { health: 'degraded', severity: 'warning' },
        },
      })
      expect(await standing(id)).toMatchObject({ status: 'resolved', outcome: 'expected', closedBy: 'person' })
      expect(api.told.at(-1)).toMatchObject({ signal: 'cancelInvestigation', incidentId: id })
      expect(await inForce()).toMatchObject([{ id: made.body.id }])
    })

    test('what comes back and looks the same ends as expected, without a run', async () => {
      const { id, alert } = await expected()
      expect(await firesAgain(alert)).toBe(id)
      expect(await look()).toBe(1)
      expect(await standing(id)).toMatchObject({
        status: 'resolved',
        outcome: 'expected',
        closedBy: 'code',
        attempt: 0,
      })
    })

    test('what comes back and looks different goes the normal way, and says how it differs', async () => {
      const { id, alert } = await expected()
      const replica = platform.inventoryState.nodes.find((each) => each.id === 'node-osl-2')
      Object.assign(replica ?? {}, { status: 'critical', reason: 'the replica does not answer' })
      api.api.deps.state.forget()
      await firesAgain(alert)
      await look()
      expect(await standing(id)).toMatchObject({ status: 'open', outcome: null })
      expect(await noted(id)).toContainEqual(
        expect.stringMatching(/^not_as_expected: .*status was degraded and is critical/),
      )
    })

    test('what cannot be read when it comes back is not expected', async () => {
      const { id, alert } = await expected()
      platform.down = true
      api.api.deps.state.forget()
      await firesAgain(alert)
      await look()
      expect(await standing(id)).toMatchObject({ status: 'open' })
      expect(await noted(id)).toContainEqual(expect.stringContaining('the platform cannot be reached'))
    })

    test('when the date of a mark passes while its alert fires, it is investigated', async () => {
      const { id } = await expected({ until: new Date(Date.now() + 3_600_000).toISOString() })
      await moveClock(api.owner, '59 minutes')
      await watch(api.api.deps)
      expect(await standing(id)).toMatchObject({ status: 'resolved', outcome: 'expected' })
      await moveClock(api.owner, '61 minutes')
      await watch(api.api.deps)
      expect(await standing(id)).toMatchObject({ status: 'open', reopened: 1 })
    })

    test('a mark that is taken back is over at once, and only once', async () => {
      const { id } = await expected()
      const [made] = await inForce()
      const end = () => api.post(`/expectations/${made?.id}/end`, { as: api.tokens.operator })
      expect(await end()).toMatchObject({ status: 200, body: { inForce: false } })
      await watch(api.api.deps)
      expect(await standing(id)).toMatchObject({ status: 'open' })
      expect((await end()).status).toBe(404)
    })

    test('a mark on a resource covers another alert there, and one on a type another resource', async () => {
      await expected({ subject: 'resource' })
      const other = await openedIncident(api.db, { ...onReplica, name: 'replication_lag' })
      await look()
      expect(await standing(other)).toMatchObject({ status: 'resolved', outcome: 'expected' })
      await api.post(`/expectations/${(await inForce())[0]?.id}/end`)

      await expected({ subject: 'type' })
      const elsewhere = await openedIncident(api.db, { labels: { alertname: 'disk_pressure' } })
      await look()
      expect((await noted(elsewhere)).at(-1)).toMatch(/not_as_expected.*its resource is not known any more/)
    })

    test('what cannot be read now cannot be marked', async () => {
      const id = await openedIncident(api.db, onReplica)
      platform.down = true
      api.api.deps.state.forget()
      expect(await api.post(`/incidents/${id}/expected`, { body: mark() })).toMatchObject({
        ...{ status: 409, body: { code: 'UNREADABLE' } },
      })
      expect(await standing(id)).toMatchObject({ status: 'open' })
    })

    test.each([
      ['a date that is over', { until: '2020-01-01T00:00:00Z' }, 422],
      ['a date years ahead', { until: '2099-01-01T00:00:00Z' }, 422],
      ['no date', { until: undefined }, 422],
      ['no reason', { reason: ' ' }, 422],
      ['a resource where there is none', { subject: 'resource' }, 409],
    ])('%s makes no mark', async (_, more, status) => {
      const id = await openedIncident(api.db)
      expect((await api.post(`/incidents/${id}/expected`, { body: mark(more) })).status).toBe(status)
      expect(await inForce()).toEqual([])
    })

    test('an incident without an alert can be marked by its type alone', async () => {
      const body = { type: 'slow_backup', severity: 'warning', title: 'The backup feels slow' }
      const id = String((await api.post('/incidents', { body })).body.id)
      expect((await api.post(`/incidents/${id}/expected`, { body: mark() })).body.code).toBe('NO_ALERT')
      expect((await api.post(`/incidents/${id}/expected`, { body: mark({ subject: 'type' }) })).status).toBe(201)
    })

    test('who may not manage incidents marks nothing and takes no mark back', async () => {
      const { id } = await expected()
      const [made] = await inForce()
      for (const role of ['viewer', 'agent', 'ingest'] as const) {
        const as = api.tokens[role]
        expect((await api.post(`/incidents/${id}/expected`, { body: mark(), as })).status).toBe(403)
        expect((await api.post(`/expectations/${made?.id}/end`, { as })).status).toBe(403)
      }
      expect((await api.get('/expectations', { as: api.tokens.viewer })).status).toBe(200)
      expect(await inForce()).toHaveLength(1)
    })

    test('a token for some types marks no resource, which incidents of other types have too', async () => {
      const minted = await api.post('/tokens', {
        body: { name: 'disks', role: 'operator', operator: 'operator', scopes: ['type:disk_pressure'] },
      })
      const as = String(minted.body.token)
      const id = await openedIncident(api.db, onReplica)
      const ask = (subject: string) => api.post(`/incidents/${id}/expected`, { body: mark({ subject }), as })
      expect(await ask('resource')).toMatchObject({ status: 403, body: { code: 'OUT_OF_SCOPE' } })
      expect((await ask('alert')).status).toBe(201)
    })

    test('how a resource is now is told with the fields that a mark compares', async () => {
      const state = async (path: string) => (await api.get(`/resources/${path}/state`)).body
      expect(await state('node/node-osl-2')).toEqual({
        health: 'degraded',
        observed: 'node node-osl-2 is degraded (replica is 42 s behind)',
        fields: { status: 'degraded', role: 'replica', shard: 'db-osl-1' },
      })
      expect(await state('host/host-osl-4')).toMatchObject({
        health: 'nominal',
        observed: expect.stringContaining('empty'),
      })
      expect(await state('host/host-osl-2')).toMatchObject({ health: 'degraded' })
      expect(await state('vm/vm-1')).toMatchObject({ health: 'nominal', fields: { host: 'host-osl-1', running: true } })
      expect(await state('node/nowhere')).toMatchObject({ health: 'unknown' })
      platform.down = true
      api.api.deps.state.forget()
      expect(await state('node/node-osl-2')).toMatchObject({
        health: 'unknown',
        observed: 'the platform cannot be reached',
      })
    })
  })
})

describe('home', () => {
  const api = useApi()
  const readHome = async (as = api.tokens.operator, query = '') => {
    const { status, body } = await api.get(`/home${query}`, { as })
    expect(status).toBe(200)
    return body as unknown as Home
  }
  const search = async (q: string) => {
    const { status, body } = await api.get(`/search?q=${encodeURIComponent(q)}`)
    expect(status).toBe(200)
    return body as unknown as SearchAnswer
  }
  const named = (alertname: string, labels: Record<string, string> = {}) => ({
    name: alertname,
    labels: { alertname, ...labels },
  })

  describe('home', () => {
    test('a quiet night has nothing to show, and says so in numbers', async () => {
      expect(await readHome()).toMatchObject({
        tonight: { incidents: 0, resolved: 0, resolvedAlone: 0, escalated: 0, medianSeconds: null, failedRepairs: 0 },
        needsYou: { incidents: 0, lines: [] },
        inProgress: { incidents: 0, lines: [] },
        done: { incidents: 0, lines: [] },
      })
    })

    test('a question comes first, before what was handed over, and is in no other part', async () => {
      const waiting = await claimedIncident(api.db, {
        ...named('host_down'),
        title: 'Host osl-1 is down',
        severity: 'warning',
      })
      const approval = await asked(api.db, waiting)
      const handed = await openedIncident(api.db, { ...named('disk_full'), title: 'Disk full', severity: 'critical' })
      await api.post(`/incidents/${handed}/escalate`, { body: { reason: 'no tool for it' } })
      const { needsYou, inProgress } = await readHome()
      expect(needsYou.incidents).toBe(2)
      expect(needsYou.lines).toMatchObject([
        { need: 'approval', count: 1, incident: { id: waiting }, approval: { id: approval } },
        { need: 'escalated', count: 1, incident: { id: handed }, approval: null },
      ])
      expect(inProgress.lines).toEqual([])
    })

    test('what one person has needs that person, and is at work for others', async () => {
      const id = await openedIncident(api.db, named('slow_queries'))
      await api.post(`/incidents/${id}/take`, { as: api.tokens.operator })
      const mine = await readHome(api.tokens.operator)
      expect(mine.needsYou.lines.find(({ incident }) => incident.id === id)).toMatchObject({ need: 'yours' })
      const theirs = await readHome(api.tokens.approver)
      expect(theirs.needsYou.lines.find(({ incident }) => incident.id === id)).toBeUndefined()
      expect(theirs.inProgress.lines.find(({ type }) => type === 'slow_queries')).toMatchObject({ owned: 1, count: 1 })
    })

    test('a storm of three hundred is one line, with how many are at work and how many wait', async () => {
      await allAtOnce(Array.from({ length: 300 }), () => openedIncident(api.db, named('KubePodCrashLooping')))
      const { inProgress, tonight } = await readHome()
      const lines = inProgress.lines.filter(({ type }) => type === 'kube_pod_crash_looping')
      expect(lines).toMatchObject([{ count: 300, queued: 300, investigating: 0, owned: 0 }])
      expect(inProgress.incidents).toBeGreaterThanOrEqual(300)
      expect(tonight.incidents).toBeGreaterThanOrEqual(300)
    })

    test('three of a type are a line each, four are one, and each night begins where its reader says', async () => {
      for (const [type, count] of [
        ['three_of_it', 3],
        ['four_of_it', 4],
      ] as const) {
        for (let n = 0; n < count; n += 1) {
          const id = await openedIncident(api.db, named(type))
          await api.post(`/incidents/${id}/resolve`, {
            body: { resolution: 'Nothing was wrong.', outcome: 'no_fault' },
          })
        }
      }
      const { done, tonight } = await readHome()
      expect(done.lines.filter(({ type }) => type === 'three_of_it').map(({ count }) => count)).toEqual([1, 1, 1])
      expect(done.lines.filter(({ type }) => type === 'four_of_it').map(({ count }) => count)).toEqual([4])
      expect(done.incidents).toBe(7)
      // People closed them: none of them ended without a person.
      expect(tonight).toMatchObject({ resolved: 7, resolvedAlone: 0 })
      const later = await readHome(undefined, `?since=${encodeURIComponent('2999-01-01T00:00:00+15:30')}`)
      expect(later).toMatchObject({ done: { incidents: 0 }, tonight: { incidents: 0 } })
    })
  })

  describe('search', () => {
    test('finds incidents by title and resource, and rows of the log by the beginnings of words', async () => {
      const id = await openedIncident(api.db, { ...named('pod_oom'), title: 'Checkout restarts', severity: 'warning' })
      await api.post(`/incidents/${id}/events`, {
        body: { action: 'commented', detail: "OOMKilled in vm-101's container: it's memory" },
      })
      expect(await search('checkout')).toMatchObject({ incidents: [{ id, title: 'Checkout restarts' }] })
      for (const words of ['oomk', 'memory oom', 'vm-101', "it's"]) {
        const { log } = await search(words)
        expect(log).toMatchObject([{ incidentId: id, title: 'Checkout restarts', seq: 2 }])
      }
      expect((await search('oomkilled elephants')).log).toEqual([])
    })

    test.each(["' | !", '\\', ':*', '%', '_', '&& (', '\u0001x', '"'])('takes %j as text', async (text) => {
      await search(text)
    })

    test('a list is narrowed to who has it and to when it opened', async () => {
      const id = await openedIncident(api.db, named('only_mine'))
      await api.post(`/incidents/${id}/take`, { as: api.tokens.operator })
      const ids = async (query: string, as = api.tokens.operator) => {
        const { body } = await api.get(`/incidents?type=only_mine&${query}`, { as })
        return (body as unknown as { items: { id: string }[] }).items.map((item) => item.id)
      }
      expect(await ids('owner=me')).toEqual([id])
      expect(await ids('owner=me', api.tokens.approver)).toEqual([])
      expect(await ids('owner=operator')).toEqual([id])
      expect(await ids('owner=none')).toEqual([])
      expect(await ids('since=2999-01-01T00:00:00Z')).toEqual([])
      expect(await ids('since=2020-01-01T00:00:00Z&until=2999-01-01T00:00:00Z')).toEqual([id])
    })
  })
})
