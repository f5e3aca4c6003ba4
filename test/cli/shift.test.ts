import { expect, test } from '@jest/globals'
import { asked } from '../support/announced.ts'
import { claimedIncident } from '../support/database.ts'
import { runCli, useServedApi } from '../support/run-cli.ts'

const api = useServedApi()
const run = (...words: string[]) => runCli(words, api.as('approver'))

async function mitigated(title: string): Promise<string> {
  const id = await claimedIncident(api.db, { title, name: title, labels: { alertname: title } })
  await api.post(`/incidents/${id}/escalate`, { body: { reason: 'half of it', category: 'mitigated' } })
  return id
}

test('the terminal shows the morning, and the shift in five lines, with the incidents of each line', async () => {
  const approval = await asked(api.db, await claimedIncident(api.db))
  const [morning, handOver, json] = await Promise.all([run('morning'), run('hand-over'), run('hand-over', '--json')])
  expect(morning.stdout).toMatch(/^Morning of \d{4}-\d\d-\d\d: /)
  expect(handOver.stdout).toMatch(/^Hand-over of .*\nOpen: 1 incident: /)
  expect(handOver.stdout).toContain(approval)
  expect(JSON.parse(json.stdout).lines).toHaveLength(5)
})

test('a follow-up gets an owner and a date, and is closed with a note', async () => {
  const id = await mitigated('Disk of node-db-osl-1b fails')
  expect((await run('follow-ups', 'change', id, '--owner', 'approver', '--due', '2020-01-01')).stderr).toContain(
    'For approver, due 2020-01-01.',
  )
  expect((await run('follow-ups')).stdout).toMatch(
    new RegExp(`^2020-01-01 overdue +approver +${id} +Disk of node-db-osl-1b fails`, 'm'),
  )
  const wrong = await run('follow-ups', 'change', id, '--owner', 'zoe')
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('nightshift operators list')])
  const both = await run('follow-ups', 'change', id, '--owner', 'approver', '--group', 'storage')
  expect([both.code, both.stderr]).toEqual([2, expect.stringContaining('Name one of the two')])
  const nothing = await run('follow-ups', 'change', id)
  expect([nothing.code, nothing.stderr]).toEqual([2, expect.stringContaining('Name what changes')])
  expect((await run('follow-ups')).stdout).toMatch(/overdue +approver/)
  expect((await run('follow-ups', 'close', id, '--note', 'the disk was replaced')).code).toBe(0)
  expect((await run('follow-ups')).stdout).not.toContain(id)
})

test('a destination is set to wake people or not, and returns to the default of its kind', async () => {
  const set = (...more: string[]) => run('destinations', 'set', 'lamp', ...more)
  const admin = (...words: string[]) => runCli(words, api.as('admin'))
  await api.put('/destinations/lamp', { body: { kind: 'webhook', secrets: { url: 'http://127.0.0.1:9/x' } } })
  expect((await set('--wakes', 'no')).code).not.toBe(0)
  await admin('destinations', 'set', 'lamp', '--wakes', 'no')
  expect((await admin('destinations', 'list')).stdout).toMatch(/^lamp .*wakes nobody/m)
  await admin('destinations', 'set', 'lamp', '--types', 'disk_*')
  expect((await admin('destinations', 'list')).stdout).toMatch(/^lamp .*disk_\*; wakes nobody/m)
  await admin('destinations', 'set', 'lamp', '--wakes', 'kind')
  expect((await admin('destinations', 'list')).stdout).not.toContain('wakes nobody')
})
