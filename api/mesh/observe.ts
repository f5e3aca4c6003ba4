import { effectByKey } from '../../db/effects.ts'
import { eventByStepKey } from '../../db/events.ts'
import type { Observation } from '../../domain/tool.ts'
import { specNamed } from '../../mesh/registry.ts'
import type { ApiDeps } from '../deps.ts'
import { notFound } from '../problem.ts'
import { readInput } from './call.ts'
import { requireExecutor } from './executor.ts'
import { lookIfAllowed } from './prepare.ts'

/**
 * Is true what an announced write promised? Looked at on the device where that can be told from it, else what the device itself said.
 * Thrown, when it cannot be looked at just now.
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
  const promised = executor.through === null ? spec.promise?.(input, known?.result ?? null) : null
  const seen =
    promised && executor.device.mode !== 'sudo'
      ? await lookIfAllowed(deps, executor, promised.look, stepKey, started.incidentId)
      : null
  const told = promised && seen !== null ? promised.holds(seen) : null
  if (told) return told
  const ended = known?.status === 'done' || known?.status === 'failed'
  if (!known || !ended) throw notFound(`ending of ${stepKey} yet`)
  return { holds: known.status === 'done', observed: `the device says: ${known.detail}` }
}
