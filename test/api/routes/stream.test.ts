import { expect, test } from '@jest/globals'
import { append } from '../../../db/log/append.ts'
import { useApi } from '../../support/api.ts'
import { openedIncident } from '../../support/database.ts'

const api = useApi()

type Message = { id: string; event: string; data: { incidentId: string; seq: number } }

/** Listens until `enough` says so, then hangs up. */
async function listen(
  path: string,
  lastEventId: string | null,
  enough: (messages: Message[], place: string) => boolean,
) {
  const hangUp = new AbortController()
  const response = await api.api.app.request(`/api/v1${path}`, {
    headers: { authorization: `Bearer ${api.tokens.viewer}`, ...(lastEventId && { 'last-event-id': lastEventId }) },
    signal: hangUp.signal,
  })
  expect(response.status).toBe(200)
  const messages: Message[] = []
  let place = ''
  let text = ''
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  const decoder = new TextDecoder()
  while (!enough(messages, place)) {
    const { value, done } = await reader.read()
    if (done) break
    text += decoder.decode(value, { stream: true })
    const blocks = text.split('\n\n')
    text = blocks.pop() ?? ''
    for (const block of blocks) {
      const field = (name: string) => block.match(new RegExp(`^${name}: (.*)$`, 'm'))?.[1] ?? ''
      if (field('id')) place = field('id')
      if (field('data')) messages.push({ id: field('id'), event: field('event'), data: JSON.parse(field('data')) })
      if (enough(messages, place)) break
    }
  }
  await reader.cancel()
  hangUp.abort()
  return { messages, place, response }
}

const comment = (incidentId: string, text: string) =>
  api.db.transaction().execute((trx) =>
    append(trx, incidentId, null, {
      kind: 'commented',
      actor: 'user:test',
      detail: text,
      metadata: { text, confidence: null, action: null },
    }),
  )

test('rows arrive as they are written, with their kind and their place', async () => {
  const id = await openedIncident(api.db)
  let comments: Promise<unknown> | null = null
  const { messages, response } = await listen(`/stream?incident=${id}`, null, (messages, place) => {
    // A place comes first: from there on nothing is missed.
    if (place) comments ??= comment(id, 'one\nline: two').then(() => comment(id, 'two'))
    return messages.at(-1)?.data.seq === 3
  })
  await comments
  // A transaction elsewhere on the server may hold back the opening row: then it comes first, and
  // belongs there.
  expect(messages.map(({ event, data }) => [event, data.seq]).slice(-2)).toEqual([
    ['commented', 2],
    ['commented', 3],
  ])
  expect(messages[0]?.id).toMatch(/^\d+-\d+$/)
  expect(response.headers.get('cache-control')).toContain('no-transform')
})

test('a page that loses the stream before the first row resumes without a gap', async () => {
  const id = await openedIncident(api.db)
  const { place } = await listen(`/stream?incident=${id}`, null, (_messages, place) => place !== '')
  await comment(id, 'while nobody listened')
  const { messages } = await listen(`/stream?incident=${id}`, place, (heard) => heard.at(-1)?.data.seq === 2)
  expect([[2], [1, 2]]).toContainEqual(messages.map(({ data }) => data.seq))
})

test('with many writers and a listener that keeps losing its stream, every row arrives once and in order', async () => {
  const incidents = await Promise.all(Array.from({ length: 5 }, () => openedIncident(api.db)))
  const anchor = await api.db.selectFrom('incidentEvent').select(['tx', 'id']).orderBy('tx').orderBy('id').execute()
  let last = `${anchor.at(-1)?.tx}-${anchor.at(-1)?.id}`
  const writing = Promise.all(
    incidents.map(async (id) => {
      for (let n = 0; n < 40; n++) await comment(id, `row ${n}`)
    }),
  )
  const heard: Message[] = []
  while (heard.length < 200) {
    const { messages } = await listen(
      '/stream',
      last,
      (messages) => messages.length >= Math.min(23, 200 - heard.length),
    )
    heard.push(...messages)
    last = messages.at(-1)?.id ?? last
  }
  await writing
  expect(new Set(heard.map(({ id }) => id)).size).toBe(200)
  for (const id of incidents) {
    const seqs = heard.filter(({ data }) => data.incidentId === id).map(({ data }) => data.seq)
    expect(seqs).toEqual(Array.from({ length: 40 }, (_, n) => n + 2))
  }
})

test('an id of another stream and an unknown incident are refused', async () => {
  expect((await api.get('/stream', { headers: { 'last-event-id': 'x' } })).status).toBe(422)
  expect((await api.get('/stream?incident=inc_none')).status).toBe(404)
})
