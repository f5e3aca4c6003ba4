import { z } from '@hono/zod-openapi'
import { workerEnvironment } from '../../db/settings.ts'
import { shownVariable } from '../../domain/setting-row.ts'
import { cleanse } from '../../safety/redact.ts'
import { pageOf } from '../http/cursor.ts'
import { endpoint } from '../http/endpoint.ts'

export const tag = 'configuration'

export const environmentEndpoint = endpoint({
  method: 'get',
  path: '/config/environment',
  permission: 'write_config',
  tag,
  summary: 'The environment that this API process and the worker were started with',
  description:
    'A secret is shown as set or not set. Addresses are shown without credentials. If several workers run, the newest worker is shown.',
  answer: pageOf(shownVariable).extend({ workerStartedAt: z.string().nullable() }),
  example: {
    items: [
      {
        name: 'LLM_MAX_TURNS',
        group: 'Agent and model',
        description: 'Turns before an investigation escalates.',
        secret: false,
        state: 'default',
        value: '10',
        worker: { state: 'set', value: '20' },
      },
    ],
    nextCursor: null,
    workerStartedAt: '2026-11-24T02:10:00.000000Z',
  },
  async run({ scope }, deps) {
    const worker = await workerEnvironment(scope)
    const items = deps.variables.map((each) => {
      const other = worker?.variables.find(({ name }) => name === each.name)
      const isSame = !other || (other.state === each.state && other.value === each.value)
      return { ...each, worker: isSame ? null : { state: other.state, value: other.value } }
    })
    return { items: cleanse(items), nextCursor: null, workerStartedAt: worker?.startedAt ?? null }
  },
})
