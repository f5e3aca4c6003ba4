import { expect, test } from '@jest/globals'
import { harmfulIn, runCli, useServedApi } from '../support/run-cli.ts'

const api = useServedApi()

const dryRun = (file: string, ...more: string[]) =>
  runCli(['ingest', 'test', `test/data/alertmanager/${file}`, '--dry-run', ...more])

test('a posted alert says what became of it', async () => {
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

test('bytes that are no alert are refused with the reason', async () => {
  const { code, stderr } = await runCli(['ingest', 'test', '-', '--dry-run'], {}, '{"alerts": 1')
  expect(code).toBe(1)
  expect(stderr).toContain('not a body of alertmanager alerts')
})
