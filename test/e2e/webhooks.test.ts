import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import pino from 'pino'
import { Webhook } from 'standardwebhooks'
import { requestApproval } from '../../db/approvals/ask.ts'
import { withdrawPending } from '../../db/approvals/settle.ts'
import { closeIncident } from '../../db/incidents/close-incident.ts'
import { startDeliveries } from '../../worker/deliver.ts'
import { claimedIncident, openedIncident, useDatabase } from '../support/database.ts'
import { eventually } from '../support/directory.ts'

const database = useDatabase()
const secret = `whsec_${Buffer.from('0123456789abcdef0123456789abcdef').toString('base64')}`
let receiver: Server
let url: string
let received: { path: string; headers: Record<string, string>; body: string }[] = []
let status = 200
let deliveries: { stop(): Promise<void> }

beforeAll(async () => {
  receiver = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    received.push({
      path: request.url ?? '',
      headers: request.headers as never,
      body: Buffer.concat(chunks).toString(),
    })
    response.writeHead(status).end('ok')
  })
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`
  deliveries = startDeliveries(database.db, pino({ level: 'silent' }), {
    publicUrl: 'https://nightshift.example',
    pushServices: [],
  })
})
afterAll(async () => {
  await deliveries.stop()
  receiver.close()
})

async function configured(settings: Record<string, string>) {
  await sql`delete from platform_config`.execute(database.owner)
  // Seed 002's own statements, as they stand.
  for (const [key, value] of Object.entries(settings)) {
    await sql`INSERT INTO platform_config (key, value) VALUES (${key}, ${value})`.execute(database.owner)
  }
  received = []
  status = 200
}

const attempts = (incidentId: string) =>
  database.db
    .selectFrom('delivery')
    .select(['attempt', 'status', 'responseStatus'])
    .where('incidentId', '=', incidentId)
    .orderBy('attempt')
    .execute()

const escalate = (id: string) =>
  database.db
    .transaction()
    .execute((trx) =>
      closeIncident(
        trx,
        id,
        null,
        { status: 'escalated', code: 'X', reason: 'the disk is full of tenant data' },
        { actor: 'user:anna', stepKey: null },
      ),
    )

test('a critical incident is sent to the generic receiver, with a signature that can be checked', async () => {
  await configured({ 'webhook.critical.url': `${url}/critical`, 'webhook.critical.secret': secret })
  const id = await openedIncident(database.db, { severity: 'critical' })
  await openedIncident(database.db, { severity: 'warning' })
  const message = await eventually('the delivery', async () => received[0])
  expect(new Webhook(secret).verify(message.body, message.headers)).toMatchObject({
    type: 'incident.critical',
    data: { incident: { id } },
  })
  await eventually('the delivery', async () => (await attempts(id))[0]?.status === 'sent')
  expect(received).toHaveLength(1)
})

test('each escalation is sent to Slack with its reason', async () => {
  await configured({ 'webhook.escalated.url': `${url}/slack`, 'webhook.escalated.template': 'slack' })
  const id = await claimedIncident(database.db, { title: '<!channel> & <script>' })
  await escalate(id)
  const message = await eventually('the delivery', async () => received[0])
  const body = JSON.parse(message.body)
  expect(body.text).toContain('Escalated')
  expect(message.body).toContain('the disk is full of tenant data')
  expect(message.body).not.toContain('<!channel>')
  expect(body.blocks.length).toBeLessThanOrEqual(45)
})

test('a dead receiver costs three attempts, each a row, and nothing else', async () => {
  await configured({ 'webhook.escalated.url': 'http://127.0.0.1:9/dead' })
  const id = await claimedIncident(database.db)
  await escalate(id)
  for (let attempt = 1; attempt <= 3; attempt += 1) {
    await eventually('the delivery', async () => (await attempts(id))[attempt - 1]?.status === 'failed')
    await sql`update delivery set next_at = nightshift_now() where incident_id = ${id} and status = 'pending'`.execute(
      database.owner,
    )
  }
  // A message that is due after it is tried, and it is not.
  const later = await claimedIncident(database.db)
  await escalate(later)
  await eventually('a later delivery', async () => (await attempts(later))[0]?.status === 'failed')
  expect((await attempts(id)).map((row) => row.status)).toEqual(['failed', 'failed', 'failed'])
  expect(await database.db.selectFrom('incident').select('status').where('id', '=', id).executeTakeFirst()).toEqual({
    status: 'escalated',
  })
})

test('a receiver that refuses the message for good is not asked again', async () => {
  await configured({ 'webhook.escalated.url': `${url}/gone` })
  status = 404
  const id = await claimedIncident(database.db)
  await escalate(id)
  await eventually('the delivery', async () => (await attempts(id))[0]?.status === 'dropped')
  expect(await attempts(id)).toHaveLength(1)
})

async function asks(incidentId: string): Promise<string> {
  const { id } = await database.db.transaction().execute((trx) =>
    requestApproval(trx, {
      incidentId,
      attempt: 1,
      turn: 1,
      callId: 'c1_0',
      tool: 'execute_migration',
      args: { proposal_id: 'prp_1' },
      targets: [],
      reason: 'host-osl-1 is <!channel> dead',
      stateFingerprint: '',
      actionDigest: 'd',
      risk: 'high',
      reversible: true,
      required: 1,
      replaces: null,
      actor: 'agent:incident-investigator',
      expirySeconds: 600,
      stepKey: `${incidentId}:ask`,
      dryRun: { possible: true, summary: 'start 3 VMs, to host-osl-2', details: {} },
    }),
  )
  return id
}

/** Lets this much of a question's ten minutes pass. */
async function aged(id: string, seconds: number): Promise<void> {
  await sql`update approval set requested_at = nightshift_now() - make_interval(secs => ${seconds}),
      expires_at = nightshift_now() + make_interval(secs => ${600 - seconds}) where id = ${id}`.execute(database.owner)
}

const toldOf = (id: string) => received.filter(({ body }) => body.includes(id))

/**
 * Waits until a question that was asked later has been told of and repeated: whatever else was due
 * has gone out by then.
 */
async function laterIsRepeated(): Promise<void> {
  const later = await asks(await claimedIncident(database.db))
  await eventually('the later question', () => toldOf(later).length === 1)
  await aged(later, 301)
  await eventually('its reminder', () => toldOf(later).length === 2)
}

test('a question is sent with a link to its card, repeated at half and at nine tenths of its time, and never again', async () => {
  await configured({ 'webhook.approval.url': `${url}/asked`, 'webhook.approval.template': 'slack' })
  const id = await asks(await claimedIncident(database.db))
  await eventually('the delivery', async () => received[0])
  for (const [part, heading] of [
    [0.5, 'Approval still needed'],
    [0.9, 'Expires soon'],
  ] as const) {
    await aged(id, 600 * part + 1)
    const message = await eventually('the delivery', async () => received.find(({ body }) => body.includes(heading)))
    expect(message.body).toContain('Tool: execute_migration')
    expect(message.body).toContain(`https://nightshift.example/approvals/${id}`)
    expect(message.body).not.toContain('<!channel>')
  }
  await laterIsRepeated()
  expect(toldOf(id)).toHaveLength(3)
})

test('nobody is reminded of a withdrawn question', async () => {
  await configured({ 'webhook.approval.url': `${url}/asked` })
  const incidentId = await claimedIncident(database.db)
  const id = await asks(incidentId)
  await eventually('the delivery', async () => received[0])
  expect(JSON.parse(received[0]?.body ?? '')).toMatchObject({
    type: 'approval.requested',
    data: { approval: { id } },
  })
  await database.db.transaction().execute((trx) => withdrawPending(trx, incidentId, 'the alert ended'))
  await sql`update approval set requested_at = nightshift_now() - interval '9 minutes' where id = ${id}`.execute(
    database.owner,
  )
  await laterIsRepeated()
  expect(toldOf(id)).toHaveLength(1)
})
