import { callByKey } from '../../db/device-calls.ts'
import { deviceById } from '../../db/devices.ts'
import { eventByStepKey } from '../../db/events.ts'
import { authorityOf } from '../../db/judged.ts'
import { specNamed } from '../../mesh/registry.ts'
import type { ApiDeps } from '../deps.ts'
import type { EffectEnding } from '../effect.ts'
import { Problem } from '../problem.ts'
import { askDevice } from './ask-device.ts'
import { mapCall, readInput } from './call.ts'
import { whyEndedBadly } from './ended.ts'
import { requireExecutor } from './executor.ts'
import { endingOf } from './perform.ts'

/**
 * What became of a write whose sender is gone: the device is asked again under the same key, request and grant. Its journal answers
 * what it did; a grant that has ended says that it never began. Null while the device cannot be asked.
 */
export async function settleDeviceCall(deps: ApiDeps, key: string, isLost: boolean): Promise<EffectEnding | null> {
  const { db } = deps
  const started = await eventByStepKey(db, key)
  const call = await callByKey(db, key)
  if (started?.kind !== 'tool_started' || !call) {
    return isLost ? { status: 'failed', detail: 'it never reached the device', result: {} } : null
  }
  const spec = specNamed(started.metadata.tool)
  const device = await deviceById(db, call.deviceId)
  if (!spec || !device || !deps.mesh) return null
  const { on, reason: _, ...given } = started.metadata.arguments
  try {
    const executor = { ...(await requireExecutor(db, String(on))), device }
    const mapped = mapCall(executor, spec, readInput(spec, given))
    const heard = await askDevice(deps, device, {
      ...{ key, capability: mapped.capability, args: mapped.args, authority: await authorityOf(db, started) },
      ...{ incidentId: started.incidentId, callId: started.metadata.callId, deadlineMs: device.timeoutSeconds * 1000 },
      endedBadly: (result) => whyEndedBadly(mapped, result) !== null,
    })
    // Out of reach now says nothing about what came there before.
    if (heard.kind !== 'answer') return null
    return endingOf({ executor, mapped }, heard)
  } catch (error) {
    if (error instanceof Problem) return null
    throw error
  }
}
