import { expect, test } from '@jest/globals'
import { rule } from '../../activities/rule.ts'
import { refusalToDecide } from '../../db/access/operators.ts'
import { ensureOperator } from '../../db/access/tokens.ts'
import { append } from '../../db/log/append.ts'
import { authorityOf } from '../../db/log/calls.ts'
import { eventsOf } from '../../db/log/events.ts'
import { acceptSitePolicy, noteUnreadablePolicy, readSitePolicies, takeSitePolicy } from '../../db/site-policies.ts'
import { agentActor, type IncidentEvent } from '../../domain/event.ts'
import type { SiteDecision } from '../../domain/site-decision.ts'
import { stepKey } from '../../domain/step-key.ts'
import { readSitePolicy } from '../../safety/site/read.ts'
import { toolFacts } from '../../tools/registry.ts'
import { claimedIncident, useDatabase } from '../support/database.ts'
import { answeredWith, looked } from '../support/events.ts'

const database = useDatabase()

function sound(text: string, commit: string | null = 'c0ffee') {
  const read = readSitePolicy(text, toolFacts, commit)
  if (!read.ok) throw new Error(JSON.stringify(read.faults))
  return { text: read.text, compiled: read.compiled, place: 'policy.yaml', commit }
}
const forbids = 'version: 1\nrules:\n  - { name: not now, tool: vm_start, resource: { kind: vm }, action: never }\n'
const asks =
  'version: 1\ngroups: { owners: [ada] }\nrules:\n  - { name: owners, tool: vm_start, action: ask, group: owners, people: 2 }\n'
const runs =
  'version: 1\nrules:\n  - { name: may start, tool: vm_start, resource: { kind: vm, id: vm-101 }, action: run }\n'

/** One proposed start of a VM, judged as the run judges it. */
async function propose(id = 'vm-101', environment: Record<string, string> = {}) {
  const { db } = database
  const vm = { kind: 'vm' as const, id }
  const incidentId = await claimedIncident(db)
  const place = { incidentId, attempt: 1, turn: 1, call: 0, approvalId: null }
  const call = { id: 'c1_0', tool: 'vm_start', arguments: { id, reason: 'it is down' }, problem: null }
  await db.transaction().execute(async (trx) => {
    const seen = looked('c0_0', [vm])
    await append(trx, incidentId, 1, {
      kind: 'tool_finished',
      actor: agentActor,
      turn: 1,
      stepKey: stepKey(place, 0, 'tool_finished', 0),
      detail: '',
      metadata: (seen as IncidentEvent<'tool_finished'>).metadata,
    })
    await append(trx, incidentId, 1, {
      kind: 'model_answered',
      actor: agentActor,
      turn: 1,
      stepKey: stepKey(place, 1, 'model_answered', 0),
      detail: '',
      metadata: answeredWith([call]),
    })
  })
  const preparation = {
    targets: [vm],
    identity: call.arguments,
    stateFingerprint: 's',
    dryRun: { possible: true, summary: `starts ${id}`, details: {} },
  }
  const prepared = { ok: true as const, preparation }
  const outcome = await db
    .transaction()
    .execute((trx) => rule({ environment }, trx, place, { call: { ...call, edit: null }, prepared, later: null }))
  const events = await eventsOf(db, incidentId)
  const judged = events.findLast((event) => event.kind === 'call_judged') as IncidentEvent<'call_judged'>
  return { outcome, events, judged: judged.metadata }
}

test('a policy that widens nothing holds at once, and each ruling names its rule, line and commit', async () => {
  const { db } = database
  expect((await propose()).judged).toMatchObject({ verdict: 'ask', code: 'RISK_MEDIUM' })
  expect(await takeSitePolicy(db, sound(forbids))).toBe('in_force')
  const { judged } = await propose()
  expect(judged).toMatchObject({
    verdict: 'refuse',
    code: 'SITE_NEVER',
    details: { site: { rule: 'not now', line: 3, commit: 'c0ffee' } },
  })
  expect(judged.reason).toContain('rule "not now" of the site\'s policy (line 3, commit c0ffee)')
})

test('one that widens waits, the old one holds until an admin accepts its digest, and then it runs with that authority', async () => {
  const { db } = database
  const admin = { operatorId: await ensureOperator(db, 'root', 'admin'), name: 'root' }
  expect(await takeSitePolicy(db, sound(runs))).toBe('waiting')
  expect((await propose()).judged.code).toBe('SITE_NEVER')
  const { waiting } = await readSitePolicies(db)
  expect(waiting?.widens).toEqual(expect.arrayContaining([expect.stringContaining('"may start"')]))
  expect(await acceptSitePolicy(db, 'f'.repeat(64), admin)).toBeNull()
  await acceptSitePolicy(db, waiting?.digest ?? '', admin)
  // The tool has to be trusted as well.
  expect((await propose()).judged).toMatchObject({ verdict: 'ask', code: 'PROPOSED' })
  const { judged, events, outcome } = await propose('vm-101', { AGENT_TRUST: 'act' })
  expect(judged).toMatchObject({ verdict: 'run', code: 'SITE_RUNS' })
  expect(outcome).toMatchObject({ kind: 'run' })
  const started = events.find((event) => event.kind === 'tool_started') as IncidentEvent<'tool_started'>
  expect(await authorityOf(db, started)).toMatch(/^policy_[0-9a-f]{24}$/)
})

test('a file that cannot be read keeps the last good one in force, and says so', async () => {
  const { db } = database
  await noteUnreadablePolicy(db, null, [{ line: 7, why: 'it is no YAML', remedy: 'correct it' }])
  const { inForce, reading } = await readSitePolicies(db)
  expect(inForce?.acceptedBy).toBe('root')
  expect(reading?.faults).toMatchObject([{ line: 7 }])
  const audit = await db.selectFrom('audit').select(['what', 'who']).where('what', 'like', 'policy.%').execute()
  expect(audit.map(({ what }) => what)).toEqual([
    'policy.in_force',
    'policy.waits',
    'policy.accepted',
    'policy.refused',
  ])
})

test('who is asked is what the rule says, and nobody else decides', async () => {
  const { db } = database
  expect(await takeSitePolicy(db, sound(asks))).toBe('in_force')
  const [ada, bo] = [await ensureOperator(db, 'ada', 'approver'), await ensureOperator(db, 'bo', 'approver')]
  const { judged, outcome } = await propose('vm-102')
  expect(judged).toMatchObject({ verdict: 'ask', code: 'SITE_ASKS' })
  const { approvalId } = outcome as { approvalId: string }
  const row = await db.selectFrom('approval').selectAll().where('id', '=', approvalId).executeTakeFirstOrThrow()
  expect(row.required).toBe(2)
  expect((row.dryRun.details.sitePolicy as SiteDecision).demand).toMatchObject({ people: 2, members: ['ada'] })
  expect(await refusalToDecide(db, ada, row)).toBeNull()
  expect(await refusalToDecide(db, bo, row)).toContain('bo is not in owners')
})

test('a policy whose text is not the one of its digest refuses every write', async () => {
  const { owner } = database
  await owner
    .updateTable('sitePolicy')
    .set({ text: `${asks}# altered\n` })
    .where('status', '=', 'in_force')
    .execute()
  await owner.updateTable('sitePolicy').set({ gitCommit: 'other' }).where('status', '=', 'in_force').execute()
  expect((await propose('vm-102')).judged).toMatchObject({ verdict: 'refuse', code: 'SITE_NEVER' })
})
