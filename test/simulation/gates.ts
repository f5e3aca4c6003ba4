import { resourceKey } from '../../domain/resource.ts'
import type { ToolFacts } from '../../domain/tool.ts'
import type { State } from '../../safety/fold.ts'
import { type Call, judge, type Policy, type Ruling } from '../../safety/judge.ts'
import type { Gate } from './world.ts'

/**
 * The real judge, or the real judge with one gate switched off by what it is told: everything looked up, nothing open, every
 * row evidence. The invariants then have to notice, or they prove nothing.
 */
export function judgeWithout(
  gate: Gate | null,
  call: Call,
  tools: ReadonlyMap<string, ToolFacts>,
  state: State,
  policy: Policy,
  nowMs: number,
): Ruling {
  switch (gate) {
    case 'discovery':
      return judge(call, tools, withEverythingLookedUp(call, tools, state, nowMs), policy, nowMs)
    case 'verification': {
      const writes = state.writes.map((write) => ({ ...write, verified: 'held' as const }))
      return judge(call, tools, { ...state, open: null, writes }, policy, nowMs)
    }
    case 'evidence': {
      const evidence = new Set(Array.from({ length: 1000 }, (_, seq) => seq))
      const writes = [
        {
          callId: 'x',
          tool: 'x',
          targets: [],
          verifiedSeq: 0,
          startedSeq: 1,
          verified: 'held' as const,
          touchesMonitoring: false,
        },
      ]
      return judge(call, tools, { ...state, evidence, writes }, policy, nowMs)
    }
    case 'repetition':
      return judge(call, tools, { ...state, recent: [], diagnostics: 1 }, policy, nowMs)
    case 'rounds':
      return judge(call, tools, { ...state, recent: state.recent.slice(-1) }, policy, nowMs)
    case 'denial':
      return judge(call, tools, { ...state, denied: new Set() }, { ...policy, denied: [], deniedActions: [] }, nowMs)
    case 'commands':
      return asIfHarmless(call, judge(call, tools, state, policy, nowMs))
    case 'leases':
      return judge(call, tools, state, { ...policy, busy: [] }, nowMs)
    case 'approval': {
      const ruling = judge(call, tools, state, policy, nowMs)
      return ruling.verdict === 'ask' ? { ...ruling, verdict: 'run' } : ruling
    }
    default:
      return judge(call, tools, state, policy, nowMs)
  }
}

function withEverythingLookedUp(call: Call, tools: ReadonlyMap<string, ToolFacts>, state: State, nowMs: number): State {
  const names = tools.get(call.tool)?.names ?? {}
  const entries = new Map(state.resolved.entries)
  for (const [field, kinds] of Object.entries(names)) {
    const id = call.arguments?.[field]
    if (typeof id !== 'string') continue
    for (const kind of typeof kinds === 'string' ? [kinds] : kinds) {
      const ref = { kind, id }
      const key = resourceKey(ref)
      entries.set(key, { ref, canonical: key, host: null, names: [id], seq: 1, atMs: nowMs, explicitAtMs: null })
    }
  }
  return { ...state, resolved: { ...state.resolved, entries } }
}

function asIfHarmless(call: Call, ruling: Ruling): Ruling {
  const isBlockedCommand = call.tool === 'exec' && ruling.arguments !== null && ruling.code !== 'STRICT_RESOLUTION'
  return isBlockedCommand ? { ...ruling, verdict: 'run', effect: 'read', code: 'READ_COMMAND' } : ruling
}
