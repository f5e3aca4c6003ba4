import { setTimeout as sleep } from 'node:timers/promises'
import { activityInfo, Context, getClient } from '@temporalio/activity'
import { ApplicationFailure, CancelledFailure } from '@temporalio/common'
import { HttpError } from '../clients/http.ts'
import { type Db, isTransient, type Trx } from '../db/connect.ts'
import { claimIncident, incidentState, lockIncident, toIncident } from '../db/incidents/incidents.ts'
import type { WaitedFor } from '../db/incidents/waits.ts'
import { append, StaleRunError } from '../db/log/append.ts'
import { recordSecurityEvent } from '../db/log/audit.ts'
import { eventByStepKey } from '../db/log/events.ts'
import { spentCap } from '../db/models/spend.ts'
import { type EnvironmentDefaults, readSettings, type SettingsReader } from '../db/settings.ts'
import { agentActor, type ConfigInForce, type IncidentEvent } from '../domain/event.ts'
import { resourceKey } from '../domain/registry.ts'
import { investigationId, parseInvestigationId, type Run, stepKey } from '../domain/step-key.ts'

/**
 * What every activity begins and ends with: the check of the run it works for, and failures as
 * Temporal may hear them.
 */

/** The workflow this activity runs for, as Temporal says it: no input can claim to be another. */
export function ownWorkflowId(): string {
  return activityInfo().workflowExecution?.workflowId ?? 'none'
}

export function ownRunId(): string {
  return activityInfo().workflowExecution?.runId ?? 'none'
}

/**
 * Lets only the incident's own run through, and says whether the incident is still being worked on. Everything else gets
 * StaleRunError, and leaves a `security_event` where it is a forgery: a workflow of another name, or one that was started under this
 * name by somebody else than the run that claimed the incident. A run that was superseded is late, and leaves none.
 */
export async function assertOwnRun(db: Db, run: Run): Promise<'working' | 'closed'> {
  const row = await incidentState(db, run.incidentId)
  const own = ownWorkflowId()
  const isNamed = own === investigationId(run)
  const isClaimed = isNamed && (await holdsClaim(db, run))
  if (isClaimed && row?.attempt === run.attempt && (row.assignedTo === own || row.assignedTo === null)) {
    return row.assignedTo === null ? 'closed' : 'working'
  }
  if (!isClaimed) await recordForgery(db, run)
  throw new StaleRunError(run.incidentId, run.attempt, row?.attempt ?? 0)
}

/**
 * The run this activity works for, read from its workflow's name: for activities whose input names the incident alone. Any attempt of
 * the incident passes, since a superseded run may still read how it ended.
 */
export async function ownRunOf(db: Db, incidentId: string): Promise<Run> {
  const own = parseInvestigationId(ownWorkflowId())
  if (own?.incidentId === incidentId) return own
  await recordForgery(db, { incidentId, attempt: 0 })
  throw new StaleRunError(incidentId, 0, 0)
}

/** Runs of which this process knows that they hold their claim: Temporal is asked once for each. */
const holders = new Set<string>()
const holdersKept = 10_000

/**
 * Does this execution hold the claim of its attempt, as the run that made it or as one that continues it? One that is started again
 * under the same name does not, whatever its input says.
 */
async function holdsClaim(db: Db, run: Run): Promise<boolean> {
  const execution = `${ownWorkflowId()} ${ownRunId()}`
  if (holders.has(execution)) return true
  const claimed = await eventByStepKey(db, stepKey(run, 0, 'claimed', 0), 'claimed')
  if (!claimed || !(await isClaimer(claimed))) return false
  if (holders.size >= holdersKept) holders.clear()
  holders.add(execution)
  return true
}

/** Claims of version 0.1.0 name no run: there the workflow's name is all there is. */
async function isClaimer({ metadata: { runId } }: IncidentEvent<'claimed'>): Promise<boolean> {
  return runId === undefined || runId === ownRunId() || runId === (await firstRunId())
}

/** The first run of the chain that this execution continues, as Temporal says it. */
async function firstRunId(): Promise<string> {
  const execution = await getClient().workflow.getHandle(ownWorkflowId(), ownRunId()).describe()
  return execution.raw.workflowExecutionInfo?.firstRunId || 'unknown'
}

/** Is this the run that made the claim of its attempt, or is there none yet? Asked in the transaction that claims. */
export async function mayClaim(trx: Trx, run: Run): Promise<boolean> {
  const claimed = await eventByStepKey(trx, stepKey(run, 0, 'claimed', 0), 'claimed')
  return !claimed || (await isClaimer(claimed))
}

