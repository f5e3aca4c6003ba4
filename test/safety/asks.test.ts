import { expect, test } from '@jest/globals'
import { plainPolicy } from '../../domain/refusal.ts'
import type { Preparation } from '../../domain/tool.ts'
import { fold } from '../../safety/fold.ts'
import { type Call, judge } from '../../safety/judge.ts'
import { replay } from '../../safety/replay.ts'
import { toolFacts } from '../../tools/registry.ts'
import { logOf, looked, row } from '../support/events.ts'

const node = { kind: 'node' as const, id: 'node-osl-1' }
const incidentId = 'inc_00000000000000000000000001'
const policy = plainPolicy(incidentId, node)
const state = fold(logOf(looked('c0_0', [node])), 1, node)
const now = Date.parse('2026-11-21T02:00:10Z')

function call(tool: string, args: Record<string, unknown>, asks?: Preparation['asks']): Call {
  const preparation: Preparation = {
    targets: [node],
    identity: args,
    stateFingerprint: 's',
    ...(asks && { asks }),
    dryRun: { possible: false, summary: '', details: {} },
  }
  return { callId: 'c1_0', tool, arguments: args, problem: null, prepared: { ok: true, preparation } }
}
const asRoot = { risk: 'critical' as const, why: 'node-osl-1 does everything as root' }
const on = { on: node.id }
const judged = (given: Call, more: object = {}) => judge(given, toolFacts, state, { ...policy, ...more }, now)

test('a read runs without approval, and if everything is done as root it asks like a critical write', () => {
  const args = { ...on, path: '/srv/app.conf' }
  expect(judged(call('fs_read', args))).toMatchObject({ verdict: 'run', code: 'READ', effect: 'read' })
  expect(judged(call('fs_read', args, asRoot))).toMatchObject({
    verdict: 'ask',
    code: 'RISK_CRITICAL',
    effect: 'write',
    risk: 'critical',
    reason: asRoot.why,
  })
})

test('a command that is proved to read asks there too', () => {
  const args = { ...on, argv: ['uptime'] }
  expect(judged(call('exec', args))).toMatchObject({ verdict: 'run', code: 'READ_COMMAND' })
  expect(judged(call('exec', args, asRoot))).toMatchObject({ verdict: 'ask', risk: 'critical' })
})

test('neither a standing grant nor the vicinity lets anything run there without approval', () => {
  const args = { ...on, path: '/srv/app.conf', content: 'x', reason: 'because' }
  const { actionDigest } = judged(call('fs_write', args))
  const grants = [{ id: 'grt_1', actionDigest, stateFingerprint: 's' }]
  expect(judged(call('fs_write', args), { grants })).toMatchObject({ verdict: 'run', code: 'GRANTED' })
  expect(judged(call('fs_write', args, asRoot), { grants })).toMatchObject({ verdict: 'ask', risk: 'critical' })
})

test('an approval for exactly this call lets it run, and another state asks again', () => {
  const args = { ...on, path: '/srv/app.conf' }
  const { actionDigest } = judged(call('fs_read', args, asRoot))
  const approval = { id: 'apr_1', callId: 'c1_0', actionDigest, stateFingerprint: 's' }
  expect(judged(call('fs_read', args, asRoot), { approval })).toMatchObject({ verdict: 'run', code: 'APPROVED' })
  const other = { ...approval, stateFingerprint: 't' }
  expect(judged(call('fs_read', args, asRoot), { approval: other })).toMatchObject({
    verdict: 'ask',
    code: 'DRIFT',
  })
})

test('a forbidden call stays forbidden, and a risk is never lowered by the place', () => {
  const forbidden = { ...on, argv: ['rm', '-rf', '/'], reason: 'because' }
  expect(judged(call('exec', forbidden, asRoot))).toMatchObject({ verdict: 'refuse', code: 'FORBIDDEN_COMMAND' })
  const kill = { ...on, pid: 4711, start_time: '99', reason: 'because' }
  const asked = judged(call('proc_kill', kill, { risk: 'low', why: 'because' }))
  expect(asked).toMatchObject({ verdict: 'ask', risk: 'high' })
})

