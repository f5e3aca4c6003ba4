import { z } from 'zod'
import { type Policy, plainPolicy } from '../domain/refusal.ts'
import { resourceKind, resourceRef } from '../domain/resource.ts'
import type { ToolFacts } from '../domain/tool.ts'
import { type CommandVerdict, judgeCommand } from './command/judge.ts'
import { fold, type State } from './fold.ts'
import { judge, type Ruling } from './judge.ts'
import { resolveArguments } from './resolve-arguments.ts'
import { remember } from './resolved.ts'

/** A state to suppose, where there is no incident to take it from. */
export const assumedState = z.strictObject({
  /** What was looked up; each was named by itself. */
  resolved: z
    .array(
      z.strictObject({
        kind: resourceKind,
        id: z.string(),
        name: z.string().optional(),
        aliases: z.array(z.string()).default([]),
        host: z.string().nullish(),
      }),
    )
    .default([]),
  /** A write that is not verified yet. */
  open: z.strictObject({ tool: z.string(), targets: z.array(resourceRef) }).nullish(),
  /** The incident's own resource; what is next to it. */
  resource: resourceRef.nullish(),
  vicinity: z.array(resourceRef).default([]),
  paused: z.boolean().default(false),
})

export const dryRunInput = z.union([
  z.strictObject({
    command: z.string().max(64_000),
    hosts: z.array(z.string()).max(500).optional(),
    directory: z.string().regex(/^\//, 'begins with /').optional(),
    rootReads: z.array(z.array(z.string())).max(100).optional(),
  }),
  z.strictObject({
    tool: z.string(),
    args: z.record(z.string(), z.unknown()),
    state: assumedState.optional(),
  }),
])
export type DryRunInput = z.infer<typeof dryRunInput>

export type DryRunResult =
  | ({ command: string } & CommandVerdict)
  | ({ tool: string } & Omit<Ruling, 'arguments'> & { arguments: Record<string, unknown> | null })

/** What would become of a command or a call. Pure: nothing is run, written or asked. */
export function dryRunPolicy(input: DryRunInput, tools: ReadonlyMap<string, ToolFacts>, nowMs: number): DryRunResult {
  if ('command' in input) {
    const knownHosts = new Set((input.hosts ?? []).map((host) => host.toLowerCase()))
    const { command, directory, rootReads } = input
    return { command, ...judgeCommand(command, { knownHosts, directory, rootReads }) }
  }
  const given = assumedState.parse(input.state ?? {})
  const state = stateOf(given, nowMs)
  return simulateCall(input, tools, state, policyOf(given), nowMs)
}

/**
 * The same for a call in a known state: that of a real incident, say. Its dry run is taken to succeed. With the id of a call that
 * was judged before it is that call judged again, and no repetition of it.
 */
export function simulateCall(
  { tool, args, callId = 'supposed' }: { tool: string; args: Record<string, unknown>; callId?: string },
  tools: ReadonlyMap<string, ToolFacts>,
  state: State,
  policy: Policy,
  nowMs: number,
): DryRunResult {
  const facts = tools.get(tool)
  const parsed = facts?.input.safeParse(args)
  const resolved =
    facts && parsed?.success ? resolveArguments(facts, parsed.data as Record<string, unknown>, state, nowMs) : null
  const preparation = {
    targets: resolved?.targets ?? [],
    identity: resolved?.arguments ?? args,
    stateFingerprint: '',
    dryRun: { possible: false, summary: '', details: {} },
  }
  const call = {
    callId,
    tool,
    arguments: args,
    problem: null,
    prepared: { ok: true as const, preparation },
  }
  return { tool, ...judge(call, tools, state, policy, nowMs) }
}

function stateOf(given: z.infer<typeof assumedState>, nowMs: number): State {
  const state = fold([], 1, given.resource ?? null)
  for (const { name, host, ...thing } of given.resolved) {
    remember(state.resolved, { ...thing, name: name ?? thing.id, host: host ?? null }, 1, nowMs, true)
    state.lookedAt.add(`${thing.kind}:${thing.id}`)
    state.diagnostics += 1
    state.reads += 1
    state.evidence.add(1)
  }
  if (given.open) state.open = { callId: 'earlier', startedSeq: 1, ...given.open }
  return state
}

function policyOf(given: z.infer<typeof assumedState>): Policy {
  const resource = given.resource ?? null
  const plain = plainPolicy('inc_00000000000000000000000000', resource)
  return { ...plain, paused: given.paused, vicinity: [...plain.vicinity, ...given.vicinity] }
}
