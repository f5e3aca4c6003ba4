import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import pino from 'pino'
import { principalOf } from '../../../db/access/principals.ts'
import { createToken, ensureOperator } from '../../../db/access/tokens.ts'
import { ingestAlert } from '../../../db/alerts/ingest-body.ts'
import { decide } from '../../../db/approvals/decide.ts'
import { readDecision, withdrawPending } from '../../../db/approvals/settle.ts'
import { closeIncident } from '../../../db/incidents/close-incident.ts'
import { lockIncident } from '../../../db/incidents/incidents.ts'
import { takeIncident } from '../../../db/incidents/owners.ts'
import { enqueueNotification } from '../../../db/outbox/deliveries.ts'
import { sendDigests } from '../../../db/outbox/digests.ts'
import { tellLostDuties } from '../../../db/outbox/lost-duties.ts'
import { leaseSlackChannel, useSlackChannel } from '../../../db/outbox/slack-channel.ts'
import { createSlackClient } from '../../../notify/slack/client.ts'
import { startSlack } from '../../../notify/slack/send.ts'
import { startDeliveries } from '../../../worker/deliver.ts'
import { asked } from '../../support/announced.ts'
import { anAlert, claimedIncident, useDatabase } from '../../support/database.ts'
import { mintedToken } from '../../support/decision-tokens.ts'
import { eventually } from '../../support/directory.ts'
import { type ScriptedSlack, startScriptedSlack } from '../../support/scripted-slack.ts'

// Before the database is closed, which is why it stands first: a worker that waits for a connection
// keeps the pool from closing.
afterAll(async () => {
  await worker?.stop()
  await slack?.stop()
})
const database = useDatabase()
const publicUrl = 'https://nightshift.example'
const log = pino({ level: 'silent' })
let slack: ScriptedSlack
let worker: { stop(): Promise<void> }

/** Two messages a second apart are one test; the others need not wait. */
const startWorker = (pace = { paceSeconds: 0, pollEveryMs: 50 }) =>
  startSlack(database.db, log, createSlackClient(slack.settings), { publicUrl }, pace)

beforeAll(async () => {
  slack = await startScriptedSlack()
  await useSlackChannel(database.db, slack.settings.channel)
  worker = startWorker()
})
beforeEach(async () => {
  await allTold()
  slack.calls.length = 0
  slack.messages.clear()
})

/** Nothing is due for Slack any more. */
const allTold = () =>
  eventually('Slack to be told everything', async () => {
    const { rows } =
      await sql`select 1 from delivery where destination like 'slack.%' and status in ('pending', 'sending')
      and next_at <= nightshift_now()`.execute(database.db)
    return rows.length === 0
  })

const posted = () => [...slack.messages.values()]
const textOf = (message: { body: object } | undefined) => JSON.stringify(message?.body ?? '')
const message = (text: string) =>
  eventually(`a message with ${text}`, () => posted().find((each) => textOf(each).includes(text)))
const rows = (incidentId: string) =>
  database.db.selectFrom('delivery').selectAll().where('incidentId', '=', incidentId).orderBy('id').execute()

const closing = (reason: string) => ({ status: 'escalated' as const, code: 'X', reason })
async function escalate(incidentId: string, reason = 'the disk is full') {
  await database.db
    .transaction()
    .execute((trx) => closeIncident(trx, incidentId, null, closing(reason), { actor: 'user:anna', stepKey: null }))
}

async function decideAs(name: string, approvalId: string, decision: 'approve' | 'deny') {
  const token = await createToken(database.db, {
    name,
    role: 'approver' as const,
    operatorId: await ensureOperator(database.db, name, 'approver'),
  })
  const principal = await principalOf(database.db, token)
  const said = { decision, reason: decision === 'deny' ? 'backup runs' : null }
  const minted = await mintedToken(database.db, principal!, approvalId, said)
  const at = { approvalId, incidentId: null, token: minted, caller: principal!.operatorId, via: 'cli' }
  return await decide(database.db, { ...said, ...at })
}