const verdicts: [string, Record<string, unknown>, string][] = [
  ['fs_read', { path: '/srv/x' }, 'run none'],
  ['fs_list', { path: '/srv' }, 'run none'],
  ['fs_stat', { path: '/srv' }, 'run none'],
  ['proc_list', {}, 'run none'],
  ['disk_usage', { path: '/srv' }, 'run none'],
  ['git_log', { path: '/srv/x' }, 'run none'],
  ['git_show', { path: '/srv/x', revision: 'HEAD~1' }, 'run none'],
  ['git_revert', { path: '/srv/x', revision: 'abcdef0' }, 'ask medium'],
  ['docker_list', {}, 'run none'],
  ['docker_logs', { container: 'web' }, 'run none'],
  ['pkg_search', { text: 'htop' }, 'run none'],
  ['exec', { argv: ['df', '-h'] }, 'run none'],
  ['exec', { argv: ['systemctl', 'restart', 'nginx'] }, 'ask high'],
  ['exec', { argv: ['touch', '/tmp/a'] }, 'ask medium'],
  ['exec', { argv: ['iptables', '-F'] }, 'ask critical'],
  ['exec', { argv: ['sudo', 'systemctl', 'restart', 'nginx'] }, 'ask critical'],
  ['shell_eval', { command: 'ps aux | grep nginx' }, 'run none'],
  ['shell_eval', { command: 'echo x > /srv/x' }, 'ask high'],
  ['docker_exec', { container: 'web', argv: ['ps', 'aux'] }, 'run none'],
  ['docker_exec', { container: 'web', argv: ['touch', '/x'] }, 'ask medium'],
  ['fs_write', { path: '/srv/x', content: '' }, 'ask medium'],
  ['git_clone', { url: 'https://git.example.com/a.git', path: '/srv/a' }, 'ask medium'],
  ['git_commit', { path: '/srv/a', message: 'Mend it' }, 'ask medium'],
  ['git_push', { path: '/srv/a' }, 'ask high'],
  ['pkg_install', { packages: ['htop'] }, 'ask high'],
  ['proc_kill', { pid: 4711, start_time: '99' }, 'ask high'],
]

test.each(verdicts)('%s %j: %s', (tool, args, expected) => {
  const given = { ...on, ...args, ...(toolFacts.get(tool)?.effect === 'write' && { reason: 'because' }) }
  const { verdict, risk } = judged(call(tool, given))
  expect(`${verdict} ${risk}`).toBe(expected)
})

test.each(verdicts)('%s with a secret in its arguments is refused', (tool, args) => {
  const given = { ...on, ...args, ...(toolFacts.get(tool)?.effect === 'write' && { reason: 'because' }) }
  expect(judged({ ...call(tool, given), secret: true })).toMatchObject({
    verdict: 'refuse',
    code: 'SECRET_IN_ARGUMENTS',
  })
})

test('a write on an unread resource is refused', () => {
  const given = { on: 'node-ams-9', path: '/srv/x', content: '', reason: 'because' }
  expect(judged(call('fs_write', given))).toMatchObject({ verdict: 'refuse', code: 'STRICT_RESOLUTION' })
})

test('a stored ruling is repeated with what was known of the place, without a difference', () => {
  const args = { ...on, path: '/srv/app.conf' }
  const ruling = judged(call('fs_read', args, asRoot))
  const { dryRun: _, ...preparation } = (call('fs_read', args, asRoot).prepared as { preparation: Preparation })
    .preparation
  const rows = (asks: boolean) =>
    logOf(
      looked('c0_0', [node]),
      row('model_answered', {
        calls: [{ id: 'c1_0', tool: 'fs_read', arguments: args, problem: null }],
        usage: { promptTokens: 0, completionTokens: 0 },
      }),
      row('call_judged', {
        callId: 'c1_0',
        tool: 'fs_read',
        arguments: args,
        verdict: ruling.verdict,
        code: ruling.code,
        foldedSeq: 2,
        policyVersion: '2',
        effect: ruling.effect,
        risk: ruling.risk,
        targets: [node],
        actionDigest: '',
        basis: {
          at: new Date(now).toISOString(),
          policy: { ...policy },
          prepared: { ok: true, ...preparation, ...(!asks && { asks: undefined }) },
        },
      }),
    )
  expect(replay(rows(true), toolFacts, node)).toMatchObject({ judged: 1, differences: [] })
  expect(replay(rows(false), toolFacts, node).differences).toMatchObject([{ is: { verdict: 'run' } }])
})
