import { sql } from 'kysely'
import { principalOf } from '../../../db/access/principals.ts'
import { openSession } from '../../../db/access/sessions.ts'
import { markIncidentExpected } from '../../../db/alerts/expectations.ts'
import { decide } from '../../../db/approvals/decide.ts'
import { useGrant } from '../../../db/approvals/grants.ts'
import type { Trx } from '../../../db/connect.ts'
import { closeIncident } from '../../../db/incidents/close-incident.ts'
import { closeFollowUp } from '../../../db/incidents/follow-ups.ts'
import { claimIncident } from '../../../db/incidents/incidents.ts'
import { writePostmortem } from '../../../db/incidents/postmortems.ts'
import { addDevice } from '../../../db/inventory/devices.ts'
import { mintEnrolment } from '../../../db/inventory/enrolments.ts'
import { noteMeshKeys } from '../../../db/inventory/mesh-keys.ts'
import { putSource, storeReading } from '../../../db/inventory/sources.ts'
import { append } from '../../../db/log/append.ts'
import { recordAudit } from '../../../db/log/audit.ts'
import { storeBytes } from '../../../db/log/bodies.ts'
import { holdIncident } from '../../../db/retention/holds.ts'
import { putConfig, readSettings } from '../../../db/settings.ts'
import { acceptSitePolicy, readSitePolicies, takeSitePolicy } from '../../../db/site-policies.ts'
import { setTrust } from '../../../db/trust/set.ts'
import { resumeStop, setStop } from '../../../db/trust/stops.ts'
import { closeCall, openCall } from '../../../db/writes/device-calls.ts'
import { acceptEffect, finishEffect } from '../../../db/writes/effects.ts'
import { beginPlatformEffect, endPlatformEffect } from '../../../db/writes/platform-effects.ts'
import { describeDevice } from '../../../domain/authority-words.ts'
import { actionDigest } from '../../../domain/digest.ts'
import { agentActor } from '../../../domain/event.ts'
import { readSitePolicy } from '../../../safety/site/read.ts'
import { toolFacts } from '../../../tools/registry.ts'
import { announced, asked, consumed } from '../../support/announced.ts'
import type { TestApi } from '../../support/api.ts'
import { openedIncident } from '../../support/database.ts'
import { mintedToken } from '../../support/decision-tokens.ts'

type Life = { incident: string; approval: string; waiting: string; grant: string; effect: string }

/**
 * A site that lived a little, by the product's own ways: what is at rest in it is what `verify` is
 * to hold.
 */
export async function aSitesLife(api: TestApi): Promise<Life> {
  const { db } = api
  const inTrx = <T>(act: (trx: Trx) => Promise<T>) => db.transaction().execute(act)
  const incident = await openedIncident(db)
  await inTrx((trx) => claimed(trx, incident))
  const life = { incident, ...(await anApprovedWrite(api, incident)) }
  const person = (await principalOf(db, api.tokens.approver))!
  const by = { operatorId: person.operatorId as string, actor: 'user:approver', name: 'approver' }
  await inTrx((trx) => closeIncident(trx, incident, 1, repaired, { actor: agentActor, stepKey: null }))
  await writePostmortem(db, incident, {
    seen: 0,
    sections: { cause: 'a disk' },
    operatorId: by.operatorId,
    who: 'approver',
  })
  const until = new Date(Date.now() + 3_600_000).toISOString()
  const mark = { subject: 'type', type: 'disk_pressure', until, reason: 'a backup', state: {} } as const
  await inTrx((trx) => markIncidentExpected(trx, incident, mark, by))
  await holdIncident(db, incident, 'the insurer asks for it', by)
  await setTrust(
    db,
    by,
    { type: 'disk_pressure', tool: 'converge_shard' },
    { to: 'shadow', reason: 'it is new', seen: '', risk: 'low' },
    await readSettings(db),
  )
  const halved = await openedIncident(db, { labels: { alertname: 'halved' }, name: 'halved' })
  await inTrx((trx) => claimed(trx, halved))
  await inTrx((trx) => closeIncident(trx, halved, 1, mitigated, { actor: agentActor, stepKey: null }))
  await closeFollowUp(db, halved, 'the disk was replaced', by)
  await db.insertInto('questionWake').values({ approvalId: life.approval, wakes: true }).execute()
  await aSitesStops(api, by)
  await aSitesPolicy(api)
  await aSitesSettings(api)
  const stays = await openedIncident(db, { labels: { alertname: 'other' }, name: 'other' })
  await inTrx((trx) => claimed(trx, stays))
  const waiting = await asked(db, stays, { tool: 'converge_shard', identity: { id: 'db-osl-2' } })
  await mintedToken(db, person, waiting, { decision: 'deny' })
  return { ...life, waiting }
}

