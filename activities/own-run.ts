import { activityInfo, getClient } from '@temporalio/activity'
import type { Db, Trx } from '../db/connect.ts'
import { incidentState, lockIncident } from '../db/incidents/incidents.ts'
import { StaleRunError } from '../db/log/append.ts'
import { recordSecurityEvent } from '../db/log/audit.ts'
import { eventByStepKey } from '../db/log/events.ts'
import type { IncidentEvent } from '../domain/event.ts'
import { investigationId, parseInvestigationId, type RunRef, stepKey } from '../domain/step-key.ts'

/**
 * Checks, at the beginning of every activity, that the activity works for the run that holds the
 * incident.
 */

/**
 * Returns the id of this activity's workflow from Temporal, so that no input can claim the id of
 * another workflow.
 */
export function ownWorkflowId(): string {
  return activityInfo().workflowExecution?.workflowId ?? 'none'
}

export function ownRunId(): string {
  return activityInfo().workflowExecution?.runId ?? 'none'
}

/**
 * Admits only the incident's own run, and returns whether the incident is still open for work. Any
 * other run gets StaleRunError. A forgery (a workflow with another name, or a workflow with this
 * name that is not the claiming run) also leaves a `security_event`. A superseded run is only late,
 * and leaves no `security_event`.
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
 * Returns this activity's run from the name of its workflow, for activities whose input names only
 * the incident. Accepts any attempt, because a superseded run may still read its ending.
 */
export async function ownRunOf(db: Db, incidentId: string): Promise<RunRef> {
  const own = parseInvestigationId(ownWorkflowId())
  if (own?.incidentId === incidentId) return own
  await recordForgery(db, { incidentId, attempt: 0 })
  throw new StaleRunError(incidentId, 0, 0)
}

/** Runs that are known to hold their claim, so that Temporal is queried once for each. */
const holders = new Set<string>()
const holdersKept = 10_000

/**
 * Whether this execution holds its attempt's claim: it is the run that claimed, or continues that
 * run. An execution that was started again under the same name does not hold the claim, whatever
 * its input contains.
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

/**
 * Compares the run with the one that claimed. Claims of version 0.1.0 name no run, so only the
 * workflow's name is compared for these claims.
 */
async function isClaimer({ metadata: { runId } }: IncidentEvent<'claimed'>): Promise<boolean> {
  return runId === undefined || runId === ownRunId() || runId === (await firstRunId())
}

/** Returns the first run of the chain that this execution continues, from Temporal. */
async function firstRunId(): Promise<string> {
  const execution = await getClient().workflow.getHandle(ownWorkflowId(), ownRunId()).describe()
  return execution.raw.workflowExecutionInfo?.firstRunId || 'unknown'
}

/**
 * Whether the attempt has no claim or was claimed by this run. Read in the claiming transaction.
 */
export async function mayClaim(trx: Trx, run: RunRef): Promise<boolean> {
  const claimed = await eventByStepKey(trx, stepKey(run, 0, 'claimed', 0), 'claimed')
  return !claimed || (await isClaimer(claimed))
}

/** Records that a workflow tried to work on an incident that it does not hold, with the attempt. */
export async function recordForgery(db: Db, run: RunRef): Promise<void> {
  const { activityType, workflowType } = activityInfo()
  await db.transaction().execute(async (trx) => {
    if (!(await lockIncident(trx, run.incidentId))) return
    await recordSecurityEvent(trx, run.incidentId, {
      code: 'FORGED_RUN',
      door: 'workflow',
      subject: ownWorkflowId().slice(0, 100).toWellFormed(),
      detail: `a workflow that does not own this incident tried to work on it: run ${ownRunId()} of ${String(workflowType).slice(0, 60)}, activity ${activityType}, attempt ${run.attempt}`,
    })
  })
}
