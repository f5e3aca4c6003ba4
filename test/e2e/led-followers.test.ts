import { afterAll, beforeAll, expect, test } from '@jest/globals'
import type { IncidentEvent } from '../../domain/event.ts'
import { isCallOfCode } from '../../domain/step-key.ts'
import { replay } from '../../safety/replay.ts'
import { toolFacts } from '../../tools/registry.ts'
import { costOf, fullDisks } from '../support/shard-platform.ts'
import { type Spine, startSpine } from '../support/spine.ts'

let spine: Spine

beforeAll(async () => {
  spine = await startSpine({
    parts: ['lab', 'runbook', 'api'],
    environment: { LAB_WEB_SHARDS: '5', LAB_PROBE_INTERVAL_MS: '1500' },
  })
})
afterAll(async () => {
  await spine?.stop()
})

test('followers use half of the turns and tokens of their leader, each after a read of its own resource, and the one with another cause adopts nothing', async () => {
  const { odd, incidents, logs } = await fullDisks(spine, [3])
  const led = incidents.flatMap((incident, index) =>
    incident.role === 'follower' ? [{ incident, log: logs[index] as IncidentEvent[] }] : [],
  )
  const leader = costOf(logs[incidents.findIndex(({ role }) => role === 'leader')] as IncidentEvent[])
  expect(led).toHaveLength(4)
  for (const { incident, log } of led) {
    const own = incident.resource?.id ?? ''
    const [look] = log.filter((event) => event.kind === 'tool_finished')
    expect(look?.kind === 'tool_finished' && look.metadata).toMatchObject({ tool: 'get_node', arguments: { id: own } })
    expect(look?.kind === 'tool_finished' && isCallOfCode(look.metadata.callId)).toBe(true)
    expect(replay(log, toolFacts, incident.resource).differences).toEqual([])
    if (odd.includes(own)) {
      expect(incident.status).toBe('escalated')
      expect(log.filter(({ kind }) => kind === 'hint_confirmed' || kind === 'verification')).toEqual([])
      continue
    }
    expect(incident).toMatchObject({ status: 'resolved', outcome: 'repaired' })
    const cost = costOf(log)
    if (process.env.SHOW) console.log(own, cost, leader)
    expect(cost.turns).toBeLessThanOrEqual(0.5 * leader.turns)
    expect(cost.tokens).toBeLessThanOrEqual(0.5 * leader.tokens)
  }
})