const mitigated = {
  status: 'escalated' as const,
  category: 'mitigated' as const,
  reason: 'It reads again; the disk has to be replaced.',
  code: 'AGENT',
}

const repaired = {
  status: 'resolved' as const,
  outcome: 'repaired' as const,
  resolution: 'The replica reads again.',
  claims: [],
  confidence: null,
}

/** One that stands, and one that was resumed. */
async function aSitesStops({ db }: TestApi, by: { operatorId: string; actor: string; name: string }): Promise<void> {
  const until = new Date(Date.now() + 86_400_000).toISOString()
  const scope = { type: 'disk_pressure', tool: 'converge_shard', resource: { kind: 'shard', id: 'db-osl-1' } } as const
  await setStop(db, by, { ...scope, until, reason: 'the disks are being changed' })
  const second = await setStop(db, by, { ...scope, tool: null, resource: null, until: null, reason: 'a drill' })
  if (second.outcome !== 'stopped') throw new Error(second.message)
  await resumeStop(db, by, second.stop.id, { reason: 'the drill is over', risk: () => 'low' })
}

/** One that held at once, and one that an admin accepted. */
async function aSitesPolicy({ db, tokens }: TestApi): Promise<void> {
  const admin = (await principalOf(db, tokens.admin))!
  const rule = (action: string) =>
    `version: 1\nrules:\n  - { name: start, tool: vm_start, resource: { kind: vm, id: vm-101 }, action: ${action} }\n`
  for (const text of [rule('never'), rule('run')]) {
    const read = readSitePolicy(text, toolFacts, 'c0ffee')
    if (!read.ok) throw new Error(JSON.stringify(read.faults))
    await takeSitePolicy(db, { text: read.text, compiled: read.compiled, place: 'policy.yaml', commit: 'c0ffee' })
  }
  const { waiting } = await readSitePolicies(db)
  await acceptSitePolicy(db, waiting?.digest ?? '', { operatorId: admin.operatorId as string, name: admin.name })
}

/** Taken by a run, with the row that says so. */
export async function claimed(trx: Trx, incidentId: string): Promise<void> {
  const workflowId = `investigate:${incidentId}:1`
  const as = { attempt: 1, workflowId, role: 'leader', groupId: 'grp_test' } as const
  await claimIncident(trx, { incidentId, ...as, timeBudgetSeconds: 1800 })
  const { attempt: _, ...metadata } = as
  await append(trx, incidentId, 1, {
    kind: 'claimed',
    actor: agentActor,
    detail: 'Investigation started',
    metadata: { ...metadata, config: {} },
  })
}

async function anApprovedWrite({ db, tokens }: TestApi, incident: string) {
  const identity = { id: 'db-osl-1' }
  const approval = await asked(db, incident, {
    tool: 'converge_shard',
    identity,
    targets: [{ kind: 'shard', id: 'db-osl-1' }],
  })
  const person = (await principalOf(db, tokens.approver))!
  const said = { decision: 'approve', reason: 'it is safe', grant: { uses: 3, hours: 1 } } as const
  const token = await mintedToken(db, person, approval, said)
  await decide(db, { ...said, approvalId: approval, incidentId: null, token, caller: person.operatorId, via: 'api' })
  await consumed(db, incident, approval)
  const effect = await announced(db, incident, 'converge_shard', identity, approval)
  const digest = actionDigest('converge_shard', identity)
  await acceptEffect(db, { key: effect, incidentId: incident, tool: 'converge_shard', actionDigest: digest })
  await finishEffect(db, effect, { status: 'done', detail: 'converged', result: { changed: 1 } })
  const { id: grant } = await db.selectFrom('standingGrant').select('id').executeTakeFirstOrThrow()
  await db
    .transaction()
    .execute((trx) =>
      useGrant(trx, { incidentId: incident, attempt: 1, turn: 9 }, grant, `${incident}.1:9:grant_used:0`),
    )
  const platform = { key: effect, action: 'start', vmId: 'vm-1', node: 'a', target: 'a', tasksBefore: [] } as never
  await beginPlatformEffect(db, platform)
  await endPlatformEffect(db, effect, { status: 'done', detail: 'started' } as never)
  return { approval, grant, effect }
}

