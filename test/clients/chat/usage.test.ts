import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { closeConnections } from '../../../clients/http.ts'
import { createModelClient } from '../../../clients/model.ts'
import { answerJson, type LocalServer, startLocalServer } from '../../support/local-server.ts'

let server: LocalServer
beforeAll(async () => {
  server = await startLocalServer()
})
afterAll(async () => {
  await closeConnections()
  await server.close()
})

const apiKey = 'sk-very-secret&key'
const prompt = 'why is db-osl-1 slow? '.repeat(100)
const said = 'the disk is full: the log fills it. '.repeat(10)
const ask = () =>
  createModelClient({ baseUrl: server.url, apiKey }).complete({
    model: 'm',
    messages: [{ role: 'user', content: prompt }],
    temperature: 0,
    maxTokens: 100,
  })
const body = (usage: unknown, message: Record<string, unknown> = { content: said }) => ({
  model: 'm',
  choices: [{ finish_reason: 'stop', message }],
  usage,
})

test.each([
  ['1e300', '{"prompt_tokens":1e300,"completion_tokens":1e300}'],
  ['too large for a number', '{"prompt_tokens":1e999,"completion_tokens":1e999}'],
  ['negative', '{"prompt_tokens":-5,"completion_tokens":-1e300}'],
  ['0', '{"prompt_tokens":0,"completion_tokens":0}'],
  ['missing', '{}'],
  ['null', 'null'],
  ['a list', '[1,2]'],
  ['texts', '{"prompt_tokens":"550","completion_tokens":"90"}'],
  ['parts of a token', '{"prompt_tokens":550.5,"completion_tokens":0.0001}'],
  ['true', '{"prompt_tokens":true,"completion_tokens":{}}'],
])(
  'usage of %s neither exceeds nor frees a budget, because it is limited by what was sent and received',
  async (_, usage) => {
    const raw = JSON.stringify(body('HERE')).replace('"HERE"', usage)
    server.play((response) => void response.writeHead(200, { 'content-type': 'application/json' }).end(raw))
    const answer = await ask()
    const sent = Buffer.byteLength(server.seen.at(-1)!.body)
    expect(answer.usage.isAssumed).toBe(true)
    for (const [tokens, bytes] of [
      [answer.usage.promptTokens, sent],
      [answer.usage.completionTokens, said.length],
    ] as const) {
      expect(Number.isInteger(tokens)).toBe(true)
      expect(tokens).toBeGreaterThanOrEqual(Math.floor(bytes / 8) - 20)
      expect(tokens).toBeLessThanOrEqual(bytes)
    }
  },
)

test('a plausible usage of the server is accepted: a prompt, an answer, and hidden reasoning, within the limit that was sent', async () => {
  const usage = { prompt_tokens: 550, completion_tokens: 90, completion_tokens_details: { reasoning_tokens: 40 } }
  server.play(answerJson(200, body(usage)))
  expect((await ask()).usage).toEqual({ promptTokens: 550, completionTokens: 90, reasoningTokens: 40 })
  server.play(answerJson(200, body({ ...usage, completion_tokens: 100 }, { content: 'yes' })))
  expect((await ask()).usage).toEqual({ promptTokens: 550, completionTokens: 100, reasoningTokens: 40 })
  server.play(answerJson(200, body({ ...usage, completion_tokens: 101 }, { content: 'yes' })))
  expect((await ask()).usage).toMatchObject({ completionTokens: expect.any(Number), isAssumed: true })
  const { completionTokens } = (await ask()).usage
  expect(completionTokens).toBeLessThan(100)
})

test('received reasoning of a stream counts, whatever the server reports', async () => {
  const piece = (delta: unknown, more: unknown = {}) =>
    `data: ${JSON.stringify({ choices: [{ delta, finish_reason: null }], ...(more as object) })}\n\n`
  server.play((response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(piece({ reasoning_content: 'hm '.repeat(200) }) + piece({ content: 'yes' }))
    response.end(
      `data: ${JSON.stringify({ choices: [{ delta: {}, finish_reason: 'stop' }], usage: { prompt_tokens: 550, completion_tokens: 500 } })}\n\ndata: [DONE]\n\n`,
    )
  })
  expect((await ask()).usage).toEqual({ promptTokens: 550, completionTokens: 500 })
})

test('an answer that is too large to read is counted', async () => {
  server.play(
    (response) =>
      void response.writeHead(200, { 'content-type': 'application/json' }).end(`"${'x'.repeat(2_500_000)}"`),
  )
  await expect(ask()).rejects.toMatchObject({
    code: 'oversized',
    usage: { isAssumed: true, promptTokens: expect.any(Number), completionTokens: 250_000 },
  })
})

test('the key of a server is in no text, call or error, even if the model repeats it', async () => {
  const escaped = JSON.stringify(apiKey).slice(1, -1).replace('&', '\\u0026')
  const call = { id: 'c', type: 'function', function: { name: apiKey, arguments: `{"leak":"${escaped}"}` } }
  const content = `${apiKey} ${Buffer.from(`xx${apiKey}yy`).toString('base64')} ${encodeURIComponent(apiKey)}`
  server.play(answerJson(200, body({}, { content, tool_calls: [call] })))
  const answer = JSON.stringify(await ask())
  expect(answer).toContain('[credential]')
  expect(answer).not.toMatch(/very|dmVyeS1|26key/)
  server.play(answerJson(400, { error: { message: `no key like ${escaped} or ${encodeURIComponent(apiKey)}` } }))
  await expect(ask()).rejects.toMatchObject({ message: expect.not.stringMatching(/very/) })
})
