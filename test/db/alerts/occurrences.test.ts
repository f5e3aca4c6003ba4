import { expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { foldedAlerts } from '../../../db/alerts/occurrences.ts'
import { openedIncident, useDatabase } from '../../support/database.ts'

const database = useDatabase()

test('of an incident with many alerts only the newest, which are shown, are read', async () => {
  const { db } = database
  const id = await openedIncident(db, { labels: { alertname: 'DiskFull', node: 'web-1' } })
  await sql`
    insert into alert select (jsonb_populate_record(alert, jsonb_build_object(
      'id', 'alr_' || lpad(place::text, 26, '0'), 'fingerprint', 'of ' || place % 40,
      'status', case when place < 40 then 'firing' else 'resolved' end,
      'ends_at', case when place < 40 then null else nightshift_now() end,
      'starts_at', nightshift_now() - make_interval(mins => place)))).*
    from alert, generate_series(0, 119) as place where incident_id = ${id}`.execute(db)
  let read = 0
  const counted = db.withPlugin({
    transformQuery: ({ node }) => node,
    async transformResult({ result }) {
      read += result.rows.length
      return result
    },
  })
  const shown = await foldedAlerts(counted, sql<boolean>`incident_id = ${id} and fingerprint like 'of %'`, 10)
  expect(shown.map(({ fingerprint, status }) => `${fingerprint} ${status}`)).toEqual(
    Array.from({ length: 10 }, (_, place) => `of ${place} firing`),
  )
  expect(shown.every(({ fired }) => fired?.startsWith('3 times since '))).toBe(true)
  // The alerts, and for each of them how often it fired.
  expect(read).toBe(20)
})