test('an incident has one thread: its first message, the question and its end below, and the first stays current', async () => {
  const incidentId = await claimedIncident(database.db, { severity: 'critical', title: 'Replica <!channel> lags' })
  const root = await message('lags')
  expect(root.body).toMatchObject({ channel: '#ops', mrkdwn: false })
  expect(textOf(root)).toContain('Severity: critical')
  const approvalId = await asked(database.db, incidentId)
  const card = await message('Approval needed')
  // Seen in the channel too: a thread rings only those who follow it.
  expect(card.body).toMatchObject({ channel: 'C0OPS', thread_ts: root.ts, reply_broadcast: true })
  expect(Object.keys(slack.buttons(card.ts))).toEqual(['approve', 'deny', 'open'])
  expect(slack.buttons(card.ts).open?.url).toBe(`${publicUrl}/approvals/${approvalId}`)
  await decideAs('anna', approvalId, 'approve')
  await eventually('the buttons to go', () => !slack.buttons(card.ts).approve)
  expect(textOf(card)).toMatch(/Approved by anna, [\d-]+ [\d:]+ UTC, by CLI/)
  await escalate(incidentId, 'it came back')
  const end = await message('Escalated: ')
  expect(end.body).toMatchObject({ thread_ts: root.ts, reply_broadcast: true })
  await eventually('the first message to say so', () => textOf(root).includes('Status: escalated'))
  for (const said of ['it came back', 'Approved by anna']) expect(textOf(root)).toContain(said)
  expect(posted()).toHaveLength(3)
  expect(textOf(root)).not.toContain('<!channel>')
})

test('an escalation without an earlier message is one message', async () => {
  const incidentId = await claimedIncident(database.db)
  await escalate(incidentId, 'the disk is full of tenant data')
  await message('full of tenant data')
  await allTold()
  expect(posted()).toHaveLength(1)
})

test('a mitigated incident is a reply in the thread and notifies nobody in the channel', async () => {
  const incidentId = await claimedIncident(database.db, { severity: 'critical', title: 'A host died' })
  const root = await message('A host died')
  const mitigated = { ...closing('all VMs run elsewhere'), category: 'mitigated' as const }
  await database.db
    .transaction()
    .execute((trx) => closeIncident(trx, incidentId, null, mitigated, { actor: 'user:anna', stepKey: null }))
  const end = await message('Mitigated: ')
  expect(end.body).toMatchObject({ thread_ts: root.ts, reply_broadcast: false })
})

test('the first message follows the owner and whether the alert fires', async () => {
  const alert = anAlert({ startsAt: new Date(Date.now() - 60_000).toISOString(), title: 'A disk fills' })
  const { incidentId } = await ingestAlert(database.db, alert)
  await escalate(incidentId ?? '')
  const root = await message('A disk fills')
  await eventually('it to say that the alert fires', () => textOf(root).includes('its alert still fires'))
  const by = { operatorId: await ensureOperator(database.db, 'anna', 'operator'), actor: 'user:anna', name: 'anna' }
  await database.db.transaction().execute((trx) => takeIncident(trx, incidentId ?? '', by))
  await eventually('it to say who has it', () => textOf(root).includes('anna has it'))
  await ingestAlert(database.db, { ...alert, status: 'resolved', endsAt: new Date().toISOString() })
  await eventually('it to say no more that it fires', () => !textOf(root).includes('still fires'))
})

test('a digest is a message in the channel, not a reply in a thread, with a link to the list', async () => {
  const titles = ['The first of many', 'The second of many']
  for (const title of titles) await escalate(await claimedIncident(database.db, { title }))
  await sql`update incident set closed_at = nightshift_now() - interval '5 hours' where title like '%of many'`.execute(
    database.owner,
  )
  expect(await sendDigests(database.db)).toBe(2)
  const digest = await message('Still firing, escalated: 2 incidents')
  expect(digest.body.thread_ts).toBeUndefined()
  for (const title of titles) expect(textOf(digest)).toContain(title)
  expect(slack.buttons(digest.ts).open?.url).toBe(`${publicUrl}/incidents?status=escalated`)
})

test('a message about an incident without a thread begins the thread and is a reply in it', async () => {
  const incidentId = await claimedIncident(database.db, { title: 'A quiet one' })
  await database.db.transaction().execute(async (trx) => {
    const row = await lockIncident(trx, incidentId)
    if (row) await enqueueNotification(trx, row, 'watch', 'The write was verified, but the alert still fires')
  })
  const told = await message('The write was verified, but the alert still fires')
  const root = posted().find(({ ts }) => ts === told.body.thread_ts)
  expect(textOf(root)).toContain('A quiet one')
  expect(told.body.reply_broadcast).toBe(false)
})

