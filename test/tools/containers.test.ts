import { expect, test } from '@jest/globals'
import type { ToolContext } from '../../domain/tool.ts'
import { prepareOnDevice } from '../../tools/device.ts'

/** What a call of a container is about, by whatever name it was called. */

const contextThat = (rehearsal: object): ToolContext =>
  ({
    stepKey: 'inc_1.1.1.0.tool_started',
    core: {
      get: async () => ({
        ok: true,
        data: {
          resource: { kind: 'node', id: 'web-1' },
          stateFingerprint: 'f',
          dryRun: { possible: true, summary: '', details: { rehearsal } },
        },
      }),
    },
  }) as unknown as ToolContext

test("a rehearsal that found a container has the engine's name for it, and the request stays as it is", async () => {
  const prepared = await prepareOnDevice('web-1', { container: '3f2a1b4c5d6e' }, contextThat({ container: 'web' }))
  expect(prepared).toMatchObject({ container: 'web', identity: { container: '3f2a1b4c5d6e' } })
})

test.each([{}, { container: 7 }, { container: null }])('a rehearsal of %j found none', async (rehearsal) => {
  const prepared = await prepareOnDevice('web-1', { container: '3f2a1b4c5d6e' }, contextThat(rehearsal))
  expect('container' in prepared).toBe(false)
})
