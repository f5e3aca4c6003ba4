import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { connect } from '../../db/connect.ts'
import { moveClock } from '../support/database.ts'
import { type RunningHost, runHost } from '../support/model-hosts/host.ts'
import { vllm } from '../support/model-hosts/local.ts'
import { type Spine, startSpine } from '../support/spine.ts'

let spine: Spine
let host: RunningHost
let isHanging = true

beforeAll(async () => {
  host = await runHost(vllm({ window: 16_384 }), async (asked) => {
    if (isHanging) await new Promise(() => {})
    const id = /inc_[0-9a-z]+/.exec(JSON.stringify(asked.messages))?.[0]
    if (!asked.messages.some(({ role }) => role === 'tool')) {
      return { calls: [{ name: 'find_resource', arguments: { text: 'osl' } }] }
    }
    return { calls: [{ name: 'escalate_incident', arguments: { id, reason: 'I looked and found nothing.' } }] }
  })
  spine = await startSpine({
    parts: ['api', 'worker'],
    environment: { LLM_BASE_URL: host.url, LLM_MODEL: 'qwen3', LLM_MAX_CONCURRENT: '1' },
  })
})
afterAll(async () => {
  await spine?.stop()
  await host?.stop()
})

test('a worker that is killed during a model request loses its slot, and both runs continue on another worker', async () => {
  const at = new Date().toISOString()
  for (const type of ['held_by_it', 'waits_for_it']) {
    const alert = {
      status: 'firing',
      labels: { alertname: type, severity: 'warning' },
      annotations: {},
      startsAt: at,
    }
    const body = { version: '4', groupKey: type, status: 'firing', receiver: 'x', alerts: [alert] }
    await spine.post('/ingest/alertmanager', body, { token: spine.tokens.ingest })
  }
  const model = async () => (await spine.get<{ model: { asking: number; waiting: number } }>('/status')).model
  await spine.until('one that asks and one that waits', async () => {
    const { asking, waiting } = await model()
    return asking === 1 && waiting === 1
  })
  await spine.start('worker2')
  await spine.kill('worker')
  isHanging = false
  const owner = connect(spine.databaseUrl, { owner: true, max: 1 })
  await moveClock(owner, '61 seconds')
  await owner.destroy()
  for (const type of ['held_by_it', 'waits_for_it']) {
    const { id } = await spine.incident(type, 'escalated')
    const end = (await spine.events(id)).find(
      (event) => event.kind === 'tool_finished' && event.metadata.effect === 'terminal',
    )
    expect(end).toMatchObject({ metadata: { outcome: 'done' } })
  }
  expect(await model()).toMatchObject({ asking: 0, waiting: 0 })
})
