import { beforeAll, describe, expect, test } from '@jest/globals'
import { eventsOf } from '../../../db/log/events.ts'
import { incidentOfThread } from '../../../db/outbox/slack-threads.ts'
import { messagesOf } from '../../../domain/message.ts'
import { type IncidentPress, incidentButton } from '../../../notify/slack/interaction.ts'
import { claimedIncident, openedIncident } from '../../support/database.ts'
import { eventually } from '../../support/directory.ts'
import { putMembers, useSlackDoor } from '../../support/slack-door.ts'

const door = useSlackDoor()
const { api } = door
beforeAll(async () => {
  const people = { anna: {}, bert: {}, vera: { role: 'viewer' }, gone: { disabled: true } }
  await putMembers(api, people, { role: 'operator', maxRisk: 'low' })
})

/** The first message of the incident's thread, once Slack has it. */
const root = (id: string) =>
  eventually('the thread', () =>
    [...door.slack.messages.values()].find(
      ({ body }) => body.thread_ts === undefined && JSON.stringify(body.blocks).includes(`Nightshift, ${id}`),
    ),
  )
async function send(form: URLSearchParams) {
  const body = form.toString()
  const headers = door.slack.signed(body)
  const response = await api.api.app.request('http://localhost/slack/interactions', { method: 'POST', headers, body })
  expect(response.status).toBe(200)
}
const press = async (user: string, id: string, action: IncidentPress) =>
  send(door.slack.press(user, (await root(id)).ts, action))
const whisper = (user: string, text: string) =>
  eventually(`${user} to hear ${text}`, () => door.slack.whispers(user).find((each) => each.includes(text)))
const owner = async (id: string) => (await api.get(`/incidents/${id}`)).body.owner as unknown

const critical = { severity: 'critical' } as const

test('a known person takes an incident by a button and gives it back, and the thread shows it', async () => {
  const id = await openedIncident(api.db, critical)
  const { ts } = await root(id)
  expect(Object.keys(door.slack.buttons(ts))).toEqual(['take', 'open'])
  await press('U0ANNA', id, 'take')
  await whisper('U0ANNA', 'The incident is yours')
  expect(await owner(id)).toMatchObject({ name: 'anna' })
  await eventually('the button to change', () => door.slack.buttons(ts).give_back)
  expect(JSON.stringify((await root(id)).body)).toContain('anna has it')
  await press('U0ANNA', id, 'give_back')
  await whisper('U0ANNA', 'The incident is given back')
  expect(await owner(id)).toBeNull()
})

test('a run ends before a person gets its incident', async () => {
  const id = await claimedIncident(api.db, critical)
  await press('U0ANNA', id, 'take')
  await whisper('U0ANNA', 'The run ends first')
  expect(api.told.at(-1)).toMatchObject({ signal: 'cancelInvestigation', incidentId: id })
})

test.each([
  ['U0STRANGER', 'your Slack member is not linked'],
  ['U0VERA', 'vera (viewer) lacks the permission manage_incident'],
  ['U0GONE', 'gone is disabled'],
])('%s takes nothing', async (user, why) => {
  const id = await openedIncident(api.db, critical)
  await press(user, id, 'take')
  await whisper(user, why)
  expect(await owner(id)).toBeNull()
})

test('a button of another incident, of another action or of an unknown person takes nothing, and leaves a row', async () => {
  const id = await openedIncident(api.db, critical)
  const { ts } = await root(id)
  const secret = door.slack.settings.signingSecret
  const [, foreign] = incidentButton(secret, { id: 'inc_other', attempt: null }, 'take').split('.')
  for (const value of [
    `${id}.${foreign}`,
    incidentButton(secret, { id, attempt: null }, 'give_back'),
    `${id}.${'A'.repeat(43)}`,
    'x',
  ]) {
    await send(door.slack.press('U0ANNA', ts, 'take', { value }))
  }
  await whisper('U0ANNA', 'does not belong to this Nightshift')
  expect(await owner(id)).toBeNull()
  const written = async () =>
    ((await api.get('/audit?what=security.foreign_button')).body as unknown as { items: unknown[] }).items.length
  await eventually('all of them to be written down', async () => (await written()) === 4)
})

test('an old button of a closed incident takes nothing and says why', async () => {
  const id = await openedIncident(api.db, critical)
  const old = door.slack.press('U0BERT', (await root(id)).ts, 'take')
  await api.post(`/incidents/${id}/resolve`, { body: { resolution: 'Restarted it', outcome: 'repaired' } })
  await send(old)
  await whisper('U0BERT', 'Nothing was done: the incident is resolved')
})

