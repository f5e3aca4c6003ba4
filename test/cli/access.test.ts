import { chmodSync, existsSync, mkdtempSync, readFileSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { recordAudit } from '../../db/log/audit.ts'
import { runCli, tokenFile, useServedApi } from '../support/run-cli.ts'

const api = useServedApi()
const run = (args: string[], as: 'admin' | 'approver' = 'admin') => runCli(['tokens', ...args], api.as(as))

test('a token is printed once, alone on stdout, works, and stops working when it is revoked', async () => {
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

test('a sender of alerts may have a token without an end, a person may not, and an approver makes none', async () => {
  const [machine, person, approver] = await Promise.all([
    run(['create', 'alertmanager', '--role', 'ingest', '--for-ever', '--json']),
    run(['create', 'me', '--role', 'viewer', '--for-ever']),
    run(['create', 'me', '--role', 'viewer'], 'approver'),
  ])
  expect(JSON.parse(machine.stdout)).toMatchObject({ role: 'ingest', operator: null, expiresAt: null })
  expect([person.code, approver.code]).toEqual([2, 4])
})

const runOperators = (...args: string[]) => runCli(['operators', ...args], api.as('admin'))

test('a person is added and changed, and rights that are not named stay', async () => {
  expect((await runOperators('set', 'anna')).code).toBe(2)
  const made = await runOperators('set', 'anna', '--role', 'approver', '--max-risk', 'high', '--type', 'disk_pressure')
  expect([made.code, made.stderr]).toEqual([0, expect.stringContaining('anna is added')])
  await runOperators('set', 'anna', '--disable')
  expect((await runOperators('list')).stdout).toMatch(/^anna +disabled +high +disk_pressure$/m)
  await runOperators('set', 'anna', '--enable', '--all-types')
  expect((await runOperators('list')).stdout).toMatch(/^anna +approver +high +all$/m)
})

test('a person gets a member ID of Slack, and loses it again', async () => {
  const slackUserId = async () => JSON.parse((await runOperators('list', '--json')).stdout).find(isFrida).slackUserId
  const isFrida = ({ name }: { name: string }) => name === 'frida'
  await runOperators('set', 'frida', '--role', 'approver', '--slack', 'U0FRIDA')
  expect(await slackUserId()).toBe('U0FRIDA')
  await runOperators('set', 'frida', '--max-risk', 'high')
  expect(await slackUserId()).toBe('U0FRIDA')
  await runOperators('set', 'frida', '--no-slack')
  expect(await slackUserId()).toBeNull()
})

/** An account on which nobody is signed in yet. */
const account = () => ({ XDG_CONFIG_HOME: mkdtempSync(join(tmpdir(), 'nightshift-login-')) })
const fileOf = ({ XDG_CONFIG_HOME }: ReturnType<typeof account>) => join(XDG_CONFIG_HOME, 'nightshift', 'tokens.json')
const login = (env: Record<string, string>, token: string) => runCli(['login', '--url', api.apiUrl], env, `${token}\n`)

test('after login every command knows its address and its person, and after logout none does', async () => {
  const env = account()
  const signedIn = await login(env, api.tokens.approver)
  expect(signedIn).toMatchObject({ code: 0, stdout: '' })
  expect(signedIn.stderr).toMatch(/^Signed in to http:\/\/127\.0\.0\.1:\d+ as approver \(approver\)/)
  expect(signedIn.stderr).not.toContain(api.tokens.approver)
  expect(statSync(fileOf(env)).mode & 0o777).toBe(0o600)
  expect((await runCli(['incidents', 'list'], env)).code).toBe(0)
  expect((await runCli(['tokens', 'list'], env)).code).toBe(4)
  expect((await runCli(['logout'], env)).code).toBe(0)
  expect(existsSync(fileOf(env))).toBe(false)
  expect((await runCli(['incidents', 'list'], env)).stderr).toContain('nightshift login')
})

test('login leaves no session behind, and the audit log names the person', async () => {
  await login(account(), api.tokens.operator)
  expect(await api.db.selectFrom('session').select('tokenId').execute()).toEqual([])
  const { body } = await api.get('/audit?what=sign_in')
  expect(body.items).toContainEqual(expect.objectContaining({ who: 'operator', what: 'sign_in.done' }))
})

test('a flag and the environment override the login, and its token is sent to no other address', async () => {
  const env = account()
  await login(env, api.tokens.admin)
  const viewer = tokenFile(api.tokens.viewer)
  // Only an admin lists tokens: 0 is the login, 4 is the one that was named.
  const code = async (args: string[], more = {}) =>
    (await runCli(['tokens', 'list', ...args], { ...env, ...more })).code
  expect(await code([])).toBe(0)
  expect(await code(['--token-file', viewer])).toBe(4)
  expect(await code([], { NIGHTSHIFT_TOKEN_FILE: viewer })).toBe(4)
  expect(await code([], { NIGHTSHIFT_TOKEN: api.tokens.viewer })).toBe(4)
  expect(await code(['--token-file', tokenFile(api.tokens.admin)], { NIGHTSHIFT_TOKEN: api.tokens.viewer })).toBe(0)
  // The same server under another name is another address: it is not sent the token.
  const elsewhere = await runCli(['tokens', 'list', '--url', api.apiUrl.replace('127.0.0.1', 'localhost')], env)
  expect(elsewhere).toMatchObject({ code: 4, stderr: expect.stringContaining('No token for') })
})

test.each([
  ['one that is unknown', () => 'nst_unknown', 4],
  ['that of a machine', () => api.tokens.agent, 4],
  ['none', () => '', 2],
  ['several words', () => 'Bearer nst_x', 2],
])('a token is stored only if it signs a person in: %s', async (_what, token, code) => {
  const env = account()
  const refused = await login(env, token())
  expect(refused.code).toBe(code)
  expect(existsSync(fileOf(env))).toBe(false)
})

test('a login file that others can read is not used', async () => {
  const env = account()
  expect((await runCli(['login', '--url', api.apiUrl, '--token-file', tokenFile(api.tokens.viewer)], env)).code).toBe(0)
  expect(readFileSync(fileOf(env), 'utf8')).toContain(api.tokens.viewer)
  chmodSync(fileOf(env), 0o644)
  const refused = await runCli(['incidents', 'list'], env)
  expect(refused).toMatchObject({ code: 4, stderr: expect.stringContaining('Other users can read') })
})

test('the audit log is listed and filtered, and foreign text cannot act on the terminal', async () => {
  await recordAudit(api.db, { who: 'anna', what: 'token.minted', subject: 'tok_1', detail: 'Minted \u001b[2Jlaptop' })
  await recordAudit(api.db, { who: 'bob', what: 'sign_in.refused', subject: 'browser', detail: 'unknown token' })
  const run = (...args: string[]) => runCli(['audit', 'list', ...args], api.as('operator'))
  const [all, annas, refused, none, wrong, viewer] = await Promise.all([
    run(),
    run('--who', 'anna', '--json'),
    run('--what', 'sign_in'),
    run('--since', '2099-01-01'),
    run('--since', 'yesterday'),
    runCli(['audit', 'list'], api.as('viewer')),
  ])
  expect(all.stdout).toMatch(/bob +sign_in\.refused +browser[\s\S]*anna +token\.minted +tok_1/)
  expect(all.stdout).not.toContain('\u001b[2J')
  expect(JSON.parse(annas.stdout)).toMatchObject([{ who: 'anna', subject: 'tok_1' }])
  expect(refused.stdout).not.toContain('anna')
  expect([none.stderr, wrong.code, viewer.code]).toEqual(['Nothing.\n', 2, 4])
})

test('doctor without a running Nightshift names the remedy, and fails', async () => {
  const { code, stdout } = await runCli(['doctor'])
  expect(code).toBe(1)
  expect(stdout).toContain('npm start')
})

test('doctor names every setting that a start would refuse', async () => {
  const { stdout } = await runCli(['doctor', '--json'], { LLM_MAX_TURNS: 'many', PORT: '99999' })
  const found = JSON.parse(stdout).find((each: { name: string }) => each.name === 'Configuration')
  expect(found).toMatchObject({ ok: false, needed: true })
  expect(found.detail).toContain('LLM_MAX_TURNS')
  expect(found.detail).toContain('PORT')
})

test('doctor finds a Nightshift elsewhere by its address', async () => {
  const { stdout } = await runCli(['doctor', '--json'], { ...api.as('admin'), DATABASE_URL: api.url })
  const found = Object.fromEntries(JSON.parse(stdout).map(({ name, ok }: { name: string; ok: boolean }) => [name, ok]))
  expect(found).toMatchObject({ API: true, Readiness: true, PostgreSQL: true, Migrations: true })
})

test('doctor asks the API of a Nightshift elsewhere, and reports nothing that it cannot see from here', async () => {
  await api.put('/sources/main', { body: { kind: 'prometheus', url: 'http://127.0.0.1:1' } })
  await api.post('/sources/main/test')
  const { stdout, code } = await runCli(['doctor'], api.as('admin'))
  // Neither the rule table of a local start nor addresses that only the server has to know.
  expect(stdout).not.toMatch(/runbook-rules|not known here|npm start/)
  expect(stdout).toMatch(/✔ Database\s+The database answers and accepts writes\./)
  expect(stdout).toMatch(/✔ Platform\s+off: No platform is configured/)
  expect(stdout).toMatch(/✖ Source\s+main \(prometheus\): main cannot be reached\./)
  expect(stdout).toContain('"nightshift sources test main" shows more.')
  // Nothing runs workflows in this test.
  expect(stdout).toMatch(/Worker\s+(failed|unknown): /)
  expect(code).toBe(1)
})
