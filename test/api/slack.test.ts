import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import pino from 'pino'
import { requestApproval } from '../../db/approvals/ask.ts'
import { withdrawPending } from '../../db/approvals/settle.ts'
import { append } from '../../db/log/append.ts'
import { eventsOf } from '../../db/log/events.ts'
import { useSlackChannel } from '../../db/outbox/slack-channel.ts'
import { incidentOfThread } from '../../db/outbox/slack-threads.ts'
import { agentActor } from '../../domain/event.ts'
import { messagesOf } from '../../domain/message.ts'
import type { ResourceRef } from '../../domain/registry.ts'
import type { Risk } from '../../domain/tool.ts'
import { createSlackClient } from '../../notify/slack/client.ts'
import { buttonValue, incidentButton } from '../../notify/slack/interaction.ts'
import { startSlack } from '../../notify/slack/send.ts'
import { type ScriptedSlack, startScriptedSlack } from '../notify/scripted-slack.ts'
import { claimedIncident, openedIncident } from '../support/database.ts'
import { eventually } from '../support/directory.ts'
import { useApi } from './api.ts'

describe('slack', () => {
  const publicUrl = 'https://nightshift.example'
  let slack: ScriptedSlack
  let worker: { stop(): Promise<void> }

  const api = useApi(async () => {
    slack = await startScriptedSlack()
    return { slack: createSlackClient(slack.settings), publicUrl }
  })
  beforeAll(async () => {
    await useSlackChannel(api.db, slack.settings.channel)
    worker = startSlack(api.db, pino({ level: 'silent' }), createSlackClient(slack.settings), publicUrl, {
      ...{ paceSeconds: 0, pollEveryMs: 50 },
    })
    const people = { anna: {}, bert: {}, vera: { role: 'viewer' }, lowe: { maxRisk: 'low' }, gone: { disabled: true } }
    for (const [name, more] of Object.entries(people)) {
      const slackUserId = `U0${name.toUpperCase()}`
      const body = { role: 'approver', maxRisk: 'critical', incidentTypes: null, disabled: false, slackUserId, ...more }
      expect((await api.put(`/operators/${name}`, { body })).status).toBe(200)
    }
  })

  afterAll(async () => {
    await worker?.stop()
    await slack?.stop()
  })
  beforeEach(() => {
    slack.calls.length = 0
  })

  let calls = 0
  async function asks(
    more: { risk?: Risk; required?: number; incidentId?: string; callId?: string; targets?: ResourceRef[] } = {},
  ) {
    calls += 1
    const incidentId = more.incidentId ?? (await claimedIncident(api.db))
    const { id } = await api.db.transaction().execute((trx) =>
      requestApproval(trx, {
        ...{ incidentId, attempt: 1, turn: calls, callId: more.callId ?? `c${calls}_0`, tool: 'execute_migration' },
        ...{
          args: { proposal_id: 'prp_1' },
          targets: more.targets ?? [],
          reason: 'the host is dead',
          stateFingerprint: '',
        },
        ...{
          actionDigest: `digest-${calls}`,
          risk: more.risk ?? 'high',
          required: more.required ?? 1,
          reversible: true,
        },
        ...{
          replaces: null,
          actor: 'agent:incident-investigator',
          expirySeconds: 600,
          stepKey: `${incidentId}:${calls}`,
        },
        dryRun: { possible: true, summary: 'start 3 VMs', details: {} },
      }),
    )
    return { incidentId, id }
  }

  /** The message that asks for it, once Slack has it. */
  const card = async (id: string) =>
    await eventually('the question', () =>
      [...slack.messages.values()].find(
        ({ body }) => body.thread_ts !== undefined && JSON.stringify(body.blocks).includes(`Nightshift, ${id}`),
      ),
    )

  async function send(form: URLSearchParams, headers?: Record<string, string>) {
    const body = form.toString()
    const response = await api.api.app.request('http://localhost/slack/interactions', {
      method: 'POST',
      headers: headers ?? slack.signed(body),
      body,
    })
    return { status: response.status, text: await response.text() }
  }

  const press = async (user: string, id: string, action: 'approve' | 'deny' = 'approve') =>
    await send(slack.press(user, (await card(id)).ts, action))
  const approval = async (id: string) => (await api.get(`/approvals/${id}`)).body
  const whisper = (user: string, text: string) =>
    eventually(`${user} to be told ${text}`, () => slack.whispers(user).find((each) => each.includes(text)))
  const security = async (incidentId: string) =>
    (await eventsOf(api.db, incidentId)).flatMap((event) =>
      event.kind === 'security_event' ? [`${event.metadata.door} ${event.metadata.code}`] : [],
    )

  test('who is known here approves by a button: one decision, by the door slack, and the run is woken', async () => {
    const { id, incidentId } = await asks()
    expect(await press('U0ANNA', id)).toEqual({ status: 200, text: '' })
    expect(await approval(id)).toMatchObject({
      ...{ status: 'approved', decisions: [{ operator: 'anna', decision: 'approve', via: 'slack' }] },
    })
    expect(api.told).toContainEqual({ signal: 'decided', incidentId, attempt: 1 })
    const asked = await card(id)
    await eventually('the buttons to go', () => !slack.buttons(asked.ts).approve)
    expect(JSON.stringify(asked.body)).toMatch(/Approved by anna, .* UTC, by Slack/)
  })

  test('the question says what the cause may be, as the rows of its run say it', async () => {
    const incidentId = await claimedIncident(api.db)
    const body = { action: 'investigated', detail: 'A power supply failed', hypothesis: 'supported' }
    await api.post(`/incidents/${incidentId}/events`, { body: { ...body, quotes: [{ seq: 1, text: 'firing' }] } })
    const { id } = await asks({ incidentId })
    expect(JSON.stringify((await card(id)).body)).toContain('Likely cause: A power supply failed (supported, row 1)')
    expect(JSON.stringify((await card((await asks()).id)).body)).not.toContain('cause:')
  })

  test('the question says what was found, in the sentences of its run', async () => {
    const incidentId = await claimedIncident(api.db)
    const host = { kind: 'host' as const, id: 'host-osl-1' }
    await api.db.transaction().execute((trx) =>
      append(trx, incidentId, 1, {
        ...{ kind: 'tool_finished', actor: agentActor, detail: 'Called tool: get_host', turn: 1 },
        metadata: {
          ...{ callId: 'c0_0', tool: 'get_host', arguments: { id: host.id }, effect: 'read', targets: [host] },
          ...{ outcome: 'done', result: { ok: true, data: { raw: 'json' }, meta: {} }, body: null, durationMs: 4 },
          discovered: [{ ...host, name: host.id, aliases: [], seen: true, health: 'critical' }],
          said: 'host-osl-1 is down: 0 of 3 VMs run',
        },
      }),
    )
    const { id } = await asks({ incidentId, targets: [host] })
    const asked = JSON.stringify((await card(id)).body)
    expect(asked).toContain('Found: host-osl-1 is down: 0 of 3 VMs run')
    expect(asked).not.toContain('raw')
  })

  test('a second press is told who decided, when and where, and decides nothing', async () => {
    const { id } = await asks()
    const stale = slack.press('U0BERT', (await card(id)).ts, 'approve')
    await press('U0ANNA', id)
    await send(stale)
    expect(await whisper('U0BERT', 'Nothing was decided by this button')).toMatch(/Approved by anna, .* UTC, by Slack/)
    expect((await approval(id)).decisions).toHaveLength(1)
  })

  test('who is nobody here is told so alone, with a way to the card', async () => {
    const { id } = await asks()
    await press('U0STRANGER', id)
    const told = await whisper('U0STRANGER', 'I do not know who you are')
    expect(told).toContain(`${publicUrl}/approvals/${id}`)
    expect(await approval(id)).toMatchObject({ status: 'pending', decisions: [] })
  })

  test.each([
    ['U0VERA', 'vera (viewer) may not decide'],
    ['U0LOWE', 'lowe decides about risks up to low'],
    ['U0GONE', 'gone is disabled'],
  ])('%s may not decide here either, by the rules of every door', async (user, why) => {
    const { id } = await asks()
    await press(user, id)
    await whisper(user, why)
    await press(user, id, 'deny')
    await eventually('both to be refused', () => slack.whispers(user).filter((each) => each.includes(why)).length === 2)
    expect(slack.views).toEqual([])
    expect((await approval(id)).status).toBe('pending')
  })

  test('a denial asks for its category and words, and the agent gets both', async () => {
    const { id } = await asks()
    await press('U0ANNA', id, 'deny')
    await eventually('the modal', () => slack.views.length === 1)
    expect((await approval(id)).status).toBe('pending')
    const unsaid = await send(slack.submit('U0ANNA', { category: 'other' }))
    expect(JSON.parse(unsaid.text)).toMatchObject({ response_action: 'errors', errors: { words: expect.any(String) } })
    const said = await send(slack.submit('U0ANNA', { category: 'wrong_time', words: 'the backup runs' }))
    expect(said).toEqual({ status: 200, text: '' })
    expect(await approval(id)).toMatchObject({
      status: 'denied',
      decisions: [{ operator: 'anna', category: 'wrong_time', reason: 'the backup runs', via: 'slack' }],
    })
  })

  test('where no modal opens, a denial is sent to the card', async () => {
    const { id } = await asks()
    slack.troubles.push({ method: 'views.open', error: 'expired_trigger_id' })
    await press('U0ANNA', id, 'deny')
    expect(await whisper('U0ANNA', 'could not ask you why')).toContain(`${publicUrl}/approvals/${id}`)
  })

  test('critical risk has no button here, and a forged one is refused and written down', async () => {
    const { id, incidentId } = await asks({ risk: 'critical', required: 2 })
    const { ts } = await card(id)
    expect(Object.keys(slack.buttons(ts))).toEqual(['open'])
    const row = await approval(id)
    const value = buttonValue(slack.settings.signingSecret, { id, actionDigest: String(row.actionDigest) })
    for (const action of ['approve', 'deny']) await send(slack.press('U0ANNA', ts, action, { value }))
    await whisper('U0ANNA', 'critical risk is decided on the card alone')
    expect(await approval(id)).toMatchObject({ status: 'pending', decisions: [] })
    expect(await security(incidentId)).toEqual(['slack CRITICAL_BUTTON', 'slack CRITICAL_BUTTON'])
  })

  test('a button of another action or of nobody decides nothing', async () => {
    const { id, incidentId } = await asks()
    const other = await asks()
    const { ts } = await card(id)
    const [, nonce] = (slack.buttons((await card(other.id)).ts).approve?.value ?? '').split('.')
    for (const value of [`${id}.${nonce}`, `${id}.${'A'.repeat(43)}`, `${id}.`, 'x', `apr_none.${nonce}`]) {
      await send(slack.press('U0ANNA', ts, 'approve', { value }))
    }
    await whisper('U0ANNA', 'not one of mine')
    expect((await approval(id)).status).toBe('pending')
    expect(await security(incidentId)).toEqual(['slack FOREIGN_BUTTON', 'slack FOREIGN_BUTTON'])
  })

  test('the button of what was withdrawn and asked again says so', async () => {
    const { id, incidentId } = await asks({ callId: 'c9_0' })
    const old = slack.press('U0ANNA', (await card(id)).ts, 'approve')
    await api.db.transaction().execute((trx) => withdrawPending(trx, incidentId, 'the platform changed'))
    const anew = await asks({ incidentId, callId: 'c9_0' })
    await send(old)
    expect(await whisper('U0ANNA', 'Withdrawn')).toContain(`asked again: ${publicUrl}/approvals/${anew.id}`)
    expect((await approval(anew.id)).status).toBe('pending')
  })

  test('the button of what has expired says so, also when nobody noticed before', async () => {
    const { id } = await asks()
    const form = slack.press('U0ANNA', (await card(id)).ts, 'approve')
    await sql`update approval set expires_at = nightshift_now() where id = ${id}`.execute(api.owner)
    await send(form)
    await whisper('U0ANNA', 'it expired')
    expect((await approval(id)).decisions).toEqual([])
  })

  test('where two people are needed, the first is told so and the buttons stay', async () => {
    const { id } = await asks({ required: 2 })
    const asked = await card(id)
    await press('U0ANNA', id)
    await whisper('U0ANNA', 'Somebody else has to agree')
    await eventually('the card to say so', () => JSON.stringify(asked.body).includes('1 of 2 have agreed'))
    await press('U0ANNA', id)
    await whisper('U0ANNA', 'You had decided so before')
    await press('U0BERT', id)
    expect((await approval(id)).status).toBe('approved')
  })

  test('a forged signature, an old and a future time and a repeated request are refused and written down', async () => {
    const { id, incidentId } = await asks()
    const form = slack.press('U0ANNA', (await card(id)).ts, 'approve')
    const body = form.toString()
    const now = Math.floor(Date.now() / 1000)
    const genuine = slack.signed(body)
    for (const headers of [
      slack.signed(body, { secret: 'of somebody else' }),
      { ...genuine, 'x-slack-signature': genuine['x-slack-signature']!.toUpperCase() },
      { ...genuine, 'x-slack-request-timestamp': String(now - 1) },
      { 'content-type': 'application/x-www-form-urlencoded' },
      slack.signed(body, { atSeconds: now - 400 }),
      slack.signed(body, { atSeconds: now + 400 }),
    ]) {
      expect(await send(form, headers)).toMatchObject({ status: 401, text: expect.stringContaining('NOT_FROM_SLACK') })
    }
    expect((await approval(id)).decisions).toEqual([])
    expect((await send(form, genuine)).status).toBe(200)
    expect((await approval(id)).status).toBe('approved')
    expect((await send(form, genuine)).status).toBe(401)
    expect(await security(incidentId)).toEqual([...Array(2).fill('slack STALE_REQUEST'), 'slack REPLAYED_REQUEST'])
    const { items } = (await api.get('/audit?what=security.forged_request')).body as unknown as { items: unknown[] }
    expect(items).toHaveLength(4)
  })

  test('of one request that reaches two servers at once, one is believed', async () => {
    const { id } = await asks()
    const form = slack.press('U0ANNA', (await card(id)).ts, 'approve')
    const headers = slack.signed(form.toString())
    const answers = await Promise.all(Array.from({ length: 8 }, () => send(form, headers)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect((await approval(id)).decisions).toHaveLength(1)
  })

  test('a press in Slack against a denial at the API has one outcome, and the loser is told', async () => {
    for (let round = 0; round < 3; round += 1) {
      const { id } = await asks()
      const form = slack.press('U0ANNA', (await card(id)).ts, 'approve')
      const { token } = (
        await api.post(`/approvals/${id}/token`, { as: api.tokens.approver, body: { decision: 'deny' } })
      ).body
      const [, denied] = await Promise.all([
        send(form),
        api.post(`/approvals/${id}/decision`, {
          as: api.tokens.approver,
          body: { decision: 'deny', token, reason: 'no' },
        }),
      ])
      const now = await approval(id)
      expect(now.decisions).toHaveLength(1)
      expect(denied.status).toBe(now.status === 'denied' ? 200 : 409)
      if (now.status === 'denied') await whisper('U0ANNA', 'Denied by approver')
    }
  })

  test('a press is answered although Slack itself answers nothing', async () => {
    const { id } = await asks()
    const { ts } = await card(id)
    const release = slack.hold()
    // Slack would call anything later than three seconds a failure.
    expect((await send(slack.press('U0STRANGER', ts, 'approve'))).status).toBe(200)
    expect(slack.whispers('U0STRANGER')).toEqual([])
    release()
    await whisper('U0STRANGER', 'I do not know who you are')
  })

  test('what is signed and no button of ours is answered and changes nothing; what is too large is not read', async () => {
    for (const payload of ['{"type":"block_actions"}', '{', '[]', '{"type":"shortcut"}']) {
      expect((await send(new URLSearchParams({ payload }))).status).toBe(200)
    }
    const { id } = await asks()
    expect((await send(slack.press('U0ANNA', (await card(id)).ts, 'open'))).status).toBe(200)
    expect((await send(new URLSearchParams({ payload: 'x'.repeat(1_100_000) }))).status).toBe(413)
    expect((await approval(id)).status).toBe('pending')
  })

  test('neither the token nor the secret is in a row, and a refusal repeats nothing', async () => {
    const { rows } = await sql<{ table: string }>`
    select tablename as table from pg_tables where schemaname = 'public'`.execute(api.owner)
    for (const { table } of rows) {
      const { rows: found } = await sql`select 1 from ${sql.table(table)} as t
      where t::text like '%canary%'`.execute(api.owner)
      expect([table, found]).toEqual([table, []])
    }
    const refused = await send(new URLSearchParams({ payload: 'canary-of-a-stranger' }), {})
    expect(refused.text).not.toContain('canary')
  })
})

describe('slack owners', () => {
  const publicUrl = 'https://nightshift.example'
  let slack: ScriptedSlack
  let worker: { stop(): Promise<void> }

  const api = useApi(async () => {
    slack = await startScriptedSlack()
    return { slack: createSlackClient(slack.settings), publicUrl }
  })

  beforeAll(async () => {
    await useSlackChannel(api.db, slack.settings.channel)
    worker = startSlack(api.db, pino({ level: 'silent' }), createSlackClient(slack.settings), publicUrl, {
      ...{ paceSeconds: 0, pollEveryMs: 50 },
    })
    const people = { anna: {}, bert: {}, vera: { role: 'viewer' }, gone: { disabled: true } }
    for (const [name, more] of Object.entries(people)) {
      const slackUserId = `U0${name.toUpperCase()}`
      const body = { role: 'operator', maxRisk: 'low', incidentTypes: null, disabled: false, slackUserId, ...more }
      expect((await api.put(`/operators/${name}`, { body })).status).toBe(200)
    }
  })
  afterAll(async () => {
    await worker?.stop()
    await slack?.stop()
  })
  beforeEach(() => {
    slack.calls.length = 0
  })

  /** The first message of the incident's thread, once Slack has it. */
  const root = (id: string) =>
    eventually('the thread', () =>
      [...slack.messages.values()].find(
        ({ body }) => body.thread_ts === undefined && JSON.stringify(body.blocks).includes(`Nightshift, ${id}`),
      ),
    )
  async function send(form: URLSearchParams) {
    const body = form.toString()
    const headers = slack.signed(body)
    const response = await api.api.app.request('http://localhost/slack/interactions', { method: 'POST', headers, body })
    expect(response.status).toBe(200)
  }
  const press = async (user: string, id: string, action: 'take' | 'give_back') =>
    send(slack.press(user, (await root(id)).ts, action))
  const whisper = (user: string, text: string) =>
    eventually(`${user} to hear ${text}`, () => slack.whispers(user).find((each) => each.includes(text)))
  const owner = async (id: string) => (await api.get(`/incidents/${id}`)).body.owner as unknown

  const critical = { severity: 'critical' } as const

  test('who is known here takes an incident by a button and gives it back, and the thread says so', async () => {
    const id = await openedIncident(api.db, critical)
    const { ts } = await root(id)
    expect(Object.keys(slack.buttons(ts))).toEqual(['take', 'open'])
    await press('U0ANNA', id, 'take')
    await whisper('U0ANNA', 'It is yours')
    expect(await owner(id)).toMatchObject({ name: 'anna' })
    await eventually('the button to change', () => slack.buttons(ts).give_back)
    expect(JSON.stringify((await root(id)).body)).toContain('anna has it')
    await press('U0ANNA', id, 'give_back')
    await whisper('U0ANNA', 'It is given back')
    expect(await owner(id)).toBeNull()
  })

  test('a run ends first', async () => {
    const id = await claimedIncident(api.db, critical)
    await press('U0ANNA', id, 'take')
    await whisper('U0ANNA', 'its run ends first')
    expect(api.told.at(-1)).toMatchObject({ signal: 'cancelInvestigation', incidentId: id })
  })

  test.each([
    ['U0STRANGER', 'I do not know who you are'],
    ['U0VERA', 'vera (viewer) lacks the permission manage_incident'],
    ['U0GONE', 'gone is disabled'],
  ])('%s takes nothing', async (user, why) => {
    const id = await openedIncident(api.db, critical)
    await press(user, id, 'take')
    await whisper(user, why)
    expect(await owner(id)).toBeNull()
  })

  test('a button of another incident, of another action or of nobody takes nothing, and is written down', async () => {
    const id = await openedIncident(api.db, critical)
    const { ts } = await root(id)
    const secret = slack.settings.signingSecret
    const [, foreign] = incidentButton(secret, 'inc_other', 'take').split('.')
    for (const value of [`${id}.${foreign}`, incidentButton(secret, id, 'give_back'), `${id}.${'A'.repeat(43)}`, 'x']) {
      await send(slack.press('U0ANNA', ts, 'take', { value }))
    }
    await whisper('U0ANNA', 'not one of mine')
    expect(await owner(id)).toBeNull()
    const written = async () =>
      ((await api.get('/audit?what=security.foreign_button')).body as unknown as { items: unknown[] }).items.length
    await eventually('all of them to be written down', async () => (await written()) === 4)
  })

  test('an old button of what is closed by now takes nothing and says why', async () => {
    const id = await openedIncident(api.db, critical)
    const old = slack.press('U0BERT', (await root(id)).ts, 'take')
    await api.post(`/incidents/${id}/resolve`, { body: { resolution: 'Restarted it', outcome: 'repaired' } })
    await send(old)
    await whisper('U0BERT', 'Nothing was done: it is resolved')
  })

  describe('what members write in the thread of an incident', () => {
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
      const post = async () => {
        const headers = { ...slack.signed(body), 'content-type': 'application/json' }
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

    test('is told to its run under the name that the member has here', async () => {
      const id = await claimedIncident(api.db, critical)
      const ts = await threadOf(id)
      await write('U0ANNA', 'look at <http://web-1.example|web-1> &amp; its log', ts)
      expect(await told(id)).toEqual(['anna: look at web-1 & its log'])
    })

    test('tells it nothing from strangers, viewers, programs, other threads, and once the run is over', async () => {
      const id = await claimedIncident(api.db, critical)
      const ts = await threadOf(id)
      await write('U0STRANGER', 'I approve', ts)
      await whisper('U0STRANGER', 'I do not know who you are')
      await write('U0VERA', 'I approve', ts)
      await whisper('U0VERA', 'vera (viewer) lacks the permission record')
      await write('U0ANNA', 'said by a program', ts, { bot_id: 'B1' })
      await write('U0ANNA', 'an edit', ts, { subtype: 'message_changed' })
      await write('U0ANNA', 'elsewhere', '1.1')
      await api.post(`/incidents/${id}/escalate`, { body: { reason: 'I take it' } })
      await write('U0ANNA', 'too late', ts)
      expect(await told(id)).toEqual([])
    })

    test('is told once, however often Slack sends it', async () => {
      const id = await claimedIncident(api.db, critical)
      const again = await write('U0BERT', 'it was moved', await threadOf(id))
      await new Promise((resolve) => setTimeout(resolve, 1_100))
      expect((await again()).status).toBe(200)
      expect(await told(id)).toEqual(['bert: it was moved'])
    })

    test('answers the question whether the address is ours, to Slack alone', async () => {
      const body = JSON.stringify({ type: 'url_verification', challenge: 'c-1' })
      const ask = async (headers: Record<string, string>) => {
        const all = { ...headers, 'content-type': 'application/json' }
        return await api.api.app.request('http://localhost/slack/events', { method: 'POST', headers: all, body })
      }
      expect(await (await ask(slack.signed(body))).text()).toBe('c-1')
      expect((await ask({})).status).toBe(401)
    })
  })
})
