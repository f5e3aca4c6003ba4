import { expect, test } from '@jest/globals'
import { refusalToDecide } from '../../db/access/operators.ts'
import { ensureOperator } from '../../db/access/tokens.ts'
import { authorityOf } from '../../db/log/calls.ts'
import { acceptSitePolicy, noteUnreadablePolicy, readSitePolicies, takeSitePolicy } from '../../db/site-policies.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import type { SiteDecision } from '../../domain/site-decision.ts'
import { useDatabase } from '../support/database.ts'
import { proposeStart, sound } from '../support/proposed-start.ts'

const database = useDatabase()

const forbids = 'version: 1\nrules:\n  - { name: not now, tool: vm_start, resource: { kind: vm }, action: never }\n'
const asks =
  'version: 1\ngroups: { owners: [ada] }\nrules:\n  - { name: owners, tool: vm_start, action: ask, group: owners, people: 2 }\n'
const runs =
  'version: 1\nrules:\n  - { name: may start, tool: vm_start, resource: { kind: vm, id: vm-101 }, action: run }\n'

const propose = (id = 'vm-101', environment: Record<string, string> = {}) =>
  proposeStart(database.db, { id, environment })

test('a policy that widens nothing takes effect at once, and each ruling names its rule, line and commit', async () => {
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

test('a policy that widens rights waits until an admin accepts its digest, and the old policy is in force until then', async () => {
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

test('a policy file that cannot be read keeps the last good policy in force, and the error is shown', async () => {
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

test('the rule names the people who are asked, and nobody else can decide', async () => {
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

test('a policy whose text does not match its digest refuses every write', async () => {
  const { owner } = database
  await owner
    .updateTable('sitePolicy')
    .set({ text: `${asks}# altered\n` })
    .where('status', '=', 'in_force')
    .execute()
  await owner.updateTable('sitePolicy').set({ gitCommit: 'other' }).where('status', '=', 'in_force').execute()
  expect((await propose('vm-102')).judged).toMatchObject({ verdict: 'refuse', code: 'SITE_NEVER' })
})
