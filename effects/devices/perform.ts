import type { Db } from '../../db/connect.ts'
import { append } from '../../db/log/append.ts'
import { callByKey } from '../../db/writes/device-calls.ts'
import { cancelAsked } from '../../db/writes/effects.ts'
import type { Changed } from '../../domain/changed.ts'
import { agentActor, type IncidentEvent } from '../../domain/event.ts'
import { siblingKey } from '../../domain/step-key.ts'
import { cancelOperation } from '../../mesh/client.ts'
import { issueCancel } from '../../mesh/sign.ts'
import { judgeField } from '../../safety/command/judge.ts'
import type { EffectDeps, EffectEnding } from '../effect.ts'
import {
  askDevice,
  buildOutput,
  type DeviceReply,
  type DeviceRequest,
  describeError,
  getAuditFields,
  isReadOnly,
  whyEndedBadly,
} from './ask-device.ts'
import { type Executor, getDeadlineMs, type MappedCall, requireMesh, wayTo } from './executor.ts'

type AnnouncedCall = {
  executor: Executor
  mapped: MappedCall
  key: string
  /** The row that announced the call. */
  judged: IncidentEvent<'tool_started'>
}

/**
 * Carries out one judged write on a device and returns its ending; null while the ending is
 * unknown. The request to the device is exactly what the person approved, under a grant that only
 * this path issues. `authority`: the approval or standing grant that was used.
 */
export async function performWrite(
  deps: EffectDeps,
  call: AnnouncedCall,
  authority: string,
): Promise<EffectEnding | null> {
  const { mapped, key } = call
  const forbidden = whyForbidden(mapped)
  if (forbidden !== null) return buildFailure(`device_mesh: ${mapped.capability}: blocked: ${forbidden}`, 'blocked')
  const reply = await askFollowed(deps, call, {
    key,
    capability: mapped.capability,
    args: mapped.args,
    authority,
    deadlineMs: getDeadlineMs(call.executor, false),
    endedBadly: (result) => whyEndedBadly(mapped, result) !== null,
  })
  return toDeviceEnding(call, reply)
}

/**
 * Makes the call of a run. The call's output becomes rows of the incident, and the end of the run
 * cancels the call.
 */
export async function askFollowed(deps: EffectDeps, call: AnnouncedCall, request: DeviceRequest): Promise<DeviceReply> {
  const { executor, mapped, judged, key } = call
  const rows = mapped.spec.streams
    ? createLineRows(deps.db, judged, (err) => deps.log.error({ err, key }, 'output lines of a call were not stored'))
    : null
  const stopWatching = watchForCancel(deps, call)
  try {
    return await askDevice(deps, executor.device, {
      ...request,
      incidentId: judged.incidentId,
      callId: judged.metadata.callId,
      ...(rows && { onLine: rows.add }),
    })
  } finally {
    stopWatching()
    await rows?.end()
  }
}

/**
 * Reads a write's ending from the device's answer; null if the ending is unknown. A command that
 * ran and failed is `failed`, and its output is kept.
 */
export function toDeviceEnding(
  { executor, mapped }: Pick<AnnouncedCall, 'executor' | 'mapped'>,
  reply: DeviceReply,
): EffectEnding | null {
  const { capability, spec } = mapped
  if (reply.kind === 'unknown') return null
  if (reply.kind !== 'answer') {
    return buildFailure(`device_mesh: ${capability}: device_unreachable: ${reply.reason}`, 'device_unreachable')
  }
  const { answer } = reply
  if (answer.ok) {
    const result = { ...buildOutput(executor, answer, mapped), ...changedBy(mapped, answer.result ?? {}) }
    const why = whyEndedBadly(mapped, answer.result ?? {})
    if (why === null) return { status: 'done', detail: `${spec.name} on ${executor.resource.id} is done`, result }
    return { status: 'failed', detail: `device_mesh: ${capability}: ${why}`, result: { ...result, error: 'exit_code' } }
  }
  const detail = describeError(capability, answer)
  const result = { ...answer.result, error: answer.error?.code ?? 'failed', ...getAuditFields(answer) }
  return { status: answer.error?.code === 'indeterminate' ? 'indeterminate' : 'failed', detail, result }
}