/** A workflow that does not hold this incident tried to work on it: who and what for stand on the incident. */
export async function recordForgery(db: Db, run: Run): Promise<void> {
  const { activityType, workflowType } = activityInfo()
  await db.transaction().execute(async (trx) => {
    if (!(await lockIncident(trx, run.incidentId))) return
    await recordSecurityEvent(trx, run.incidentId, {
      code: 'FORGED_RUN',
      door: 'workflow',
      subject: ownWorkflowId().slice(0, 100).toWellFormed(),
      detail: `a workflow that does not hold this incident tried to work on it: run ${ownRunId()} of ${String(workflowType).slice(0, 60)}, activity ${activityType}, attempt ${run.attempt}`,
    })
  })
}

export type ClaimInput = { incidentId: string; attempt: number; role: 'leader' | 'follower'; groupId: string }
export type Claimed = { type: string; severity: string; target: string }

type ClaimDeps = {
  db: Db
  environment: EnvironmentDefaults
  /** `AGENT_ENABLED`. */
  isEnabled: boolean
}

/** Takes the incident for this run; null when another run has it, or the agent is paused or off. */
export async function claim({ db, environment, isEnabled }: ClaimDeps, input: ClaimInput): Promise<Claimed | null> {
  const settings = await readSettings(db, environment)
  // Not only the queue may start a run: what is off and what is paused take up nothing, by any way.
  if (!isEnabled || settings.value<boolean>('agent.paused') || (await spentCap(db))) return null
  // Only the run with the attempt's own name may claim: a second one by hand would share its step keys.
  const claimed = ownWorkflowId() === investigationId(input) ? await claimRows(db, settings, input) : 'forged'
  if (claimed !== 'forged') return claimed
  await recordForgery(db, input)
  return null
}

async function claimRows(db: Db, settings: SettingsReader, input: ClaimInput): Promise<Claimed | 'forged' | null> {
  const workflowId = ownWorkflowId()
  const timeBudgetSeconds = settings.value<number>('agent.time_budget')
  return await db.transaction().execute(async (trx) => {
    const row = await lockIncident(trx, input.incidentId)
    if (!row) return null
    if (input.attempt > row.attempt + 1 || !(await mayClaim(trx, input))) return 'forged'
    if (!(await claimIncident(trx, { ...input, workflowId, timeBudgetSeconds }))) return null
    await append(trx, input.incidentId, input.attempt, {
      kind: 'claimed',
      actor: agentActor,
      stepKey: stepKey(input, 0, 'claimed', 0),
      detail: 'Investigation started',
      metadata: {
        role: input.role,
        groupId: input.groupId,
        workflowId,
        runId: ownRunId(),
        config: configInForce(settings, row.type),
      },
    })
    const { resource } = toIncident(row)
    return { type: row.type, severity: row.severity, target: resource ? resourceKey(resource) : 'unknown' }
  })
}

const configKeys = ['agent.max_turns', 'agent.concurrency', 'agent.tools'] as const
const globalKeys = ['agent.leader_wait', 'agent.time_budget', 'agent.token_budget'] as const

function configInForce(settings: SettingsReader, type: string): ConfigInForce {
  const inForce: ConfigInForce = {}
  for (const key of configKeys) {
    const { value, source } = settings.effective(key, type)
    inForce[key] = { value, source }
  }
  for (const key of globalKeys) {
    const { value, source } = settings.effective(key)
    inForce[key] = { value, source }
  }
  inForce['agent.system_prompt'] = { value: null, source: settings.effective('agent.system_prompt', type).source }
  return inForce
}

/** Thrown where waiting may help; `code` is closed, and `retryAfterMs` is what the other side asked for. */
export class RetryLater extends Error {
  override name = 'RetryLater' as const
  readonly code: string
  readonly retryAfterMs: number | null
  constructor(code: string, retryAfterMs: number | null = null) {
    super(code)
    this.code = code
    this.retryAfterMs = retryAfterMs
  }
}

/** Thrown where no retry can help. */
export class NonRetryable extends Error {
  override name = 'NonRetryable' as const
  readonly code: string
  constructor(code: string) {
    super(code)
    this.code = code
  }
}

/**
 * The only way an error leaves an activity: a closed code. Messages, causes and stacks stay in the process's own log, because
 * workflow history is kept for long, shown to many, and may quote an alert or a secret.
 */
