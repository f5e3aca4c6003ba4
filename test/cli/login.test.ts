import { chmodSync, existsSync, mkdtempSync, readFileSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { runCli, tokenFile } from './run-cli.ts'
import { useServedApi } from './served-api.ts'

const api = useServedApi()
/** An account on which nobody is signed in yet. */
const account = () => ({ XDG_CONFIG_HOME: mkdtempSync(join(tmpdir(), 'nightshift-login-')) })
const fileOf = ({ XDG_CONFIG_HOME }: ReturnType<typeof account>) => join(XDG_CONFIG_HOME, 'nightshift', 'tokens.json')
const login = (env: Record<string, string>, token: string) => runCli(['login', '--url', api.apiUrl], env, `${token}\n`)

test('after login every command knows where to ask and as whom; after logout none does', async () => {
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

test('it leaves no session behind, and the audit says who came', async () => {
  await login(account(), api.tokens.operator)
  expect(await api.db.selectFrom('session').select('tokenId').execute()).toEqual([])
  const { body } = await api.get('/audit?what=sign_in')
  expect(body.items).toContainEqual(expect.objectContaining({ who: 'operator', what: 'sign_in.done' }))
})

test('a flag and the environment go before the login, and its token goes to no other address', async () => {
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
])('a token is kept only when it signs a person in: %s', async (_what, token, code) => {
  const env = account()
  const refused = await login(env, token())
  expect(refused.code).toBe(code)
  expect(existsSync(fileOf(env))).toBe(false)
})

test('a login that others can read is not used', async () => {
  const env = account()
  expect((await runCli(['login', '--url', api.apiUrl, '--token-file', tokenFile(api.tokens.viewer)], env)).code).toBe(0)
  expect(readFileSync(fileOf(env), 'utf8')).toContain(api.tokens.viewer)
  chmodSync(fileOf(env), 0o644)
  const refused = await runCli(['incidents', 'list'], env)
  expect(refused).toMatchObject({ code: 4, stderr: expect.stringContaining('Other users can read') })
})
