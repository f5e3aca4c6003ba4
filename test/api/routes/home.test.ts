import { expect, test } from '@jest/globals'
import type { Home } from '../../../domain/incident-detail.ts'
import { asked } from '../../support/announced.ts'
import { useApi } from '../../support/api.ts'
import { allAtOnce, claimedIncident, openedIncident } from '../../support/database.ts'

const api = useApi()

const readHome = async (as = api.tokens.operator, query = '') => {
  const { status, body } = await api.get(`/home${query}`, { as })
  expect(status).toBe(200)
  return body as unknown as Home
}

const named = (alertname: string, labels: Record<string, string> = {}) => ({
  name: alertname,
  labels: { alertname, ...labels },
})

test('a quiet night shows no incidents, and shows its figures', async () => {
  expect(await readHome()).toMatchObject({
    isFresh: true,
    tonight: { incidents: 0, resolved: 0, resolvedAlone: 0, escalated: 0, medianSeconds: null, failedRepairs: 0 },
    needsYou: { incidents: 0, lines: [] },
    inProgress: { incidents: 0, lines: [] },
    done: { incidents: 0, lines: [] },
  })
})

test('an open question is listed first, before escalated incidents, and in no other part', async () => {
  const waiting = await claimedIncident(api.db, {
    ...named('host_down'),
    title: 'Host osl-1 is down',
    severity: 'warning',
  })
  const approval = await asked(api.db, waiting)
  const handed = await openedIncident(api.db, { ...named('disk_full'), title: 'Disk full', severity: 'critical' })
  await api.post(`/incidents/${handed}/escalate`, { body: { reason: 'no tool for it' } })
  const { isFresh, needsYou, inProgress } = await readHome()
  expect(isFresh).toBe(false)
  expect(needsYou.incidents).toBe(2)
  expect(needsYou.lines).toMatchObject([
    { need: 'approval', count: 1, incident: { id: waiting }, approval: { id: approval } },
    { need: 'escalated', count: 1, incident: { id: handed }, approval: null },
  ])
  expect(inProgress.lines).toEqual([])
})

test('an incident that one person took needs that person, and is in progress for others', async () => {
  const id = await openedIncident(api.db, named('slow_queries'))
  await api.post(`/incidents/${id}/take`, { as: api.tokens.operator })
  const mine = await readHome(api.tokens.operator)
  expect(mine.needsYou.lines.find(({ incident }) => incident.id === id)).toMatchObject({ need: 'yours' })
  const theirs = await readHome(api.tokens.approver)
  expect(theirs.needsYou.lines.find(({ incident }) => incident.id === id)).toBeUndefined()
  expect(theirs.inProgress.lines.find(({ type }) => type === 'slow_queries')).toMatchObject({ owned: 1, count: 1 })
})

test('a storm of three hundred incidents is one line, with the number at work and the number waiting', async () => {
  await allAtOnce(Array.from({ length: 300 }), () => openedIncident(api.db, named('KubePodCrashLooping')))
  const { inProgress, tonight } = await readHome()
  const lines = inProgress.lines.filter(({ type }) => type === 'kube_pod_crash_looping')
  expect(lines).toMatchObject([{ count: 300, queued: 300, investigating: 0, owned: 0 }])
  expect(inProgress.incidents).toBeGreaterThanOrEqual(300)
  expect(tonight.incidents).toBeGreaterThanOrEqual(300)
})

test("three incidents of a type are three lines, four are one line, and each night begins at the reader's hour", async () => {
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
