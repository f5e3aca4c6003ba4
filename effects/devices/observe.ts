import { type Effect, effectByKey } from '../../db/effects.ts'
import { eventByStepKey } from '../../db/events.ts'
import { siblingKey } from '../../domain/step-key.ts'
import type { Observation } from '../../domain/tool.ts'
import { specNamed } from '../../mesh/registry.ts'
import { type EffectDeps, refuseMissing } from '../effect.ts'
import { isReadOnly, whyEndedBadly } from './answers.ts'
import { findPromise } from './approval-need.ts'
import { type MappedCall, readInput, requireExecutor } from './executor.ts'
import { readIfAllowed } from './prepare.ts'

/**
 * Is what an announced write promised true now? Read on the device, where the write promised something that can be read
 * without approval. `holds` is null otherwise: that the device says "done" proves nothing. A failed write never holds,
 * whatever the device looks like. Refused where the device cannot be read just now.
 */
export async function observeCall(deps: EffectDeps, id: string, stepKey: string): Promise<Observation> {
  const started = await eventByStepKey(deps.db, stepKey, 'tool_started')
  if (!started) throw refuseMissing(`announced call ${stepKey}`)
  const { tool, arguments: args, effect } = started.metadata
  const spec = specNamed(tool)
  if (spec?.name !== tool || args.on !== id || effect !== 'write') {
    throw refuseMissing(`announced device call ${stepKey}`)
  }
  const { on: _, reason: __, ...rest } = args
  const input = readInput(spec, rest)
  const executor = await requireExecutor(deps.db, id)
  const known = await effectByKey(deps.db, stepKey)
  const hasEnded = known?.status === 'done' || known?.status === 'failed'
  if (hasEnded && isReadOnly({ spec, input })) {
    return { holds: null, observed: 'it only looks: its answer is all there is to it' }
  }
  const failure = known ? whyFailed(known, { spec, input }) : await whyNeverStarted(deps, stepKey)
  if (failure) return { holds: false, observed: `not verified: ${failure}` }

  const promised = findPromise(executor, { spec, input })
  const look = promised?.look(known?.result ?? null)
  const call = { executor, key: stepKey, incidentId: started.incidentId }
  const seen = look && (await readIfAllowed(deps, call, look))
  const observation = promised && seen ? promised.holds(seen, known?.result ?? null) : null
  if (observation) return observation
  if (known?.status !== 'done') throw refuseMissing(`ending of ${stepKey} yet`)
  return { holds: null, observed: `it ran, and nothing proves that it worked: ${spec.proof.otherwise}` }
}

/** Null for a write that was done, and for one whose ending is unknown. */
function whyFailed({ status, detail, result }: Effect, mapped: Pick<MappedCall, 'spec' | 'input'>): string | null {
  // Earlier versions stored `done` without reading the exit code.
  if (status === 'done') return whyEndedBadly(mapped, result)
  if (status !== 'failed') return null
  return result.error === 'exit_code' ? (whyEndedBadly(mapped, result) ?? detail) : detail
}

/** The run was refused before anything was accepted; null where the run does not know yet. */
async function whyNeverStarted({ db }: Pick<EffectDeps, 'db'>, stepKey: string): Promise<string | null> {
  const finished = await eventByStepKey(db, siblingKey(stepKey, 'tool_finished'), 'tool_finished')
  if (finished?.metadata.outcome !== 'failed') return null
  return finished.metadata.result.error?.message ?? 'it was refused'
}
