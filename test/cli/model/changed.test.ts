import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { servedModels } from '../../../activities/served-models.ts'
import { createModelClient } from '../../../clients/model.ts'
import { runCli, useServedApi } from '../../support/run-cli.ts'

/** A server whose model can be exchanged under its name, and that can go away in the middle. */
const now = { answersAs: 'qwen3-a', owner: 'vllm', window: 32_768, asked: 0, leftAfter: Number.POSITIVE_INFINITY }
const server = createServer((request, response) => {
  request.resume()
  request.on('end', () => {
    if (request.url?.endsWith('/models')) return say(response, listed())
    if (!request.url?.endsWith('/chat/completions')) return say(response.writeHead(404), {})
    now.asked += 1
    if (now.asked > now.leftAfter) return void response.destroy()
    say(response, {
      model: now.answersAs,
      choices: [{ message: { role: 'assistant', content: 'Hello.' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 100, completion_tokens: 10 },
    })
  })
})
const say = (response: ServerResponse, body: object) => void response.end(JSON.stringify(body))
const listed = () => ({
  data: [{ id: 'qwen3', owned_by: now.owner, root: '/models/qwen3', max_model_len: now.window }],
})

const inUse = { server: '', model: 'qwen3', isEnabled: true }
const api = useServedApi(() => ({ modelInUse: inUse }))
let baseUrl = ''
beforeAll(async () => {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  inUse.server = `${baseUrl}/v1`
})
afterAll(() => {
  server.close()
  server.closeAllConnections()
})

const check = () => runCli(['model', 'check', '--base-url', baseUrl, '--model', 'qwen3'], api.as('admin'))
const log = { warn: () => undefined }

/** As a worker does: it asks the server who it is, and then the model. */
async function work() {
  await api.db.updateTable('modelProfile').set({ readAt: null }).execute()
  const served = servedModels(api.db, { baseUrl, apiKey: '' }, log)
  await served.profile('qwen3')
  const client = createModelClient({ baseUrl, apiKey: '', memory: served.memory })
  const asked = { messages: [{ role: 'user' as const, content: 'Hello?' }], temperature: 0, maxTokens: 64 }
  await client.complete({ ...asked, model: 'qwen3', signal: AbortSignal.timeout(60_000) })
}

async function shown() {
  const { warning, passport } = ((await api.get('/status')).body.model as unknown as { grade: Shown }).grade
  const doctor = JSON.parse((await runCli(['doctor', '--json'], api.as('admin'))).stdout) as Found[]
  const list = (await api.get('/models')).body
  return { warning, withdrawn: passport?.withdrawn, list, doctor: doctor.find(({ name }) => name === 'Model grade') }
}
type Shown = { warning: string | null; passport: { withdrawn: string | null } | null }
type Found = { name: string; ok: boolean; detail: string }

test('a check that lost its server continues with the missing probes', async () => {
  now.leftAfter = 6
  const broken = await check()
  expect([broken.code, broken.stderr]).toEqual([
    1,
    expect.stringMatching(/does not answer any more: .*The finished probes are kept/),
  ])
  expect((await shown()).withdrawn).toBeUndefined()
  now.leftAfter = Number.POSITIVE_INFINITY
  now.asked = 0
  const whole = await check()
  expect(whole.stderr).toMatch(/An interrupted check finished 6 probes/)
  expect(whole.stdout).toMatch(/qwen3: grade F, 0 of 160 points/)
  const rest = now.asked
  now.asked = 0
  await check()
  expect(now.asked).toBe(rest + 6)
})

test('the grade counts while the server reports the same model', async () => {
  await work()
  expect(await shown()).toMatchObject({ withdrawn: null, warning: expect.stringContaining('has grade F') })
})

test.each<[string, () => void, RegExp]>([
  [
    'another name in its answers',
    () => void Object.assign(now, { answersAs: 'qwen3-b' }),
    /answered as qwen3-a when .* answers as qwen3-b now/,
  ],
  [
    'another window',
    () => void Object.assign(now, { window: 8_192 }),
    /owner, build, digest or context window of its server changed/,
  ],
  [
    'another owner',
    () => void Object.assign(now, { owner: 'sglang' }),
    /owner, build, digest or context window of its server changed/,
  ],
])(
  '%s withdraws the grade, which the list and doctor show, until the model is measured again',
  async (_what, change, why) => {
    change()
    await work()
    const { warning, withdrawn, doctor } = await shown()
    expect(withdrawn).toMatch(why)
    expect(warning).toMatch(/The grade F of qwen3 is withdrawn: .*"nightshift model check" measures it again/)
    expect(doctor).toMatchObject({ ok: false, detail: expect.stringContaining('grade F (withdrawn:') })
    await check()
    await work()
    expect(await shown()).toMatchObject({ withdrawn: null })
  },
)
