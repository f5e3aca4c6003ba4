import { type Effect, effectByKey } from '../../db/effects.ts'
import { eventByStepKey } from '../../db/events.ts'
import type { Observation } from '../../domain/tool.ts'
import { specNamed } from '../../mesh/registry.ts'
import type { ApiDeps } from '../deps.ts'
import { notFound } from '../problem.ts'
import { type Mapped, readInput } from './call.ts'
import { isLook, whyEndedBadly } from './ended.ts'
import { requireExecutor } from './executor.ts'
import { lookIfAllowed } from './prepare.ts'
import { promiseOf } from './promise.ts'

/**
 * Is true what an announced write promised? Looked at on the device, where it promised something and can be looked at unasked; null where
 * it did not: that the device says "done" proves nothing. What failed does not hold, whatever the device looks like. Thrown, when it cannot
 * be looked at just now.
 */
export async function observeCall(deps: ApiDeps, id: string, stepKey: string): Promise<Observation> {
  const started = await eventByStepKey(deps.db, stepKey)
  if (started?.kind !== 'tool_started') throw notFound(`announced call ${stepKey}`)
  const { tool, arguments: given, effect } = started.metadata
  const spec = specNamed(tool)
  if (spec?.name !== tool || given.on !== id || effect !== 'write') throw notFound(`announced device call ${stepKey}`)
  const { on: _, reason: __, ...rest } = given
  const input = readInput(spec, rest)
  const executor = await requireExecutor(deps.db, id)
  const known = await effectByKey(deps.db, stepKey)
  const hasEnded = known?.status === 'done' || known?.status === 'failed'
  if (hasEnded && isLook({ spec, input })) {
    return { holds: null, observed: 'it only looks: its answer is all there is to it' }
  }
  const failure = known ? whyFailed(known, { spec, input }) : await whyNeverBegun(deps, stepKey)
  if (failure) return { holds: false, observed: `not verified: ${failure}` }

  const promised = promiseOf(executor, { spec, input })
  const look = promised?.look(known?.result ?? null)
  const seen = look && (await lookIfAllowed(deps, executor, look, stepKey, started.incidentId))
  const told = promised && seen ? promised.holds(seen, known?.result ?? null) : null
  if (told) return told
  if (known?.status !== 'done') throw notFound(`ending of ${stepKey} yet`)
  return { holds: null, observed: `it ran, and nothing proves that it worked: ${spec.proof.otherwise}` }
}

/** Null for what was done, and for what nobody can tell of. */
function whyFailed({ status, detail, result }: Effect, mapped: Pick<Mapped, 'spec' | 'input'>): string | null {
  // Of an earlier version: its exit code was not read.
  if (status === 'done') return whyEndedBadly(mapped, result)
  if (status !== 'failed') return null
  return result.error === 'exit_code' ? (whyEndedBadly(mapped, result) ?? detail) : detail
}

/** Its run was told no before anything was accepted; null where the run does not know yet. */
async function whyNeverBegun({ db }: ApiDeps, stepKey: string): Promise<string | null> {
  const finished = await eventByStepKey(db, stepKey.replace(':tool_started:', ':tool_finished:'))
  if (finished?.kind !== 'tool_finished' || finished.metadata.outcome !== 'failed') return null
  return finished.metadata.result.error?.message ?? 'it was refused'
}
