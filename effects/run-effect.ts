import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { HttpError } from '../clients/http.ts'
import { type PlatformClient, PlatformError } from '../clients/platform.ts'
import { withAdvisoryLock } from '../db/advisory-lock.ts'
import type { Db } from '../db/connect.ts'
import { deviceById } from '../db/inventory/devices.ts'
import { proposalById } from '../db/inventory/proposals.ts'
import { recordAudit } from '../db/log/audit.ts'
import { authorityOf } from '../db/log/calls.ts'
import { eventByStepKey } from '../db/log/events.ts'
import { callByKey } from '../db/writes/device-calls.ts'
import { acceptEffect, effectByKey, finishEffect, planOfEffect, type WriteRecord } from '../db/writes/effects.ts'
import { takeLeasesOfEffect } from '../db/writes/leases.ts'
import { isDatabaseWrite } from '../domain/database-write.ts'
import type { IncidentEvent } from '../domain/event.ts'
import { runJobTool } from '../domain/job.ts'
import type { Principal } from '../domain/permissions.ts'
import { type ResourceRef, resourceKey } from '../domain/registry.ts'
import { specOfTool, toDeviceCall } from '../mesh/registry.ts'
import { askDevice, whyEndedBadly } from './devices/ask-device.ts'
import { mapCall, readInput, requireExecutor } from './devices/executor.ts'
import { toDeviceEnding } from './devices/perform.ts'
import { type EffectDeps, type EffectEnding, EffectRefused, type Ending, effectLock } from './effect.ts'
import { executePlan } from './execute-plan.ts'
import { reconcileJob } from './jobs/perform.ts'
import { toEnding } from './platform.ts'
import { requireAsLeft } from './undo.ts'

type EffectRequest = {
  principal: Principal
  key: string | null
  judged: IncidentEvent<'tool_started'> | null
  tool: string
  actionDigest: string
  incidentId?: string | null
  /**
   * Targets and audit text of a person's own write of low risk, for its lease and its audit row.
   */
  direct?: { targets: ResourceRef[]; detail: string }
}

type EffectSteps = {
  /** Checks that the state is still the approved one. Called only before the key is accepted. */
  before?: () => Promise<void>
  /** Does the write. Returns null if the ending is not known yet. */
  perform(key: string): Promise<EffectEnding | null>
}

/**
 * Milliseconds after which a caller is answered, because callers wait at most 30 s. The write then
 * still runs, and its outcome can be read by its key.
 */
const answerWithinMs = 25_000

/**
 * Runs a write once per key, however often the write is requested. The row that accepts the key is
 * committed before the platform or device is called, and the work continues if the caller stops
 * waiting. Returns the effect as far as it has come.
 */
export async function runEffect(deps: EffectDeps, request: EffectRequest, steps: EffectSteps): Promise<WriteRecord> {
  const { db, log } = deps
  const { tool, actionDigest } = request
  const key = getEffectKey(request)
  const work = startOnce(deps, key, request, steps)
  // Logs a fault that occurs after the caller left; the outcome can be read by the key.
  work.catch(
    (error) =>
      error instanceof EffectRefused ||
      log.error({ err: error, key, tool }, 'the result of a write could not be recorded'),
  )

  let timer: NodeJS.Timeout | undefined
  const late = new Promise<'late'>((resolve) => {
    timer = setTimeout(resolve, answerWithinMs, 'late')
  })
  const outcome = await Promise.race([work, late]).finally(() => clearTimeout(timer))

  const effect = outcome === false ? await reconcileEffect(deps, key) : await effectByKey(db, key)
  if (!effect) {
    throw new EffectRefused(
      'unavailable',
      'EFFECT_BUSY',
      'Another request with this key is being accepted: try again later.',
    )
  }
  if (effect.actionDigest !== actionDigest) {
    throw new EffectRefused('invalid', 'IDEMPOTENCY_KEY_REUSED', 'This Idempotency-Key was used for another action.')
  }
  return effect
}