/** Reads a write's changes from the device's answer. A command that only reads changes nothing. */
function changedBy({ spec, input }: MappedCall, result: Record<string, unknown>): { changed?: Changed } {
  return isReadOnly({ spec, input }) ? {} : { changed: spec.changes?.(result, input) ?? null }
}

function buildFailure(detail: string, error: string): EffectEnding {
  return { status: 'failed', detail, result: { error } }
}

/**
 * Judges the command again before the grant is issued. A forbidden command gets no grant, whatever
 * the approval.
 */
function whyForbidden({ spec, input }: MappedCall): string | null {
  if (!spec.command) return null
  const verdict = judgeField(spec.command, input, { knownHosts: new Set() })
  return verdict.verdict === 'refuse' ? verdict.reason : null
}

const lookEveryMs = 1_000

/**
 * Cancels the device's operation when the investigation stops. Returns a function that stops
 * watching.
 */
function watchForCancel(deps: EffectDeps, { executor, judged, key }: AnnouncedCall): () => void {
  const mesh = requireMesh(deps)
  let isCancelled = false
  const timer = setInterval(() => {
    void look().catch((error) =>
      deps.log.error({ err: error, key }, 'the operation of a cancelled call could not be stopped'),
    )
  }, lookEveryMs)
  async function look() {
    if (isCancelled || !(await cancelAsked(deps.db, judged))) return
    const call = await callByKey(deps.db, key)
    if (!call) return
    isCancelled = true
    try {
      const order = issueCancel(call.requestId, executor.device.id, mesh.keys.signing)
      await cancelOperation(wayTo(mesh, executor.device), call.requestId, order)
    } catch (error) {
      isCancelled = false
      throw error
    }
  }
  return () => clearInterval(timer)
}

/**
 * Limits of the rows with lines of output: at most two rows a second and forty rows, because the
 * result of the call holds the whole output.
 */
const flushEveryMs = 500
const maxRowCharacters = 4_000
const maxRows = 40
const maxLineCharacters = 500

type LineRows = {
  add(line: string): void
  /**
   * Writes the remaining lines. Writes no line if the operation ended before its first row, because
   * its result holds all lines.
   */
  end(): Promise<void>
}

/**
 * Writes the lines of a long operation as rows while the operation runs. `append` removes secrets
 * from the lines. Leaves out lines beyond the limits; the row has the number of these lines.
 */
function createLineRows(db: Db, started: IncidentEvent<'tool_started'>, onFault: (error: unknown) => void): LineRows {
  const { incidentId, turn, metadata } = started
  const base = siblingKey(started.stepKey, 'tool_output')
  let lines: string[] = []
  let characters = 0
  let left = 0
  let rows = 0
  let timer: NodeJS.Timeout | null = null
  let writing: Promise<void> = Promise.resolve()

  function flush(): void {
    if (timer) clearTimeout(timer)
    timer = null
    if (lines.length === 0 && left === 0) return
    const batch = { lines, left }
    lines = []
    characters = 0
    left = 0
    rows += 1
    const row = rows
    writing = writing.then(() => write(row, batch)).catch(onFault)
  }

  async function write(row: number, batch: { lines: string[]; left: number }): Promise<void> {
    const { callId, tool } = metadata
    const more = batch.left > 0 ? ` (${batch.left} more left out)` : ''
    const detail = `${tool}: ${batch.lines.at(-1) ?? 'more output'}${more}`.slice(0, 300).toWellFormed()
    await db.transaction().execute((trx) =>
      append(trx, incidentId, null, {
        kind: 'tool_output',
        actor: agentActor,
        turn,
        stepKey: `${base}:${row}`,
        detail,
        metadata: { callId, tool, lines: batch.lines, left: batch.left },
      }),
    )
  }

  return {
    add(line) {
      if (rows >= maxRows - 1 || characters >= maxRowCharacters) left += 1
      else {
        const short = line.slice(0, maxLineCharacters).toWellFormed()
        lines.push(short)
        characters += short.length + 1
      }
      if (rows < maxRows - 1) timer ??= setTimeout(flush, flushEveryMs)
    },
    async end() {
      if (rows > 0) flush()
      else if (timer) clearTimeout(timer)
      await writing
    },
  }
}
