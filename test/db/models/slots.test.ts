import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from '@jest/globals'
import { overdueIncidents } from '../../../db/incidents/overdue.ts'
import { countSlots, keepSlot, leaveSlot, takeSlot, thinkingOf } from '../../../db/models/slots.ts'
import { systemScope } from '../../../db/scope.ts'
import type { Severity } from '../../../domain/incident.ts'
import { claimedIncident, moveClock, useDatabase } from '../../support/database.ts'

const database = useDatabase()
let servers = 0
const aServer = () => `http://models-${++servers}.example/v1`
const run = (server: string, name: string, severity: Severity = 'warning') => {
  const incidentId = `${server} ${name}`
  return { server, holder: `${incidentId}.1`, incidentId, severity, isQuestion: false }
}

test('at most three of forty workers that ask at once use the model', async () => {
  const server = aServer()
  let now = 0
  let most = 0
  const asked = await Promise.all(
    Array.from({ length: 40 }, async (_, index) => {
      const who = run(server, `r${index}`)
      for (let tries = 1; ; tries += 1) {
        const slot = await takeSlot(database.db, who, 3, 'token')
        if (!slot.held) {
          await sleep(20 * slot.ahead)
          continue
        }
        now += 1
        most = Math.max(most, now)
        await database.db.selectNoFrom(({ lit }) => lit(1).as('one')).execute()
        now -= 1
        await leaveSlot(database.db, who.holder, 'token')
        return tries
      }
    }),
  )
  expect(most).toBe(3)
  expect(asked).toHaveLength(40)
  expect(await countSlots(database.db)).toEqual([])
})

test('more severe runs go first, then earlier runs, and each is told how many go before', async () => {
  const server = aServer()
  const [first, second, third, critical] = [
    ...['first', 'second', 'third'].map((name) => run(server, name)),
    run(server, 'critical', 'critical'),
  ]
  const take = async (who = first!) => await takeSlot(database.db, who, 1, who.holder)
  expect(await take()).toMatchObject({ held: true })
  expect(await take(second)).toEqual({ held: false, ahead: 1 })
  expect(await take(third)).toEqual({ held: false, ahead: 2 })
  expect(await take(critical)).toEqual({ held: false, ahead: 1 })
  expect(await thinkingOf(systemScope(database.db), third!.incidentId)).toMatchObject({
    state: 'waiting',
    ahead: 2,
  })
  expect(await thinkingOf(systemScope(database.db), first!.incidentId)).toMatchObject({ state: 'asked', ahead: 0 })
  expect(await countSlots(database.db)).toEqual([{ server, held: 1, waiting: 3 }])
  await leaveSlot(database.db, first!.holder, first!.holder)
  // A free slot is the next one's, in any order of looking.
  expect(await take(second)).toEqual({ held: false, ahead: 1 })
  expect(await take(critical)).toMatchObject({ held: true })
  expect(await thinkingOf(systemScope(database.db), first!.incidentId)).toBeNull()
})

test("a person's question goes before all others, whatever its severity", async () => {
  const server = aServer()
  const question = { ...run(server, 'question', 'info'), isQuestion: true }
  const take = async (who = question) => await takeSlot(database.db, who, 1, who.holder)
  expect(await take(run(server, 'first', 'critical'))).toMatchObject({ held: true })
  for (const name of ['second', 'third']) await take(run(server, name, 'critical'))
  expect(await take()).toEqual({ held: false, ahead: 1 })
  await leaveSlot(database.db, `${server} first.1`, `${server} first.1`)
  expect(await take(run(server, 'second', 'critical'))).toEqual({ held: false, ahead: 1 })
  expect(await take()).toMatchObject({ held: true })
})