test('one press grades the cause of a closed incident, under the name of the person who pressed', async () => {
  const id = await claimedIncident(api.db, critical)
  await root(id)
  expect(Object.keys(door.slack.buttons((await root(id)).ts))).toEqual(['take', 'open'])
  await api.post(`/incidents/${id}/escalate`, { body: { reason: 'needs hands' } })
  await eventually('the buttons to come', async () => door.slack.buttons((await root(id)).ts).cause_wrong)
  await press('U0VERA', id, 'cause_wrong')
  await whisper('U0VERA', 'lacks the permission manage_incident')
  await press('U0ANNA', id, 'cause_wrong')
  await whisper('U0ANNA', 'Recorded: the cause was wrong.')
  expect((await api.get(`/incidents/${id}/trust`)).body.cause).toMatchObject({ verdict: 'wrong', by: 'anna' })
  const partly = incidentButton(door.slack.settings.signingSecret, { id, attempt: 1 }, 'cause_partly')
  await send(door.slack.press('U0BERT', (await root(id)).ts, 'cause_wrong', { value: partly }))
  await whisper('U0BERT', 'does not belong to this Nightshift')
})

test('a button of an earlier attempt does not grade the cause of the newest', async () => {
  const id = await claimedIncident(api.db, critical)
  await api.post(`/incidents/${id}/escalate`, { body: { reason: 'needs hands' } })
  await eventually('the buttons to come', async () => door.slack.buttons((await root(id)).ts).cause_right)
  const old = door.slack.press('U0ANNA', (await root(id)).ts, 'cause_right')
  await api.owner.updateTable('incident').set({ attempt: 2 }).where('id', '=', id).execute()
  await send(old)
  await whisper(
    'U0ANNA',
    'Your grade was not recorded: this was the cause of attempt 1: read the cause of the newest attempt.',
  )
  expect((await api.get(`/incidents/${id}/trust`)).body.cause).toBeNull()
})

describe('messages in the thread of an incident', () => {
  /** As Slack names a channel in its answers and events, whatever name the setting has. */
  const channel = 'C0OPS'
  let events = 0
  async function write(user: string, text: string, thread: string, more: object = {}) {
    const event = {
      type: 'message',
      channel,
      user,
      text,
      thread_ts: thread,
      ts: '9.9',
      ...more,
    }
    events += 1
    const eventId = `Ev${events}`
    const body = JSON.stringify({ type: 'event_callback', event_id: eventId, event })
    const post = async (atSeconds = Math.floor(Date.now() / 1000)) => {
      const headers = { ...door.slack.signed(body, { atSeconds }), 'content-type': 'application/json' }
      return await api.api.app.request('http://localhost/slack/events', { method: 'POST', headers, body })
    }
    expect((await post()).status).toBe(200)
    return post
  }
  /** The thread, once our worker knows where Slack keeps it. */
  const threadOf = async (id: string) => {
    const { ts } = await root(id)
    await eventually('the place of the thread to be stored', () => incidentOfThread(api.db, { channel, thread: ts }))
    return ts
  }
  const told = async (id: string) => messagesOf(await eventsOf(api.db, id)).map(({ by, text }) => `${by}: ${text}`)

  test("a member's message is sent to the run under the member's name here", async () => {
    const id = await claimedIncident(api.db, critical)
    const ts = await threadOf(id)
    await write('U0ANNA', 'look at <http://web-1.example|web-1> &amp; its log', ts)
    expect(await told(id)).toEqual(['anna: look at web-1 & its log'])
  })

  test('messages of strangers, viewers, programs, other threads, and after the end of the run are not sent to it', async () => {
    const id = await claimedIncident(api.db, critical)
    const ts = await threadOf(id)
    await write('U0STRANGER', 'I approve', ts)
    await whisper('U0STRANGER', 'your Slack member is not linked')
    await write('U0VERA', 'I approve', ts)
    await whisper('U0VERA', 'vera (viewer) lacks the permission record')
    await write('U0ANNA', 'said by a program', ts, { bot_id: 'B1' })
    await write('U0ANNA', 'an edit', ts, { subtype: 'message_changed' })
    await write('U0ANNA', 'elsewhere', '1.1')
    await api.post(`/incidents/${id}/escalate`, { body: { reason: 'I take it' } })
    await write('U0ANNA', 'too late', ts)
    expect(await told(id)).toEqual([])
  })

  test('a message is sent to the run once, however often Slack delivers it', async () => {
    const id = await claimedIncident(api.db, critical)
    const again = await write('U0BERT', 'it was moved', await threadOf(id))
    // Slack signs it anew, a few seconds later.
    expect((await again(Math.floor(Date.now() / 1000) + 5)).status).toBe(200)
    expect(await told(id)).toEqual(['bert: it was moved'])
  })

  test('the address verification of Slack is answered, and only with a valid signature', async () => {
    const body = JSON.stringify({ type: 'url_verification', challenge: 'c-1' })
    const ask = async (headers: Record<string, string>) => {
      const all = { ...headers, 'content-type': 'application/json' }
      return await api.api.app.request('http://localhost/slack/events', { method: 'POST', headers: all, body })
    }
    expect(await (await ask(door.slack.signed(body))).text()).toBe('c-1')
    expect((await ask({})).status).toBe(401)
  })
})
