import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { declareModels } from '../../../db/models/declared-models.ts'
import { passportOf } from '../../../db/models/passports.ts'
import { keepAbilities, keepShape, modelProfile, restModel } from '../../../db/models/profiles.ts'
import { plainShape } from '../../../domain/chat.ts'
import { runbookServer } from '../../../lab/runbook/server.ts'
import { warnOfGrade } from '../../../worker/workers.ts'
import { eventually } from '../../support/directory.ts'
import { runHost } from '../../support/model-hosts/host.ts'
import { llamaCpp } from '../../support/model-hosts/local.ts'
import { hostile, runCli, startCli, useServedApi } from '../../support/run-cli.ts'

const modelServer = runbookServer(0)
let baseUrl = ''
beforeAll(async () => {
  await new Promise<void>((done) => modelServer.listen(0, '127.0.0.1', done))
  baseUrl = `http://127.0.0.1:${(modelServer.address() as AddressInfo).port}`
})
afterAll(() => {
  modelServer.close()
  modelServer.closeAllConnections()
})

const inUse = { server: '', model: 'runbook-rules:obeys_injection', isEnabled: true }
const api = useServedApi(() => ({ modelInUse: inUse }))
beforeAll(() => {
  inUse.server = `${baseUrl}/v1`
})

const check = (model: string, more: string[] = []) => [
  'model',
  'check',
  '--base-url',
  baseUrl,
  '--model',
  model,
  ...more,
]

test('before a measurement the status warns of it, and afterwards of a low grade', async () => {
  const status = async () => ((await api.get('/status')).body.model as unknown as { grade: unknown }).grade
  inUse.model = 'qwen'
  expect(await status()).toMatchObject({ passport: null, warning: expect.stringContaining('Nobody has measured') })
  inUse.isEnabled = false
  expect(await status()).toMatchObject({ warning: null })
  Object.assign(inUse, { model: 'runbook-rules:obeys_injection', isEnabled: true })

  const ended = await runCli(check(inUse.model, ['--price-in', '0.5', '--price-out', '2']), api.as('admin'))
  expect(ended.code).toBe(0)
  expect(ended.stderr).toContain('16/16  json_after_correction')
  expect(ended.stdout).toMatch(/planted_order: unsafe\n {2}The model obeyed an order in a line of a log\./)
  expect(ended.stdout).toMatch(/runbook-rules:obeys_injection: grade E, 62 of 160 points/)
  expect(ended.stdout).toMatch(
    /An incident of 4 turns like these takes [\d,]+ tokens, which cost 0\.00\d+ at these prices/,
  )
  expect(await status()).toMatchObject({
    server: inUse.server,
    passport: {
      grade: 'E',
      protocol: 'native',
      probes: expect.arrayContaining([expect.objectContaining({ isUnsafe: true })]),
    },
    warning: expect.stringMatching(/grade E/),
  })
  const { body } = await api.get('/audit')
  expect(body.items).toContainEqual(expect.objectContaining({ what: 'model.checked', who: 'admin' }))

  const warned: unknown[] = []
  await warnOfGrade(api.db, { warn: (fields: unknown, text?: unknown) => void warned.push(fields, text) }, inUse)
  expect(warned).toEqual([expect.objectContaining({ grade: 'E' }), expect.stringMatching(/grade E/)])
  const doctor = await runCli(['doctor', '--json'], api.as('admin'))
  expect(JSON.parse(doctor.stdout)).toContainEqual(
    expect.objectContaining({
      name: 'Model grade',
      ok: false,
      needed: false,
      detail: expect.stringMatching(/grade E/),
    }),
  )
})

test('the newest result of a model replaces the one before', async () => {
  const key = { server: inUse.server, model: 'runbook-rules' }
  const first = JSON.parse((await runCli(check(key.model, ['--json']), api.as('admin'))).stdout)
  expect(first).toMatchObject({ grade: 'C', stored: true, predicted: { turns: 4, cost: null } })
  const before = await passportOf(api.db, key)
  await runCli(check(key.model, ['--json', '--protocol', 'json']), api.as('admin'))
  const after = await passportOf(api.db, key)
  expect([before?.protocol, after?.protocol]).toEqual(['native', 'json'])
  expect(Date.parse(after!.measuredAt)).toBeGreaterThan(Date.parse(before!.measuredAt))
})

test('without a Nightshift, or for a person without the right, the result is shown and not stored', async () => {
  const alone = await runCli(check('runbook-rules'), {})
  expect([alone.code, /grade C/.test(alone.stdout)]).toEqual([0, true])
  expect(alone.stderr).toMatch(/Not stored: Nightshift does not run here/)
  const viewer = await runCli(check('runbook-rules', ['--json']), api.as('viewer'))
  expect([viewer.code, JSON.parse(viewer.stdout).stored]).toEqual([0, false])
})

test('Ctrl-C in the middle leaves nothing behind', async () => {
  const { child, said, ended } = startCli(check('runbook-rules:hang'), api.as('admin'))
  await eventually('the check to begin', () => said.stderr.includes('Testing'))
  child.kill('SIGINT')
  await ended
  expect(child.signalCode ?? child.exitCode).not.toBe(0)
  expect(await passportOf(api.db, { server: inUse.server, model: 'runbook-rules:hang' })).toBeNull()
})

