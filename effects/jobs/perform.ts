import { withAdvisoryLock } from '../../db/advisory-lock.ts'
import { cancelAsked, noteJobOfEffect } from '../../db/writes/effects.ts'
import type { Changed } from '../../domain/changed.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import { type JobNote, type JobOutcome, jobNote, systemOf } from '../../domain/job.ts'
import { resourceKey } from '../../domain/registry.ts'
import { type EffectDeps, type EffectEnding, EffectRefused } from '../effect.ts'
import { isSameFingerprint } from '../plan-state.ts'
import { jobSlot, lookAtStep, matchesDefinition, noteOtherwise, recentMs, runCheck, runStep } from './check.ts'
import { type ResourceJob, requireJob } from './jobs.ts'

/** Most parallel jobs in this process, because each holds two database connections with locks. */
const maxJobs = 3

/**
 * Checks, before the key is accepted, that the declaration is still the one at the decision, and
 * that one more job may run.
 */
export function requireReady(deps: Pick<EffectDeps, 'jobs'>, job: ResourceJob, ifMatch: string | undefined): void {
  if (!ifMatch) {
    const detail = 'If-Match: send the stateFingerprint of the approved dry run.'
    throw new EffectRefused('precondition_required', 'IF_MATCH_REQUIRED', detail)
  }
  if (!matchesDefinition(ifMatch.replace(/^(?:W\/)?"?/, ''), job)) {
    const detail = `The declaration of ${job.job.name} changed since the approval. Nothing was started.`
    throw new EffectRefused('state_changed', 'STATE_CHANGED', detail)
  }
  if (deps.jobs.atWork.size >= maxJobs) {
    throw new EffectRefused('too_many', 'JOBS_BUSY', `${maxJobs} jobs run already: ask again later.`, {
      retryAfterSeconds: 10,
    })
  }
}

type Performing = {
  key: string
  ifMatch: string
  judged: IncidentEvent<'tool_started'> | null
}

/**
 * Runs the check mode again if the last check is old, and then the job. Only one job at a time runs
 * on a resource, over all processes. Returns null if the job's system still works or does not
 * answer; that system is then queried by the job's id.
 */
export async function performJob(deps: EffectDeps, job: ResourceJob, by: Performing): Promise<EffectEnding | null> {
  const { atWork } = deps.jobs
  atWork.add(by.key)
  try {
    const lock = `job:${resourceKey(job.resource)}`
    const done = await withAdvisoryLock(deps.locks, lock, async () => ({ ending: await checkAndRun(deps, job, by) }))
    return done ? done.ending : refused(job, `another job runs on ${resourceKey(job.resource)} now`)
  } finally {
    atWork.delete(by.key)
  }
}

async function checkAndRun(deps: EffectDeps, job: ResourceJob, by: Performing): Promise<EffectEnding | null> {
  const { key, judged } = by
  const note = (phase: JobNote['phase'], ref: string | null) => noteJobOfEffect(deps.db, key, toNote(job, phase, ref))
  await note('checking', null)
  const changed = await whyChanged(deps, job, by)
  if (changed !== null) return refused(job, changed)
  if (judged && (await cancelAsked(deps.db, judged))) return refused(job, 'the investigation was stopped')
  await note('begun', null)
  const end = await runStep({
    step: job.run,
    isCheck: false,
    key,
    timeoutSeconds: job.job.timeoutSeconds,
    note: (ref) => note('begun', ref),
  })
  if (end.kind === 'ended') return toEnding(job, end.outcome)
  if (end.isAskable) return null
  return { status: 'indeterminate', detail: `${job.job.name} may have begun: ${end.detail}`, result: {} }
}

/** Returns why the job may not run; null if the check mode still reports what was approved. */
async function whyChanged(
  { db, jobs }: EffectDeps,
  job: ResourceJob,
  { key, ifMatch }: Performing,
): Promise<string | null> {
  if (!job.check) return null
  const recent = jobs.recent.get(jobSlot(job))
  jobs.recent.delete(jobSlot(job))
  if (recent && performance.now() - recent.atMs < recentMs && isSameFingerprint(ifMatch, recent.fingerprint))
    return null
  const found = await runCheck(job, job.check, key)
  await noteOtherwise({ db }, job, found)
  if (!found.worked) return `its check mode failed (${found.outcome.detail})`
  return isSameFingerprint(ifMatch, found.fingerprint)
    ? null
    : 'the output of its check mode changed since the approval'
}

const refused = (job: ResourceJob, why: string): EffectEnding => ({
  status: 'failed',
  detail: `${job.job.name} was not started: ${why}`,
  result: {},
})

function toNote(
  { job, run, resource: { kind, id } }: ResourceJob,
  phase: JobNote['phase'],
  ref: string | null,
): JobNote {
  return { name: job.name, system: systemOf(run), phase, ref, resource: { kind, id } }
}

/** Most characters of an output that the incident's log keeps. */
const maxOutputCharacters = 8_000

function toEnding({ job }: ResourceJob, outcome: JobOutcome): EffectEnding {
  const { isOk, exitCode, output, isCut, detail } = outcome
  const kept = output.slice(-maxOutputCharacters)
  const truncated = isCut || kept.length < output.length
  return {
    status: isOk ? 'done' : 'failed',
    detail: `${job.name}: ${detail}`,
    result: {
      exit_code: exitCode,
      output: kept,
      truncated,
      changed: changedBy(job, outcome),
      ...(job.undo !== undefined && { undo: job.undo }),
    },
  }
}

/**
 * Returns what a job changed. A job begins only if its check mode has just reported a change. A job
 * changed nothing only if its run also prints the check mode's sign of no change. A run without
 * this sign proves nothing, because it may print other texts.
 */
function changedBy({ name, check }: ResourceJob['job'], { isOk, output, isCut }: JobOutcome): Changed {
  if (!isOk || !check?.noChanges) return null
  const { pattern, unless } = check.noChanges
  const says = (words: string | undefined) => words !== undefined && new RegExp(words, 'm').test(output)
  const isNothing = says(pattern) && !says(unless) && !isCut
  return isNothing ? [] : [`${name}: what its check mode said would change`]
}

/**
 * Finds the outcome of a job whose process ended or whose answer was lost. The job failed if
 * nothing began. If its id is known, its system is queried. Otherwise the outcome is unknown. Null
 * if the outcome is not known yet.
 */
export async function reconcileJob(
  deps: EffectDeps,
  result: Record<string, unknown>,
  isLost: boolean,
): Promise<EffectEnding | null> {
  const note = jobNote.safeParse(result.job).data
  if (!note || note.phase === 'checking') {
    return isLost || note
      ? { status: 'failed', detail: 'the job was never started, because its process ended first', result: {} }
      : null
  }
  const unknown = (why: string): EffectEnding => ({
    status: 'indeterminate',
    detail: `${note.name} was begun, and ${why}`,
    result: {},
  })
  if (note.ref === null) return unknown('the process that waited for the end of the job does not exist any more')
  let job: ResourceJob
  try {
    job = await requireJob(deps, { name: note.name, ...note.resource })
  } catch (error) {
    if (error instanceof EffectRefused) return unknown('the job is not declared any more')
    throw error
  }
  if (systemOf(job.run) !== note.system) return unknown('the job is declared for another system now')
  const outcome = await lookAtStep(job.run, note.ref)
  return outcome && toEnding(job, outcome)
}