test.each([
  ['denied', (id: string) => decideAs('anna', id, 'deny'), /Denied by anna.*backup runs/],
  [
    'withdrawn',
    (_: string, incidentId: string) =>
      database.db.transaction().execute((trx) => withdrawPending(trx, incidentId, 'the alert ended')),
    /Withdrawn/,
  ],
  [
    'expired',
    async (id: string) => {
      await sql`update approval set expires_at = nightshift_now() where id = ${id}`.execute(database.owner)
      await readDecision(database.db, id)
    },
    /Expired: nobody decided/,
  ],
] as const)('a question that is %s loses its buttons and says so', async (_, settle, said) => {
  const incidentId = await claimedIncident(database.db)
  const approvalId = await asked(database.db, incidentId)
  const card = await message('Approval needed')
  await settle(approvalId, incidentId)
  await eventually('the buttons to go', () => !slack.buttons(card.ts).approve && !slack.buttons(card.ts).deny)
  expect(textOf(card)).toMatch(said)
})

test('a reminder is a reply in the thread', async () => {
  const deliveries = startDeliveries(database.db, log, { publicUrl, pushServices: [] })
  try {
    const approvalId = await asked(database.db, await claimedIncident(database.db))
    const card = await message('Approval needed')
    await sql`update approval set requested_at = nightshift_now() - interval '301 seconds',
      expires_at = nightshift_now() + interval '299 seconds' where id = ${approvalId}`.execute(database.owner)
    const reminder = await message('Approval still needed')
    expect(reminder.body).toMatchObject({ thread_ts: card.body.thread_ts, reply_broadcast: false })
  } finally {
    await deliveries.stop()
  }
})

test('nobody is asked in Slack about a question that was decided before its message', async () => {
  await worker.stop()
  const incidentId = await claimedIncident(database.db)
  await decideAs('anna', await asked(database.db, incidentId), 'approve')
  worker = startWorker()
  await allTold()
  expect(posted().filter((each) => textOf(each).includes('Approval needed'))).toEqual([])
  expect((await rows(incidentId)).find(({ destination }) => destination === 'slack.tell')).toMatchObject({
    status: 'sent',
    response: 'the approval is approved already',
  })
})

test('after a restart of the worker nothing is posted twice', async () => {
  const incidentId = await claimedIncident(database.db)
  await asked(database.db, incidentId)
  await message('Approval needed')
  await worker.stop()
  worker = startWorker()
  await escalate(incidentId, 'nobody came')
  await message('nobody came')
  await allTold()
  expect(posted().map(({ body }) => body.thread_ts !== undefined)).toEqual([false, true, true])
})

test('a message of a worker that died is sent when its lease ends', async () => {
  await worker.stop()
  const incidentId = await claimedIncident(database.db)
  await escalate(incidentId)
  expect(await leaseSlackChannel(database.db)).toMatchObject({ delivery: { incidentId } })
  worker = startWorker()
  expect(await leaseSlackChannel(database.db)).toBeNull()
  await sql`update delivery set leased_until = nightshift_now() where status = 'sending'`.execute(database.owner)
  await sql`update slack_channel set ready_at = nightshift_now()`.execute(database.owner)
  await message('the disk is full')
  await allTold()
  expect(posted()).toHaveLength(1)
})

test('two workers post one thread, each message once, and never too fast for Slack', async () => {
  await worker.stop()
  // A little less than the second that is kept: what is sent a second after an answer may travel
  // faster than that did.
  slack.pace(900)
  const workers = [1, 2].map(() => startWorker({ paceSeconds: 1, pollEveryMs: 50 }))
  try {
    const ids = await Promise.all([1, 2, 3].map(() => claimedIncident(database.db)))
    await Promise.all(ids.map((id) => asked(database.db, id)))
    await eventually('three threads with a question', () => posted().length === 6)
    await allTold()
    expect(posted()).toHaveLength(6)
    expect(slack.calls.map(({ answer }) => answer)).not.toContain('ratelimited')
  } finally {
    await Promise.all(workers.map((each) => each.stop()))
    slack.pace(0)
    worker = startWorker()
  }
})

test('when Slack is busy the whole channel waits as long as it says, and no attempt is lost', async () => {
  slack.troubles.push({ method: 'chat.postMessage', status: 429, error: 'ratelimited', retryAfter: 600 })
  const incidentId = await claimedIncident(database.db)
  await escalate(incidentId)
  const { readyAt } = await eventually('the channel to wait', async () => {
    const channel = await database.db.selectFrom('slackChannel').selectAll().executeTakeFirstOrThrow()
    return slack.calls.length > 0 && Date.parse(channel.readyAt) > Date.now() + 500_000 && channel
  })
  expect((await rows(incidentId)).map(({ status, attempt }) => [status, attempt])).toContainEqual(['pending', 1])
  expect(Date.parse(readyAt)).toBeLessThan(Date.now() + 700_000)
  await sql`update slack_channel set ready_at = nightshift_now()`.execute(database.owner)
  await sql`update delivery set next_at = nightshift_now() where status = 'pending'`.execute(database.owner)
  await message('the disk is full')
  await allTold()
  expect(posted()).toHaveLength(1)
  expect((await rows(incidentId)).every(({ attempt }) => attempt === 1)).toBe(true)
})