/**
 * Sources, settings, devices, a browser that is signed in: each with the row that its route writes.
 */
async function aSitesSettings(api: TestApi): Promise<void> {
  const { db, tokens } = api
  const source = {
    kind: 'prometheus',
    url: 'http://127.0.0.1:9',
    credential: 'env:NIGHTSHIFT_SOURCE_METRICS',
    writeCredential: 'env:NIGHTSHIFT_SOURCE_WRITES',
    caFile: null,
    scheme: 'ApiKey',
    headers: { 'X-Scope-OrgID': 'env:NIGHTSHIFT_SOURCE_TENANT' },
    certFile: '/run/nightshift-api/sources/client.pem',
    keyFile: '/run/nightshift-api/sources/client.key',
    options: {},
    timeoutSeconds: 5,
  }
  await putSource(db, 'metrics', source as never, 'admin')
  await putConfig(db, { key: 'agent.max_turns', value: '12', actor: 'user:admin', reason: 'more', ifVersion: null })
  const { incident } = { incident: (await db.selectFrom('incident').select('id').executeTakeFirstOrThrow()).id }
  await storeReading(db, { incidentId: incident, source: 'metrics', tool: 'query_metrics', whole: 'up 1' })
  const digest = await storeBytes(db, Buffer.from('a body'))
  // As the removal of an incident that named it leaves it.
  await sql`insert into body_candidate (digest) values (${digest})`.execute(api.owner)
  await db.transaction().execute(async (trx) => {
    const at = { id: 'node-osl-1', resource: { kind: 'node', id: 'node-osl-1' }, url: 'https://10.0.0.1', urlEnv: null }
    const terms = {
      mode: 'user',
      guests: null,
      timeoutSeconds: 60,
      toolsAllowed: [],
      enabled: true,
      terms: { capabilities: [], roots: [] },
      manifestDays: 90,
    }
    await addDevice(trx, { ...at, ...terms } as never)
    const { expiresAt } = await mintEnrolment(trx, 'node-osl-1', 'admin')
    const minted = { who: 'admin', what: 'device.enrolment_minted', subject: 'node-osl-1' } as const
    await recordAudit(trx, { ...minted, detail: `Minted a token to enrol it, good until ${expiresAt}` })
    await recordAudit(trx, {
      who: 'admin',
      what: 'device.added',
      subject: 'node-osl-1',
      detail: describeDevice({ ...at, ...terms } as never),
    })
    await noteMeshKeys(trx, { id: 'key-1', publicKey: 'public' }, null)
  })
  const call = { key: 'call-1', deviceId: 'node-osl-1', incidentId: null, callId: null, capability: 'exec' }
  await openCall(db, { ...call, argsDigest: 'x', rehearse: false, authority: 'apr_x' } as never)
  await closeCall(
    db,
    'call-1',
    { approval_status: null, audit_hash: 'x', truncated: false, duration_ms: 1 } as never,
    null,
  )
  const person = (await principalOf(db, tokens.approver))!
  await db.transaction().execute(async (trx) => {
    await openSession(trx, person.tokenId)
    await recordAudit(trx, {
      who: person.name,
      what: 'sign_in.done',
      subject: 'browser',
      detail: 'Signed in as approver',
    })
  })
  await db.transaction().execute(async (trx) => {
    await sql`insert into sign_in_code (sha256, token_id, expires_at) values ('x', ${person.tokenId}, nightshift_now())`.execute(
      trx,
    )
    await recordAudit(trx, { who: person.name, what: 'sign_in.code_minted', subject: person.tokenId, detail: 'Minted' })
  })
  await sql`
    insert into proposal (id, intent, host_ids, state, migrations, steps, plan_digest, state_fingerprint, problem)
    values ('prp_1', 'recover', '[]', 'optimal', 0, '[]', 'x', 'x', '{}')`.execute(db)
}
