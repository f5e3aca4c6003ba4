import { expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { listen } from '../../bench/stream.ts'
import { createApiClient } from '../../cli/api.ts'
import { streamEvents } from '../../cli/stream.ts'
import { append } from '../../db/log/append.ts'
import { eventsOf } from '../../db/log/events.ts'
import { listenForLiveAnswers, publishLiveAnswer } from '../../db/log/live.ts'
import type { LiveAnswer } from '../../domain/chat.ts'
import { openedIncident } from '../support/database.ts'
import { eventually } from '../support/directory.ts'
import { useServedApi } from '../support/run-cli.ts'

const api = useServedApi()

test('ten clients whose connections are cut again and again get every row once and in order', async () => {
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

test("a client that connects late sees the model's text from the next update on, and other streams and the log get none of it", async () => {
  const [id, other] = [await openedIncident(api.db), await openedIncident(api.db)]
  const live = {
    incidentId: id,
    attempt: 1,
    turn: 3,
    maxTurns: 10,
    model: 'qwen',
    state: 'writing' as const,
    seconds: 14,
    tokens: 310,
    isCounted: false,
    tail: 'the replica lags',
  }
  const client = createApiClient({ url: api.apiUrl, token: api.tokens.viewer, run: null })
  const ends = new AbortController()
  const heard: { of: string; live: LiveAnswer }[] = []
  const watch = async (incidentId: string | undefined, of: string) => {
    const onLive = (said: LiveAnswer) => void heard.push({ of, live: said })
    for await (const _ of streamEvents(client, { incidentId, signal: ends.signal, onLive }));
  }
  const watching = [watch(id, 'early'), watch(undefined, 'all'), watch(other, 'other')]
  const toldTo = async (who: string) => {
    await publishLiveAnswer(api.db, live)
    return heard.some(({ of }) => of === who)
  }
  await eventually('the first sees it', () => toldTo('early'))
  watching.push(watch(id, 'late'))
  await eventually('who comes late sees it', () => toldTo('late'))
  await eventually('all see it', () => toldTo('all'))
  ends.abort()
  await Promise.all(watching)
  expect(heard[0]!.live).toEqual(live)
  expect(new Set(heard.map(({ of }) => of))).toEqual(new Set(['early', 'all', 'late']))
  expect(JSON.stringify(await eventsOf(api.db, id))).not.toContain('the replica lags')
})

test('progress of a run is sent only while a client follows the run', async () => {
  const [id, other] = [await openedIncident(api.db), await openedIncident(api.db)]
  const told = async (incidentId: string) =>
    await publishLiveAnswer(api.db, {
      incidentId,
      attempt: 1,
      turn: 1,
      maxTurns: 10,
      model: 'qwen',
      state: 'writing' as const,
      seconds: 1,
      tokens: 2,
      isCounted: false,
      tail: 'words',
    })
  const client = createApiClient({ url: api.apiUrl, token: api.tokens.viewer, run: null })
  const watch = (incidentId: string | undefined) => {
    const ends = new AbortController()
    const watching = (async () => {
      for await (const _ of streamEvents(client, { incidentId, signal: ends.signal, onLive: () => {} }));
    })()
    return async () => {
      ends.abort()
      await watching
    }
  }
  await eventually('nobody watches', async () => !(await told(id)))
  const leave = [watch(id), watch(id)]
  await eventually('it is watched', async () => await told(id))
  expect(await told(other)).toBe(false)
  await leave[0]!()
  // Arrivals and leavings after it: once that is known, the first leaving is.
  const leaveOther = watch(other)
  await eventually('the other is watched', async () => await told(other))
  await leaveOther()
  await eventually('nobody watches the other', async () => !(await told(other)))
  expect(await told(id)).toBe(true)
  await leave[1]!()
  await eventually('nobody watches it', async () => !(await told(id)))
  const leaveAll = watch(undefined)
  await eventually('a page watches all', async () => (await told(id)) && (await told(other)))
  await leaveAll()
  await eventually('the page is closed', async () => !(await told(id)) && !(await told(other)))
})

test('foreign messages on the channel of the database are ignored', async () => {
  const id = await openedIncident(api.db)
  const ends = new AbortController()
  const heard: LiveAnswer[] = []
  const listening = listenForLiveAnswers(api.db, (said) => void heard.push(said), ends.signal)
  const good = {
    incidentId: id,
    attempt: 1,
    turn: 1,
    maxTurns: 10,
    model: 'qwen',
    state: 'asked' as const,
    seconds: 1,
    tokens: 0,
    isCounted: false,
    tail: '',
  }
  await eventually('a good word is heard', async () => {
    for (const payload of ['x', '{}', JSON.stringify({ ...good, tokens: 'many' })])
      await sql`select pg_notify('nightshift_live_answers', ${payload})`.execute(api.db)
    await publishLiveAnswer(api.db, { ...good, tail: '\u0001'.repeat(400), model: '漢'.repeat(200), incidentId: id })
    return heard.length > 0
  })
  ends.abort()
  await listening
  expect(new Set(heard.map(({ model }) => model))).toEqual(new Set(['漢'.repeat(200)]))
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
