import { setTimeout as sleep } from 'node:timers/promises'
import { createAwxJobs } from '../../clients/jobs/awx.ts'
import { followRemote, JobSystemError, type RemoteJobs } from '../../clients/jobs/exchange.ts'
import { createHttpJobs } from '../../clients/jobs/http.ts'
import { createRundeckJobs } from '../../clients/jobs/rundeck.ts'
import { NoCredential } from '../../config/references.ts'
import { recordAudit } from '../../db/log/audit.ts'
import type { Attachments } from '../../domain/attachment.ts'
import { digestOf } from '../../domain/digest.ts'
import { describeStep, type JobCheck, type JobOutcome, type JobStep } from '../../domain/job.ts'
import type { Observation, Preparation } from '../../domain/tool.ts'
import { takeAttachments } from '../attachments.ts'
import { type EffectDeps, EffectRefused } from '../effect.ts'
import { type Credentials, openCredentials, readCa, runCommand } from './command.ts'
import { type Jobs, type ResourceJob, requireJob } from './jobs.ts'

type StepRun = {
  /** With the words of its resource filled in. */
  step: JobStep
  isCheck: boolean
  key: string
  timeoutSeconds: number
  /** Called with the number by which its system knows it, before it is waited for. */
  note?: (ref: string) => Promise<void>
}

/**
 * A step's end. `lost`: it may have begun, and nobody knows its end; `isAskable` where its system
 * can be asked later.
 */
type StepEnd =
  | { kind: 'ended'; outcome: JobOutcome }
  | { kind: 'lost'; detail: string; isAskable: boolean; isOtherwise?: boolean }

/** Runs one step to its end. Its output is without secrets. */
export async function runStep(run: StepRun): Promise<StepEnd> {
  const { step, isCheck, timeoutSeconds } = run
  const credentials = openCredentials()
  const ended = (outcome: JobOutcome): StepEnd => ({ kind: 'ended', outcome: hideSecrets(outcome, credentials) })
  const timeoutMs = timeoutSeconds * 1000
  try {
    if (step.command) {
      const { command: argv, cwd } = step
      return ended(await runCommand({ argv, cwd, env: credentials.fill(step.env ?? {}), timeoutMs }))
    }
    const remote = openRemote(step, credentials)
    const key = isCheck ? `${run.key}:check` : run.key
    const launched = await remote.launch({ isCheck, key })
    if ('outcome' in launched) return ended(launched.outcome)
    await run.note?.(launched.ref)
    const outcome = await followRemote(remote, launched.ref, timeoutMs)
    const detail = `it was still at work after ${timeoutSeconds} s, or gave no answer`
    return outcome ? ended(outcome) : { kind: 'lost', detail, isAskable: true }
  } catch (error) {
    if (error instanceof NoCredential) return ended(notBegun(error.message))
    if (!(error instanceof JobSystemError)) throw error
    const detail = credentials.cleanse(error.message)
    const { isOtherwise } = error
    return error.mayHaveBegun ? { kind: 'lost', detail, isAskable: false, isOtherwise } : ended(notBegun(detail))
  }
}

/** A sent job's outcome. Null while it runs, and where its system gives no answer. */
export async function lookAtStep(step: JobStep, ref: string): Promise<JobOutcome | null> {
  const credentials = openCredentials()
  try {
    const outcome = await openRemote(step, credentials).look(ref)
    return outcome && hideSecrets(outcome, credentials)
  } catch (error) {
    if (error instanceof JobSystemError || error instanceof NoCredential) return null
    throw error
  }
}

function openRemote(step: JobStep, credentials: Credentials): RemoteJobs {
  const { awx, rundeck, http } = step
  const { hide } = credentials
  if (awx) return createAwxJobs(awx, { token: credentials.read(awx.token), hide, ...readCa(awx.caFile) })
  if (rundeck)
    return createRundeckJobs(rundeck, { token: credentials.read(rundeck.token), hide, ...readCa(rundeck.caFile) })
  if (http) return createHttpJobs(http, { headers: credentials.fill(http.headers), hide, ...readCa(http.caFile) })
  throw new Error('a step of a job without a system')
}

const notBegun = (why: string): JobOutcome => ({
  isOk: false,
  exitCode: null,
  output: '',
  isCut: false,
  detail: `nothing was started: ${why}`,
})

function hideSecrets(outcome: JobOutcome, credentials: Credentials): JobOutcome {
  return { ...outcome, output: credentials.cleanse(outcome.output), detail: credentials.cleanse(outcome.detail) }
}

/** What the check mode of a job said. */
export type CheckFound = {
  worked: boolean
  /** Null where the job does not declare what says so. */
  wouldChange: boolean | null
  outcome: JobOutcome
  fingerprint: string
  /** Its system did something else than it was asked to. */
  isOtherwise: boolean
}

/** Checks at once in this process: they begin unasked. */
const maxChecks = 4
/** A caller waits this long, and asks again while the check runs. */
const answerWithinMs = 20_000
/** A check that nobody takes any more is forgotten. */
const keptMs = 10 * 60_000
/** A check is as good as now for this long: until the approved job begins. */
export const recentMs = 60_000

