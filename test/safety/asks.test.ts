import { describe, expect, test } from '@jest/globals'
import type { IncidentEvent } from '../../domain/event.ts'
import { plainPolicy } from '../../domain/refusal.ts'
import type { ResourceRef } from '../../domain/registry.ts'
import type { Preparation } from '../../domain/tool.ts'
import { fold, phaseOf, type State } from '../../safety/fold.ts'
import { type Call, judge } from '../../safety/judge.ts'
import { replay } from '../../safety/replay.ts'
import { byteBudget, nearBudget, spentBudget } from '../../safety/ruling.ts'
import { toolFacts } from '../../tools/registry.ts'
import { facts as tools } from '../simulation/world.ts'
import { logOf, looked, row, verified, wrote } from '../support/events.ts'

describe('asks', () => {
  describe('asks', () => {
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

    test('a look is unasked, and where everything is done as root it is asked like a critical write', () => {
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

    test('a command that is proved to look is asked there too', () => {
      const args = { ...on, argv: ['uptime'] }
      expect(judged(call('exec', args))).toMatchObject({ verdict: 'run', code: 'READ_COMMAND' })
      expect(judged(call('exec', args, asRoot))).toMatchObject({ verdict: 'ask', risk: 'critical' })
    })

    test('neither a standing grant nor being near lets anything run there unasked', () => {
      const args = { ...on, path: '/srv/app.conf', content: 'x', reason: 'because' }
      const { actionDigest } = judged(call('fs_write', args))
      const grants = [{ id: 'grt_1', actionDigest, stateFingerprint: 's' }]
      expect(judged(call('fs_write', args), { grants })).toMatchObject({ verdict: 'run', code: 'GRANTED' })
      expect(judged(call('fs_write', args, asRoot), { grants })).toMatchObject({ verdict: 'ask', risk: 'critical' })
    })

    test('an approval for exactly this lets it run, and another state asks again', () => {
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

    test('what is forbidden stays so, and a risk is never lowered by the place', () => {
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
      ['shell_eval', { command: 'echo x > /srv/x' }, 'ask medium'],
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

    test('a write on what nobody looked up is refused', () => {
      const given = { on: 'node-ams-9', path: '/srv/x', content: '', reason: 'because' }
      expect(judged(call('fs_write', given))).toMatchObject({ verdict: 'refuse', code: 'STRICT_RESOLUTION' })
    })

    test('a stored ruling is repeated with what was known of the place, and none differs', () => {
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
  })

  describe('failure modes', () => {
    /** The five known failure modes of seed 001, appendix A: each was met by somebody, and must not be met again. */

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

    test('mode 1: after a write, commands that only look still run, as often as needed', () => {
      const rows = [looked('c1_0', [shard, host]), wrote('c2_0', [shard])]
      for (const command of [
        'journalctl -u mysql -n 50',
        'ps aux',
        'grep -i error /var/log/mysql/error.log 2>/dev/null',
      ]) {
        expect(ruled(run(command), ...rows)).toMatchObject({ verdict: 'run', effect: 'read', code: 'READ_COMMAND' })
      }
      expect(ruled(converge, ...rows).code).toBe('FSM_BLOCKED')
    })

    test('mode 2: a verification that was closed by looking lets the next write through', () => {
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
      expect(ruling.corrected).toEqual([
        { code: 'ROUTING_MISMATCH', field: 'target', from: 'host-osl-1', to: 'vm-141' },
      ])
      expect(ruling.arguments).toMatchObject({ target: 'vm-141' })
    })

    test('mode 5: with two guests meant it is refused, and both are named', () => {
      const ruling = ruled(run('df -h'), looked('c1_0', [host]), guest('vm-141', true), guest('vm-142', true))
      expect(ruling).toMatchObject({ verdict: 'refuse', code: 'ROUTING_MISMATCH' })
      expect(ruling.details.more_specific).toEqual(['vm:host-osl-1:vm-141', 'vm:host-osl-1:vm-142'])
    })

    test('mode 5: finding many things at once says nothing about which is meant', () => {
      const ruling = ruled(run('df -h'), looked('c1_0', [host]), guest('vm-141', false), guest('vm-142', false))
      expect(ruling).toMatchObject({ verdict: 'run', corrected: [] })
      expect(ruling.arguments).toMatchObject({ target: 'host-osl-1' })
    })
  })
})

describe('budget edges', () => {
  const shard: ResourceRef = { kind: 'shard', id: 'db-osl-1' }
  const budgets = { turns: 20, tokens: 1000, seconds: 600 }
  const state = (more: Partial<State> = {}): State => ({ ...fold([], 1), ...more })
  const said = (given: State, turn = 1, of = budgets) => nearBudget(given, turn, of)?.code ?? null

  describe('a budget is used up', () => {
    test.each<[string, Partial<State>, string | null]>([
      ['not by the token before the last', { tokens: 999 }, null],
      ['by the last token', { tokens: 1000 }, 'tokens'],
      ['not by the byte before the last', { bytes: byteBudget - 1 }, null],
      ['by the last byte', { bytes: byteBudget }, 'bytes'],
    ])('%s', (_title, more, expected) => {
      expect(spentBudget(state(more), budgets)).toBe(expected)
    })
  })

  describe('a word before the end', () => {
    test.each<[string, Partial<State>, number, string | null]>([
      ['is not said while there is room', {}, 1, null],
      ['is not said on the turn before the last', {}, 19, null],
      ['is said on the last turn', {}, 20, 'budget_turns'],
      ['is not said below 85 % of the tokens', { tokens: 849 }, 1, null],
      ['is said at 85 % of the tokens', { tokens: 850 }, 1, 'budget_tokens'],
      ['is not said below 85 % of the time', { workedMs: 509_999 }, 1, null],
      ['is said at 85 % of the time', { workedMs: 510_000 }, 1, 'budget_time'],
      ['is not said below 85 % of the bytes', { bytes: Math.floor(0.85 * byteBudget) }, 1, null],
      ['is said at 85 % of the bytes', { bytes: Math.ceil(0.85 * byteBudget) }, 1, 'budget_bytes'],
      ['is said once', { tokens: 900, corrected: new Set(['budget_tokens']) }, 1, null],
      [
        'is said for the next limit after it',
        { tokens: 900, corrected: new Set(['budget_turns']) },
        20,
        'budget_tokens',
      ],
    ])('%s', (_title, more, turn, expected) => {
      expect(said(state(more), turn)).toBe(expected)
    })

    test('is not said on the only turn there is, which is no news', () => {
      expect(said(state(), 1, { ...budgets, turns: 1 })).toBe(null)
      expect(said(state(), 2, { ...budgets, turns: 2 })).toBe('budget_turns')
    })

    test('is said from the first byte of 85 % on, not behind it', () => {
      const exact = { ...state(), bytes: 0.85 * byteBudget }
      expect(said(exact)).toBe('budget_bytes')
    })

    test('says what to call: an end with evidence, or only the handing over while a write is not verified', () => {
      const reading = fold(logOf(looked('c1_0', [shard])), 1)
      const verifying = fold(logOf(looked('c1_0', [shard]), wrote('c2_0', [shard])), 1)
      expect(nearBudget(reading, 20, budgets)?.text).toMatch(/last turn.*resolve_incident.*escalate_incident/)
      expect(nearBudget(verifying, 20, budgets)?.text).toMatch(/last turn.*not verified.*escalate_incident/)
      expect(nearBudget(verifying, 20, budgets)?.text).not.toContain('resolve_incident')
    })
  })
})
