import { expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { principalOf } from '../../db/access/principals.ts'
import { decide } from '../../db/approvals/decide.ts'
import { storeGrant, useGrant } from '../../db/approvals/grants.ts'
import { closeIncident } from '../../db/incidents/close-incident.ts'
import { append } from '../../db/log/append.ts'
import { recordAudit, verifyAudit } from '../../db/log/audit.ts'
import { acceptEffect, finishEffect } from '../../db/writes/effects.ts'
import { actionDigest } from '../../domain/digest.ts'
import { agentActor, type NewEvent } from '../../domain/event.ts'
import { claimed } from '../db/verify/life.ts'
import { announced, asked, consumed } from '../support/announced.ts'
import { openedIncident } from '../support/database.ts'
import { mintedToken } from '../support/decision-tokens.ts'
import { runCli, useServedApi } from '../support/run-cli.ts'

const api = useServedApi()
const verify = (...args: string[]) => runCli(['verify', '--all', ...args], api.as('operator'))

type Told = {
  ok: boolean
  incidents: number
  differences: { subject: string; what: string }[]
  audit: { ok: boolean; rows: number; headHash: string; problem: { seq: number; what: string } | null }
}
const differences = async () => ((await api.get('/verify')).body as unknown as Told).differences

/** As somebody does it who may write as the owner of the database: past every trigger. */
async function tamper(...statements: string[]): Promise<void> {
  await api.owner.transaction().execute(async (trx) => {
    await sql`set local session_replication_role = replica`.execute(trx)
    for (const statement of statements) await sql.raw(statement).execute(trx)
  })
}

/** An incident with an approval that was given, used and done, and a grant that was used once. */
async function aWholeLife() {
  const incident = await openedIncident(api.db)
  await api.db.transaction().execute((trx) => claimed(trx, incident))
  const identity = { id: 'db-osl-1' }
  const approval = await asked(api.db, incident, { tool: 'converge_shard', identity })
  const principal = await principalOf(api.db, api.tokens.approver)
  const token = await mintedToken(api.db, principal!, approval, { decision: 'approve' })
  const at = { approvalId: approval, incidentId: null, token, caller: principal!.operatorId, via: 'api' }
  await decide(api.db, { ...at, decision: 'approve' })
  await consumed(api.db, incident, approval)
  const key = await announced(api.db, incident, 'converge_shard', identity, approval)
  await acceptEffect(api.db, {
    key,
    incidentId: incident,
    tool: 'converge_shard',
    actionDigest: actionDigest('converge_shard', identity),
  })
  await finishEffect(api.db, key, { status: 'done', detail: 'converged', result: {} })
  const granted = await api.db.transaction().execute(async (trx) => {
    const row = await trx.selectFrom('approval').selectAll().where('id', '=', approval).executeTakeFirstOrThrow()
    const id = await storeGrant(trx, row, principal!.operatorId as string, { uses: 3, hours: 1 })
    await useGrant(trx, { incidentId: incident, attempt: 1, turn: 9 }, id, `${incident}.1:9:grant_used:0`)
    await append(trx, incident, 1, finished(key))
    return id
  })
  await api.db.transaction().execute((trx) =>
    closeIncident(
      trx,
      incident,
      1,
      {
        status: 'resolved',
        outcome: 'repaired',
        resolution: 'The replica reads again.',
        claims: [],
        confidence: null,
      },
      { actor: agentActor, stepKey: null },
    ),
  )
  return { incident, approval, key, grant: granted }
}

function finished(stepKey: string): NewEvent {
  const callId = `c${stepKey.split(':')[1]}_0`
  return {
    kind: 'tool_finished',
    actor: agentActor,
    turn: 9,
    detail: 'done',
    metadata: {
      callId,
      tool: 'converge_shard',
      arguments: {},
      effect: 'write',
      targets: [],
      outcome: 'done',
      result: { ok: true, data: null, error: null, meta: {} },
      body: null,
      discovered: [],
      durationMs: 1,
    },
  } as unknown as NewEvent
}

test('stored state is compared with the log: all of it agrees, and each changed item is named', async () => {
  const life = await aWholeLife()
  await openedIncident(api.db)
  const sound = await verify()
  expect([sound.code, sound.stdout]).toEqual([
    0,
    expect.stringMatching(/2 incidents agree[\s\S]*audit holds: \d+ rows/),
  ])

  const tampered: [string, string, string][] = [
    [
      `update incident set status = 'cancelled' where id = '${life.incident}'`,
      life.incident,
      'status is "cancelled", the rows say "resolved"',
    ],
    [
      `update incident set outcome = 'no_fault' where id = '${life.incident}'`,
      life.incident,
      'outcome is "no_fault", the rows say "repaired"',
    ],
    [`update incident set resolution = 'x' where id = '${life.incident}'`, life.incident, 'resolution is "x"'],
    [`update incident set attempt = 3 where id = '${life.incident}'`, life.incident, 'attempt is 3, the rows say 1'],
    [
      `update approval set status = 'denied' where id = '${life.approval}'`,
      life.approval,
      'status is "denied", the rows say "consumed"',
    ],
    [
      `update approval set risk = 'low' where id = '${life.approval}'`,
      life.approval,
      'risk is "low", the rows say "high"',
    ],
    [`update approval set action_digest = 'x' where id = '${life.approval}'`, life.approval, 'actionDigest is "x"'],
    [
      `delete from approval_decision where approval_id = '${life.approval}'`,
      life.approval,
      'decisions is "none", the rows say "approve api by approver, ',
    ],
    [`update effect set status = 'failed' where key = '${life.key}'`, life.key, 'status is failed, the rows say done'],
    [
      `update effect set action_digest = 'x' where key = '${life.key}'`,
      life.key,
      'the action differs from the row that announces it',
    ],
    [
      `update standing_grant set uses_left = 3 where id = '${life.grant}'`,
      life.grant,
      'uses left is 3, the rows say 2',
    ],
    [
      `update standing_grant set action_digest = 'x' where id = '${life.grant}'`,
      life.grant,
      'the grant is for another action than its approval',
    ],
    [
      `update incident_event set detail = 'x' where incident_id = '${life.incident}' and seq = 2`,
      life.incident,
      'row 2: the content of the row differs from its hash',
    ],
  ]
  const tables = ['incident', 'approval', 'approval_decision', 'effect', 'standing_grant', 'incident_event']
  for (const [statement, subject, what] of tampered) {
    await tamper(...tables.map((table) => `create table kept_${table} as table ${table}`), statement)
    const found = await differences()
    expect([statement, found]).toEqual([
      statement,
      expect.arrayContaining([{ subject, what: expect.stringContaining(what) }]),
    ])
    await tamper(
      ...tables.flatMap((table) => [
        `delete from ${table}`,
        `insert into ${table} overriding system value select * from kept_${table}`,
        `drop table kept_${table}`,
      ]),
    )
  }
  const altered = await verify()
  expect([altered.code, altered.stdout]).toEqual([0, sound.stdout])
  expect((await runCli(['verify'], api.as('operator'))).code).toBe(2)
  expect((await runCli(['verify', '--all'], api.as('viewer'))).code).toBe(4)
})

test('an approval that nobody asked for and a missing approval are differences', async () => {
  const life = await aWholeLife()
  const columns = `id, incident_id, attempt, call_id, tool, args, targets, reason, action_digest, state_fingerprint, risk, reversible, required, dry_run, status, expires_at`
  await tamper(
    `insert into approval (${columns}) select 'apr_forged', ${columns.slice(4)} from approval where id = '${life.approval}'`,
  )
  expect(await differences()).toContainEqual({ subject: 'apr_forged', what: 'no row requests this approval' })
  await tamper(
    `delete from approval where id = 'apr_forged'`,
    `update approval set incident_id = (select id from incident where id <> '${life.incident}' limit 1) where id = '${life.approval}'`,
  )
  expect(await differences()).toContainEqual({
    subject: life.approval,
    what: 'the approval was requested and is missing',
  })
  await tamper(`update approval set incident_id = '${life.incident}' where id = '${life.approval}'`)
})

test('the audit log has a chain: a changed, removed, moved or inserted row is found, and a rewritten tail by its head', async () => {
  for (const subject of ['one', 'two', 'three', 'four']) {
    await recordAudit(api.db, {
      who: 'änna',
      what: 'token.minted',
      subject,
      detail: 'Grüße, 1:2',
      address: subject === 'two' ? '10.0.0.1' : null,
    })
  }
  const { headHash, rows } = await verifyAudit(api.db)
  const last = rows
  const found = async (head?: string) => {
    const { body } = await api.get(`/audit/verify${head ? `?head=${head}` : ''}`)
    return (body as unknown as Told['audit']).problem
  }
  expect(await found(headHash)).toBeNull()
  const tampered: [string, number, string][] = [
    [`update audit set detail = 'x' where seq = ${last - 1}`, last - 1, 'the content of the row differs from its hash'],
    [
      `update audit set at = at + interval '1 microsecond' where seq = ${last - 1}`,
      last - 1,
      'the content of the row differs from its hash',
    ],
    [`update audit set address = '' where seq = ${last}`, last, 'the content of the row differs from its hash'],
    [`delete from audit where seq = ${last - 2}`, last - 2, `row ${last - 2} is missing`],
    [`delete from audit where seq = ${last}`, last, 'rows are missing at the end: the head names a newer row'],
    [
      `update audit set seq = case seq when ${last} then ${last - 1} else ${last} end + 1000 where seq >= ${last - 1}; update audit set seq = seq - 1000 where seq > 1000`,
      last - 1,
      'the row is not chained to the row before',
    ],
    [
      `insert into audit (who, what, subject, detail, seq, prev_hash, hash) overriding system value values ('x', 'token.minted', 'x', 'x', ${last + 1}, '${headHash}', 'x')`,
      last + 1,
      'the content of the row differs from its hash',
    ],
  ]
  for (const [statement, seq, what] of tampered) {
    await tamper('create table kept as table audit', statement)
    expect([statement, await found()]).toEqual([statement, { seq, what }])
    await tamper('delete from audit', 'insert into audit overriding system value select * from kept', 'drop table kept')
  }
  // Chained again by somebody who may do all: only the hash that was noted before tells.
  await api.owner.transaction().execute(async (trx) => {
    await sql`alter table audit disable trigger audit_append_only`.execute(trx)
    await sql`delete from audit where seq = ${last}`.execute(trx)
    await sql`update audit_head set seq = ${last - 1}, hash = (select hash from audit where seq = ${last - 1})`.execute(
      trx,
    )
    await sql`alter table audit enable trigger audit_append_only`.execute(trx)
  })
  await recordAudit(api.db, { who: 'anna', what: 'token.minted', subject: 'other', detail: 'another' })
  expect(await found()).toBeNull()
  const rewritten = { seq: last, what: `no row has the earlier hash ${headHash}` }
  expect(await found(headHash)).toEqual(rewritten)
  const told = await verify('--head', headHash, '--json')
  expect([told.code, JSON.parse(told.stdout)]).toMatchObject([1, { ok: false, audit: { problem: rewritten } }])
})

test('the services may add to the audit log and change nothing of its chain', async () => {
  const refused = async (statement: string) =>
    await sql
      .raw(statement)
      .execute(api.db)
      .then(
        () => 'done',
        (error) => String(error),
      )
  expect(await refused(`update audit_head set seq = 0`)).toMatch(/permission denied/)
  expect(await refused(`delete from audit`)).toMatch(/permission denied|append-only/)
  await sql
    .raw(
      `insert into audit (who, what, subject, detail, seq, prev_hash, hash) values ('x', 'token.minted', 'x', 'x', 7, 'y', 'z')`,
    )
    .execute(api.db)
  expect((await verifyAudit(api.db)).ok).toBe(true)
})