function toFailure(error: unknown): Error {
  if (error instanceof CancelledFailure) return error
  const failure = ApplicationFailure.create({
    message: codeOf(error),
    type: codeOf(error),
    nonRetryable: error instanceof NonRetryable || error instanceof StaleRunError,
    ...(error instanceof RetryLater && error.retryAfterMs !== null ? { nextRetryDelay: error.retryAfterMs } : {}),
  })
  failure.stack = ''
  return failure
}

function codeOf(error: unknown): string {
  if (error instanceof RetryLater || error instanceof NonRetryable) return error.code
  if (isTransient(error)) return 'DATABASE_UNAVAILABLE'
  if (error instanceof Error) return error.name
  return 'UNKNOWN'
}

type Log = { warn(fields: object, message: string): void; info(fields: object, message: string): void }

/** Wraps activities so that whatever they throw is logged here and leaves as a closed code. */
export function sanitizeFailures<T extends Record<string, (...args: never[]) => Promise<unknown>>>(
  activities: T,
  log: Log,
): T {
  const entries = Object.entries(activities).map(([name, activity]) => [
    name,
    async (...args: never[]) => {
      try {
        return await activity(...args)
      } catch (error) {
        if (error instanceof RetryLater) log.warn({ activity: name, code: error.code }, 'activity will be tried again')
        else if (!(error instanceof CancelledFailure)) log.warn({ activity: name, err: error }, 'activity failed')
        throw toFailure(error)
      }
    },
  ])
  return Object.fromEntries(entries) as T
}

/** How long a step waits for a server that does not answer before it fails. */
export const patienceMs = 10 * 60_000
const firstPauseMs = 250
const longestPauseMs = 5_000

/** Which server was away, where waiting may help; null for every other failure. A refusal is an answer. */
export function whoIsAway(error: unknown): WaitedFor | null {
  if (error instanceof HttpError) return error.retryable ? 'core_api' : null
  return isTransient(error) ? 'database' : null
}

type Patience = {
  /** From now on. */
  forMs: number
  signal?: AbortSignal
  /** Called at each pause with what is waited for, and once with null when it answered. What it throws is dropped. */
  note?: (away: WaitedFor | null) => Promise<void>
}

/** What an activity waits for, by its context: sent with every heartbeat, so that Temporal's pages show it. */
const waits = new WeakMap<Context, { waitsFor: string; since: string }>()
/** How far it is, in numbers alone: Temporal keeps what a heartbeat says. */
const progress = new WeakMap<Context, Record<string, number>>()

/** Shows in Temporal how far this activity is, from its next heartbeat on; null when that is over. */
export function showDetails(details: Record<string, number> | null): void {
  const context = Context.current()
  if (details === null) progress.delete(context)
  else progress.set(context, details)
}

/** Shows in Temporal what this activity waits for from now on; null when the wait is over. */
export function showWait(what: string | null): void {
  const context = Context.current()
  if (what === null) waits.delete(context)
  else if (waits.get(context)?.waitsFor !== what) {
    waits.set(context, { waitsFor: what, since: new Date().toISOString() })
    context.heartbeat(waits.get(context))
  }
}

/** Heartbeats while an activity works, so that a dead worker is noticed and a cancellation arrives. */
export async function withHeartbeat<T>(work: () => Promise<T>): Promise<T> {
  const timeoutMs = activityInfo().heartbeatTimeoutMs ?? 30_000
  const context = Context.current()
  const beat = () => context.heartbeat(waits.get(context) ?? progress.get(context))
  beat()
  const timer = setInterval(beat, timeoutMs / 3)
  try {
    return await work()
  } finally {
    clearInterval(timer)
  }
}

/**
 * Retries idempotent work while the core API or the database is away, with longer and longer
 * pauses: one that restarts is back in seconds, and a try that is counted must not be spent on it. The activity's heartbeat says what it
 * waits for. Every other failure is thrown at once, and so is an absence that outlasts `forMs`.
 */
export async function retryWhileAway<T>(work: () => Promise<T>, { forMs, signal, note }: Patience): Promise<T> {
  const until = performance.now() + forMs
  let hasWaited = false
  try {
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
      try {
        return await work()
      } catch (error) {
        const away = whoIsAway(error)
        if (!away || performance.now() + pauseMs > until) throw error
        hasWaited = true
        showWait(away)
        void note?.(away).catch(() => {})
        await sleep(pauseMs, undefined, { signal })
      }
    }
  } finally {
    if (hasWaited) {
      showWait(null)
      void note?.(null).catch(() => {})
    }
  }
}
