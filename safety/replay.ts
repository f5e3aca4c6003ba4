import type { IncidentEvent, JudgedBasis, Verdict } from '../domain/event.ts'
import { editedByPerson, type Policy, plainPolicy } from '../domain/refusal.ts'
import type { ResourceRef } from '../domain/resource.ts'
import type { ToolFacts } from '../domain/tool.ts'
import { bodiesToCheck } from './claims/rows.ts'
import { restsOnBodies } from './ending.ts'
import { fold } from './fold.ts'
import { type Call, judge } from './judge.ts'

export type Difference = {
  seq: number
  turn: number | null
  tool: string
  was: { verdict: Verdict; code: string; policyVersion: string }
  is: { verdict: Verdict; code: string; reason: string }
}

type Replay = {
  /** Rulings that were repeated with everything they rested on. */
  judged: number
  differences: Difference[]
  /** Rulings whose ground is not there: of an older version that did not store it, or of a body that is gone. */
  unrepeatable: number
}

/**
 * Judges every stored ruling of one incident again with today's kernel: the rows before it are folded, and what it weighed
 * besides is on its own row. No model, no network, no clock. A difference in the code alone is one too: somebody reads it.
 */
export function replay(
  events: readonly IncidentEvent[],
  tools: ReadonlyMap<string, ToolFacts>,
  resource: ResourceRef | null,
  bodies: ReadonlyMap<string, string> = new Map(),
): Replay {
  const report: Replay = { judged: 0, differences: [], unrepeatable: 0 }
  for (const event of events) {
    if (event.kind !== 'call_judged') continue
    const { basis, code, verdict, policyVersion, tool } = event.metadata
    // Decided by what another incident's people said, not by the judge.
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
    const now = judge({ ...callOf(events, event), bodies }, tools, state, policyOf(basis), Date.parse(basis.at))
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

/** Digests of the stored bodies that repeating these rulings needs: endings are held against them. */
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

/** What the ruling weighed; what its version did not know yet is as if nobody had set it. */
function policyOf({ policy }: JudgedBasis): Policy {
  return { ...plainPolicy('', null), ...policy } as Policy
}

/** The call as it was judged: proposed in the model's answer, with what was found out about it on the ruling's row. */
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
    // What a person changed was judged as changed.
    arguments: proposed && !isEdited ? proposed.arguments : judged.metadata.arguments,
    problem: isEdited ? null : (proposed?.problem ?? null),
    ...(proposed?.secret && !isEdited && { secret: true }),
    prepared: prepared?.ok ? { ok: true, preparation: { ...prepared, dryRun } } : prepared,
  }
}