type Named = Parameters<typeof requireJob>[1]

/** Runs the check mode now. */
export async function runCheck(job: ResourceJob, check: JobCheck, key: string): Promise<CheckFound> {
  const { timeoutSeconds } = check
  const end = await runStep({ step: check, isCheck: true, key, timeoutSeconds })
  const outcome: JobOutcome =
    end.kind === 'ended'
      ? end.outcome
      : { isOk: false, exitCode: null, output: '', isCut: false, detail: `its check gave no answer: ${end.detail}` }
  const worked = check.okExitCodes.includes(outcome.exitCode ?? -1)
  return {
    worked,
    wouldChange: worked ? wouldChange(check, outcome) : null,
    outcome,
    fingerprint: fingerprintOf(job, check, outcome),
    isOtherwise: end.kind === 'lost' && end.isOtherwise === true,
  }
}

/** Absence proves nothing: a cut output does not say that it changes nothing. */
function wouldChange({ noChanges }: JobCheck, { exitCode, output, isCut }: JobOutcome): boolean | null {
  if (!noChanges) return null
  const { exitCode: code, pattern, unless } = noChanges
  const saysSo =
    (code === undefined || exitCode === code) &&
    (pattern === undefined || new RegExp(pattern, 'm').test(output)) &&
    (unless === undefined || !new RegExp(unless, 'm').test(output)) &&
    !(isCut && (pattern ?? unless) !== undefined)
  return !saysSo
}

/** Times, and Ansible's run directories, as whole words: what is below them was changed. */
const volatile = [
  /\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:[.,]\d+)?(?:Z|[+-]\d{2}:?\d{2})?/g,
  /\b\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?\b/g,
  /(?<![\w./~-])(?:~|\/tmp|\/var\/tmp|\/root|\/home\/[\w.-]+)(?:\/\.ansible\/tmp)?\/ansible-(?:tmp-\d+(?:\.\d+)?(?:-\d+)*|local-\d+[a-z0-9_]{0,12})(?:\/tmp[a-z0-9_]{8})?(?![\w.-])/g,
]

/** The declaration with its check mode's words. Without a check the declaration alone. */
function fingerprintOf({ definition, resource }: ResourceJob, check: JobCheck | null, outcome: JobOutcome | null) {
  const ignored = [...volatile, ...(check?.ignore ?? []).map((each) => new RegExp(each, 'gm'))]
  const output = ignored.reduce((text, each) => text.replace(each, ''), outcome?.output ?? '').replace(/[ \t]+$/gm, '')
  return `${definition}.${digestOf({ resource: { ...resource }, exitCode: outcome?.exitCode ?? null, output })}`
}

/** Was it the declaration of now that this fingerprint is about? */
export function matchesDefinition(fingerprint: string, { definition }: ResourceJob): boolean {
  return fingerprint.startsWith(`${definition}.`)
}

export const jobSlot = ({ job, resource: { kind, id } }: ResourceJob): string => `${job.name} ${kind}:${id}`

/**
 * A job's effect for its card: the output of its check mode, run now. Null while that runs: the
 * same question later takes its answer. Refused where the check fails, or says that nothing would
 * change.
 */
export async function prepareJob(deps: Deps, named: Named, key: string): Promise<Preparation | null> {
  const job = await requireJob(deps, named)
  if (!job.check) return describe(job, null)
  const found = await takeCheck(deps.jobs, job, job.check, `preparation ${key}`)
  if (!found) return null
  await noteOtherwise(deps, job, found)
  const { worked, outcome, fingerprint } = found
  if (!worked) {
    const said = lastLine(outcome.output)
    throw new EffectRefused(
      'conflict',
      'CHECK_FAILED',
      `The check mode of ${job.job.name} failed (${outcome.detail}). ${said}`.trim(),
    )
  }
  if (found.wouldChange === false) {
    const detail = `The check mode of ${job.job.name} says that nothing would change on ${named.kind} ${named.id}.`
    throw new EffectRefused('conflict', 'NOTHING_TO_CHANGE', detail)
  }
  deps.jobs.recent.set(jobSlot(job), { fingerprint, atMs: performance.now() })
  const prepared = describe(job, found)
  return { ...prepared, dryRun: { ...prepared.dryRun, ...(await attachOutput(deps, job, outcome)) } }
}

type Deps = Pick<EffectDeps, 'db' | 'jobs'>

/** Whether a job did what it promised: its check mode again. Null while that still runs. */
export async function observeJob(deps: Deps, named: Named, key: string): Promise<Observation | null> {
  const job = await requireJob(deps, named)
  if (!job.check?.noChanges) {
    return {
      holds: null,
      observed: `${job.job.name} declares nothing by which its check mode says that nothing would change`,
    }
  }
  const found = await takeCheck(deps.jobs, job, job.check, `observation ${key}`)
  if (!found) return null
  await noteOtherwise(deps, job, found)
  const said = lastLine(found.outcome.output)
  if (!found.worked) return { holds: false, observed: `its check mode failed (${found.outcome.detail}) ${said}`.trim() }
  if (found.wouldChange) return { holds: false, observed: `its check mode would still change something: ${said}` }
  return { holds: true, observed: `the check mode of ${job.job.name} says that nothing would change` }
}

