import { resourceKey } from '../../domain/registry.ts'
import type { ToolFacts } from '../../domain/tool.ts'
import type { SafetyState } from '../../safety/fold.ts'
import { type Call, judge, type Policy, type Ruling } from '../../safety/judge.ts'
import type { Gate } from './world.ts'

/**
 * The real judge, or the real judge with one gate switched off by what it is told: everything
 * looked up, nothing open, every row evidence. The invariants then have to notice, or they prove
 * nothing.
 */
export function judgeWithout(
  gate: Gate | null,
  call: Call,
  tools: ReadonlyMap<string, ToolFacts>,
  state: SafetyState,
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
    case 'changes': {
      const writes = state.writes.map((write) => ({ ...write, changed: null }))
      return judge(call, tools, { ...state, writes }, policy, nowMs)
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
          arguments: {},
          touchesMonitoring: false,
          changed: null,
          illBefore: [],
          laterAlerts: [],
          hasEndedAlert: false,
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

function withEverythingLookedUp(
  call: Call,
  tools: ReadonlyMap<string, ToolFacts>,
  state: SafetyState,
  nowMs: number,
): SafetyState {
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

/**
 * Chance by seed: the same seed draws the same life, on every machine. mulberry32, 32 bits of
 * state.
 */
export type Random = {
  /** 0 ≤ x < 1 */
  next(): number
  /** 0 ≤ n < below */
  int(below: number): number
  chance(probability: number): boolean
  pick<T>(from: readonly T[]): T
}

export function randomOf(seed: number): Random {
  let state = (seed ^ 0x9e3779b9) >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
  const int = (below: number) => Math.floor(next() * below)
  return { next, int, chance: (probability) => next() < probability, pick: (from) => from[int(from.length)] as never }
}

/**
 * Chooses who goes next, by seed. A task runs until it parks at `turn()`; then any parked task may
 * go on. What happens between two turns is atomic, as a transaction is; everything else
 * interleaves.
 */
export type Schedule = {
  turn(): Promise<void>
  /** Starts a task; it first runs when it is drawn. */
  start(task: () => Promise<void>): void
  /** Runs everything to its end. False when it did not end within so many turns. */
  run(turnsAtMost: number): Promise<boolean>
}

export function scheduleOf(random: Random, onTurn: () => void): Schedule {
  const parked: (() => void)[] = []
  let alive = 0
  let idle: () => void = () => {}

  const turn = () =>
    new Promise<void>((resolve) => {
      parked.push(resolve)
      idle()
    })

  return {
    turn,
    start(task) {
      alive += 1
      void (async () => {
        await turn()
        try {
          await task()
        } finally {
          alive -= 1
          idle()
        }
      })()
    },
    async run(turnsAtMost) {
      for (let turns = 0; turns < turnsAtMost; turns += 1) {
        if (alive === 0) return true
        const [next] = parked.splice(random.int(parked.length), 1)
        if (!next) return false
        onTurn()
        const settled = new Promise<void>((resolve) => {
          idle = resolve
        })
        next()
        await settled
      }
      return alive === 0
    },
  }
}
