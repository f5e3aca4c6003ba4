import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { temporaryDirectory } from '../support/directory.ts'
import { type ChatRequest, type Line, type ScriptedModel, scriptedModel } from '../support/scripted-model.ts'
import { type SiteDatabase, siteDatabase } from '../support/site-database.ts'
import { type Spine, startSpine } from '../support/spine.ts'

/**
 * A transaction of billing that nobody ended blocks the shop; the model asks the server, proposes
 * the end of that session, and a person approves.
 */
let model: ScriptedModel
let spine: Spine
let shop: SiteDatabase
let lines: ((request: ChatRequest) => Line)[] = []
const files = temporaryDirectory()

beforeAll(async () => {
  model = await scriptedModel((_turn, request) => (lines.length > 1 ? lines.shift() : lines[0])?.(request) ?? '')
  shop = await siteDatabase(files.path)
  spine = await startSpine({
    parts: ['api', 'worker'],
    environment: { LLM_BASE_URL: model.url, LLM_MODEL: 'scripted', SOURCES_DIR: files.path },
  })
})
afterAll(async () => {
  await spine?.stop()
  await model?.stop()
  await shop?.drop()
  files.remove()
})

// Letters, since four digits turn up in times and process numbers by themselves.
const secret = 'planted-card-QZXJVK'

test('the session that blocks others is named before the first turn, terminated after an approval, and verified as gone', async () => {
  const { url, credential, writeCredential } = shop
  const added = await fetch(`${spine.url}/api/v1/sources/shop-db`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${spine.tokens.admin}`, 'content-type': 'application/json' },
    body: JSON.stringify({ kind: 'postgresql', url, credential, writeCredential }),
  })
  expect([added.status, await added.text()]).toEqual([200, expect.stringContaining('shop-db')])
  expect((await spine.post('/sources/shop-db/test', {}, { token: spine.tokens.admin })).body).toMatchObject({
    ok: true,
  })
  const { items } = await spine.get<{ items: { id: string }[] }>('/inventory/resources?kind=database')
  expect(items.map(({ id }) => id)).toEqual(['shop-db'])

  const billing = await shop.open('billing')
  await billing.query('begin')
  await billing.query(`update orders set note = '${secret}' where id = 1`)
  const waiting = await Promise.all(['web-1', 'web-2'].map((name) => shop.open(name)))
  const updates = waiting.map((client) => client.query(`update orders set note = '${secret}' where id = 1`))
  await spine.until('both to wait', async () => {
    const [row] = await shop.run(
      `select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
    )
    return row?.n === 2
  })

  let context = ''
  const seen: string[] = []
  const idOf = (request: ChatRequest) => /inc_[0-9a-z]{26}/.exec(JSON.stringify(request.messages))?.[0] ?? ''
  const last = (request: ChatRequest) => request.messages.at(-1)?.content ?? ''
  const root = () => /session (\d+) \(began ([^)]+)\)/.exec(context)
  lines = [
    (request) => {
      context = JSON.stringify(request.messages)
      return [{ tool: 'ask_database', arguments: { question: 'blocking' } }]
    },
    (request) => {
      seen.push(last(request))
      const [, pid, began] = root() ?? []
      return [
        {
          tool: 'terminate_session',
          arguments: { database: 'shop-db', pid: Number(pid), began, reason: 'It blocks the shop.' },
        },
      ]
    },
    (request) => {
      seen.push(last(request))
      return [{ tool: 'ask_database', arguments: { question: 'blocking' } }]
    },
    (request) => {
      seen.push(last(request))
      const seq = Number(/"seq":(\d+)/.exec(last(request))?.[1])
      return [
        {
          tool: 'resolve_incident',
          arguments: {
            id: idOf(request),
            resolution: 'No session waits for a lock on shop-db.',
            outcome: 'repaired',
            claims: [
              {
                kind: 'is',
                text: 'no session waits for a lock on shop-db',
                quotes: [{ seq, text: '"sessionsWaiting":0' }],
              },
            ],
          },
        },
      ]
    },
  ]
  const labels = {
    alertname: 'PostgresqlSessionsBlocked',
    severity: 'critical',
    job: 'postgres',
    instance: new URL(url).host,
  }
  await spine.post(
    '/ingest/alertmanager',
    { version: '4', alerts: [{ status: 'firing', labels, annotations: { summary: 'Sessions wait for locks' } }] },
    { token: spine.tokens.ingest },
  )
  const approval = await spine.pendingApproval()
  expect(context).toContain('2 sessions waiting for locks below session')
  expect(approval).toMatchObject({ tool: 'terminate_session', risk: 'medium' })
  const { told } = approval.dryRun.details.rehearsal as { told: string[] }
  expect(told.slice(2, 5)).toEqual([
    '2 sessions waiting for it:',
    expect.stringMatching(/^· \d+ shop_\w+, web-[12]$/),
    expect.stringMatching(/^(?:· ){1,2}\d+ shop_\w+, web-[12]$/),
  ])
  const { token } = (
    await spine.post(`/approvals/${approval.id}/token`, { decision: 'approve' }, { token: spine.tokens.approver })
  ).body
  await spine.post(
    `/approvals/${approval.id}/decision`,
    { token, decision: 'approve' },
    { token: spine.tokens.approver },
  )
  const incident = await spine.incident('postgresql_sessions_blocked', 'resolved|escalated')
  expect({ ...incident, seen }).toMatchObject({
    status: 'resolved',
    outcome: 'repaired',
    resource: { kind: 'database', id: 'shop-db' },
  })
  expect((await Promise.allSettled(updates)).map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled'])
  const left = await shop.run(
    `select application_name from pg_stat_activity where application_name in ('billing', 'web-1', 'web-2') and datname = current_database() order by 1`,
  )
  expect(left.map(({ application_name }) => application_name)).toEqual(['web-1', 'web-2'])
  expect(context + seen.join() + JSON.stringify(await spine.events(incident.id)) + spine.printed()).not.toContain(
    'QZXJVK',
  )
})
