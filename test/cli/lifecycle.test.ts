import { expect, test } from '@jest/globals'
import { closeIncident } from '../../db/incidents.ts'
import { agentActor } from '../../domain/event.ts'
import { asked } from '../api/announced.ts'
import { claimedIncident, openedIncident } from '../support/database.ts'
import { hostile } from './harmful.ts'
import { runAtTerminal, runCli, startCli, until } from './run-cli.ts'
import { useServedApi } from './served-api.ts'

const api = useServedApi()
const run = (args: string[], role: 'operator' | 'viewer' | 'admin' = 'operator') => runCli(args, api.as(role))
const incidents = (...args: string[]) => run(['incidents', ...args])
const widest = (text: string) => Math.max(...text.split('\n').map((line) => line.length))

test('who resolves says what it was, and hears that its alert still fires', async () => {
  const id = await openedIncident(api.db)
  const unsaid = await incidents('resolve', id, '--resolution', 'restarted it')
  expect([unsaid.code, unsaid.stderr]).toEqual([2, expect.stringContaining('--outcome')])
  const wrong = await incidents('resolve', id, '--resolution', 'restarted it', '--outcome', 'expected')
  expect([wrong.code, wrong.stderr]).toEqual([
    2,
    expect.stringContaining('repaired, self_resolved, no_fault, answered'),
  ])
  const { code, stderr } = await incidents('resolve', id, '--outcome', 'repaired', '--resolution', 'restarted it')
  expect([code, stderr.trim()]).toEqual([0, `${id} is resolved, its alert still fires.`])
  expect((await incidents('show', id)).stdout).toMatch(/outcome +repaired, by a person/)
})

test('an incident is taken and given back, and what nobody has cannot be given back', async () => {
  const [open, running] = [await openedIncident(api.db), await claimedIncident(api.db)]
  const taken = await incidents('take', open)
  expect([taken.code, taken.stderr]).toEqual([0, expect.stringContaining('operator has it')])
  expect((await incidents('show', open)).stdout).toMatch(/owner +operator, since/)
  expect((await incidents('take', running)).stderr).toContain('it is yours when its run has ended')
  const given = await incidents('give-back', open, '--json')
  expect(JSON.parse(given.stdout)).toMatchObject({ id: open, status: 'escalated', owner: null })
  const again = await incidents('give-back', open)
  expect([again.code, again.stderr]).toEqual([5, expect.stringContaining('Nobody has')])
  expect((await run(['incidents', 'take', open], 'viewer')).code).toBe(4)
})

test('a cancellation counts until a time, which may be a span', async () => {
  const id = await openedIncident(api.db)
  for (const until of ['yesterday', '2020-01-01', '8', '12/24/2026']) {
    expect((await incidents('cancel', id, '--reason', 'a drill', '--until', until)).code).toBe(2)
  }
  const { stdout } = await incidents('cancel', id, '--reason', 'a drill', '--until', '4h', '--json')
  const { status, cancelledUntil } = JSON.parse(stdout)
  expect(status).toBe('cancelled')
  expect(Math.abs(Date.parse(cancelledUntil) - Date.now() - 4 * 3_600_000)).toBeLessThan(300_000)
  expect((await incidents('show', id)).stdout).toMatch(/status +cancelled, until \d{4}-\d\d-\d\d \d\d:\d\d UTC/)
})

test('what is expected is marked, listed and taken back', async () => {
  const id = await openedIncident(api.db, { name: 'nightly_backup', labels: { alertname: 'nightly_backup' } })
  const marked = await incidents('expect', id, '--until', '3d', '--reason', 'the backup window', '--subject', 'type')
  const mark = /exp_\w+/.exec(marked.stderr)?.[0] ?? ''
  expect(marked.stderr).toContain('nightly_backup is expected until')
  expect((await incidents('show', id)).stdout).toMatch(/status +resolved, expected/)
  const list = await run(['expectations', 'list'], 'viewer')
  expect(list.stdout).toContain('nightly_backup, by operator: the backup window')
  expect((await run(['expectations', 'end', mark], 'viewer')).code).toBe(4)
  expect((await run(['expectations', 'end', mark])).stderr).toContain(`${mark} has ended`)
  expect((await run(['expectations', 'end', mark])).code).toBe(3)
  expect(JSON.parse((await run(['expectations', 'list', '--json'])).stdout)).toEqual([])
  const all = JSON.parse((await run(['expectations', 'list', '--all', '--json'])).stdout)
  expect(all).toMatchObject([{ id: mark, inForce: false }])
})