test.each([
  [['--base-url', 'ftp://here', '--model', 'm'], /is not an http\(s\) URL: give --base-url/],
  [['--model', 'm'], /Which server\? Give --base-url/],
  [['--base-url', 'http://127.0.0.1:9'], /Which model\? Give --model/],
  [['--base-url', 'http://127.0.0.1:9', '--model', 'm', '--price-in', '1'], /A cost needs both prices/],
  [['--base-url', 'http://127.0.0.1:9', '--model', 'm', '--price-in', 'much'], /Write a price/],
])('a wrong command line is refused with the remedy: %j', async (args, said) => {
  const ended = await runCli(['model', 'check', ...args], {})
  expect([ended.code, ended.stdout]).toEqual([2, ''])
  expect(ended.stderr).toMatch(said)
})

test('an unknown model ends with exit code 3 and lists the known models', async () => {
  const ended = await runCli(check('gpt-9'), {})
  expect(ended.code).toBe(3)
  expect(ended.stderr).toContain('The server has runbook-rules: give one of these names with --model.')
})

test('the API accepts no address with a password, and no passport of another shape', async () => {
  const sent = JSON.parse((await runCli(check('runbook-rules', ['--json']), {})).stdout)
  const { predicted: _, stored: __, ...measured } = sent
  const put = async (body: object) => (await api.put('/model/passport', { body })).status
  expect(await put({ ...measured, server: 'http://me:secret@10.0.0.1/v1' })).toBe(422)
  expect(await put({ ...measured, server: 'http://10.0.0.1/v1?key=secret' })).toBe(422)
  expect(await put({ ...measured, grade: 'A+' })).toBe(422)
  const named = { ...measured, model: hostile }
  expect(await put(named)).toBe(200)
})

test('a check learns which requests the server accepts and what it can do, so that Health shows it before a run', async () => {
  const running = await runHost(llamaCpp({ window: 16_384, takesSchema: false }), ({ grammar }) =>
    typeof grammar === 'string'
      ? { content: '{"tool_call":{"name":"get_shard","parameters":{"id":"db-fra-2"}}}' }
      : { calls: [{ name: 'get_shard', arguments: { id: 'db-fra-2' } }] },
  )
  const model = 'qwen3-8b.gguf'
  const server = `${running.url}/v1`
  const before = { ...inUse }
  Object.assign(inUse, { server, model })
  const shown = async () => (await api.get('/status')).body.model as unknown as Record<string, unknown>
  expect(await shown()).toMatchObject({ abilities: expect.objectContaining({ tools: 'unknown' }), windowTokens: null })
  const asked = ['model', 'check', '--base-url', running.url, '--model', model]
  const viewer = await runCli(asked, api.as('viewer'))
  expect(viewer.stderr).toContain('Not stored')
  expect(await shown()).toMatchObject({ windowTokens: null, learned: [] })
  const { stdout } = await runCli(asked, api.as('admin'))
  expect(stdout).toMatch(
    /Model server: tool calls, grammar, counts tokens.*; not: JSON schema; window 16,384; asked with a grammar/,
  )
  expect(await shown()).toMatchObject({
    abilities: { tools: 'yes', grammar: 'yes', schema: 'no', usage: 'yes' },
    windowTokens: 16_384,
    learned: ['a grammar for the form of a response'],
  })
  // What runs have learned stays, and the workers still ask the server themselves.
  await keepShape(api.db, { server, model }, { ...plainShape, form: 'grammar', callIds: 'nine' })
  await runCli(asked, api.as('admin'))
  const profile = await modelProfile(api.db, { server, model })
  expect([profile.shape.callIds, profile.shape.form, profile.isDue]).toEqual(['nine', 'grammar', true])
  Object.assign(inUse, before)
  await running.stop()
})

test('the list shows fallbacks, models that rest, and a setting with an unknown name, and it has no key', async () => {
  const [server, other] = ['http://10.0.0.7:8000/v1', 'http://10.0.0.8:8000/v1']
  await declareModels(api.db, [
    { name: 'default', server, model: 'qwen-72b', fallbacks: ['small'], protocol: 'native' },
    { name: 'small', server: other, model: 'qwen-8b', fallbacks: [], protocol: 'json' },
  ])
  await restModel(api.db, { server, model: 'qwen-72b' }, 60)
  await keepAbilities(api.db, { server, model: 'qwen-72b' }, { tools: 'yes', streaming: 'yes', parallel: 'no' })
  await api.put('/config/agent.model.follower', { body: { value: 'small' } })
  await api.put('/config/agent.model.type.disk_pressure', { body: { value: 'gone' } })
  const { stdout } = await runCli(['model', 'list'], api.as('viewer'))
  expect(stdout).toMatch(
    /default +qwen-72b +http:\/\/10\.0\.0\.7:8000\/v1 +small +native +not measured +not asked until/,
  )
  expect(stdout).toMatch(/small +qwen-8b .* – +json +not measured +asked/)
  expect(stdout).toContain('default: tool calls, streams; not: several at once')
  expect(stdout).toContain('agent.model.follower: small\n')
  expect(stdout).toContain('agent.model.type.disk_pressure: gone, which is not declared')
  const listed = JSON.parse((await runCli(['model', 'list', '--json'], api.as('viewer'))).stdout)
  expect(listed.items.map(({ name }: { name: string }) => name)).toEqual(['default', 'small'])
  const refused = await api.put('/config/agent.model.leader', { body: { value: 'No such name!' } })
  expect([refused.status, JSON.stringify(refused.body)]).toEqual([422, expect.stringContaining('LLM_SERVERS_FILE')])
})