/** A check that was none may have changed something, and somebody made it so. */
export async function noteOtherwise(
  { db }: Pick<EffectDeps, 'db'>,
  job: ResourceJob,
  found: CheckFound,
): Promise<void> {
  if (!found.isOtherwise) return
  const { detail } = found.outcome
  await recordAudit(db, { who: 'unknown', what: 'security.job_not_a_check', subject: jobSlot(job), detail })
}

/**
 * Begins a check, or joins the same question's; its answer is taken once, so that the next looks
 * again.
 */
async function takeCheck(jobs: Jobs, job: ResourceJob, check: JobCheck, question: string): Promise<CheckFound | null> {
  const slot = `${jobSlot(job)} ${job.definition} ${question}`
  const nowMs = performance.now()
  for (const [key, each] of jobs.checks) if (each.found && nowMs - each.atMs > keptMs) jobs.checks.delete(key)
  for (const [key, each] of jobs.recent) if (nowMs - each.atMs > recentMs) jobs.recent.delete(key)
  const running = jobs.checks.get(slot) ?? begin(jobs, slot, () => runCheck(job, check, question))
  await Promise.race([running.promise, sleep(answerWithinMs, undefined, { ref: false })])
  if (running.found) jobs.checks.delete(slot)
  return running.found
}

function begin(jobs: Jobs, slot: string, work: () => Promise<CheckFound>) {
  if ([...jobs.checks.values()].filter(({ found }) => found === null).length >= maxChecks) {
    const detail = `${maxChecks} checks of jobs run already: ask again later.`
    throw new EffectRefused('too_many', 'CHECKS_BUSY', detail, { retryAfterSeconds: 5 })
  }
  const running = { found: null as CheckFound | null, atMs: performance.now(), promise: Promise.resolve() }
  running.promise = work().then(
    (found) => void Object.assign(running, { found, atMs: performance.now() }),
    (error: unknown) => {
      jobs.checks.delete(slot)
      throw error
    },
  )
  // The asker may be gone by then: a second ask finds out.
  running.promise.catch(() => {})
  jobs.checks.set(slot, running)
  return running
}

const maxLines = 80
const maxLineCharacters = 300

/** The output as lines of a card: its beginning and its end. */
function linesOf({ output, isCut }: JobOutcome): { told: string[]; truncated: boolean } {
  const lines = output.split('\n').map((line) => line.trimEnd().slice(0, maxLineCharacters))
  const told = lines.filter((line) => line !== '')
  if (told.length <= maxLines) return { told, truncated: isCut }
  return { told: [...told.slice(0, maxLines / 2), '…', ...told.slice(-maxLines / 2)], truncated: true }
}

/** The check mode's whole output, a text beside the card, where its lines leave something out. */
async function attachOutput({ db }: Deps, { job }: ResourceJob, outcome: JobOutcome): Promise<Attachments> {
  const { told } = linesOf(outcome)
  const isWhole = outcome.output.split('\n').every((line) => line.trimEnd() === '' || told.includes(line.trimEnd()))
  if (isWhole) return {}
  return await takeAttachments(db, [{ name: `check of ${job.name}.txt`, kind: 'text', text: outcome.output }])
}

function lastLine(output: string): string {
  return (output.trimEnd().split('\n').at(-1) ?? '').trim().slice(0, maxLineCharacters)
}

function describe(job: ResourceJob, found: CheckFound | null): Preparation {
  const { job: declared, resource } = job
  const { kind, id } = resource
  const undo =
    declared.undo && `the job ${declared.undo}, while the check mode of ${declared.name} says that nothing would change`
  const details = {
    job: declared.name,
    about: declared.about,
    definition: job.definition,
    runs: describeStep(job.run),
    ...(undo && { undo }),
  }
  const text = declared.proof ?? 'the check mode of the job says that nothing would change'
  return {
    targets: [{ kind, id }],
    identity: { job: declared.name, kind, id },
    stateFingerprint: found?.fingerprint ?? fingerprintOf(job, null, null),
    // A job is the operator's, with unknown effects: asked each time, and no grant covers one.
    asks: found
      ? { risk: 'medium', why: 'a declared job is asked every time' }
      : { risk: 'high', why: 'a declared job without a check mode: what it would change is not known' },
    dryRun: {
      possible: found !== null,
      summary: `Run the job ${declared.name} on ${kind} ${id}: ${declared.about}`,
      details: found
        ? { ...details, rehearsal: { ...linesOf(found.outcome), tried: true } }
        : { ...details, notRehearsed: 'The job declares no check mode.' },
      proof: declared.check?.noChanges
        ? { by: 'state', text }
        : { by: 'nothing', text: `the job declares no way to see it; look at ${kind} ${id} afterwards` },
    },
  }
}
