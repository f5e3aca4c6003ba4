import { expect, test } from '@jest/globals'
import { append } from '../../../db/log/append.ts'
import { agentActor } from '../../../domain/event.ts'
import { useApi } from '../../support/api.ts'
import { claimedIncident } from '../../support/database.ts'
import { eventually } from '../../support/directory.ts'

const api = useApi()

test('what would happen if: a command, with nothing done', async () => {
  const read = await api.post('/judge', { body: { command: 'df -h' }, as: api.tokens.viewer })
  expect([read.status, read.body]).toMatchObject([200, { verdict: 'run', effect: 'read' }])
  const forbidden = await api.post('/judge', { body: { command: 'mkfs.ext4 /dev/sda1' } })
  expect(forbidden.body).toMatchObject({ verdict: 'refuse', effect: 'forbidden' })
})

test('what would happen if: a call in the state of a real incident, which gets no row by it', async () => {
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

test('the agent itself may not ask', async () => {
  expect((await api.post('/judge', { body: { command: 'df' }, as: api.tokens.agent })).status).toBe(403)
})

test('a refusal that was stored is counted at the next scrape, once', async () => {
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
