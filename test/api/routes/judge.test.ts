import { expect, test } from '@jest/globals'
import { judgeApart } from '../../../api/judge-apart.ts'
import { createToken, ensureOperator } from '../../../db/access/tokens.ts'
import { append } from '../../../db/log/append.ts'
import { agentActor } from '../../../domain/event.ts'
import { useApi } from '../../support/api.ts'
import { claimedIncident } from '../../support/database.ts'
import { eventually } from '../../support/directory.ts'

const api = useApi()

test('a command is judged without being run', async () => {
  const read = await api.post('/judge', { body: { command: 'df -h' }, as: api.tokens.viewer })
  expect([read.status, read.body]).toMatchObject([200, { verdict: 'run', effect: 'read' }])
  const forbidden = await api.post('/judge', { body: { command: 'mkfs.ext4 /dev/sda1' } })
  expect(forbidden.body).toMatchObject({ verdict: 'refuse', effect: 'forbidden' })
})

test('a call is judged in the state of a real incident, which gets no row', async () => {
  const id = await claimedIncident(api.db)
  const asked = { tool: 'converge_shard', args: { id: 'db-osl-1', reason: 'it lags' }, incident_id: id }
  expect((await api.post('/judge', { body: asked })).body).toMatchObject({
    verdict: 'refuse',
    code: 'STRICT_RESOLUTION',
  })
  const rows = await api.db.selectFrom('incidentEvent').select('kind').where('incidentId', '=', id).execute()
  expect(rows.map(({ kind }) => kind)).not.toContain('call_judged')
  expect((await api.post('/judge', { body: { ...asked, incident_id: 'inc_none' } })).status).toBe(404)
  expect((await api.post('/judge', { body: { tool: 'x' } })).status).toBe(422)
})

test.each(['search_logs', 'query_metrics', 'describe_metrics', 'list_alerts', 'list_silences', 'http_read', 'nothing'])(
  'a call of %s that leaves out optional or required arguments is judged, and is no internal error',
  async (tool) => {
    const incident_id = await claimedIncident(api.db)
    for (const args of [{}, { on: 'node:web-1', path: '/var/log/syslog' }, { promql: 'up', labels: null }]) {
      const { status, body } = await api.post('/judge', { body: { tool, args, incident_id } })
      expect([args, status, body.code]).toEqual([args, 200, expect.any(String)])
    }
  },
)

test('an agent cannot ask for a ruling', async () => {
  expect((await api.post('/judge', { body: { command: 'df' }, as: api.tokens.agent })).status).toBe(403)
})

test('a stored refusal is counted once, at the next scrape', async () => {
  const scrape = async () => (await api.api.app.request('/metrics')).text()
  await scrape()
  const id = await claimedIncident(api.db)
  await api.db.transaction().execute((trx) =>
    append(trx, id, 1, {
      kind: 'call_judged',
      actor: agentActor,
      detail: '',
      metadata: {
        callId: 'c1_0',
        tool: 'converge_shard',
        arguments: {},
        verdict: 'refuse',
        code: 'STRICT_RESOLUTION',
        reason: '',
        hint: null,
        phase: 'RESOLVING',
        effect: 'write',
        risk: 'low',
        targets: [],
        actionDigest: '',
        policyVersion: '2',
        foldedSeq: 1,
        approvalId: null,
      },
    }),
  )
  const line = 'nightshift_strict_resolution_block_total{tool="converge_shard",code="STRICT_RESOLUTION"} 1'
  await eventually('it to be counted', async () => (await scrape()).includes(line))
  expect(await scrape()).toContain(
    'nightshift_auto_recovery_attempt_total{code="STRICT_RESOLUTION",tool="converge_shard"} 1',
  )
})

/**
 * Forty names round a program that runs another one, a thousand deep: of what takes the judge
 * longest.
 */
const nested = `echo ${'a b c d e f g h '.repeat(40)}| ${'xargs '.repeat(500)}id`

test('while ten people have long texts judged, lists and pages answer first, and each person has one text judged at a time', async () => {
  // Both threads have read the judge before anything is compared.
  const input = { command: 'df -h' }
  await api.post('/judge', { body: input })
  const page = () => judgeApart({ kind: 'supposed', input, nowMs: Date.now() }, null, input)
  await page()
  const people = await Promise.all(
    Array.from({ length: 10 }, async (_, at) => {
      const operatorId = await ensureOperator(api.db, `stranger${at}`, 'viewer')
      return await createToken(api.db, { name: `stranger${at}`, role: 'viewer', operatorId })
    }),
  )
  const order: string[] = []
  const judged = people.map(async (as) => {
    const { status } = await api.post('/judge', { body: { command: nested }, as })
    order.push(`judged ${status}`)
  })
  const again = await api.post('/judge', { body: { command: nested }, as: people[0] as string })
  expect([again.status, again.headers.get('retry-after')]).toEqual([429, expect.stringMatching(/^\d+$/)])
  expect((await api.get('/incidents', { as: api.tokens.viewer })).status).toBe(200)
  order.push('list')
  await page()
  order.push('page')
  await Promise.all(judged)
  expect(order.filter((each) => each.startsWith('judged'))).toEqual(Array(10).fill('judged 200'))
  expect(order.indexOf('page')).toBeLessThan(order.length - 1)
})

test('a text that takes too long is abandoned with a reason, and the next one is judged', async () => {
  const input = { command: nested }
  const question = { kind: 'supposed' as const, input, nowMs: Date.now() }
  await expect(judgeApart(question, null, input, 1)).rejects.toMatchObject({ status: 422, code: 'TOO_LONG_TO_JUDGE' })
  expect((await api.post('/judge', { body: { command: 'df -h' } })).body).toMatchObject({ verdict: 'run' })
  const large = await api.post('/judge', { body: { tool: 'x', args: { text: 'x'.repeat(70_000) } } })
  expect([large.status, large.body.detail]).toEqual([422, expect.stringContaining('64000')])
})
