import { expect, test } from '@jest/globals'
import type { CorePort } from '../../domain/tool.ts'
import { tools } from '../../tools/registry.ts'

const node = (id: string, more = {}) => ({
  id,
  hostname: id,
  ip: '10.0.0.1',
  shard: 's',
  status: 'degraded',
  ...more,
})

/** What an approval of a converge is bound to while the shard has these nodes. */
async function boundTo(items: object[]): Promise<string | undefined> {
  const core: CorePort = {
    get: async () => ({ ok: true, status: 200, data: { items } }),
    post: async () => ({ ok: false, status: 503, problem: { title: 'no', detail: 'no' } }),
  }
  const prepared = await tools.get('converge_shard')?.prepare?.({ id: 's', reason: 'x' }, { core } as never)
  return prepared?.stateFingerprint
}

test('a converge that was approved for nodes is not approved for others under the name of the shard or of a node', async () => {
  const approved = await boundTo([node('a'), node('b')])
  expect(await boundTo([node('b', { status: 'nominal' }), node('a')])).toBe(approved)
  for (const now of [[node('a')], [node('a'), node('b'), node('c')], [node('a'), node('b', { ip: '10.0.0.9' })]]) {
    expect(await boundTo(now)).not.toBe(approved)
  }
})
