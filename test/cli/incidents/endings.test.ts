import { expect, test } from '@jest/globals'
import { closeIncident } from '../../../db/incidents/close-incident.ts'
import { agentActor } from '../../../domain/event.ts'
import { claimedIncident, openedIncident } from '../../support/database.ts'
import { hostile, runAtTerminal, runCli, useServedApi } from '../../support/run-cli.ts'

const api = useServedApi()
const run = (args: string[], role: 'operator' | 'viewer' | 'admin' = 'operator') => runCli(args, api.as(role))
const incidents = (...args: string[]) => run(['incidents', ...args])
const widest = (text: string) => Math.max(...text.split('\n').map((line) => line.length))

test('a person who resolves an incident names the outcome, and is told that its alert still fires', async () => {
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

test('an incident is taken and given back, and an incident without an owner cannot be given back', async () => {
  const [open, running] = [await openedIncident(api.db), await claimedIncident(api.db)]
  const taken = await incidents('take', open)
  expect([taken.code, taken.stderr]).toEqual([0, expect.stringContaining('operator has it')])
  expect((await incidents('show', open)).stdout).toMatch(/owner +operator, since/)
  expect((await incidents('take', running)).stderr).toContain('The incident is yours when its run has ended')
  const given = await incidents('give-back', open, '--json')
  expect(JSON.parse(given.stdout)).toMatchObject({ id: open, status: 'escalated', owner: null })
  const again = await incidents('give-back', open)
  expect([again.code, again.stderr]).toEqual([5, expect.stringContaining('Nobody has')])
  expect((await run(['incidents', 'take', open], 'viewer')).code).toBe(4)
})

test('a cancellation lasts until a time, which may be a duration', async () => {
  const id = await openedIncident(api.db)
  for (const until of ['yesterday', '2020-01-01', '8', '12/24/2026', '2031-02-30', '2031-02-29T06:00Z']) {
    expect((await incidents('cancel', id, '--reason', 'a drill', '--until', until)).code).toBe(2)
  }
  const { stdout } = await incidents('cancel', id, '--reason', 'a drill', '--until', '4h', '--json')
  const { status, cancelledUntil } = JSON.parse(stdout)
  expect(status).toBe('cancelled')
  expect(Math.abs(Date.parse(cancelledUntil) - Date.now() - 4 * 3_600_000)).toBeLessThan(300_000)
  expect((await incidents('show', id)).stdout).toMatch(/status +cancelled, until \d{4}-\d\d-\d\d \d\d:\d\d UTC/)
})

test('an incident is marked as expected, listed, and unmarked', async () => {
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

test('an escalation is shown as sentences in eighty columns', async () => {
  const id = await openedIncident(api.db, { title: `Disk full ${hostile}` })
  const escalating = ['--reason', `The snapshots ${'grow and '.repeat(30)}grow`, '--category', 'no_tool']
  await incidents('escalate', id, ...escalating, '--next-step', 'Delete the old snapshots')
  const { stdout } = await incidents('show', id)
  expect(stdout).toContain('Escalation report')
  expect(stdout).toContain('  Next step: Delete the old snapshots')
  expect(stdout).toMatch(/outcome +no suitable tool, by a person/)
  expect(stdout.replace(/\s+/g, ' ')).toContain('Found: The snapshots grow and grow')
  expect(widest(stdout)).toBeLessThanOrEqual(80)
  const { incident, events } = JSON.parse((await incidents('show', id, '--json')).stdout)
  expect(incident.category).toBe('no_tool')
  expect(events.at(-1).metadata.report).toMatchObject({ nextStep: 'Delete the old snapshots' })
})

test('a list shows important facts besides the status, however long the title is', async () => {
  const title = `Replica lags ${'x'.repeat(250)}`
  const id = await claimedIncident(api.db, { name: 'listed', labels: { alertname: 'listed' }, title })
  const mitigated = {
    status: 'escalated',
    code: 'AGENT',
    category: 'mitigated',
    reason: 'it runs elsewhere',
  } as const
  await api.db
    .transaction()
    .execute((trx) => closeIncident(trx, id, null, mitigated, { actor: agentActor, stepKey: null }))
  const { shown } = await runAtTerminal(['incidents', 'list', '--type', 'listed'], api.as('operator'))
  expect(shown).toContain('  mitigated: the impact is gone, the cause remains')
  expect(shown).toContain('Replica lags')
  expect(widest(shown)).toBeLessThanOrEqual(80)
})

test('an incident that is left to people says why, and is investigated when a person asks', async () => {
  await api.put('/config/agent.investigate', { body: { value: 'severity>=critical' } })
  const id = await openedIncident(api.db)
  const { stdout } = await incidents('show', id)
  expect(stdout).toMatch(/status +open, not investigated/)
  expect(stdout.replace(/\s+/g, ' ')).toContain('not investigated: agent.investigate requires severity critical')
  expect((await incidents('investigate', id)).code).toBe(0)
  expect((await incidents('investigate', id)).code).toBe(5)
})
