import { describe, expect, test } from '@jest/globals'
import { z } from 'zod'
import { actionDigest } from '../../domain/digest.ts'
import { plainPolicy } from '../../domain/refusal.ts'
import type { ToolFacts } from '../../domain/tool.ts'
import { fold } from '../../safety/fold.ts'
import { assumedState, type DryRunInput, dryRunInput, dryRunPolicy, simulateCall } from '../../safety/replay.ts'
import { toolFacts } from '../../tools/registry.ts'
import { logOf, row } from '../support/events.ts'

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

describe('an assumed command', () => {
  test('is judged like a real one, and nothing is run', () => {
    expect(supposed({ command: 'df -h' })).toMatchObject({ command: 'df -h', verdict: 'run' })
    expect(supposed({ command: 'rm -rf /' })).toMatchObject({ command: 'rm -rf /', verdict: 'refuse' })
  })

  test('knows the hosts that are given, in any spelling', () => {
    const ping = { command: 'ping -c 1 db1' }
    expect(supposed(ping)).toMatchObject({ verdict: 'ask', code: 'EXFILTRATION' })
    expect(supposed({ ...ping, hosts: ['DB1'] })).toMatchObject({ verdict: 'run' })
  })

  test('has at most 64,000 characters', () => {
    expect(dryRunInput.safeParse({ command: 'x'.repeat(64_000) }).success).toBe(true)
    expect(dryRunInput.safeParse({ command: 'x'.repeat(64_001) }).success).toBe(false)
  })

  test('is a command or a call, and nothing else', () => {
    for (const input of [{}, { command: 'ls', tool: 'x', args: {} }, { command: 7 }, { tool: 'x' }, { state: {} }]) {
      expect([input, dryRunInput.safeParse(input).success]).toEqual([input, false])
    }
  })
})

describe('an assumed call', () => {
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

  test('to an unknown tool, or with wrong arguments, is refused like a real one', () => {
    expect(supposed({ tool: 'rm_rf', args: {} })).toMatchObject({ tool: 'rm_rf', code: 'UNKNOWN_TOOL' })
    expect(supposed({ tool: 'get_shard', args: { id: 7 } })).toMatchObject({
      code: 'INVALID_ARGUMENTS',
      targets: [],
    })
  })

  test('may name resources that were read, by id, name or alias', () => {
    const resolved = [{ ...shard, name: 'oslo', aliases: ['primary'] }]
    for (const id of ['db-osl-1', 'oslo', 'primary']) {
      expect([id, converge({ resolved, resource: shard }, id)]).toMatchObject([
        id,
        { code: 'REVERSIBLE_NEAR', phase: 'READING', targets: [shard], arguments: { id: 'db-osl-1' } },
      ])
    }
  })

  test('is near on its own resource and next to it, and nowhere else', () => {
    const resolved = [shard]
    expect(converge({ resolved })).toMatchObject({ verdict: 'ask', code: 'REVERSIBLE_FAR' })
    expect(converge({ resolved, resource: shard })).toMatchObject({ code: 'REVERSIBLE_NEAR' })
    expect(converge({ resolved, vicinity: [shard] })).toMatchObject({ code: 'REVERSIBLE_NEAR' })
  })

  test('is refused while the agent is paused', () => {
    expect(converge({ resolved: [shard], paused: true })).toMatchObject({ code: 'PAUSED' })
  })

  test('waits for an unverified write', () => {
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

  test('to end may cite the assumed read, and no other', () => {
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

  test('binds the resources of the call after names are settled, like a dry run', () => {
    const resolved = [{ ...shard, name: 'oslo' }]
    const byName = converge({ resolved, resource: shard }, 'oslo') as { actionDigest: string }
    const byId = converge({ resolved, resource: shard }, 'db-osl-1') as { actionDigest: string }
    expect(byName.actionDigest).toBe(byId.actionDigest)
    expect(byId.actionDigest).toBe(actionDigest('converge_shard', { id: 'db-osl-1', reason: 'it lags' }))
  })

  test('repeats an earlier one only under another id', () => {
    const before = row('call_judged', { callId: 'c1_0', tool: 'get_shard', arguments: { id: 'x' }, verdict: 'run' })
    const state = fold(logOf(before), 1)
    const again = (callId?: string) =>
      simulateCall({ tool: 'get_shard', args: { id: 'x' }, callId }, tools, state, { ...none }, now) as {
        code: string
      }
    expect([again().code, again('c1_0').code]).toEqual(['REPEATED_CALL', 'READ'])
  })

  test('assumes nothing that was not given', () => {
    expect(assumedState.parse({})).toEqual({ resolved: [], vicinity: [], paused: false })
    expect(assumedState.parse({ resolved: [shard] }).resolved).toEqual([{ ...shard, aliases: [] }])
    expect(assumedState.safeParse({ resolvd: [] }).success).toBe(false)
    expect(assumedState.safeParse({ resolved: [{ ...shard, nmae: 'x' }] }).success).toBe(false)
    expect(assumedState.safeParse({ open: { tool: 'x', targets: [], callId: 'c1_0' } }).success).toBe(false)
  })
})
