import { expect, test } from '@jest/globals'
import type { IncidentEvent } from '../../domain/event.ts'
import { plainPolicy } from '../../domain/refusal.ts'
import type { ResourceRef } from '../../domain/registry.ts'
import { fold, phaseOf } from '../../safety/fold.ts'
import { type Call, judge } from '../../safety/judge.ts'
import { facts as tools } from '../simulation/world.ts'
import { logOf, looked, row, verified, wrote } from '../support/events.ts'

/**
 * The five known failure modes of seed 001, appendix A: each was met by somebody, and must not be
 * met again.
 */

const incident = 'inc_00000000000000000000000001'
const shard: ResourceRef = { kind: 'shard', id: 'db-osl-1' }
const now = Date.parse('2026-11-21T02:10:00Z')

const policy = plainPolicy(incident, shard)

function call(tool: string, args: Record<string, unknown>): Call {
  const preparation = { targets: [shard], identity: args, stateFingerprint: '', dryRun: dryRun }
  return { callId: 'c9_0', tool, arguments: args, problem: null, prepared: { ok: true, preparation } }
}
const dryRun = { possible: false, summary: '', details: {} }
const converge = call('converge_shard', { id: shard.id, reason: 'it lags' })
const run = (command: string, target = 'host-osl-1') => call('exec', { target, command })

function ruled(asked: Call, ...rows: IncidentEvent[]) {
  return judge(asked, tools, fold(logOf(...rows), 1, shard), policy, now)
}

const host: ResourceRef = { kind: 'host', id: 'host-osl-1' }

test('mode 1: after a write, reads still run, as often as needed', () => {
  const rows = [looked('c1_0', [shard, host]), wrote('c2_0', [shard])]
  for (const command of ['journalctl -u mysql -n 50', 'ps aux', 'grep -i error /var/log/mysql/error.log 2>/dev/null']) {
    expect(ruled(run(command), ...rows)).toMatchObject({ verdict: 'run', effect: 'read', code: 'READ_COMMAND' })
  }
  expect(ruled(converge, ...rows).code).toBe('FSM_BLOCKED')
})

test('mode 2: a verification that was closed by a read allows the next write', () => {
  const rows = [looked('c1_0', [shard]), wrote('c2_0', [shard]), looked('c3_0', [shard])]
  // Looking alone does not say what was seen; the row that closes the verification does.
  expect(ruled(converge, ...rows).code).toBe('FSM_BLOCKED')
  expect(ruled(converge, ...rows, verified('c2_0', 'held'))).toMatchObject({ verdict: 'run' })
  const twice = [...rows, verified('c2_0', 'held'), wrote('c4_0', [shard]), verified('c4_0', 'not_held')]
  expect(ruled(converge, ...twice)).toMatchObject({ verdict: 'run' })
})

test('mode 3: sending errors to /dev/null is no write', () => {
  for (const command of ['find /var/log -name "*.log" 2>/dev/null', 'ls /srv 2>&1', 'df -h >/dev/null 2>&1']) {
    expect([command, ruled(run(command), looked('c1_0', [host])).verdict]).toEqual([command, 'run'])
  }
  expect(ruled(run('ls > /srv/list'), looked('c1_0', [host])).verdict).toBe('ask')
})

test('mode 4: a second write is verified by itself, not by what closed the first', () => {
  const rows = [looked('c1_0', [shard]), wrote('c2_0', [shard]), verified('c2_0', 'held'), wrote('c4_0', [shard])]
  const state = fold(logOf(...rows), 1)
  expect(phaseOf(state)).toBe('VERIFYING')
  expect(state.writes.map((write) => write.verified)).toEqual(['held', 'open'])
  expect(ruled(converge, ...rows).code).toBe('FSM_BLOCKED')
})

const guest = (id: string, explicit: boolean): IncidentEvent =>
  row('tool_finished', {
    callId: 'c2_0',
    tool: 'current_vm_host',
    arguments: {},
    effect: 'read',
    targets: explicit ? [{ kind: 'vm', id }] : [],
    outcome: 'done',
    result: { ok: true, data: {}, meta: {} },
    body: null,
    discovered: [{ kind: 'vm', id, name: id, aliases: [], host: 'host-osl-1' }],
  })

test('mode 5: a command for the host is sent into the guest that was meant, once, and the record shows both', () => {
  const ruling = ruled(run('cat /opt/homepage/services.yaml'), looked('c1_0', [host]), guest('vm-141', true))
  expect(ruling.corrected).toEqual([{ code: 'ROUTING_MISMATCH', field: 'target', from: 'host-osl-1', to: 'vm-141' }])
  expect(ruling.arguments).toMatchObject({ target: 'vm-141' })
})

test('mode 5: with two possible guests the command is refused, and both are named', () => {
  const ruling = ruled(run('df -h'), looked('c1_0', [host]), guest('vm-141', true), guest('vm-142', true))
  expect(ruling).toMatchObject({ verdict: 'refuse', code: 'ROUTING_MISMATCH' })
  expect(ruling.details.more_specific).toEqual(['vm:host-osl-1:vm-141', 'vm:host-osl-1:vm-142'])
})

test('mode 5: a read that finds many resources does not show which one is meant', () => {
  const ruling = ruled(run('df -h'), looked('c1_0', [host]), guest('vm-141', false), guest('vm-142', false))
  expect(ruling).toMatchObject({ verdict: 'run', corrected: [] })
  expect(ruling.arguments).toMatchObject({ target: 'host-osl-1' })
})
