import { expect, test } from '@jest/globals'
import { readServedModel } from '../../../clients/chat/window.ts'
import { baseUrlOf } from '../../../clients/model.ts'
import { apiKey, said, useHosts } from '../../support/local-server.ts'
import { openAi, openRouter } from '../../support/model-hosts/host.ts'
import { llamaCpp, ollama, vllm } from '../../support/model-hosts/local.ts'

const start = useHosts()

test.each([
  ['vLLM', vllm({ window: 16_384 }), '', 'qwen3', 16_384, 'max_model_len of /v1/models'],
  ['llama.cpp', llamaCpp({ window: 8_192 }), '', 'any', 8_192, 'n_ctx of /props'],
  ['OpenRouter', openRouter, '/api', 'qwen/qwen3-235b-a22b', 40_960, 'context_length of /v1/models'],
  ['OpenAI', openAi, '', 'gpt-5-mini', null, null],
  ['Ollama with a parameter', ollama({ parameter: 16_384 }), '', 'qwen3:8b', 16_384, 'num_ctx of /api/show'],
  ['Ollama without one', ollama({}), '', 'qwen3:8b', 4_096, 'context_length of /api/ps'],
  ['Ollama with a setting', ollama({ environment: 32_768 }), '', 'qwen3:8b', 32_768, 'context_length of /api/ps'],
])('the window of %s is read from its field', async (_name, played, path, model, tokens, source) => {
  const host = await start(played, () => said)
  const found = await readServedModel({ baseUrl: baseUrlOf(`${host.url}${path}/v1`), apiKey, model })
  expect(found).toMatchObject({ windowTokens: tokens, source })
  const again = await readServedModel({ baseUrl: baseUrlOf(`${host.url}${path}/v1`), apiKey, model })
  expect(again?.identity).toBe(found?.identity)
})

test('a model that Ollama has loaded has the window it was loaded with', async () => {
  let loaded: number | null = null
  const host = await start(ollama({ parameter: 32_768, loaded: () => loaded }), () => said)
  const where = { baseUrl: baseUrlOf(host.url), apiKey: '', model: 'qwen3:8b' }
  const before = await readServedModel(where)
  loaded = 8_192
  const after = await readServedModel(where)
  expect(before).toMatchObject({ windowTokens: 32_768, isProvisional: true, cutsSilently: true })
  expect(after).toMatchObject({ windowTokens: 8_192, isProvisional: false, source: 'context_length of /api/ps' })
  expect(after?.identity).toBe(before?.identity)
})

test('an unreachable server gives no window', async () => {
  expect(await readServedModel({ baseUrl: 'http://127.0.0.1:1/v1', apiKey: '', model: 'm' })).toBeNull()
})
