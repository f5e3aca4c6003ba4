import { authorityOf } from '../../db/calls.ts'
import type { Effect } from '../../db/effects.ts'
import { actionDigest } from '../../domain/digest.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import type { Principal } from '../../domain/operator.ts'
import { type EffectDeps, EffectRefused } from '../effect.ts'
import { runEffect } from '../run-effect.ts'
import type { Executor, MappedCall } from './executor.ts'
import { performWrite } from './perform.ts'
import { requireSameState } from './prepare.ts'

type WriteRequest = {
  executor: Executor
  mapped: MappedCall
  judged: IncidentEvent<'tool_started'>
  principal: Principal
  key: string | null
  ifMatch: string | undefined
}

/**
 * Runs one device write of a run. It happens only if every gate lets it pass, in this order (docs/reference/mesh.md has the reasons):
 *
 *  1. `safety/judge.ts`: in the activity, the judge lets it run or asks a person, before `tool_started` is written.
 *  2. `api/http/guards.ts`: the log announced exactly this action, for the attempt that is current.
 *  3. Here: a used approval or standing grant stands behind it; without one nothing is signed.
 *  4. `effects/devices/prepare.ts`: the device is in the state that the person saw.
 *  5. `effects/run-effect.ts`: the key is accepted, and only once.
 *  6. `effects/devices/perform.ts`: the command is judged once more, before a grant is issued for it.
 *  7. `mesh/agent/verify-request.ts`: on the device, the request is signed by a key of its manifest and is not late.
 *  8. `mesh/agent/guard.ts`: on the device, the command is judged again; what is forbidden stays so with any grant.
 *  9. `mesh/agent/guard.ts`: on the device, the grant is signed for exactly this action and was not used before.
 */
export async function runDeviceWrite(deps: EffectDeps, request: WriteRequest): Promise<Effect> {
  const { executor, mapped, judged, principal, key, ifMatch } = request
  const { incidentId } = judged
  const authority = await authorityOf(deps.db, judged)
  if (authority === null) {
    const detail = 'No approval stands behind this request. Nothing was done.'
    throw new EffectRefused('not_allowed', 'UNJUDGED', detail)
  }
  const { spec, input } = mapped
  const digest = actionDigest(spec.name, { ...input, on: executor.resource.id })
  return await runEffect(
    deps,
    { principal, key, judged, tool: spec.name, incidentId, actionDigest: digest },
    {
      before: () => requireSameState(deps, { executor, mapped, key: judged.stepKey ?? '', incidentId }, ifMatch),
      perform: (effectKey) => performWrite(deps, { executor, mapped, key: effectKey, judged }, authority),
    },
  )
}
