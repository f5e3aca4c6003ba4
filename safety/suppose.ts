import { z } from 'zod'
import { type Policy, plainPolicy } from '../domain/policy.ts'
import { resourceKind, resourceRef } from '../domain/resource.ts'
import type { ToolFacts } from '../domain/tool.ts'
import { type CommandVerdict, judgeCommand } from './command/judge.ts'
import { fold, type State } from './fold.ts'
import { judge, type Ruling } from './judge.ts'
import { remember } from './resolved.ts'
import { settle } from './settle.ts'

/** A state to suppose, where there is no incident to take it from. */
export const supposedState = z.strictObject({
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

export const supposition = z.union([
  z.strictObject({
    command: z.string().max(64_000),
    hosts: z.array(z.string()).max(500).optional(),
    directory: z.string().regex(/^\//, 'begins with /').optional(),
    rootReads: z.array(z.array(z.string())).max(100).optional(),
  }),
  z.strictObject({
    tool: z.string(),
    args: z.record(z.string(), z.unknown()),
    state: supposedState.optional(),
  }),
])
export type Supposition = z.infer<typeof supposition>

export type Supposed =
  | ({ command: string } & CommandVerdict)
  | ({ tool: string } & Omit<Ruling, 'arguments'> & { arguments: Record<string, unknown> | null })

/** What would become of a command or a call. Pure: nothing is run, written or asked. */
export function suppose(input: Supposition, tools: ReadonlyMap<string, ToolFacts>, nowMs: number): Supposed {
  if ('command' in input) {
    const knownHosts = new Set((input.hosts ?? []).map((host) => host.toLowerCase()))
    const { command, directory, rootReads } = input
    return { command, ...judgeCommand(command, { knownHosts, directory, rootReads }) }
  }
  const given = supposedState.parse(input.state ?? {})
  const state = stateOf(given, nowMs)
  return supposeCall(input, tools, state, policyOf(given), nowMs)
}

/**
 * The same for a call in a known state: that of a real incident, say. Its dry run is taken to succeed. With the id of a call that
 * was judged before it is that call judged again, and no repetition of it.
 */
export function supposeCall(
  { tool, args, callId = 'supposed' }: { tool: string; args: Record<string, unknown>; callId?: string },
  tools: ReadonlyMap<string, ToolFacts>,
  state: State,
  policy: Policy,
  nowMs: number,
): Supposed {
  const facts = tools.get(tool)
  const parsed = facts?.input.safeParse(args)
  const settled = facts && parsed?.success ? settle(facts, parsed.data as Record<string, unknown>, state, nowMs) : null
  const preparation = {
    targets: settled?.targets ?? [],
    identity: settled?.arguments ?? args,
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

function stateOf(given: z.infer<typeof supposedState>, nowMs: number): State {
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

function policyOf(given: z.infer<typeof supposedState>): Policy {
  const resource = given.resource ?? null
  const plain = plainPolicy('inc_00000000000000000000000000', resource)
  return { ...plain, paused: given.paused, vicinity: [...plain.vicinity, ...given.vicinity] }
}
