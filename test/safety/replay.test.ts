import { describe, expect, test } from '@jest/globals'
import { z } from 'zod'
import { actionDigest } from '../../domain/digest.ts'
import type { EventMetadata, IncidentEvent } from '../../domain/event.ts'
import { plainPolicy } from '../../domain/refusal.ts'
import type { ResourceRef } from '../../domain/registry.ts'
import type { ToolFacts } from '../../domain/tool.ts'
import { fold } from '../../safety/fold.ts'
import { assumedState, type DryRunInput, dryRunInput, dryRunPolicy, replay, simulateCall } from '../../safety/replay.ts'
import { toolFacts, tools } from '../../tools/registry.ts'
import { live } from '../simulation/life.ts'
import { facts } from '../simulation/world.ts'
import { logOf, looked, row, wrote } from '../support/events.ts'

describe('dry run', () => {
  describe('dry run', () => {
    const now = Date.parse('2026-11-21T02:10:00Z')
    const shard = { kind: 'shard' as const, id: 'db-osl-1' }
    const exec: ToolFacts = {
      name: 'exec',
      effect: 'write',
      risk: 'medium',
      reversible: false,
      input: z.strictObject({ target: z.string(), command: z.string() }),
      names: { target: ['host', 'vm'] },
      inside: true,
      command: { field: 'command', form: 'bash' },
    }
    const tools = new Map([...toolFacts, ['exec', exec]])
    const none = plainPolicy('inc_00000000000000000000000000', null)
    const supposed = (input: unknown) => dryRunPolicy(dryRunInput.parse(input) as DryRunInput, tools, now)
    const converge = (state: Record<string, unknown>, id = 'db-osl-1') =>
      supposed({ tool: 'converge_shard', args: { id, reason: 'it lags' }, state })

    describe('a supposed command', () => {
      test('is judged as one would be, and nothing is run', () => {
        expect(supposed({ command: 'df -h' })).toMatchObject({ command: 'df -h', verdict: 'run' })
        expect(supposed({ command: 'rm -rf /' })).toMatchObject({ command: 'rm -rf /', verdict: 'refuse' })
      })

      test('knows the hosts it is told of, however they are spelled', () => {
        const ping = { command: 'ping -c 1 db1' }
        expect(supposed(ping)).toMatchObject({ verdict: 'ask', code: 'EXFILTRATION' })
        expect(supposed({ ...ping, hosts: ['DB1'] })).toMatchObject({ verdict: 'run' })
      })

      test('is of a length that somebody can read', () => {
        expect(dryRunInput.safeParse({ command: 'x'.repeat(64_000) }).success).toBe(true)
        expect(dryRunInput.safeParse({ command: 'x'.repeat(64_001) }).success).toBe(false)
      })

      test('is a command or a call, and nothing else', () => {
        for (const input of [
          {},
          { command: 'ls', tool: 'x', args: {} },
          { command: 7 },
          { tool: 'x' },
          { state: {} },
        ]) {
          expect([input, dryRunInput.safeParse(input).success]).toEqual([input, false])
        }
      })
    })

    describe('a supposed call', () => {
      test('without a state is judged as the first of an investigation', () => {
        expect(supposed({ tool: 'get_shard', args: { id: 'x' } })).toMatchObject({
          tool: 'get_shard',
          verdict: 'run',
          phase: 'RESOLVING',
          arguments: { id: 'x' },
        })
        expect(supposed({ tool: 'converge_shard', args: { id: 'x', reason: 'it lags' } })).toMatchObject({
          verdict: 'refuse',
          code: 'STRICT_RESOLUTION',
        })
      })

      test('to a tool that is not there, or with arguments that do not fit, is refused like a real one', () => {
        expect(supposed({ tool: 'rm_rf', args: {} })).toMatchObject({ tool: 'rm_rf', code: 'UNKNOWN_TOOL' })
        expect(supposed({ tool: 'get_shard', args: { id: 7 } })).toMatchObject({
          code: 'INVALID_ARGUMENTS',
          targets: [],
        })
      })

      test('may name what was looked up, by id, name or alias', () => {
        const resolved = [{ ...shard, name: 'oslo', aliases: ['primary'] }]
        for (const id of ['db-osl-1', 'oslo', 'primary']) {
          expect([id, converge({ resolved, resource: shard }, id)]).toMatchObject([
            id,
            { code: 'REVERSIBLE_NEAR', phase: 'READING', targets: [shard], arguments: { id: 'db-osl-1' } },
          ])
        }
      })

      test('is near on the own resource and next to it, and nowhere else', () => {
        const resolved = [shard]
        expect(converge({ resolved })).toMatchObject({ verdict: 'ask', code: 'REVERSIBLE_FAR' })
        expect(converge({ resolved, resource: shard })).toMatchObject({ code: 'REVERSIBLE_NEAR' })
        expect(converge({ resolved, vicinity: [shard] })).toMatchObject({ code: 'REVERSIBLE_NEAR' })
      })

      test('is refused while paused', () => {
        expect(converge({ resolved: [shard], paused: true })).toMatchObject({ code: 'PAUSED' })
      })

      test('waits for a write that is not verified', () => {
        const open = { tool: 'converge_shard', targets: [{ kind: 'shard', id: 'db-ams-1' }] }
        const blocked = converge({ resolved: [shard], open })
        expect(blocked).toMatchObject({
          code: 'FSM_BLOCKED',
          phase: 'VERIFYING',
          details: { targets: ['shard:db-ams-1'] },
        })
      })

      test('finds a guest that was meant on its host', () => {
        const resolved = [
          { kind: 'host', id: 'delly' },
          { kind: 'vm', id: '141', host: 'delly' },
        ]
        const call = { tool: 'exec', args: { target: 'delly', command: 'df -h' }, state: { resolved } }
        expect(supposed(call)).toMatchObject({
          code: 'READ_COMMAND',
          arguments: { target: '141' },
          corrected: [{ code: 'ROUTING_MISMATCH' }],
        })
      })

      test('to end may cite the look that is supposed, and no other', () => {
        const resolve = (evidence: number[], state: Record<string, unknown>) =>
          supposed({
            tool: 'resolve_incident',
            args: {
              id: 'inc_00000000000000000000000000',
              resolution: 'nothing was wrong',
              outcome: 'no_fault',
              claims: evidence.map((seq) => ({ kind: 'is', text: 'I checked it', quotes: [{ seq, text: 'nominal' }] })),
            },
            state,
          })
        const seen = { resolved: [shard], resource: shard }
        expect(resolve([1], {})).toMatchObject({ code: 'NO_DIAGNOSTIC' })
        expect(resolve([2], seen)).toMatchObject({ code: 'EVIDENCE_MISSING' })
        expect(resolve([1], { ...seen, resource: { kind: 'shard', id: 'db-ams-1' } })).toMatchObject({
          code: 'OWN_TARGET_UNSEEN',
          reason: expect.not.stringContaining('hint'),
        })
        // A look that is only supposed has no words that could be quoted.
        expect(resolve([1], seen)).toMatchObject({
          code: 'CLAIM_NOT_SHOWN',
          details: { claims: [{ code: 'QUOTE_NOT_FOUND' }] },
        })
      })

      test('in a known state has the digest that a real one with that dry run would have', () => {
        const state = fold([], 1)
        const policy = { ...none }
        const call = { tool: 'get_shard', args: { id: 'x' } }
        const { actionDigest } = simulateCall(call, tools, state, policy, now) as { actionDigest: string }
        const denied = simulateCall(
          { tool: 'converge_shard', args: { id: 'x', reason: 'it lags' } },
          tools,
          state,
          { ...policy, paused: true },
          now,
        )
        expect(actionDigest).toMatch(/^[0-9a-f]{64}$/)
        expect(denied).toMatchObject({ tool: 'converge_shard', code: 'PAUSED', targets: [{ kind: 'shard', id: 'x' }] })
      })

      test('binds what the call names after names are settled, as a dry run would', () => {
        const resolved = [{ ...shard, name: 'oslo' }]
        const byName = converge({ resolved, resource: shard }, 'oslo') as { actionDigest: string }
        const byId = converge({ resolved, resource: shard }, 'db-osl-1') as { actionDigest: string }
        expect(byName.actionDigest).toBe(byId.actionDigest)
        expect(byId.actionDigest).toBe(actionDigest('converge_shard', { id: 'db-osl-1', reason: 'it lags' }))
      })

      test('is a repetition of an earlier one only under another id', () => {
        const before = row('call_judged', { callId: 'c1_0', tool: 'get_shard', arguments: { id: 'x' }, verdict: 'run' })
        const state = fold(logOf(before), 1)
        const again = (callId?: string) =>
          simulateCall({ tool: 'get_shard', args: { id: 'x' }, callId }, tools, state, { ...none }, now) as {
            code: string
          }
        expect([again().code, again('c1_0').code]).toEqual(['REPEATED_CALL', 'READ'])
      })

      test('supposes nothing that nobody said', () => {
        expect(assumedState.parse({})).toEqual({ resolved: [], vicinity: [], paused: false })
        expect(assumedState.parse({ resolved: [shard] }).resolved).toEqual([{ ...shard, aliases: [] }])
        expect(assumedState.safeParse({ resolvd: [] }).success).toBe(false)
        expect(assumedState.safeParse({ resolved: [{ ...shard, nmae: 'x' }] }).success).toBe(false)
        expect(assumedState.safeParse({ open: { tool: 'x', targets: [], callId: 'c1_0' } }).success).toBe(false)
      })
    })
  })

  describe('looks', () => {
    const node = { kind: 'node', id: 'node-osl-1' } as const
    const other = { kind: 'node', id: 'node-osl-2' } as const
    const shard = { kind: 'shard', id: 'db-osl-1' } as const
    const host = { kind: 'host', id: 'host-osl-4' } as const

    /** A read that answered, as the tool's own declaration reads the answer. */
    function answered(
      tool: string,
      targets: ResourceRef[],
      args: Record<string, unknown>,
      data: unknown,
    ): IncidentEvent {
      const { effect, discovers } = tools.get(tool) ?? {}
      return row('tool_finished', {
        callId: 'c1_0',
        tool,
        arguments: args,
        effect,
        targets,
        outcome: 'done',
        result: { ok: true, data, meta: {} },
        body: null,
        discovered: discovers?.(data, args) ?? [],
      } as EventMetadata['tool_finished'])
    }

    const nodeRow = (id: string, status: string) => ({ id, hostname: id, ip: '127.0.0.1', shard: 'db-osl-1', status })
    const listed = (...statuses: [string, string]) =>
      answered(
        'list_nodes_by_shard',
        [shard],
        { shard_id: 'db-osl-1' },
        {
          items: [nodeRow('node-osl-1', statuses[0]), nodeRow('node-osl-2', statuses[1])],
        },
      )
    const read = (status: string) => answered('get_node', [node], { id: 'node-osl-1' }, nodeRow('node-osl-1', status))
    const hostRead = (more: Record<string, unknown>) =>
      answered('node_health', [host], { node: host.id }, { node: host.id, kind: 'host', status: 'degraded', ...more })

    const looksOf = (...rows: IncidentEvent[]) => {
      const { looks } = fold(logOf(...rows), 1)
      return Object.fromEntries([...looks].map(([key, { seq, health }]) => [key, `${seq} ${health}`]))
    }

    describe('a look', () => {
      test('is at each node of a list that tells how they are, and at the shard they make up', () => {
        expect(looksOf(listed('nominal', 'degraded'))).toEqual({
          'shard:db-osl-1': '1 degraded',
          'node:node-osl-1': '1 nominal',
          'node:node-osl-2': '1 degraded',
        })
        expect(fold(logOf(listed('nominal', 'nominal')), 1).lookedAt).toContain('node:node-osl-2')
      })

      test('is not at what an answer only mentions', () => {
        const found = answered('find_resource', [], { text: 'osl' }, { items: [{ ...node, name: 'node-osl-1' }] })
        expect(looksOf(found)).toEqual({})
        expect(Object.keys(looksOf(read('nominal')))).toEqual(['node:node-osl-1'])
        const vm = { id: 'vm-osl-1', host: 'host-osl-4', running: false }
        expect(looksOf(answered('current_vm_host', [{ kind: 'vm', id: 'vm-osl-1' }], { vm: 'vm-osl-1' }, vm))).toEqual({
          'vm:vm-osl-1': '1 down',
        })
      })

      test('is the newest one, with the time of its row', () => {
        const rows = logOf({ ...read('degraded') }, { ...read('nominal'), at: '2026-11-21T02:07:00.000Z' })
        expect(fold(rows, 1).looks.get('node:node-osl-1')).toEqual({
          seq: 2,
          atMs: Date.parse('2026-11-21T02:07:00.000Z'),
          health: 'nominal',
        })
      })

      test('that tells no health leaves what was told before, unless something was written since', () => {
        const file = looked('c2_0', [node])
        expect(looksOf(read('degraded'), file)).toEqual({ 'node:node-osl-1': '2 degraded' })
        expect(looksOf(read('nominal'), wrote('c3_0', [shard]), file)).toEqual({ 'node:node-osl-1': '3 null' })
        expect(looksOf(wrote('c3_0', [shard]), read('critical'), file, file)).toEqual({
          'node:node-osl-1': '4 critical',
        })
      })

      test('at a host that is draining finds it degraded while VMs are on it, and nominal when it is empty', () => {
        expect(looksOf(hostRead({ state: 'draining', vmCount: 2 }))).toEqual({ 'host:host-osl-4': '1 degraded' })
        expect(looksOf(hostRead({ state: 'draining', vmCount: 0 }))).toEqual({ 'host:host-osl-4': '1 nominal' })
        const unread = { state: 'draining', vmCount: 0, status: 'unknown', stale: true }
        expect(looksOf(hostRead(unread))).toEqual({ 'host:host-osl-4': '1 unknown' })
        expect(looksOf(hostRead({ status: 'critical', state: 'dead', vmCount: 0 }))).toEqual({
          'host:host-osl-4': '1 critical',
        })
      })

      test('of an earlier version, or one that failed, tells no health', () => {
        expect(looksOf(looked('c1_0', [node, other]))).toEqual({
          'node:node-osl-1': '1 null',
          'node:node-osl-2': '1 null',
        })
        const failed = { ...read('nominal') } as IncidentEvent<'tool_finished'>
        failed.metadata = { ...failed.metadata, result: { ok: false, meta: {} } }
        expect(looksOf(failed)).toEqual({})
      })
    })
  })
})