/** Returns the key of a write: the step key of an agent's call, or the key that a person sent. */
function getEffectKey({ principal, key, judged }: Pick<EffectRequest, 'principal' | 'key' | 'judged'>): string {
  return judged?.stepKey ?? `api:${principal.tokenId}:${key ?? randomUUID()}`
}

/**
 * Starts the write. Returns false if the key was accepted before, and null if another process runs
 * the write now.
 */
async function startOnce(
  deps: EffectDeps,
  key: string,
  request: EffectRequest,
  { before, perform }: EffectSteps,
): Promise<boolean | null> {
  const { db, locks, metrics, state } = deps
  const { tool, actionDigest } = request
  const incidentId = request.judged?.incidentId ?? request.incidentId ?? null
  return await withAdvisoryLock(locks, effectLock(key), async () => {
    // Skips the checks for a repeated request, because the write itself changes the state that
    // `before` compares.
    if (!(await effectByKey(db, key))) {
      await before?.()
      await requireAsLeft(deps, request.judged)
    }
    if (!(await accept(db, request, { key, incidentId, tool, actionDigest }))) return false
    try {
      const ending = await perform(key)
      if (ending) await finishEffect(db, key, ending)
      metrics.effects.inc({ tool, status: ending?.status ?? 'unknown' })
    } finally {
      state.forget()
    }
    return true
  })
}

/**
 * Accepts the key. A person's own write also takes its targets and writes its audit row, in the
 * same transaction.
 */
async function accept(
  db: Db,
  { direct, principal }: EffectRequest,
  effect: Parameters<typeof acceptEffect>[1],
): Promise<boolean> {
  if (!direct) return await acceptEffect(db, effect)
  return await db.transaction().execute(async (trx) => {
    if (!(await acceptEffect(trx, effect))) return false
    const busy = await takeLeasesOfEffect(trx, effect.key, direct.targets)
    if (busy)
      throw new EffectRefused('conflict', 'TARGET_BUSY', `Another write to ${busy} is running: try again later.`)
    const subject = direct.targets.map(resourceKey).join(', ')
    const detail = `${direct.detail} (${effect.key})`
    await recordAudit(trx, { who: principal.name, what: 'platform.acted', subject, detail })
    return true
  })
}

/** Returns the state of a VM or database that was recorded before the write. */
function notesOf({ before, compared }: Record<string, unknown>): Record<string, unknown> {
  return { ...(before !== undefined && { before }), ...(compared !== undefined && { compared }) }
}

type KnownEffect = WriteRecord & { actionDigest: string; tool: string }

/** Seconds within which the process that runs a write should have recorded its ending. */
const reconcileAfterSeconds = 5
/** Seconds after which a write that is not in the platform's journal counts as lost. */
const lostAfterSeconds = 60
/**
 * Seconds after which an approval is too old to continue a plan. The ended steps are then recorded,
 * and all other steps are skipped.
 */
const resumeWithinSeconds = 3_600
/** Milliseconds after which a caller is answered, because it may take longer to continue a plan. */
const answerReconcileWithinMs = 2_000

/**
 * Returns the current state of an effect. If the process that ran the effect ended, or the answer
 * was lost, the platform or device is queried and its answer is stored. A plan that was interrupted
 * continues under its approval.
 */
