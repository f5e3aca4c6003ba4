import { expect, test } from '@jest/globals'
import { runCli, useServedApi } from '../support/run-cli.ts'

const api = useServedApi()
const run = (args: string[], input = '') => runCli(['destinations', ...args], api.as('admin'), input)
const key = 'R0123456789ABCDEF0123456789ABCDE'

test('a destination is set with its secret from stdin, changed, shown without it, and deleted', async () => {
  const made = ['set', 'on-call', '--kind', 'pagerduty', '--secret', 'integrationKey=-', '--severities', 'critical']
  const set = await run(made, `${key}\n`)
  expect([set.code, set.stderr]).toEqual([0, expect.stringContaining('nightshift destinations test on-call')])
  const hours = ['--hours', '22:00-06:00', '--zone', 'Europe/Oslo']
  await run(['set', 'on-call', '--types', 'disk_*,lag', '--severities', 'all', ...hours, '--disable'])
  const [list, shown] = await Promise.all([run(['list']), run(['show', 'on-call', '--json'])])
  expect(list.stdout).toMatch(/^on-call +pagerduty +off +https:\/\/events\.pagerduty\.com +disk_\*, lag; 22:00 to/m)
  expect(JSON.parse(shown.stdout)).toMatchObject({
    enabled: false,
    options: { events: 'us' },
    secrets: ['integrationKey'],
    route: {
      severities: null,
      types: ['disk_*', 'lag'],
      hours: { from: '22:00', to: '06:00', zone: 'Europe/Oslo' },
    },
    deliveries: [],
  })
  expect(shown.stdout + list.stdout).not.toContain(key)
  expect((await run(['delete', 'on-call'])).code).toBe(0)
})

test('a refusal names the field and a valid value, and an undelivered test message is a failure', async () => {
  const options = ['host=smtp.example.com', 'from=me', 'to=ops@example.com'].flatMap((each) => ['--option', each])
  await api.put('/destinations/gone', { body: { kind: 'webhook', secrets: { url: 'http://127.0.0.1:9/x' } } })
  const [wrong, tested] = await Promise.all([
    run(['set', 'mail', '--kind', 'email', ...options]),
    run(['test', 'gone']),
  ])
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringMatching(/options\.from.*as ops@example\.com/s)])
  expect([tested.code, tested.stdout]).toEqual([1, expect.stringContaining('the receiver cannot be reached')])
})
