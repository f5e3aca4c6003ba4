import { expect, test } from '@jest/globals'
import { takeUpSitePolicy } from '../../../api/site-policy.ts'
import { verifyChanges, verifyKept } from '../../../db/verify/row-changes.ts'
import type { FoundPolicy } from '../../../knowledge/policy-file.ts'
import { useApi } from '../../support/api.ts'

const api = useApi()

const file = (text: string, path = 'policy.yaml'): FoundPolicy => ({ path, commit: 'c0ffee', bytes: Buffer.from(text) })
const folder = { origin: 'folder', at: '/site', commit: null, readAt: '2026-11-29T00:00:00Z', error: null }
const takeFrom = (place: object, ...policies: FoundPolicy[]) =>
  takeUpSitePolicy({
    db: api.db,
    knowledge: { policies: () => policies, list: () => ({ places: [place] }) },
    log: { error: () => {} },
  } as never)
const take = (...policies: FoundPolicy[]) => takeFrom(folder, ...policies)
const runs =
  'version: 1\nrules:\n  - { name: start, tool: vm_start, resource: { kind: vm, id: vm-101 }, action: run }\n'
/** An answer as it came, without the types of the routes. */
const read = async (path: string) => JSON.parse(JSON.stringify((await api.get(path)).body))
const policyPart = async () =>
  (await read('/status')).parts.find(({ name }: { name: string }) => name === 'site policy')

test('a site without a policy has none, and no part of the status for it', async () => {
  expect((await api.get('/policy')).body).toEqual({ inForce: null, waiting: null, reading: null, silences: null })
  expect(await policyPart()).toBeUndefined()
})

test('a policy that widens rights waits visibly until an admin accepts it, and `verify` finds the row of the acceptance', async () => {
  await take(file(runs))
  expect((await api.get('/policy')).body).toMatchObject({ inForce: null, waiting: { commit: 'c0ffee' } })
  expect(await policyPart()).toMatchObject({ status: 'failed', detail: expect.stringContaining('waits for an admin') })
  const { digest } = (await read('/policy')).waiting
  expect((await api.post('/policy/accept', { body: { digest: '0'.repeat(12) } })).status).toBe(404)
  const accepted = await api.post('/policy/accept', { body: { digest: digest.slice(0, 12) } })
  expect(accepted.body).toMatchObject({ inForce: { digest, acceptedBy: expect.any(String) }, waiting: null })
  const audit = await api.db.selectFrom('audit').select('what').where('what', '=', 'policy.accepted').execute()
  expect(audit).toHaveLength(1)
  expect((await verifyChanges(api.owner, 0)).differences).toEqual([])
  expect((await verifyKept(api.owner)).differences).toEqual([])
})

test('a wrong line and a second policy are named, and the last good policy stays in force', async () => {
  await take(file('version: 1\nrules:\n  - { name: a, tool: vm_strat, action: never }\n'))
  const { inForce, reading } = await read('/policy')
  expect(inForce).toMatchObject({ commit: 'c0ffee' })
  expect(reading.faults).toMatchObject([
    { line: 3, why: '"a": there is no tool vm_strat', remedy: expect.stringContaining('vm_start') },
  ])
  await take(file(runs), file(runs, 'knowledge/policy.yaml'))
  expect((await policyPart()).detail).toContain('there are two policies: policy.yaml and knowledge/policy.yaml')
  expect((await api.get('/policy')).body.inForce).not.toBeNull()
})

test('a missing policy file is named, and the last good policy stays in force, and an unreadable folder is no missing file', async () => {
  await take(file(runs))
  await takeFrom({ ...folder, error: 'it could not be read (EACCES)' })
  expect((await read('/policy')).reading.faults).toEqual([])
  await take()
  const { inForce, reading } = await read('/policy')
  expect(inForce).toMatchObject({ commit: 'c0ffee' })
  expect(reading.faults).toMatchObject([
    { why: 'policy.yaml is gone', remedy: expect.stringContaining('put the file back') },
  ])
  expect((await policyPart()).detail).toContain('policy.yaml is gone')
  await take(file(runs))
})

test('a call is explained under the policy in force, and under another text', async () => {
  const call = { tool: 'vm_start', targets: [{ kind: 'vm', id: 'vm-102' }], type: 'vm_stopped' }
  const { items } = (await api.post('/policy/explain', { body: { calls: [call] } })).body
  expect(items).toMatchObject([{ write: null, rules: [{ rule: 'start', whyNot: 'resource' }] }])
  const both = { ...call, targets: [...call.targets, { kind: 'vm', id: 'vm-101' }] }
  expect((await api.post('/policy/explain', { body: { calls: [both] } })).body.items).toMatchObject([
    { rules: [{ rule: 'start', whyNot: null }] },
  ])
  const text = 'version: 1\nrules:\n  - { name: no, resource: { kind: vm }, action: never }\n'
  const other = await api.post('/policy/explain', { body: { calls: [call], text } })
  expect(other.body).toMatchObject({ items: [{ write: { action: 'never', rule: 'no', line: 3 } }] })
  const wrong = await api.post('/policy/explain', { body: { calls: [call], text: 'version: 2' } })
  expect(wrong.status).toBe(400)
})

test('the people who may decide about a tool include the group that the policy asks', async () => {
  const asks =
    'version: 1\ngroups: { dba: [anna, ben] }\nrules:\n  - { name: two, tool: vm_start, action: ask, group: dba, people: 2 }\n'
  await take(file(asks))
  const answer = await read('/who-may?tool=vm_start&type=vm_stopped&resources=vm:vm-101')
  expect(answer).toMatchObject({ required: 2 })
  for (const { role, why } of answer.people)
    if (role === 'approver' || role === 'admin')
      expect(why).toContain('is not in dba; only members may decide, by rule "two"')
  expect(answer.people.map(({ why }: { why: string | null }) => why)).not.toContain(null)
  await take(file('version: 1\nrules:\n  - { name: not here, tool: vm_start, action: never }\n'))
  const refused = await read('/who-may?tool=vm_start&type=vm_stopped&resources=vm:vm-101')
  for (const { why } of refused.people) expect(why).toContain('rule "not here"')
})

test('the check compares a policy with the site: the waiting policy, else the one in force, or a text', async () => {
  const lint = async (body: object) => JSON.parse(JSON.stringify((await api.post('/policy/lint', { body })).body))
  const widening =
    'version: 1\ngroups:\n  dbas: [nobody-here]\nrules:\n  - { name: start, tool: vm_start, resource: { kind: vm, id: vm-9 }, action: run }\n'
  await take(file(widening))
  expect(await lint({})).toMatchObject({
    of: 'waiting',
    faults: [],
    notes: [
      { line: 3, why: 'the group dbas: there is no operator nobody-here' },
      { line: 5, why: '"start": no source lists vm:vm-9' },
      { line: 5, why: '"start": the rule matches no resource that a source lists, so it never decides' },
    ],
  })
  await take(file('version: 1\nrules:\n  - { name: no, tool: vm_start, action: never }\n'))
  expect(await lint({})).toMatchObject({ of: 'in_force' })
  const text = 'version: 1\nrules:\n  - { name: a, tool: exec, action: never }\n'
  expect(await lint({ text })).toMatchObject({ of: 'text', faults: [], notes: [] })
  expect(await lint({ text: 'version: 2' })).toMatchObject({ digest: null, faults: [{ line: 1 }, { line: 1 }] })
})
