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

/** Jobs at once in this process: each holds two connections that hold locks. */
const maxJobs = 3

/** Known before the key is accepted: the declaration is the decided one, and there is room. */
export function requireReady(deps: Pick<EffectDeps, 'jobs'>, job: ResourceJob, ifMatch: string | undefined): void {
  if (!ifMatch) {
    const detail = 'If-Match: name the fingerprint of the preparation that this was decided on.'
    throw new EffectRefused('precondition_required', 'IF_MATCH_REQUIRED', detail)
  }
  if (!matchesDefinition(ifMatch.replace(/^(?:W\/)?"?/, ''), job)) {
    const detail = `The declaration of ${job.job.name} is another one than when this was decided. Nothing was started.`
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
 * Checks again, if the last check is old, and runs the job. One job at a time on a resource, over
 * all processes. Null: its system still works, or gives no answer, and is asked by its number.
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

/** Null where the check mode still says what was approved. */
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
    : 'its check mode says something else than when this was decided'
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

/** Most of an output that goes to the log of the incident. */
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
 * A run begins only where its check mode just said that something would change. Only words that the
 * run prints too say that it changed nothing: missing words tell nothing, since a run may speak
 * otherwise.
 */
function changedBy({ name, check }: ResourceJob['job'], { isOk, output, isCut }: JobOutcome): Changed {
  if (!isOk || !check?.noChanges) return null
  const { pattern, unless } = check.noChanges
  const says = (words: string | undefined) => words !== undefined && new RegExp(words, 'm').test(output)
  const isNothing = says(pattern) && !says(unless) && !isCut
  return isNothing ? [] : [`${name}: what its check mode said would change`]
}

/**
 * The outcome of a job with an ended process or lost answer. Where nothing began it failed; a
 * number at its system is asked; anything else is unknown. Null: not known yet.
 */
export async function reconcileJob(
  deps: EffectDeps,
  result: Record<string, unknown>,
  isLost: boolean,
): Promise<EffectEnding | null> {
  const note = jobNote.safeParse(result.job).data
  if (!note || note.phase === 'checking') {
    return isLost || note
      ? { status: 'failed', detail: 'it was never started: its process ended before', result: {} }
      : null
  }
  const unknown = (why: string): EffectEnding => ({
    status: 'indeterminate',
    detail: `${note.name} was begun, and ${why}`,
    result: {},
  })
  if (note.ref === null) return unknown('the process that waited for its end is gone')
  let job: ResourceJob
  try {
    job = await requireJob(deps, { name: note.name, ...note.resource })
  } catch (error) {
    if (error instanceof EffectRefused) return unknown('it is not declared any more')
    throw error
  }
  if (systemOf(job.run) !== note.system) return unknown('it is declared for another system now')
  const outcome = await lookAtStep(job.run, note.ref)
  return outcome && toEnding(job, outcome)
}
