import { expect, test } from '@jest/globals'
import { runCli, tokenFile } from './run-cli.ts'
import { useServedApi } from './served-api.ts'

const api = useServedApi()
const run = (args: string[], as: 'admin' | 'approver' = 'admin') => runCli(['tokens', ...args], api.as(as))

test('a token is printed once, alone on stdout, works, and is gone when it is revoked', async () => {
  const minted = await run(['create', 'a laptop', '--role', 'viewer', '--expires-in-days', '7'])
  const token = minted.stdout.trim()
  expect(token).toMatch(/^nst_[\w-]{43}$/)
  const [, id] = /tokens revoke (tok_\w+)/.exec(minted.stderr) as unknown as [string, string]
  const env = { NIGHTSHIFT_URL: api.apiUrl, NIGHTSHIFT_TOKEN_FILE: tokenFile(token) }
  const list = await run(['list'])
  expect((await runCli(['incidents', 'list'], env)).code).toBe(0)
  expect(list.stdout).toMatch(new RegExp(`^${id} +${token.slice(0, 8)}… +viewer +admin +in 7 d +never`, 'm'))
  expect(list.stdout + list.stderr).not.toContain(token)
  expect((await run(['revoke', id])).code).toBe(0)
  const [after, mine, all] = await Promise.all([
    runCli(['incidents', 'list'], env),
    run(['list']),
    run(['list', '--all', '--json']),
  ])
  expect(after.code).toBe(4)
  expect(mine.stdout).not.toContain(id)
  expect(JSON.parse(all.stdout)).toContainEqual(expect.objectContaining({ id, revokedAt: expect.any(String) }))
})

test('a sender of alerts may have one for ever, a person not, and an approver mints none', async () => {
  const [machine, person, approver] = await Promise.all([
    run(['create', 'alertmanager', '--role', 'ingest', '--for-ever', '--json']),
    run(['create', 'me', '--role', 'viewer', '--for-ever']),
    run(['create', 'me', '--role', 'viewer'], 'approver'),
  ])
  expect(JSON.parse(machine.stdout)).toMatchObject({ role: 'ingest', operator: null, expiresAt: null })
  expect([person.code, approver.code]).toEqual([1, 4])
})