test.each(['channel_not_found', 'internal_error'])(
  '%s is tried again, because a person may be correcting it',
  async (error) => {
    slack.troubles.push({ method: 'chat.postMessage', error })
    const incidentId = await claimedIncident(database.db)
    await escalate(incidentId)
    await eventually('a second attempt', async () => (await rows(incidentId)).some(({ attempt }) => attempt === 2))
    await sql`update delivery set next_at = nightshift_now() where status = 'pending'`.execute(database.owner)
    await message('the disk is full')
  },
)

test.each(['token_revoked', 'is_archived', 'msg_too_long'])(
  '%s is not tried again, because no repetition helps',
  async (error) => {
    slack.troubles.push({ method: 'chat.postMessage', error })
    const incidentId = await claimedIncident(database.db)
    await escalate(incidentId)
    await eventually('the delivery to be given up', async () =>
      (await rows(incidentId)).some(({ status, response }) => status === 'dropped' && response === `Slack: ${error}`),
    )
    await allTold()
    expect(posted()).toEqual([])
  },
)

test('a thread whose first message was deleted begins again, once', async () => {
  const incidentId = await claimedIncident(database.db)
  const approvalId = await asked(database.db, incidentId)
  await message('Approval needed')
  await allTold()
  slack.messages.clear()
  await decideAs('anna', approvalId, 'approve')
  await escalate(incidentId, 'it came back')
  const root = await eventually('a new first message', () => posted().find(({ body }) => body.thread_ts === undefined))
  await eventually('it to say how it ended', () => textOf(root).includes('Status: escalated'))
  await allTold()
  expect(posted().filter(({ body }) => body.thread_ts === undefined)).toHaveLength(1)
})

test('a question that was deleted before everybody voted is asked again with the votes so far', async () => {
  const incidentId = await claimedIncident(database.db)
  const approvalId = await asked(database.db, incidentId, { required: 2 })
  const first = await message('Approval needed')
  await allTold()
  slack.messages.delete(first.ts)
  await decideAs('anna', approvalId, 'approve')
  // The first message says so as well, and has no buttons that decide.
  const anew = await eventually('the question', () => posted().find(({ ts }) => slack.buttons(ts).approve))
  expect(textOf(anew)).toContain('1 of 2 have approved')
  expect(anew.body.thread_ts).toBe(first.body.thread_ts)
  await decideAs('bert', approvalId, 'approve')
  await eventually('the buttons to go', () => !slack.buttons(anew.ts).approve)
})

test('an answer that was lost after Slack had posted may be repeated, and nothing more is promised', async () => {
  slack.troubles.push({ method: 'chat.postMessage', after: true })
  const incidentId = await claimedIncident(database.db)
  await escalate(incidentId)
  await eventually('a second attempt', async () => (await rows(incidentId)).some(({ attempt }) => attempt === 2))
  await sql`update delivery set next_at = nightshift_now() where status = 'pending'`.execute(database.owner)
  await eventually('it to be told', async () => (await rows(incidentId)).at(-1)?.status === 'sent')
  await allTold()
  expect(posted()).toHaveLength(2)
})

test('without a bot nothing is written for Slack, and waiting messages are given up', async () => {
  await worker.stop()
  const before = await claimedIncident(database.db)
  await escalate(before)
  const off = startSlack(database.db, log, null, { publicUrl })
  await eventually('it to be given up', async () => (await rows(before)).every(({ status }) => status === 'dropped'))
  const after = await claimedIncident(database.db)
  await escalate(after)
  expect(await rows(after)).toEqual([])
  await off.stop()
  worker = startWorker()
})

test('a lost duty is reported in the channel, also if the newest incident has no thread', async () => {
  const { incidentId } = await ingestAlert(database.db, anAlert({ severity: 'warning', fingerprint: 'no-thread' }))
  await sql`delete from slack_thread where incident_id = ${incidentId}`.execute(database.owner)
  const lost = [{ name: 'worker', status: 'failed' as const, detail: 'None asks for work.', remedy: 'start one' }]
  await tellLostDuties(database.db, lost)
  await sql`update lost_duty set since = since - interval '1 minute'`.execute(database.owner)
  await tellLostDuties(database.db, lost)
  await allTold()
  expect(posted().map(textOf)).toEqual([expect.stringContaining('worker is lost')])
})
