import { expect, test } from '@jest/globals'
import { type Policy, plainPolicy } from '../../domain/refusal.ts'
import type { ResourceRef } from '../../domain/registry.ts'
import type { SiteDecision } from '../../domain/site-decision.ts'
import { fold } from '../../safety/fold.ts'
import { judge } from '../../safety/judge.ts'
import { toolFacts } from '../../tools/registry.ts'
import { logOf, looked } from '../support/events.ts'

const shard: ResourceRef = { kind: 'shard', id: 'db-osl-1' }
const own = { own: [{ target: 'shard:db-osl-1', why: 'its database' }] }
const runs = { action: 'run', isNamed: true, rule: 'r', line: 1, commit: null } as unknown as SiteDecision

function ruled(more: Partial<Policy>) {
  const identity = { id: shard.id, reason: 'it lags' }
  const dryRun = { possible: true, summary: 'start replication', details: {} }
  const preparation = { targets: [shard], identity, stateFingerprint: 'f', dryRun }
  const call = {
    callId: 'c9_0',
    tool: 'converge_shard',
    arguments: identity,
    problem: null,
    prepared: { ok: true as const, preparation },
  }
  const policy = { ...plainPolicy('inc_00000000000000000000000001', shard), ...more }
  return judge(
    call,
    toolFacts,
    fold(logOf(looked('c1_0', [shard])), 1, shard),
    policy,
    Date.parse('2026-11-21T02:10:00Z'),
  )
}

test.each<[string, Partial<Policy>]>([
  ['what would run unasked elsewhere', own],
  ['what the policy of the site lets run', { ...own, site: { write: runs, look: null } }],
  ['what the tool is trusted with', { ...own, trust: { level: 'act', since: null } }],
  ['what a person does directly', { ...own, manual: { stateFingerprint: 'f' } }],
])('%s needs two people if Nightshift itself runs on it', (_, more) => {
  expect(ruled({})).toMatchObject({ verdict: 'run', risk: 'low' })
  expect(ruled(more)).toMatchObject({
    verdict: 'ask',
    code: 'RISK_CRITICAL',
    risk: 'critical',
    reason: expect.stringContaining('Nightshift itself runs on shard:db-osl-1 (its database)'),
  })
})
