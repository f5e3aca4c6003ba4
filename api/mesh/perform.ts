import { callByKey } from '../../db/device-calls.ts'
import { cancelAsked } from '../../db/steps.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import { cancelOperation } from '../../mesh/client.ts'
import { issueCancel } from '../../mesh/issue.ts'
import { judgeField } from '../../safety/command/field.ts'
import type { ApiDeps } from '../deps.ts'
import type { EffectEnding } from '../effect.ts'
import { outputOf, traces, wordsOf } from './answers.ts'
import { type Asking, askDevice, type Heard } from './ask-device.ts'
import { deadlineMs, type Mapped } from './call.ts'
import { whyEndedBadly } from './ended.ts'
import { addressOf, type Executor, requireMesh } from './executor.ts'
import { lineRows } from './lines.ts'

export type Write = {
  executor: Executor
  mapped: Mapped
  key: string
  judged: IncidentEvent<'tool_started'>
  /** The consumed approval or the used standing grant that stands behind it. */
  authority: string
}

/**
 * Does one judged write on a device and tells how it ended; null when that cannot be told yet. What is asked of the device is exactly
 * what the person agreed to, under a grant that is minted here and only here.
 */
export async function performWrite(deps: ApiDeps, write: Write): Promise<EffectEnding | null> {
  const forbidden = forbiddenCommand(write.mapped)
  if (forbidden !== null) return failed(`device_mesh: ${write.mapped.capability}: blocked: ${forbidden}`, 'blocked')
  const { mapped, key, authority } = write
  const heard = await askFollowed(deps, write, {
    ...{ key, capability: mapped.capability, args: mapped.args, authority },
    deadlineMs: deadlineMs(write.executor, false),
    endedBadly: (result) => whyEndedBadly(mapped, result) !== null,
  })
  return endingOf(write, heard)
}

/** Asks for a call of a run: its lines become rows of the incident, and whoever stops the run stops it. */
export async function askFollowed(
  deps: ApiDeps,
  { executor, mapped, judged, key }: Omit<Write, 'authority'>,
  asking: Asking,
): Promise<Heard> {
  const rows = mapped.spec.streams
    ? lineRows(deps.db, judged, (err) => deps.log.error({ err, key }, 'lines were lost'))
    : null
  const stopWatching = watchForCancel(deps, { executor, judged, key })
  try {
    return await askDevice(deps, executor.device, {
      ...{ ...asking, incidentId: judged.incidentId, callId: judged.metadata.callId },
      ...(rows && { onLine: rows.add }),
    })
  } finally {
    stopWatching()
    await rows?.end()
  }
}

/**
 * How a write ended by what the device's journal says of it, or null when it cannot be asked. A command that ran and ended badly failed,
 * and keeps what it printed.
 */
export function endingOf({ executor, mapped }: Pick<Write, 'executor' | 'mapped'>, heard: Heard): EffectEnding | null {
  const { capability, spec } = mapped
  if (heard.kind === 'unknown') return null
  if (heard.kind !== 'answer') {
    return failed(`device_mesh: ${capability}: device_unreachable: ${heard.reason}`, 'device_unreachable')
  }
  const { answer } = heard
  if (answer.ok) {
    const result = outputOf(executor, answer, spec.toOutput)
    const why = whyEndedBadly(mapped, answer.result ?? {})
    if (why === null) return { status: 'done', detail: `${spec.name} on ${executor.resource.id} is done`, result }
    return { status: 'failed', detail: `device_mesh: ${capability}: ${why}`, result: { ...result, error: 'exit_code' } }
  }
  const detail = wordsOf(capability, answer)
  const result = { ...answer.result, error: answer.error?.code ?? 'failed', ...traces(answer) }
  return { status: answer.error?.code === 'indeterminate' ? 'indeterminate' : 'failed', detail, result }
}

function failed(detail: string, error: string): EffectEnding {
  return { status: 'failed', detail, result: { error } }
}

/** Judged once more where the grant would be minted: what is forbidden gets none, whoever approved it. */
function forbiddenCommand({ spec, input }: Mapped): string | null {
  if (!spec.command) return null
  const verdict = judgeField(spec.command, input, new Set())
  return verdict.verdict === 'refuse' ? verdict.reason : null
}

const lookEveryMs = 1_000

/** Whoever stops the investigation stops what it runs on the device. */
function watchForCancel(
  deps: ApiDeps,
  { executor, judged, key }: Pick<Write, 'executor' | 'judged' | 'key'>,
): () => void {
  const mesh = requireMesh(deps)
  let asked = false
  const timer = setInterval(() => {
    void look().catch((error) => deps.log.error({ err: error, key }, 'a cancelled operation could not be stopped'))
  }, lookEveryMs)
  async function look() {
    if (asked || !(await cancelAsked(deps.db, judged))) return
    const call = await callByKey(deps.db, key)
    if (!call) return
    asked = true
    try {
      const order = issueCancel(call.requestId, executor.device.id, mesh.keys.signing)
      await cancelOperation(addressOf(mesh, executor.device), call.requestId, order)
    } catch (error) {
      asked = false
      throw error
    }
  }
  return () => clearInterval(timer)
}