describe('replay', () => {
  describe('replay', () => {
    test('judging stored calls again gives the same rulings, whatever happened in between', async () => {
      let judged = 0
      for (let seed = 0; seed < 300; seed += 1) {
        const { world } = await live(seed)
        for (const incident of world.incidents.values()) {
          const report = replay(incident.rows, facts, incident.resource)
          expect([seed, report.differences, report.unrepeatable]).toEqual([seed, [], 0])
          judged += report.judged
        }
      }
      expect(judged).toBeGreaterThan(3_000)
    })

    /** A quiet life in which a shard was looked at. */
    async function aboutShard() {
      for (let seed = 0; seed < 50; seed += 1) {
        for (const incident of (await live(seed, { calm: true })).world.incidents.values()) {
          if (incident.rows.some((row) => row.kind === 'call_judged' && row.metadata.tool === 'get_shard'))
            return incident
        }
      }
      throw new Error('no quiet life looked at a shard')
    }

    test('a rule that changed shows as a difference, with what was decided and what would be', async () => {
      const incident = await aboutShard()
      const changed = incident.rows.map((row) =>
        row.kind === 'call_judged' && row.metadata.tool === 'get_shard'
          ? ({ ...row, metadata: { ...row.metadata, verdict: 'ask', code: 'RISK_HIGH' } } as IncidentEvent)
          : row,
      )
      const { differences } = replay(changed, facts, incident.resource)
      expect(differences[0]).toMatchObject({ was: { verdict: 'ask' }, is: { verdict: 'run', code: 'READ' } })
    })

    test('a ruling of a version that stored too little is counted, not guessed', async () => {
      const { world } = await live(2, { calm: true })
      const incident = [...world.incidents.values()][0]!
      const old = incident.rows.map((row) =>
        row.kind === 'call_judged'
          ? ({ ...row, metadata: { ...row.metadata, basis: undefined } } as IncidentEvent)
          : row,
      )
      expect(replay(old, facts, incident.resource)).toMatchObject({ judged: 0, differences: [] })
      expect(replay(old, facts, incident.resource).unrepeatable).toBeGreaterThan(0)
    })
  })

  describe('replay edges', () => {
    const shard: ResourceRef = { kind: 'shard', id: 'db-osl-1' }
    const policy = {
      incidentId: 'inc_00000000000000000000000001',
      resource: shard,
      role: 'leader',
      paused: false,
      offered: null,
      vicinity: [shard],
      denied: [],
      busy: [],
      approval: null,
    }
    const prepared = { ok: true, targets: [shard], identity: { id: shard.id }, stateFingerprint: 'now' }

    const proposed = (
      id: string,
      tool: string,
      args: Record<string, unknown> | null,
      more: Record<string, unknown> = {},
    ) =>
      row(
        'model_answered',
        {
          usage: { promptTokens: 1, completionTokens: 1 },
          calls: [{ id, tool, arguments: args, problem: null, ...more }],
        } as never,
        {
          attempt: (more.attempt as number) ?? 1,
        },
      )

    function judged(callId: string, tool: string, verdict: string, code: string, more: Record<string, unknown> = {}) {
      return row(
        'call_judged',
        {
          callId,
          tool,
          verdict,
          code,
          policyVersion: '1',
          foldedSeq: 99,
          arguments: null,
          basis: { at: '2026-11-21T02:00:00Z', policy, prepared: null },
          ...more,
        } as never,
        { turn: 3 },
      )
    }
    const again = (...rows: IncidentEvent[]) => replay(logOf(...rows), toolFacts, shard)
    const basis = (more: Record<string, unknown>) => ({
      basis: { at: '2026-11-21T02:00:00Z', policy: { ...policy, ...more }, prepared },
    })
    const converge = proposed('c2_0', 'converge_shard', { id: shard.id, reason: 'it lags' })

    test('an unchanged ruling is counted and is no difference', () => {
      const report = again(proposed('c1_0', 'get_shard', { id: 'x' }), judged('c1_0', 'get_shard', 'run', 'READ'))
      expect(report).toEqual({ judged: 1, differences: [], unrepeatable: 0 })
    })

    describe('a difference', () => {
      test('says what was decided, when, and what would be now', () => {
        const call = proposed('c1_0', 'get_shard', { id: 'x' })
        expect(again(call, judged('c1_0', 'get_shard', 'ask', 'RISK_HIGH')).differences).toEqual([
          {
            seq: 2,
            turn: 3,
            tool: 'get_shard',
            was: { verdict: 'ask', code: 'RISK_HIGH', policyVersion: '1' },
            is: { verdict: 'run', code: 'READ', reason: 'read-only' },
          },
        ])
      })

      test('is one in the code alone, and one in the verdict alone', () => {
        const call = proposed('c1_0', 'get_shard', { id: 'x' })
        expect(again(call, judged('c1_0', 'get_shard', 'run', 'RECORD')).differences).toHaveLength(1)
        expect(again(call, judged('c1_0', 'get_shard', 'ask', 'READ')).differences).toHaveLength(1)
      })
    })

    describe('a ruling is repeated', () => {
      test('with the call that the model proposed, by its id and of the same attempt', () => {
        const rows = [
          proposed('c1_0', 'get_shard', { id: 'wrong' }),
          proposed('c2_0', 'get_shard', { id: 'right' }, { attempt: 2 }),
          proposed('c2_0', 'get_shard', null),
        ]
        const refused = judged('c2_0', 'get_shard', 'refuse', 'MALFORMED_ARGUMENTS', { arguments: { id: 'x' } })
        expect(again(...rows, refused).differences).toEqual([])
      })

      test('with the arguments on its own row where no answer holds it', () => {
        const alone = judged('c1_0', 'get_shard', 'run', 'READ', { arguments: { id: 'x' } })
        expect(again(alone)).toMatchObject({ judged: 1, differences: [] })
      })

      test('with why the call could not be read, and with the secret that stood in it', () => {
        const broken = proposed('c1_0', 'get_shard', null, { problem: 'cut off' })
        expect(again(broken, judged('c1_0', 'get_shard', 'run', 'READ')).differences[0]?.is.reason).toContain('cut off')
        const secret = proposed('c1_0', 'get_shard', { id: 'x' }, { secret: true })
        expect(again(secret, judged('c1_0', 'get_shard', 'refuse', 'SECRET_IN_ARGUMENTS')).differences).toEqual([])
      })

      test('with what a person made of it, where a person did', () => {
        const edited = {
          arguments: { id: 'x' },
          corrected: [{ code: 'EDITED_BY_PERSON', field: 'id', from: 1, to: 'x' }],
        }
        const broken = proposed('c1_0', 'get_shard', null, { problem: 'cut off', secret: true })
        expect(again(broken, judged('c1_0', 'get_shard', 'run', 'READ', edited)).differences).toEqual([])
        const corrected = [{ code: 'ROUTING_MISMATCH', field: 'id', from: 1, to: 'x' }]
        expect(
          again(broken, judged('c1_0', 'get_shard', 'run', 'READ', { ...edited, corrected })).differences,
        ).toHaveLength(1)
      })

      test('with what configuration raised then, and as if it had raised nothing where the row says nothing', () => {
        const rows = [looked('c1_0', [shard]), converge]
        const risky = judged(
          'c2_0',
          'converge_shard',
          'ask',
          'RISK_HIGH',
          basis({ raised: { risk: 'high', required: 1 } }),
        )
        expect(again(...rows, risky).differences).toEqual([])
      })

      test('with what was found out about it then', () => {
        const rows = [looked('c1_0', [shard]), converge]
        expect(
          again(...rows, judged('c2_0', 'converge_shard', 'run', 'REVERSIBLE_NEAR', basis({}))).differences,
        ).toEqual([])
        const gone = { basis: { at: '2026-11-21T02:00:00Z', policy, prepared: { ok: false, reason: 'it was gone' } } }
        const [difference] = again(...rows, judged('c2_0', 'converge_shard', 'ask', 'DRIFT', gone)).differences
        expect(difference?.is).toEqual({ verdict: 'refuse', code: 'NOT_PREPARED', reason: 'it was gone' })
      })

      test('with the policy and at the time of then', () => {
        const rows = [looked('c1_0', [shard]), converge]
        const paused = judged('c2_0', 'converge_shard', 'refuse', 'PAUSED', basis({ paused: true }))
        expect(again(...rows, paused).differences).toEqual([])
        const late = { basis: { ...basis({}).basis, at: '2026-11-21T05:00:00Z' } }
        const stale = judged('c2_0', 'converge_shard', 'refuse', 'STRICT_RESOLUTION', late)
        expect(again(...rows, stale).differences).toEqual([])
      })

      test('on the rows up to the one it had seen, that one included', () => {
        const rows = [converge, looked('c1_0', [shard])]
        const seen = (foldedSeq: number, verdict: string, code: string) =>
          again(...rows, judged('c2_0', 'converge_shard', verdict, code, { ...basis({}), foldedSeq })).differences
        expect(seen(1, 'refuse', 'STRICT_RESOLUTION')).toEqual([])
        expect(seen(2, 'run', 'REVERSIBLE_NEAR')).toEqual([])
      })
    })

    test('what people of another incident decided is not judged again, what stored too little is counted', () => {
      const elsewhere = judged('c1_0', 'get_shard', 'refuse', 'DECIDED_ELSEWHERE')
      const old = judged('c1_0', 'get_shard', 'run', 'READ', { basis: undefined })
      expect(again(elsewhere, old, old)).toEqual({ judged: 0, differences: [], unrepeatable: 2 })
    })
  })
})
