import { expect, test } from '@jest/globals'
import { askForSnsTopic } from '../../db/alerts/sns-topics.ts'
import { eventsOf } from '../../db/log/events.ts'
import { harmfulIn, runCli, useServedApi } from '../support/run-cli.ts'
import { bodiesOf, topicArn } from '../support/senders.ts'

const api = useServedApi()

const dryRun = (file: string, ...more: string[]) =>
  runCli(['ingest', 'test', `test/data/alertmanager/${file}`, '--dry-run', ...more])

test('a posted alert prints its result and its incident', async () => {
  const file = 'test/data/alertmanager/replication-lag.json'
  const posted = await runCli(['ingest', 'test', file], api.as('ingest'))
  expect(posted.stdout).toMatch(/\w+ +opened +inc_\w{26}/)
  expect(posted.stderr).toContain('1 alert accepted')
  expect((await runCli(['ingest', 'test', file], api.as('ingest'))).stdout).toContain('repeated')
})

test('a dry run shows the alerts of a body and posts nothing', async () => {
  const files: [string, number, string][] = [
    ['replication-lag.json', 1, '1 alert.'],
    ['disk-pressure-group-of-3.json', 3, '3 alerts.'],
    ['mixed-one-resolved-two-firing.json', 3, '3 alerts.'],
    ['hostile-labels.json', 1, '1 alert.'],
    ['no-severity-no-instance.json', 1, '1 alert.'],
  ]
  await Promise.all(
    files.map(async ([file, alerts, said]) => {
      const [person, program] = await Promise.all([dryRun(file), dryRun(file, '--json')])
      expect([file, person.code]).toEqual([file, 0])
      expect(person.stderr).toContain(`${said} Nothing was posted.`)
      expect(harmfulIn(person.stdout)).toBeNull()
      expect(JSON.parse(program.stdout)).toHaveLength(alerts)
    }),
  )
})

test('each dialect is tried with a file of its sender, here and at the server', async () => {
  for (const [dialect, body] of Object.entries(bodiesOf)) {
    const run = (...more: string[]) =>
      runCli(['ingest', 'test', '-', '--dialect', dialect, ...more], api.as('admin'), body())
    expect((await run('--dry-run')).stdout).toContain('firing')
    expect((await run('--explain')).stdout).toContain('opens an incident')
    expect((await run()).stdout).toContain('opened')
  }
})

test('a body of no dialect prints the nearest dialect, and which of its fields match', async () => {
  const body = JSON.stringify({ heartbeat: {}, monitor: { name: 'Shop', hostname: 'web-1' }, status: 'down' })
  for (const how of ['--dry-run', '--explain']) {
    const { code, stderr } = await runCli(['ingest', 'test', '-', '--dialect', 'zabbix', how], api.as('viewer'), body)
    const said = stderr.replace(/\s+/g, ' ')
    expect([code, said]).toEqual([
      1,
      expect.stringContaining('The nearest dialect is uptime-kuma: the body has heartbeat, monitor, but no msg.'),
    ])
    expect(said).toContain('monitor.name would be name: Shop')
    expect(said).toContain('monitor.hostname would be labels.hostname: web-1')
  }
})

test('a body without an alert prints the reason', async () => {
  const body = bodiesOf.pagerduty({ key: 'inc_01kam3x0q2v8d5t7w9y1b3c5e7' })
  for (const how of [['--dry-run'], ['--explain'], []]) {
    const { code, stderr } = await runCli(
      ['ingest', 'test', '-', '--dialect', 'pagerduty', ...how],
      api.as('admin'),
      body,
    )
    expect([code, stderr]).toEqual([
      0,
      expect.stringContaining('The request body contains no alert: Nightshift itself opened this incident'),
    ])
  }
})

test('topics of SNS are listed with what they wait for, and a topic that does not wait cannot be confirmed', async () => {
  expect((await runCli(['ingest', 'topics'], api.as('admin'))).stderr).toContain('No topics.')
  await askForSnsTopic(api.db, topicArn, 'https://sns.eu-north-1.amazonaws.com/?Token=a')
  const { stdout } = await runCli(['ingest', 'topics'], api.as('admin'))
  expect(stdout).toContain(topicArn)
  expect(stdout).toContain('waits for you')
  expect((await runCli(['ingest', 'confirm-topic', '999'], api.as('admin'))).code).not.toBe(0)
  expect((await runCli(['ingest', 'remove-topic', '1'], api.as('admin'))).stdout).toContain('removed')
})

test('bytes that are no alert are refused with the reason', async () => {
  const { code, stderr } = await runCli(['ingest', 'test', '-', '--dry-run'], {}, '{"alerts": 1')
  expect(code).toBe(1)
  expect(stderr).toContain('not a request body of alertmanager alerts')
})

test('an unknown word for a state is reported once: in a dry run, in the explanation, on the alert and in the log', async () => {
  const body = (state: string) => JSON.stringify({ title: 'Pump 7', dedup: 'pump-7', state, severity: 'warning' })
  const test = (state: string, ...more: string[]) =>
    runCli(['ingest', 'test', '-', '--dialect', 'generic', ...more], api.as('ingest'), body(state))
  const named = /its state "AUS" is unknown/
  expect((await test('AUS', '--dry-run')).stderr).toMatch(named)
  expect((await test('DOWN')).stdout).toContain('opened')
  expect((await test('AUS')).stdout).toContain('repeated')
  expect((await test('AUS')).stdout).toContain('repeated')
  const listed = async () => (await runCli(['alerts', 'list', '--q', 'pump-7'], api.as('viewer'))).stdout
  expect(await listed()).toMatch(/firing/)
  expect((await listed()).replace(/\s+/g, ' ')).toMatch(named)
  const explained = await runCli(
    ['ingest', 'test', '-', '--dialect', 'generic', '--explain'],
    api.as('viewer'),
    body('AUS'),
  )
  expect(explained.stdout.replace(/\s+/g, ' ')).toMatch(named)
  // A dry run takes nothing from it: neither posts.
  const both = await runCli(
    ['ingest', 'test', '-', '--dialect', 'generic', '--explain', '--dry-run'],
    api.as('viewer'),
    body('AUS'),
  )
  expect(both.stdout).toBe(explained.stdout)
  const { incidentId } = await api.db
    .selectFrom('alert')
    .select('incidentId')
    .where('fingerprint', '=', 'pump-7')
    .executeTakeFirstOrThrow()
  const rows = await eventsOf(api.db, incidentId ?? '')
  expect(rows.filter(({ detail }) => named.test(detail))).toHaveLength(1)

  await api.put('/config/alert.state_words', { body: { value: 'AUS = ends', reason: 'what our pumps say' } })
  expect((await test('AUS')).stdout).toContain('resolved')
  expect(await listed()).not.toMatch(named)
})