test('what is handed to people is shown as sentences in eighty columns', async () => {
  const id = await openedIncident(api.db, { title: `Disk full ${hostile}` })
  const escalating = ['--reason', `The snapshots ${'grow and '.repeat(30)}grow`, '--category', 'no_tool']
  await incidents('escalate', id, ...escalating, '--next-step', 'Delete the old snapshots')
  const { stdout } = await incidents('show', id)
  expect(stdout).toContain('Handed to people')
  expect(stdout).toContain('  Next step: Delete the old snapshots')
  expect(stdout).toMatch(/outcome +no tool for it, by a person/)
  expect(stdout.replace(/\s+/g, ' ')).toContain('Found: The snapshots grow and grow')
  expect(widest(stdout)).toBeLessThanOrEqual(80)
  const { incident, events } = JSON.parse((await incidents('show', id, '--json')).stdout)
  expect(incident.category).toBe('no_tool')
  expect(events.at(-1).metadata.report).toMatchObject({ nextStep: 'Delete the old snapshots' })
})

test('a list says what is to be known besides the status, however long the title is', async () => {
  const title = `Replica lags ${'x'.repeat(250)}`
  const id = await claimedIncident(api.db, { name: 'listed', labels: { alertname: 'listed' }, title })
  const mitigated = { status: 'escalated', code: 'AGENT', category: 'mitigated', reason: 'it runs elsewhere' } as const
  await api.db
    .transaction()
    .execute((trx) => closeIncident(trx, id, null, mitigated, { actor: agentActor, stepKey: null }))
  const { shown } = await runAtTerminal(['incidents', 'list', '--type', 'listed'], api.as('operator'))
  expect(shown).toContain('(mitigated: the impact is gone, the cause is left')
  expect(shown).toContain('Replica lags')
  expect(widest(shown)).toBeLessThanOrEqual(80)
})

test('an incident that is not investigated unasked says why, and is when a person asks', async () => {
  await api.put('/config/agent.investigate', { body: { value: 'severity>=critical' } })
  const id = await openedIncident(api.db)
  const { stdout } = await incidents('show', id)
  expect(stdout).toMatch(/status +open, not investigated/)
  expect(stdout.replace(/\s+/g, ' ')).toContain('not investigated: agent.investigate asks for severity critical')
  expect((await incidents('investigate', id)).code).toBe(0)
  expect((await incidents('investigate', id)).code).toBe(5)
})

/** An incident that was handed to a person. */
async function escalated(): Promise<string> {
  const id = await claimedIncident(api.db)
  const closing = { status: 'escalated', reason: 'no idea', code: 'MODEL' } as const
  await api.db.transaction().execute((trx) => closeIncident(trx, id, 1, closing, { actor: 'agent:x', stepKey: null }))
  return id
}