export async function reconcileEffect(deps: EffectDeps, key: string): Promise<KnownEffect | null> {
  const { db, locks, platform, log } = deps
  const effect = await effectByKey(db, key)
  if (effect?.status !== 'running') return effect
  const runningSeconds = effect.runningSeconds ?? 0
  if (runningSeconds < reconcileAfterSeconds) return effect
  const isLost = runningSeconds > lostAfterSeconds
  const work = withAdvisoryLock(locks, effectLock(key), async () => {
    const now = await effectByKey(db, key)
    if (now?.status !== 'running') return
    let ending: EffectEnding | null = null
    if (specOfTool(now.tool)) ending = await reconcileDeviceWrite(deps, key, isLost)
    else if (isDatabaseWrite(now.tool)) ending = isLost ? lostAtDatabase : null
    else if (now.tool === runJobTool) ending = await reconcileJob(deps, now.result, isLost)
    else if (platform) ending = await reconcilePlatformWrite(deps, platform, key, runningSeconds)
    // Keeps the recorded state from before the write, because a later read is compared with it.
    if (ending) await finishEffect(db, key, { ...ending, result: { ...notesOf(now.result), ...ending.result } })
  })
  work.catch((error) => log.error({ err: error, key }, 'the result of a write could not be determined'))
  await Promise.race([work, sleep(answerReconcileWithinMs, undefined, { ref: false })])
  return await effectByKey(db, key)
}

/**
 * Ending of a lost write to a database. A database server keeps no journal of writes, so only a
 * read shows the state.
 */
const lostAtDatabase: EffectEnding = {
  status: 'indeterminate',
  detail: 'the process that sent the write ended, so the write may have been done',
  result: {},
}

async function reconcilePlatformWrite(
  deps: EffectDeps,
  platform: PlatformClient,
  key: string,
  runningSeconds: number,
): Promise<Ending | null> {
  const isLost = runningSeconds > lostAfterSeconds
  try {
    const plan = await planOfEffect(deps.db, key)
    if (plan !== null) return await resumePlan(deps, platform, key, { proposalId: plan, runningSeconds })
    const answer = await platform.effect(key)
    if (answer) return toEnding(answer)
    return isLost ? { status: 'failed', detail: 'the write never reached the platform', result: {} } : null
  } catch (error) {
    // Records nothing, because an unreachable platform shows nothing about the write.
    if (error instanceof PlatformError || error instanceof HttpError) return null
    throw error
  }
}

async function resumePlan(
  deps: EffectDeps,
  platform: PlatformClient,
  key: string,
  { proposalId, runningSeconds }: { proposalId: string; runningSeconds: number },
): Promise<Ending | null> {
  const found = await proposalById(deps.db, proposalId)
  if (!found) return null
  const judged = await eventByStepKey(deps.db, key, 'tool_started')
  const by = { key, actor: judged?.actor ?? 'system:core-api', judged }
  return await executePlan(deps, platform, found, by, {
    resumed: { isLate: runningSeconds > resumeWithinSeconds },
  })
}

/**
 * Sends the call to the device again under the same key, request and grant. The device's journal
 * answers what the device did. If the grant has expired, the call never began. Null while the
 * device cannot be reached.
 */
async function reconcileDeviceWrite(deps: EffectDeps, key: string, isLost: boolean): Promise<EffectEnding | null> {
  const { db } = deps
  const started = await eventByStepKey(db, key, 'tool_started')
  const call = await callByKey(db, key)
  if (!started || !call) {
    return isLost ? { status: 'failed', detail: 'the write never reached the device', result: {} } : null
  }
  const asked = toDeviceCall(started.metadata.tool, started.metadata.arguments)
  const device = await deviceById(db, call.deviceId)
  if (!asked || !device || !deps.mesh) return null
  const { on } = started.metadata.arguments
  try {
    const executor = { ...(await requireExecutor(db, String(on))), device }
    const mapped = mapCall(executor, asked.spec, readInput(asked.spec, asked.args))
    const reply = await askDevice(deps, device, {
      key,
      capability: mapped.capability,
      args: mapped.args,
      authority: await authorityOf(db, started),
      incidentId: started.incidentId,
      callId: started.metadata.callId,
      deadlineMs: device.timeoutSeconds * 1000,
      endedBadly: (result) => whyEndedBadly(mapped, result) !== null,
    })
    // Returns null, because a device that is unreachable now may still have received the call
    // before.
    if (reply.kind !== 'answer') return null
    return toDeviceEnding({ executor, mapped }, reply)
  } catch (error) {
    if (error instanceof EffectRefused) return null
    throw error
  }
}
