import { describe, expect, test } from '@jest/globals'
import { toGrammar } from '../../../clients/chat/body.ts'
import { createModelClient } from '../../../clients/model.ts'
import { answerForm } from '../../../model/protocol.ts'
import { apiKey, plain, useHosts } from '../../support/local-server.ts'
import { allowedBy, llamaCpp, vllm } from '../../support/model-hosts/local.ts'

describe('an answer in text', () => {
  const start = useHosts()
  const called = '{"tool_call":{"name":"get_shard","parameters":{"id":"db-osl-1","since":[1,2.5,null]}}}'
  const ended =
    '{"final_answer":{"summary":"It is \\"up\\".","confidence":"high","claims":[{"kind":"is","text":"up","quotes":[]}]}}'
  const ways = (asked: readonly Record<string, unknown>[]) =>
    asked.map((each) => ['response_format', 'grammar', 'guided_json'].filter((field) => field in each).join())

  test('is held to a grammar from the second request on if the server applies one and takes no schema', async () => {
    const words = ['I would look at the shard first.', '{"tool_call":{"name":7}}', called]
    const host = llamaCpp({ window: 32_768, takesSchema: false })
    const running = await start(host, ({ grammar }) => ({
      content: words.find((each) => typeof grammar !== 'string' || allowedBy(grammar).test(each)) ?? '',
    }))
    const client = createModelClient({ baseUrl: running.url, apiKey })
    const ask = async () => (await client.complete({ ...plain, model: 'qwen3', form: answerForm })).content
    expect([await ask(), await ask()]).toEqual([called, called])
    expect(ways(running.asked)).toEqual(['response_format', 'grammar', 'grammar'])
  })

  test('is held by guided_json, or only by words, if the server refuses unknown fields', async () => {
    const running = await start(vllm({ window: 32_768, isOld: true }), () => ({ content: called }))
    const client = createModelClient({ baseUrl: running.url, apiKey })
    expect(await client.complete({ ...plain, model: 'qwen3', form: answerForm })).toMatchObject({ content: called })
    const asked = ways(running.asked)
    expect(asked.filter((way, at) => way !== asked[at - 1])).toEqual(['response_format', 'grammar', 'guided_json', ''])
  })

  test('is exactly one call or one ending of the protocol under the grammar', () => {
    const allowed = allowedBy(toGrammar(answerForm))
    expect([called, ended, ` ${called}\n`].map((text) => allowed.test(text))).toEqual([true, true, true])
    const others = [
      '',
      'ok',
      '{}',
      '{"tool_call":{"name":"a"}}',
      `${called}${called}`,
      `{"tool_call":{"name":"a","parameters":{}},"b":1}`,
      ended.replace('high', 'sure'),
      ended.replace('"is"', '"maybe"'),
      called.replace('1,2.5', '01'),
    ]
    expect(others.filter((text) => allowed.test(text))).toEqual([])
  })
})
