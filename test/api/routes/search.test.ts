import { expect, test } from '@jest/globals'
import type { SearchAnswer } from '../../../domain/incident-detail.ts'
import { useApi } from '../../support/api.ts'
import { openedIncident } from '../../support/database.ts'

const api = useApi()

const search = async (q: string) => {
  const { status, body } = await api.get(`/search?q=${encodeURIComponent(q)}`)
  expect(status).toBe(200)
  return body as unknown as SearchAnswer
}

const named = (alertname: string, labels: Record<string, string> = {}) => ({
  name: alertname,
  labels: { alertname, ...labels },
})

test('a search finds incidents by title and resource, and rows of the log by the beginnings of words', async () => {
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

test.each(["' | !", '\\', ':*', '%', '_', '&& (', '\u0001x', '"'])('a search treats %j as text', async (text) => {
  await search(text)
})

test('a list can be filtered by owner and by the time of opening', async () => {
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
