import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import type { Approval } from '../../domain/approval.ts'
import { type Spine, startSpine } from '../support/spine.ts'

type Post = { path: string; type: string; page: boolean; incident: string; severity: string; lines: string[] }

let spine: Spine
let receiver: Server
const posts: Post[] = []

beforeAll(async () => {
  receiver = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { type, data } = JSON.parse(Buffer.concat(chunks).toString())
    const lines = (data.lines ?? []).map(({ text }: { text: string }) => text)
    const { id, severity } = data.incident
    posts.push({ path: request.url ?? '', type, page: data.page, incident: id, severity, lines })
    response.writeHead(200).end()
  })
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  spine = await startSpine({
    parts: ['lab', 'runbook', 'api', 'api2', 'worker'],
    environment: { AGENT_TRUST: 'propose', WATCHDOG_INTERVAL_SECONDS: '0.5' },
  })
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`
  await set({
    'webhook.critical.url': `${url}/phone`,
    'webhook.approval.url': `${url}/phone`,
    'webhook.escalated.url': `${url}/phone`,
    'webhook.news.url': `${url}/news`,
    'page.wake_budget': '1',
    'page.night': nightOf(-3, 3),
    'agent.leader_wait': '0',
  })
})
afterAll(async () => {
  await spine?.stop()
  receiver?.close()
})

async function set(settings: Record<string, string>): Promise<void> {
  for (const [key, value] of Object.entries(settings))
    await sql`insert into platform_config (key, value) values (${key}, ${value})
      on conflict (key) do update set value = excluded.value`.execute(spine.owner)
}

/** From so many hours before now to so many after. */
function nightOf(from: number, to: number, minutes = 0): string {
  const at = (hours: number, more = 0) =>
    new Date(Date.now() + hours * 3_600_000 + more * 60_000).toISOString().slice(11, 16)
  return `${at(from)}-${at(to, minutes)} UTC`
}

const questions = async () => (await spine.get<{ items: Approval[] }>('/approvals?status=pending')).items
const asksOf = (incident: string) =>
  posts.filter((post) => post.type === 'approval.requested' && post.incident === incident)

const waitFor: Spine['until'] = (what, condition) => spine.until(what, condition, 80_000)

/** A question of the agent about what was broken. */
async function questionAbout(fault: Parameters<Spine['lab']['break']>[0], target: string): Promise<Approval> {
  const before = new Set((await questions()).map(({ id }) => id))
  await spine.lab.break(fault, target)
  return await waitFor(`a question about ${target}`, async () => (await questions()).find(({ id }) => !before.has(id)))
}

test('in a night with a budget of one, one question wakes, a critical wakes, and two are on one card in the morning', async () => {
  const first = await questionAbout('disk_pressure', 'web-osl-1')
  await waitFor('the first to wake', async () => asksOf(first.incidentId).length === 1)
  const held = [await questionAbout('disk_pressure', 'web-ams-1'), await questionAbout('drain', 'host-osl-3')]
  const critical = await questionAbout('host_down', 'host-ams-4')
  await waitFor('the critical to wake', async () => asksOf(critical.incidentId).length === 1)
  expect(posts).toContainEqual(expect.objectContaining({ type: 'incident.critical', incident: critical.incidentId }))
  expect(held.flatMap(({ incidentId }) => asksOf(incidentId))).toEqual([])
  for (const { incidentId } of held)
    expect((await spine.events(incidentId)).map(({ detail }) => detail)).toContainEqual(
      expect.stringMatching(/^Wakes nobody: 1 of 1 approvals have woken somebody this night/),
    )

  // The night ends with this minute, while the worker is dead: both API processes see it, and the
  // card waits for a worker.
  await spine.kill('worker')
  await set({ 'page.night': nightOf(-3, 0, 1) })
  await waitFor('the card', async () => (await cardRows()).length > 0)
  expect(posts.filter(({ type }) => type === 'shift.morning')).toEqual([])
  await spine.start('worker')
  const card = await waitFor('the card to arrive', async () => posts.find(({ type }) => type === 'shift.morning'))
  expect(card).toMatchObject({ path: '/news', page: false })
  const waiting = card.lines.filter((line) => line.startsWith('Waits for '))
  for (const { dryRun } of held) expect(waiting.some((line) => line.includes(dryRun.summary))).toBe(true)

  // Once, also after another death: what comes later arrives, and no second card before it. One
  // that dies between the receiver's answer and its own row sends again, under the same id.
  await waitFor('the row of the card', async () => (await cardRows())[0]?.status === 'sent')
  await spine.kill('worker')
  await spine.start('worker')
  await set({ 'hand_over.at': `${nightOf(0, 1).slice(0, 5)} UTC` })
  const handOver = await waitFor('the hand-over', async () => posts.find(({ type }) => type === 'shift.hand_over'))
  expect(handOver.lines).toHaveLength(5)
  expect(posts.filter(({ type }) => type === 'shift.morning')).toHaveLength(1)
  expect(await cardRows()).toHaveLength(1)
  expect((await spine.get<{ differences: unknown[] }>('/verify?limit=100')).differences).toEqual([])
}, 240_000)

async function cardRows() {
  const { rows } = await sql<{
    status: string
  }>`select status from delivery where notification->>'trigger' = 'morning'`.execute(spine.owner)
  return rows
}
