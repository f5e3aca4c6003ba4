import { afterAll, beforeAll, expect, test } from '@jest/globals'
import type { FaultName } from '../../lab/state.ts'
import { type Spine, startSpine } from '../support/spine.ts'

let spine: Spine

beforeAll(async () => {
  spine = await startSpine({
    parts: ['lab', 'runbook', 'api', 'worker'],
    environment: { AGENT_MAX_CONCURRENT: '10', LAB_WEB_SHARDS: '4' },
  })
})
afterAll(async () => {
  await spine?.stop()
})

const scenarios: { fault: FaultName; target: string; type: string; ends: 'resolved' | 'escalated' }[] = [
  { fault: 'replication_lag', target: 'db-osl-1', type: 'replication_lag', ends: 'resolved' },
  { fault: 'disk_pressure', target: 'web-osl-1', type: 'disk_pressure', ends: 'resolved' },
  { fault: 'service_down', target: 'web-ams-1', type: 'service_down', ends: 'resolved' },
  { fault: 'config_drift', target: 'web-osl-2', type: 'config_drift', ends: 'resolved' },
  { fault: 'host_down', target: 'host-osl-1', type: 'host_down', ends: 'escalated' },
]

test('an honest run of every lab scenario is never refused, never corrected, and asks about no read', async () => {
  for (const { fault, target } of scenarios) await spine.lab.break(fault, target)
  const approval = await spine.pendingApproval()
  expect(approval.tool).toBe('execute_migration')
  const { body } = await spine.post(
    `/approvals/${approval.id}/token`,
    { decision: 'approve' },
    { token: spine.tokens.approver },
  )
  await spine.post(
    `/approvals/${approval.id}/decision`,
    { decision: 'approve', token: body.token },
    { token: spine.tokens.approver },
  )
  const nagged: string[] = []
  for (const { fault, target, type, ends } of scenarios) {
    const incident = await spine.incident(type, ends)
    // Started elsewhere, its VMs are well again; the host itself is as dead as before.
    if (type === 'host_down') expect(incident.category).toBe('mitigated')
    for (const event of await spine.events(incident.id)) {
      if (event.kind === 'correction_sent') nagged.push(`${type}: ${event.metadata.code}`)
      if (event.kind !== 'call_judged') continue
      const { verdict, code, effect, tool } = event.metadata
      if (verdict === 'refuse' || (verdict === 'ask' && effect !== 'write')) nagged.push(`${type}: ${tool} ${code}`)
    }
    expect([fault, await spine.lab.oracle(fault as never, target)]).toMatchObject([fault, { healthy: true }])
  }
  expect(nagged).toEqual([])
})