test('a dead worker holds its slot for a minute, and its place in the queue for 15 seconds', async () => {
  const server = aServer()
  const [dead, gone, alive] = [run(server, 'dead'), run(server, 'gone'), run(server, 'alive')]
  await takeSlot(database.db, dead, 1, 'a')
  await takeSlot(database.db, gone, 1, 'b')
  await moveClock(database.owner, '20 seconds')
  expect(await takeSlot(database.db, alive, 1, 'c')).toEqual({ held: false, ahead: 1 })
  await moveClock(database.owner, '61 seconds')
  expect(await takeSlot(database.db, alive, 1, 'c')).toMatchObject({ held: true })
  // A slow one finds out.
  expect(await keepSlot(database.db, dead.holder, 'a')).toBe(false)
  expect(await keepSlot(database.db, alive.holder, 'c')).toBe(true)
  await moveClock(database.owner, '0 days')
})

test('a holder that renews its slot keeps it for as long as the request takes', async () => {
  const server = aServer()
  const [holder, other] = [run(server, 'holder'), run(server, 'other')]
  await takeSlot(database.db, holder, 1, 'a')
  for (const at of ['50 seconds', '100 seconds', '150 seconds']) {
    await moveClock(database.owner, at)
    expect(await keepSlot(database.db, holder.holder, 'a')).toBe(true)
    expect(await takeSlot(database.db, other, 1, 'b')).toMatchObject({ held: false })
  }
  await moveClock(database.owner, '0 days')
})

test("a run's next attempt takes over the slot of its earlier attempt, which can neither keep nor free it", async () => {
  const server = aServer()
  const who = run(server, 'again')
  await takeSlot(database.db, who, 1, 'earlier')
  expect(await takeSlot(database.db, who, 1, 'later')).toMatchObject({ held: true })
  expect(await keepSlot(database.db, who.holder, 'earlier')).toBe(false)
  await leaveSlot(database.db, who.holder, 'earlier')
  expect(await keepSlot(database.db, who.holder, 'later')).toBe(true)
})

test('a run that leaves the queue gives up its place and no slot', async () => {
  const server = aServer()
  const [holder, waiting] = [run(server, 'holder'), run(server, 'waiting')]
  await takeSlot(database.db, holder, 1, 'a')
  await takeSlot(database.db, waiting, 1, null)
  await leaveSlot(database.db, waiting.holder, null)
  await leaveSlot(database.db, holder.holder, null)
  expect((await countSlots(database.db)).find((each) => each.server === server)).toMatchObject({
    held: 1,
    waiting: 0,
  })
})

test('a run that waits for the model for hours does not count as silent', async () => {
  const incidentId = await claimedIncident(database.db)
  const server = aServer()
  await takeSlot(database.db, run(server, 'busy'), 1, 'a')
  await moveClock(database.owner, '3 hours')
  expect((await overdueIncidents(database.db)).map((each) => each.incidentId)).toEqual([incidentId])
  await takeSlot(database.db, run(server, 'busy'), 1, 'a')
  await takeSlot(database.db, { ...run(server, 'own'), incidentId }, 1, null)
  expect(await overdueIncidents(database.db)).toEqual([])
  await moveClock(database.owner, '0 days')
})

test('a slot that is kept at one server does not count as a slot at another', async () => {
  const [first, second] = [aServer(), aServer()]
  const [busy, moved] = [run(second, 'busy'), run(first, 'moved')]
  await takeSlot(database.db, busy, 1, 'a')
  expect(await takeSlot(database.db, moved, 1, null)).toMatchObject({ held: true })
  // Its model was changed meanwhile, so it asks the other server.
  expect(await takeSlot(database.db, { ...moved, server: second }, 1, 'b')).toEqual({ held: false, ahead: 1 })
  expect((await countSlots(database.db)).filter(({ server }) => [first, second].includes(server))).toEqual([
    { server: second, held: 1, waiting: 1 },
  ])
})

test('a wait that its run no longer needs does not take the slot from the request', async () => {
  const server = aServer()
  const who = run(server, 'late')
  await takeSlot(database.db, who, 1, 'request')
  expect(await takeSlot(database.db, who, 1, null)).toMatchObject({ held: true })
  expect(await keepSlot(database.db, who.holder, 'request')).toBe(true)
})