test('a script can tell by the exit code how a command ended', async () => {
  const open = await claimedIncident(api.db)
  const closed = await escalated()
  const denied = await asked(api.db, await claimedIncident(api.db))
  const late = await asked(api.db, await claimedIncident(api.db), { expirySeconds: 1 })
  const admin = api.as('admin')
  await runCli(['approvals', 'deny', denied, '--reason', 'not tonight'], admin)
  const alert = 'test/data/alertmanager/replication-lag.json'
  const nowhere = { NIGHTSHIFT_URL: '', NIGHTSHIFT_TOKEN_FILE: '' }
  const cases: [string, number, string[], Record<string, string>?][] = [
    ['a list', 0, ['incidents', 'list']],
    ['help', 0, ['incidents', '--help']],
    ['nothing runs here', 1, ['incidents', 'list'], nowhere],
    ['the API is not there', 1, ['incidents', 'list'], { NIGHTSHIFT_URL: 'http://127.0.0.1:9' }],
    ['a command that does not exist', 2, ['incidence']],
    ['a flag that does not exist', 2, ['incidents', 'list', '--no-such-flag']],
    ['a status that does not exist', 2, ['incidents', 'list', '--status', 'closed']],
    ['a missing argument', 2, ['incidents', 'show']],
    ['a denial without a reason', 2, ['approvals', 'deny', denied]],
    ['a denial with an empty reason', 2, ['approvals', 'deny', denied, '--reason', ' ']],
    ['a setting that does not parse', 2, ['config', 'set', 'agent.max_turns', 'many']],
    ['an incident that does not exist', 3, ['incidents', 'show', 'inc_none']],
    ['an approval that does not exist', 3, ['approvals', 'approve', 'apr_none']],
    ['a setting that does not exist', 3, ['config', 'get', 'agent.nothing']],
    ['no token', 4, ['incidents', 'list'], { NIGHTSHIFT_TOKEN_FILE: '' }],
    ['a token file that cannot be read', 4, ['incidents', 'list', '--token-file', '/nonexistent']],
    ['an unknown token', 4, ['incidents', 'list'], { NIGHTSHIFT_TOKEN_FILE: '', NIGHTSHIFT_TOKEN: 'wrong' }],
    ['a role that may not', 4, ['ingest', 'test', alert], api.as('viewer')],
    ['somebody else decided', 5, ['approvals', 'approve', denied]],
    ['the incident is closed', 5, ['incidents', 'cancel', closed, '--reason', 'enough']],
    ['the approval has expired', 6, ['approvals', 'approve', late]],
    ['a watched approval was denied', 6, ['approvals', 'watch', denied]],
    ['a watched incident was escalated', 7, ['incidents', 'watch', closed]],
    ['a wait that takes too long', 124, ['incidents', 'watch', open, '--timeout', '0.5']],
  ]
  const ended = await Promise.all(
    cases.map(async ([name, , args, env]) => [name, await runCli(args, { ...admin, ...env })] as const),
  )
  expect(ended.map(([name, { code }]) => [name, code])).toEqual(cases.map(([name, code]) => [name, code]))
  for (const [name, { code, stderr }] of ended) {
    if (code !== 0 && code !== 6) expect([name, stderr]).not.toEqual([name, ''])
    // No stack: a failure of ours that nobody told as one.
    expect(stderr).not.toContain('    at ')
  }
})

test('Ctrl-C ends a watch with 130, whatever it waits for', async () => {
  const incident = await claimedIncident(api.db)
  const approval = await asked(api.db, incident)
  const watches = [
    ['incidents', 'watch', incident],
    ['incidents', 'watch'],
    ['approvals', 'watch', approval],
  ]
  const started = watches.map((args) => startCli(args, api.as('admin')))
  await until('they listen', () => api.listeners() === 2)
  await until('it asks', () => api.requests.some((each) => each.asked === `GET /api/v1/approvals/${approval}`))
  for (const { child } of started) child.kill('SIGINT')
  for (const { ended } of started) expect((await ended).code).toBe(130)
})

test('a problem is told with what to do about it, to a program as problem+json', async () => {
  const [person, program] = await Promise.all([
    runCli(['incidents', 'show', 'inc_none'], api.as('admin')),
    runCli(['incidents', 'show', 'inc_none', '--json'], api.as('admin')),
  ])
  expect(person.stderr).toContain('inc_none')
  expect(person.stderr).toContain('nightshift incidents list')
  expect(program.stdout).toBe('')
  expect(JSON.parse(program.stderr)).toMatchObject({ status: 404, code: 'NOT_FOUND' })
})
