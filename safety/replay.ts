import { z } from 'zod'
import type { IncidentEvent, JudgedBasis, Verdict } from '../domain/event.ts'
import { editedByPerson, type Policy, plainPolicy } from '../domain/refusal.ts'
import { type ResourceRef, resourceKind, resourceRef } from '../domain/registry.ts'
import type { SiteDecisions } from '../domain/site-decision.ts'
import type { ToolFacts } from '../domain/tool.ts'
import { bodiesToCheck } from './claims/rows.ts'
import { type CommandVerdict, judgeCommand } from './command/judge.ts'
import { fold, type SafetyState } from './fold.ts'
import { type Call, judge, type Ruling } from './judge.ts'
import { resolveArguments } from './resolve-arguments.ts'
import { remember } from './resolved.ts'
import { restsOnBodies } from './ruling.ts'

/** A state to assume if no incident provides a state. */
export const assumedState = z.strictObject({
  /** Resources that were looked up, each by a separate look-up that named it. */
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
  /** A write without a verification. */
  open: z.strictObject({ tool: z.string(), targets: z.array(resourceRef) }).nullish(),
  /** The incident's own resource, and the resources around it. */
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

/** Judges a command or a call. Pure: nothing is run, written or sent. */
export function dryRunPolicy(input: DryRunInput, tools: ReadonlyMap<string, ToolFacts>, nowMs: number): DryRunResult {
  if ('command' in input) {
    const knownHosts = new Set((input.hosts ?? []).map((host) => host.toLowerCase()))
    const { command, directory, rootReads } = input
    return { command, ...judgeCommand(command, { knownHosts, directory, rootReads }) }
  }
  const given = assumedState.parse(input.state ?? {})
  const state = stateOf(given, nowMs)
  return simulateCall(input, tools, state, policyToAssume(given), nowMs)
}

/**
 * Judges a call in a known state, such as that of a real incident. Assumes that the call's dry run
 * succeeds. With the id of a judged call, that call is judged again, and is no repetition.
 */
export function simulateCall(
  { tool, args, callId = 'supposed' }: { tool: string; args: Record<string, unknown>; callId?: string },
  tools: ReadonlyMap<string, ToolFacts>,
  state: SafetyState,
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

function stateOf(given: z.infer<typeof assumedState>, nowMs: number): SafetyState {
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

function policyToAssume(given: z.infer<typeof assumedState>): Policy {
  const resource = given.resource ?? null
  const plain = plainPolicy('inc_00000000000000000000000000', resource)
  return { ...plain, paused: given.paused, vicinity: [...plain.vicinity, ...given.vicinity] }
}

export type RulingDifference = {
  seq: number
  turn: number | null
  tool: string
  was: { verdict: Verdict; code: string; policyVersion: string }
  is: { verdict: Verdict; code: string; reason: string }
}

type Replay = {
  /** Number of rulings that were repeated with all their inputs. */
  judged: number
  differences: RulingDifference[]
  /**
   * Number of rulings without their inputs: an older version did not store the inputs, or a stored
   * result is lost.
   */
  unrepeatable: number
}

/**
 * Judges every stored ruling of an incident again with the current rules: folds the rows before the
 * ruling, and reads all other inputs from the ruling's row. Uses no model, network or clock. A
 * different code is a difference even if the verdict is equal, because people read the code.
 * `site`: another policy to judge by; by default the policy that was stored with the ruling.
 */
export function replay(
  events: readonly IncidentEvent[],
  tools: ReadonlyMap<string, ToolFacts>,
  resource: ResourceRef | null,
  bodies: ReadonlyMap<string, string> = new Map(),
  site?: (event: IncidentEvent<'call_judged'>) => SiteDecisions | undefined,
): Replay {
  const report: Replay = { judged: 0, differences: [], unrepeatable: 0 }
  for (const event of events) {
    if (event.kind !== 'call_judged') continue
    const { basis, code, verdict, policyVersion, tool } = event.metadata
    // Skips a call that people decided in another incident, because the judge did not decide it.
    if (code === 'DECIDED_ELSEWHERE') continue
    const before = events.filter((each) => each.seq <= event.metadata.foldedSeq)
    const needsBodies = restsOnBodies(tools.get(tool)?.effect, event.metadata.arguments)
    const lacksBody = needsBodies && bodiesToCheck(before, event.attempt).some((digest) => !bodies.has(digest))
    if (!basis || lacksBody) {
      report.unrepeatable += 1
      continue
    }
    report.judged += 1
    const state = fold(before, event.attempt, resource)
    const policy = policyOf(basis)
    const { site: _, ...rest } = policy
    const under = site ? { ...rest, site: site(event) } : policy
    const now = judge({ ...callOf(events, event), bodies }, tools, state, under as Policy, Date.parse(basis.at))
    if (now.verdict === verdict && now.code === code) continue
    report.differences.push({
      seq: event.seq,
      turn: event.turn,
      tool,
      was: { verdict, code, policyVersion },
      is: { verdict: now.verdict, code: now.code, reason: now.reason },
    })
  }
  return report
}

/**
 * Lists the digests of the stored results (bodies) that are needed to repeat the rulings on
 * endings, because the claims of an ending are compared with stored results.
 */
export function bodiesToReplay(events: readonly IncidentEvent[], tools: ReadonlyMap<string, ToolFacts>): string[] {
  const endings = events.filter(
    (event) =>
      event.kind === 'call_judged' && restsOnBodies(tools.get(event.metadata.tool)?.effect, event.metadata.arguments),
  ) as IncidentEvent<'call_judged'>[]
  return [
    ...new Set(
      endings.flatMap(({ attempt, metadata }) =>
        bodiesToCheck(
          events.filter(({ seq }) => seq <= metadata.foldedSeq),
          attempt,
        ),
      ),
    ),
  ]
}

/** Returns the policy that is stored with a ruling. Facts that it lacks have their defaults. */
export function policyOf({ policy }: JudgedBasis): Policy {
  return { ...plainPolicy('', null), ...policy } as Policy
}

/** Returns the judged call, from the model's answer and the facts on the ruling's row. */
function callOf(events: readonly IncidentEvent[], judged: IncidentEvent<'call_judged'>): Call {
  const { callId, tool, basis } = judged.metadata
  const proposed = events
    .filter((event) => event.kind === 'model_answered' && event.attempt === judged.attempt)
    .flatMap((event) => (event.kind === 'model_answered' ? event.metadata.calls : []))
    .find((call) => call.id === callId)
  const isEdited = judged.metadata.corrected?.some((each) => each.code === editedByPerson) ?? false
  const dryRun = { possible: true, summary: '', details: {} }
  const prepared = basis?.prepared ?? null
  return {
    callId,
    tool,
    // Uses the arguments that were judged, if a person changed the call.
    arguments: proposed && !isEdited ? proposed.arguments : judged.metadata.arguments,
    problem: isEdited ? null : (proposed?.problem ?? null),
    ...(proposed?.secret && !isEdited && { secret: true }),
    prepared: prepared?.ok ? { ok: true, preparation: { ...prepared, dryRun } } : prepared,
  }
}
