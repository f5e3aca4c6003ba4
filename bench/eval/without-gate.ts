import { registerHooks } from 'node:module'
import type { ToolFacts } from '../../domain/tool.ts'
import type { SafetyState } from '../../safety/fold.ts'
import type { Call, Policy, Ruling } from '../../safety/judge.ts'
import { judgeWithout } from '../../test/simulation/schedule.ts'
import type { Gate } from '../../test/simulation/world.ts'

/**
 * Removes one gate from the judge of the process that loads this module first: `node --import
 * …/without-gate.ts?gate=denial worker/main.ts`. The eval loads it into its own API and worker,
 * which have a toy platform. The product cannot remove a gate: only this file on the command line
 * changes its judge.
 */
export * from '../../safety/judge.ts'

const gate = new URL(import.meta.url).searchParams.get('gate') as Gate | null
const judgeUrl = new URL('../../safety/judge.ts', import.meta.url).href

/** Replaces `judge` of `safety/judge.ts`. */
export function judge(
  call: Call,
  tools: ReadonlyMap<string, ToolFacts>,
  state: SafetyState,
  policy: Policy,
  nowMs: number,
): Ruling {
  return judgeWithout(gate, call, tools, state, policy, nowMs)
}

registerHooks({
  // Modules that were loaded before this file, such as the simulation, have the real judge.
  resolve(specifier, context, next) {
    const found = next(specifier, context)
    return found.url === judgeUrl ? { ...found, url: import.meta.url } : found
  },
})
