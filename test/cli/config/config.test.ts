import { expect, test } from '@jest/globals'
import { startLocalServer } from '../../support/local-server.ts'
import { harmfulIn, runCli, useServedApi } from '../../support/run-cli.ts'

const api = useServedApi()

const run = (args: string[], input?: string) => runCli(['config', ...args], api.as('admin'), input)

test('a set value is in force, for all types or for one, and the list shows it', async () => {
  expect((await run(['get', 'agent.max_turns'])).stdout).toBe('10\n')
  expect((await run(['set', 'agent.max_turns', '12', '--reason', 'disks need more'])).code).toBe(0)
  await Promise.all([
    run(['set', 'agent.max_turns.disk_pressure', '15']),
    run(['set', 'approval.expiry.execute_migration', '900']),
  ])
  const [all, disks, other, list] = await Promise.all([
    run(['get', 'agent.max_turns']),
    run(['get', 'agent.max_turns.disk_pressure']),
    run(['get', 'agent.max_turns.replication_lag']),
    run(['list']),
  ])
  expect([all.stdout, disks.stdout, other.stdout]).toEqual(['12\n', '15\n', '12\n'])
  expect(list.stdout).toMatch(/^agent\.max_turns +global +12 turns$/m)
  expect(list.stdout).toMatch(/^agent\.max_turns\.disk_pressure +set +15 turns$/m)
  expect(list.stdout).toMatch(/^approval\.expiry\.execute_migration +set +900 s \(15 min\)$/m)
  expect((await run(['list', '--type', 'disk_pressure'])).stdout).toMatch(/^agent\.max_turns +type +15 turns$/m)
  const { body } = await api.get('/config/agent.max_turns/revisions')
  expect(body.items).toMatchObject([{ newValue: '12', actor: 'user:admin', reason: 'disks need more' }])
})

test('a value that another person changed meanwhile is not overwritten', async () => {
  await run(['set', 'agent.paused', 'true'])
  const puts = await Promise.all([1, 2, 3, 4].map((n) => run(['set', 'agent.leader_wait', String(n)])))
  const codes = puts.map(({ code }) => code)
  expect(codes).toContain(0)
  expect(codes.every((code) => code === 0 || code === 5)).toBe(true)
  const { body } = await api.get('/config/agent.leader_wait')
  expect(body.version).toBe(codes.filter((code) => code === 0).length)
})

test('a secret is read from stdin and never shown again', async () => {
  const secret = `whsec_${'A'.repeat(32)}`
  expect((await run(['set', 'webhook.critical.secret', '-'], `${secret}\n`)).code).toBe(0)
  const shown = await Promise.all([run(['get', 'webhook.critical.secret']), run(['list']), run(['list', '--json'])])
  for (const { stdout, stderr } of shown) expect(stdout + stderr).not.toContain(secret)
  expect(
    await api.db.selectFrom('platformConfig').select('value').where('key', '=', 'webhook.critical.secret').execute(),
  ).toEqual([{ value: secret }])
})

test('a test message is sent to the address of a webhook, and the exit code says whether it arrived', async () => {
  const unknown = await run(['test', 'webhook.other'])
  expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining('webhook.critical, webhook.approval')])
  expect((await run(['test', 'webhook.resolved'])).stderr).toContain('webhook.resolved.url is not set')
  const receiver = await startLocalServer()
  try {
    await run(['set', 'webhook.resolved.url', `${receiver.url}/hook`])
    receiver.play((response) => response.writeHead(200).end('\u001b[31mthanks'))
    const sent = await run(['test', 'webhook.resolved'])
    expect([sent.code, sent.stdout]).toEqual([0, expect.stringContaining('the receiver answered 200')])
    expect(harmfulIn(sent.stdout + sent.stderr)).toBeNull()
    receiver.play((response) => response.writeHead(404).end())
    const refused = await run(['test', 'webhook.resolved'])
    expect([refused.code, refused.stdout]).toEqual([1, expect.stringContaining('the receiver answered 404')])
  } finally {
    await receiver.close()
  }
})

test('a change can be looked up and reverted, which is a change of its own', async () => {
  await run(['set', 'agent.token_budget', '5000', '--reason', 'too many'])
  await run(['set', 'agent.token_budget', '7000'])
  const { stdout } = await run(['history', 'agent.token_budget'])
  expect(stdout).toMatch(/2 .*user:admin +5000 → 7000/)
  expect(stdout).toContain('(too many)')
  expect((await run(['rollback', 'agent.token_budget', '1'])).code).toBe(0)
  expect((await run(['get', 'agent.token_budget'])).stdout).toBe('5000\n')
  const revisions = (await api.get('/config/agent.token_budget/revisions')).body.items as unknown as {
    reason: string
  }[]
  expect(revisions).toHaveLength(3)
  expect(revisions[0]?.reason).toBe('back to version 1')
  expect((await run(['rollback', 'agent.token_budget', '99'])).code).toBe(3)
})

test('exported settings show as a difference elsewhere and can be imported, and a wrong entry changes nothing', async () => {
  await run(['set', 'agent.time_budget', '900'])
  const file = (await run(['export'])).stdout
  expect(JSON.parse(file)).toMatchObject({ 'agent.time_budget': '900' })
  expect(file).not.toContain('whsec_')
  expect(await run(['diff', '-'], file)).toMatchObject({ code: 0, stdout: '' })
  const changed = JSON.stringify({ ...JSON.parse(file), 'agent.time_budget': '1200' })
  expect(await run(['diff', '-'], changed)).toMatchObject({
    code: 1,
    stdout: expect.stringContaining('900 → 1200'),
  })
  const bad = JSON.stringify({ 'agent.time_budget': '60', 'agent.no_such': '1' })
  expect(await run(['import', '-'], bad)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('agent.no_such'),
  })
  expect((await run(['get', 'agent.time_budget'])).stdout).toBe('900\n')
  expect((await run(['import', '-'], changed)).code).toBe(0)
  expect((await run(['get', 'agent.time_budget'])).stdout).toBe('1200\n')
})
