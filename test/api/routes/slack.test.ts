import { beforeAll, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { requestApproval } from '../../../db/approvals/ask.ts'
import { withdrawPending } from '../../../db/approvals/settle.ts'
import { append } from '../../../db/log/append.ts'
import { eventsOf } from '../../../db/log/events.ts'
import { agentActor } from '../../../domain/event.ts'
import type { ResourceRef } from '../../../domain/registry.ts'
import type { Risk } from '../../../domain/tool.ts'
import { buttonValue } from '../../../notify/slack/interaction.ts'
import { claimedIncident } from '../../support/database.ts'
import { eventually } from '../../support/directory.ts'
import { publicUrl, putMembers, useSlackDoor } from '../../support/slack-door.ts'

const door = useSlackDoor()
const { api } = door
beforeAll(async () => {
  const people = { anna: {}, bert: {}, vera: { role: 'viewer' }, lowe: { maxRisk: 'low' }, gone: { disabled: true } }
  await putMembers(api, people, { role: 'approver', maxRisk: 'critical' })
})

let calls = 0
async function asks(
  more: { risk?: Risk; required?: number; incidentId?: string; callId?: string; targets?: ResourceRef[] } = {},
) {
  calls += 1
  const incidentId = more.incidentId ?? (await claimedIncident(api.db))
  const { id } = await api.db.transaction().execute((trx) =>
    requestApproval(trx, {
      incidentId,
      attempt: 1,
      turn: calls,
      callId: more.callId ?? `c${calls}_0`,
      tool: 'execute_migration',
      args: { proposal_id: 'prp_1' },
      targets: more.targets ?? [],
      reason: 'the host is dead',
      stateFingerprint: '',
      actionDigest: `digest-${calls}`,
      risk: more.risk ?? 'high',
      required: more.required ?? 1,
      reversible: true,
      replaces: null,
      actor: 'agent:incident-investigator',
      expirySeconds: 600,
      stepKey: `${incidentId}:${calls}`,
      dryRun: { possible: true, summary: 'start 3 VMs', details: {} },
    }),
  )
  return { incidentId, id }
}

/** The message that asks for it, once Slack has it. */
const card = async (id: string) =>
  await eventually('the question', () =>
    [...door.slack.messages.values()].find(
      ({ body }) => body.thread_ts !== undefined && JSON.stringify(body.blocks).includes(`Nightshift, ${id}`),
    ),
  )

async function send(form: URLSearchParams, headers?: Record<string, string>) {
  const body = form.toString()
  const response = await api.api.app.request('http://localhost/slack/interactions', {
    method: 'POST',
    headers: headers ?? door.slack.signed(body),
    body,
  })
  return { status: response.status, text: await response.text() }
}

const press = async (user: string, id: string, action: 'approve' | 'deny' = 'approve') =>
  await send(door.slack.press(user, (await card(id)).ts, action))
const approval = async (id: string) => (await api.get(`/approvals/${id}`)).body
const whisper = (user: string, text: string) =>
  eventually(`${user} to be told ${text}`, () => door.slack.whispers(user).find((each) => each.includes(text)))
const security = async (incidentId: string) =>
  (await eventsOf(api.db, incidentId)).flatMap((event) =>
    event.kind === 'security_event' ? [`${event.metadata.door} ${event.metadata.code}`] : [],
  )

test('a known person approves by a button: one decision, through Slack, and the run is woken', async () => {
  const { id, incidentId } = await asks()
  expect(await press('U0ANNA', id)).toEqual({ status: 200, text: '' })
  expect(await approval(id)).toMatchObject({
    status: 'approved',
    decisions: [{ operator: 'anna', decision: 'approve', via: 'slack' }],
  })
  expect(api.told).toContainEqual({ signal: 'decided', incidentId, attempt: 1 })
  const asked = await card(id)
  await eventually('the buttons to go', () => !door.slack.buttons(asked.ts).approve)
  expect(JSON.stringify(asked.body)).toMatch(/Approved by anna, .* UTC, by Slack/)
})

test('the question shows the possible cause from the rows of its run', async () => {
  const incidentId = await claimedIncident(api.db)
  const body = { action: 'investigated', detail: 'A power supply failed', hypothesis: 'supported' }
  await api.post(`/incidents/${incidentId}/events`, { body: { ...body, quotes: [{ seq: 1, text: 'firing' }] } })
  const { id } = await asks({ incidentId })
  expect(JSON.stringify((await card(id)).body)).toContain('Likely cause: A power supply failed (quoted, row 1)')
  expect(JSON.stringify((await card((await asks()).id)).body)).not.toContain('cause:')
})

test('the question shows the findings in the sentences of its run', async () => {
  const incidentId = await claimedIncident(api.db)
  const host = { kind: 'host' as const, id: 'host-osl-1' }
  await api.db.transaction().execute((trx) =>
    append(trx, incidentId, 1, {
      kind: 'tool_finished',
      actor: agentActor,
      detail: 'Called tool: get_host',
      turn: 1,
      metadata: {
        callId: 'c0_0',
        tool: 'get_host',
        arguments: { id: host.id },
        effect: 'read',
        targets: [host],
        outcome: 'done',
        result: { ok: true, data: { raw: 'json' }, meta: {} },
        body: null,
        durationMs: 4,
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

test('a second press shows who decided, when and where, and decides nothing', async () => {
  const { id } = await asks()
  const stale = door.slack.press('U0BERT', (await card(id)).ts, 'approve')
  await press('U0ANNA', id)
  await send(stale)
  expect(await whisper('U0BERT', 'Nothing was decided by this button')).toMatch(/Approved by anna, .* UTC, by Slack/)
  expect((await approval(id)).decisions).toHaveLength(1)
})

test('an unknown person is told so privately, with a link to the card', async () => {
  const { id } = await asks()
  await press('U0STRANGER', id)
  const told = await whisper('U0STRANGER', 'your Slack member is not linked')
  // The site of these tests runs from a checkout.
  expect(JSON.stringify(told)).toContain('npm run -s nightshift -- operators set NAME --slack')
  expect(told).toContain(`${publicUrl}/approvals/${id}`)
  expect(await approval(id)).toMatchObject({ status: 'pending', decisions: [] })
})

test.each([
  ['U0VERA', 'vera (viewer) may not decide'],
  ['U0LOWE', 'lowe may decide risks up to low'],
  ['U0GONE', 'gone is disabled'],
])('%s may not decide here either, by the rules of every channel', async (user, why) => {
  const { id } = await asks()
  await press(user, id)
  await whisper(user, why)
  await press(user, id, 'deny')
  await eventually(
    'both to be refused',
    () => door.slack.whispers(user).filter((each) => each.includes(why)).length === 2,
  )
  expect(door.slack.views).toEqual([])
  expect((await approval(id)).status).toBe('pending')
})

test('a denial asks for its category and text, and the agent gets both', async () => {
  const { id } = await asks()
  await press('U0ANNA', id, 'deny')
  await eventually('the modal', () => door.slack.views.length === 1)
  expect((await approval(id)).status).toBe('pending')
  const unsaid = await send(door.slack.submit('U0ANNA', { category: 'other' }))
  expect(JSON.parse(unsaid.text)).toMatchObject({ response_action: 'errors', errors: { words: expect.any(String) } })
  const said = await send(door.slack.submit('U0ANNA', { category: 'wrong_time', words: 'the backup runs' }))
  expect(said).toEqual({ status: 200, text: '' })
  expect(await approval(id)).toMatchObject({
    status: 'denied',
    decisions: [{ operator: 'anna', category: 'wrong_time', reason: 'the backup runs', via: 'slack' }],
  })
})

test('if no modal opens, a denial links to the card', async () => {
  const { id } = await asks()
  door.slack.troubles.push({ method: 'views.open', error: 'expired_trigger_id' })
  await press('U0ANNA', id, 'deny')
  expect(await whisper('U0ANNA', 'could not ask you for a reason')).toContain(`${publicUrl}/approvals/${id}`)
})

test('a critical risk has no button in Slack, and a forged press is refused and logged', async () => {
  const { id, incidentId } = await asks({ risk: 'critical', required: 2 })
  const { ts } = await card(id)
  expect(Object.keys(door.slack.buttons(ts))).toEqual(['open'])
  const row = await approval(id)
  const value = buttonValue(door.slack.settings.signingSecret, { id, actionDigest: String(row.actionDigest) })
  for (const action of ['approve', 'deny']) await send(door.slack.press('U0ANNA', ts, action, { value }))
  await whisper('U0ANNA', 'critical risk can only be decided on the card')
  expect(await approval(id)).toMatchObject({ status: 'pending', decisions: [] })
  expect(await security(incidentId)).toEqual(['slack CRITICAL_BUTTON', 'slack CRITICAL_BUTTON'])
})

test('a button of another action or of an unknown person decides nothing', async () => {
  const { id, incidentId } = await asks()
  const other = await asks()
  const { ts } = await card(id)
  const [, nonce] = (door.slack.buttons((await card(other.id)).ts).approve?.value ?? '').split('.')
  for (const value of [`${id}.${nonce}`, `${id}.${'A'.repeat(43)}`, `${id}.`, 'x', `apr_none.${nonce}`]) {
    await send(door.slack.press('U0ANNA', ts, 'approve', { value }))
  }
  await whisper('U0ANNA', 'does not belong to this Nightshift')
  expect((await approval(id)).status).toBe('pending')
  expect(await security(incidentId)).toEqual(['slack FOREIGN_BUTTON', 'slack FOREIGN_BUTTON'])
})

test('the button of an approval that was withdrawn and asked again says so', async () => {
  const { id, incidentId } = await asks({ callId: 'c9_0' })
  const old = door.slack.press('U0ANNA', (await card(id)).ts, 'approve')
  await api.db.transaction().execute((trx) => withdrawPending(trx, incidentId, 'the platform changed'))
  const anew = await asks({ incidentId, callId: 'c9_0' })
  await send(old)
  expect(await whisper('U0ANNA', 'Withdrawn')).toContain(`requested again: ${publicUrl}/approvals/${anew.id}`)
  expect((await approval(anew.id)).status).toBe('pending')
})

test('the button of an expired approval says so, even if the expiry was not noticed before', async () => {
  const { id } = await asks()
  const form = door.slack.press('U0ANNA', (await card(id)).ts, 'approve')
  await sql`update approval set expires_at = nightshift_now() where id = ${id}`.execute(api.owner)
  await send(form)
  await whisper('U0ANNA', 'the approval expired')
  expect((await approval(id)).decisions).toEqual([])
})

test('if two people are needed, the first is told so and the buttons stay', async () => {
  const { id } = await asks({ required: 2 })
  const asked = await card(id)
  await press('U0ANNA', id)
  await whisper('U0ANNA', 'Another person must approve')
  await eventually('the card to say so', () => JSON.stringify(asked.body).includes('1 of 2 have approved'))
  await press('U0ANNA', id)
  await whisper('U0ANNA', 'You had already made this decision')
  await press('U0BERT', id)
  expect((await approval(id)).status).toBe('approved')
})

test('a forged signature, an old or future timestamp and a repeated request are refused and logged', async () => {
  const { id, incidentId } = await asks()
  const form = door.slack.press('U0ANNA', (await card(id)).ts, 'approve')
  const body = form.toString()
  const now = Math.floor(Date.now() / 1000)
  const genuine = door.slack.signed(body)
  for (const headers of [
    door.slack.signed(body, { secret: 'of somebody else' }),
    { ...genuine, 'x-slack-signature': genuine['x-slack-signature']!.toUpperCase() },
    { ...genuine, 'x-slack-request-timestamp': String(now - 1) },
    { 'content-type': 'application/x-www-form-urlencoded' },
    door.slack.signed(body, { atSeconds: now - 400 }),
    door.slack.signed(body, { atSeconds: now + 400 }),
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

test('one request that reaches two servers at once is accepted once', async () => {
  const { id } = await asks()
  const form = door.slack.press('U0ANNA', (await card(id)).ts, 'approve')
  const headers = door.slack.signed(form.toString())
  const answers = await Promise.all(Array.from({ length: 8 }, () => send(form, headers)))
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
  expect((await approval(id)).decisions).toHaveLength(1)
})

test('a press in Slack and a denial at the API at once have one outcome, and the other person is told', async () => {
  for (let round = 0; round < 3; round += 1) {
    const { id } = await asks()
    const form = door.slack.press('U0ANNA', (await card(id)).ts, 'approve')
    const { token } = (
      await api.post(`/approvals/${id}/token`, { as: api.tokens.approver, body: { decision: 'deny', reason: 'no' } })
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

test('a press is answered although Slack itself does not answer', async () => {
  const { id } = await asks()
  const { ts } = await card(id)
  const release = door.slack.hold()
  // Slack would call anything later than three seconds a failure.
  expect((await send(door.slack.press('U0STRANGER', ts, 'approve'))).status).toBe(200)
  expect(door.slack.whispers('U0STRANGER')).toEqual([])
  release()
  await whisper('U0STRANGER', 'your Slack member is not linked')
})

test('a signed request without a known button is answered and changes nothing, and a large one is not read', async () => {
  for (const payload of ['{"type":"block_actions"}', '{', '[]', '{"type":"shortcut"}']) {
    expect((await send(new URLSearchParams({ payload }))).status).toBe(200)
  }
  const { id } = await asks()
  expect((await send(door.slack.press('U0ANNA', (await card(id)).ts, 'open'))).status).toBe(200)
  expect((await send(new URLSearchParams({ payload: 'x'.repeat(1_100_000) }))).status).toBe(413)
  expect((await approval(id)).status).toBe('pending')
})

test('the token and the secret are in no row, and a refusal repeats none of them', async () => {
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
