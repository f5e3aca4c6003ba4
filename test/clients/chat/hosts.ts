import { afterAll, afterEach } from '@jest/globals'
import type { ModelError } from '../../../clients/chat/refused-request.ts'
import { closeConnections } from '../../../clients/http.ts'
import type { ModelRequest } from '../../../clients/model.ts'
import { type RunningHost, runHost } from '../../support/model-hosts/host.ts'

/** Hosts for the tests of one file; each ends with its test. */
export function useHosts(): (...given: Parameters<typeof runHost>) => Promise<RunningHost> {
  const running: RunningHost[] = []
  afterEach(async () => {
    await Promise.all(running.splice(0).map((each) => each.stop()))
  })
  afterAll(closeConnections)
  return async (...given) => {
    const host = await runHost(...given)
    running.push(host)
    return host
  }
}

export const said = { content: 'the replica lags', reasoning: 'let me think about SECRET PLANS first' }
export const apiKey = 'sk-test'
export const plain: ModelRequest = {
  model: 'gpt-5-mini',
  messages: [
    { role: 'system', content: 'you look after databases' },
    { role: 'user', content: 'why is db-osl-1 slow?' },
  ],
  ...{ temperature: 0.1, maxTokens: 1_024 },
}
/** A later turn, with a call, its result, and two messages of the user in a row. */
export const later: ModelRequest = {
  ...plain,
  messages: [
    ...plain.messages,
    { role: 'user', content: 'the leader found this' },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'c1_0', type: 'function', function: { name: 'get_shard', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: 'c1_0', content: '{"ok":true}' },
  ],
}

export async function fault(promise: Promise<unknown>): Promise<ModelError> {
  return await promise.then(
    () => {
      throw new Error('it answered')
    },
    (error) => error as ModelError,
  )
}
