import { authorityOf } from '../../db/log/calls.ts'
import { eventByStepKey } from '../../db/log/events.ts'
import { effectByKey, type WriteRecord } from '../../db/writes/effects.ts'
import { readObserved } from '../../domain/envelope.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import type { Principal } from '../../domain/permissions.ts'
import { siblingKey } from '../../domain/step-key.ts'
import type { Observation } from '../../domain/tool.ts'
import { toDeviceCall } from '../../mesh/registry.ts'
import { type EffectDeps, EffectRefused, refuseMissing } from '../effect.ts'
import { runEffect } from '../run-effect.ts'
import { isReadOnly, whyEndedBadly } from './ask-device.ts'
import { type Executor, type MappedCall, readInput, requireExecutor } from './executor.ts'
import { performWrite } from './perform.ts'
import { readIfAllowed, requireSameState } from './prepare.ts'
import { findPromise } from './promise.ts'

type WriteRequest = {
  executor: Executor
  mapped: MappedCall
  judged: IncidentEvent<'tool_started'>
  principal: Principal
  key: string | null
  ifMatch: string | undefined
}

/**
 * Runs one device write of a run, only if it passes each of these gates, in order
 * (docs/reference/mesh.md has the reasons):
 *
 * 1. `safety/judge.ts`: in the activity, the judge lets it run or asks people, before
 * `tool_started` is written.
 * 2. `api/http/guards.ts`: the log announced exactly this action, for the attempt that is current.
 * 3. Here: an approval or standing grant was used for the write; without one nothing is signed.
 * 4. `effects/devices/prepare.ts`: the device is in the state that the person saw.
 * 5. `effects/run-effect.ts`: the key is accepted, and only once.
 * 6. `effects/devices/perform.ts`: the command is judged once more, before a grant is issued for
 * it.
 * 7. `mesh/agent/verify-request.ts`: on the device, the request is signed by a key of its manifest
 * and is not late.
 * 8. `mesh/agent/guard.ts`: on the device, the command is judged again; what is forbidden stays so
 * with any grant.
 * 9. `mesh/agent/guard.ts`: on the device, the grant is signed for exactly this action and was not
 * used before.
 */
export async function runDeviceWrite(deps: EffectDeps, request: WriteRequest): Promise<WriteRecord> {
  const { executor, mapped, judged, principal, key, ifMatch } = request
  const { incidentId } = judged
  const authority = await authorityOf(deps.db, judged)
  if (authority === null) {
    const detail = 'This request has no approval. Nothing was done.'
    throw new EffectRefused('not_allowed', 'UNJUDGED', detail)
  }
  const { tool, actionDigest } = judged.metadata
  return await runEffect(
    deps,
    { principal, key, judged, tool, incidentId, actionDigest },
    {
      before: () => requireSameState(deps, { executor, mapped, key: judged.stepKey ?? '', incidentId }, ifMatch),
      perform: (effectKey) => performWrite(deps, { executor, mapped, key: effectKey, judged }, authority),
    },
  )
}

/**
 * Reads on the device whether an announced write's condition is true now, if the read needs no
 * approval. Otherwise `holds` is null, because the device's "done" proves nothing. For a failed
 * write `holds` is never true. Refuses if the device cannot be read now.
 */
export async function observeCall(deps: EffectDeps, id: string, stepKey: string): Promise<Observation> {
  const started = await eventByStepKey(deps.db, stepKey, 'tool_started')
  if (!started) throw refuseMissing(`announced call ${stepKey}`)
  const { tool, arguments: args, effect } = started.metadata
  const asked = toDeviceCall(tool, args)
  if (!asked || args.on !== id || effect !== 'write') {
    throw refuseMissing(`announced device call ${stepKey}`)
  }
  const { spec } = asked
  const input = readInput(spec, asked.args)
  const executor = await requireExecutor(deps.db, id)
  const known = await effectByKey(deps.db, stepKey)
  const hasEnded = known?.status === 'done' || known?.status === 'failed'
  if (hasEnded && isReadOnly({ spec, input })) {
    return { holds: null, observed: readObserved }
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
  return { holds: null, observed: `the call ran, and nothing proves that it worked: ${spec.proof.otherwise}` }
}

/** Returns why a write failed; null for a write that was done, or whose ending is unknown. */
function whyFailed({ status, detail, result }: WriteRecord, mapped: Pick<MappedCall, 'spec' | 'input'>): string | null {
  // Checks the exit code after `done` too, because earlier versions did not read it.
  if (status === 'done') return whyEndedBadly(mapped, result)
  if (status !== 'failed') return null
  return result.error === 'exit_code' ? (whyEndedBadly(mapped, result) ?? detail) : detail
}

/**
 * Returns why the run's write was refused before its key was accepted; null if no row of the run
 * has the refusal yet.
 */
async function whyNeverStarted({ db }: Pick<EffectDeps, 'db'>, stepKey: string): Promise<string | null> {
  const finished = await eventByStepKey(db, siblingKey(stepKey, 'tool_finished'), 'tool_finished')
  if (finished?.metadata.outcome !== 'failed') return null
  return finished.metadata.result.error?.message ?? 'it was refused'
}
