import { activityInfo, getClient } from '@temporalio/activity'
import type { Db, Trx } from '../db/connect.ts'
import { incidentState, lockIncident } from '../db/incidents/incidents.ts'
import { StaleRunError } from '../db/log/append.ts'
import { recordSecurityEvent } from '../db/log/audit.ts'
import { eventByStepKey } from '../db/log/events.ts'
import type { IncidentEvent } from '../domain/event.ts'
import { investigationId, parseInvestigationId, type RunRef, stepKey } from '../domain/step-key.ts'

/** Checks at the beginning of every activity that it works for the run that holds the incident. */

/** The workflow this activity runs for, as Temporal says it: no input can claim to be another. */
export function ownWorkflowId(): string {
  return activityInfo().workflowExecution?.workflowId ?? 'none'
}

export function ownRunId(): string {
  return activityInfo().workflowExecution?.runId ?? 'none'
}

/**
 * Lets only the incident's own run through, and says whether the incident is still worked on.
 * Others get StaleRunError, and a forgery leaves a `security_event`: a workflow of another name, or
 * one started under this name by somebody else than the claiming run. A superseded run is late, and
 * leaves none.
 */
export async function assertOwnRun(db: Db, run: RunRef): Promise<'working' | 'closed'> {
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
 * This activity's run, by its workflow's name: for activities whose input names the incident alone.
 * Any attempt passes, since a superseded run may still read how it ended.
 */
export async function ownRunOf(db: Db, incidentId: string): Promise<RunRef> {
  const own = parseInvestigationId(ownWorkflowId())
  if (own?.incidentId === incidentId) return own
  await recordForgery(db, { incidentId, attempt: 0 })
  throw new StaleRunError(incidentId, 0, 0)
}

/** Runs of which this process knows that they hold their claim: Temporal is asked once for each. */
const holders = new Set<string>()
const holdersKept = 10_000

/**
 * Whether this execution holds its attempt's claim, as the run that made it or one that continues
 * it. One started again under the name does not, whatever its input says.
 */
async function holdsClaim(db: Db, run: RunRef): Promise<boolean> {
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

/**
 * Whether this run made its attempt's claim, or there is none. Asked in the claiming transaction.
 */
export async function mayClaim(trx: Trx, run: RunRef): Promise<boolean> {
  const claimed = await eventByStepKey(trx, stepKey(run, 0, 'claimed', 0), 'claimed')
  return !claimed || (await isClaimer(claimed))
}

/** A workflow without this incident tried to work on it: the incident records who and what for. */
export async function recordForgery(db: Db, run: RunRef): Promise<void> {
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
