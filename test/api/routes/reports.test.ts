import { expect, test } from '@jest/globals'
import { useApi } from '../../support/api.ts'
import { openedIncident } from '../../support/database.ts'

const api = useApi()

test('a report is JSON or CSV, for the days that it names', async () => {
  await openedIncident(api.db, { labels: { incident_type: 'reported' } })
  const { body } = await api.get('/reports?type=reported')
  expect(body).toMatchObject({
    total: { incidents: 1, autoResolved: 0 },
    byType: [{ type: 'reported', incidents: 1 }],
  })
  // The last 84 days begin in the middle of a week, but for a Sunday, on which they are twelve
  // whole ones.
  expect([12, 13]).toContain((body.byWeek as unknown as unknown[]).length)
  const severe = async (word: string) =>
    (await api.get(`/reports?type=reported&severity=${word}`)).body as unknown as { total: { incidents: number } }
  const counts = await Promise.all(['critical', 'warning', 'info'].map(severe))
  expect(counts.map(({ total }) => total.incidents).sort()).toEqual([0, 0, 1])
  expect((await api.get('/reports?severity=bad')).status).toBe(422)
  const csv = await api.get('/reports?type=reported&since=2026-01-01&format=csv')
  const [head, total] = String(csv.body.text).split('\r\n')
  expect(csv.headers.get('content-type')).toMatch(/^text\/csv/)
  expect(head).toMatch(/^line,name,incidents,closed,resolved,auto_resolved,/)
  expect(total).toMatch(/^total,2026-01-01 to \d{4}-\d\d-\d\d,1,0,0,0,,/)
})

test('two years are the maximum, days in the wrong order return nothing, and an invalid day is refused', async () => {
  const range = async (query: string) => (await api.get(`/reports?${query}`)).body
  expect(await range('since=1000-01-01&until=2026-11-24')).toMatchObject({ since: '2024-11-24', until: '2026-11-24' })
  expect(await range('since=2026-02-01&until=2026-01-01')).toMatchObject({ total: { incidents: 0 }, byWeek: [] })
  for (const since of ['2026-02-30', 'yesterday', '2026-1-1'])
    expect((await api.get(`/reports?since=${since}`)).status).toBe(422)
})
