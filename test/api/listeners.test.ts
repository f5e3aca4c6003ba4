import { expect, test } from '@jest/globals'
import { listen } from '../../bench/stream.ts'
import { append } from '../../db/append.ts'
import { useServedApi } from '../cli/served-api.ts'
import { openedIncident } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'

const api = useServedApi()

test('ten pages whose connections keep being cut off hear every row once and in order', async () => {
  const incidents = await Promise.all(Array.from({ length: 4 }, () => openedIncident(api.db)))
  const pages = listen({ url: api.apiUrl, token: api.tokens.viewer, count: 10, dropEveryMs: 250 })
  await pages.ready
  try {
    const rows: string[] = []
    // Until enough was written, and enough was cut off while it was.
    while (rows.length < 300 || pages.counts.reconnects < 20) rows.push(...(await Promise.all(incidents.map(comment))))
    await eventually('every page has every row', () => pages.heard(rows).every(({ missing }) => missing === 0))
    const wanted = { received: rows.length, missing: 0, duplicates: 0, outOfOrder: 0 }
    expect(pages.heard(rows)).toEqual(Array.from({ length: 10 }, () => wanted))
  } finally {
    pages.end()
  }
})

async function comment(incidentId: string): Promise<string> {
  const { event } = await api.db.transaction().execute((trx) =>
    append(trx, incidentId, null, {
      kind: 'commented',
      actor: 'user:test',
      detail: 'a row',
      metadata: { text: 'a row', confidence: null, action: null },
    }),
  )
  return String(event.id)
}
