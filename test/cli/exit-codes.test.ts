import { expect, test } from '@jest/globals'
import { closeIncident } from '../../db/incidents/close-incident.ts'
import { asked } from '../support/announced.ts'
import { claimedIncident } from '../support/database.ts'
import { eventually } from '../support/directory.ts'
import { runCli, startCli, useServedApi } from '../support/run-cli.ts'

const api = useServedApi()

/** An incident that was handed to a person. */
async function escalated(): Promise<string> {
  const id = await claimedIncident(api.db)
  const closing = { status: 'escalated', reason: 'no idea', code: 'MODEL' } as const
  await api.db.transaction().execute((trx) => closeIncident(trx, id, 1, closing, { actor: 'agent:x', stepKey: null }))
  return id
}

test('the exit code tells a script how a command ended', async () => {
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
    [
      'a kind that the API does not know',
      2,
      ['sources', 'add', 'x', '--kind', 'promethus', '--at', 'http://127.0.0.1:1'],
    ],
    ['an address that is none', 2, ['sources', 'add', 'x', '--kind', 'prometheus', '--at', 'x']],
    ['days in another form than digits', 2, ['retention', 'preview', '--incidents', '1e2']],
    ['a day that is none', 2, ['reports', '--since', '2026-13-40']],
    ['a source that is away', 1, ['sources', 'add', 'away', '--kind', 'prometheus', '--at', 'http://127.0.0.1:1']],
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
  await eventually('they listen', () => api.listeners() === 2)
  await eventually('it asks', () => api.requests.some((each) => each.asked === `GET /api/v1/approvals/${approval}`))
  for (const { child } of started) child.kill('SIGINT')
  for (const { ended } of started) expect((await ended).code).toBe(130)
})

test('an error is printed with its remedy, and as problem+json for a program', async () => {
  const [person, program] = await Promise.all([
    runCli(['incidents', 'show', 'inc_none'], api.as('admin')),
    runCli(['incidents', 'show', 'inc_none', '--json'], api.as('admin')),
  ])
  expect(person.stderr).toContain('inc_none')
  expect(person.stderr).toContain('nightshift incidents list')
  expect(program.stdout).toBe('')
  expect(JSON.parse(program.stderr)).toMatchObject({ status: 404, code: 'NOT_FOUND' })
})

test.each([
  [['incidents', 'show', 'inc_none'], 'nightshift incidents list'],
  [['approvals', 'show', 'apr_none'], 'nightshift approvals list'],
  [['resources', 'show', 'vm:nope'], 'nightshift resources list'],
  [['sources', 'test', 'nope'], 'nightshift sources list'],
  [['mesh', 'revoke', 'nope', '--reason', 'lost'], 'nightshift mesh devices'],
  [['knowledge', 'show', 'nope'], 'nightshift knowledge list'],
])('an unknown name is refused with the command that lists the known names: %j', async (args, list) => {
  const { code, stderr } = await runCli(args, api.as('admin'))
  expect([code, stderr]).toEqual([3, expect.stringContaining(`"${list}" shows what exists.`)])
})
