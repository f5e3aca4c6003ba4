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
  /** The step, with its placeholders replaced by values of the resource. */
  step: JobStep
  isCheck: boolean
  key: string
  timeoutSeconds: number
  /** Called with the job's id in its system, before the wait for the job's end. */
  note?: (ref: string) => Promise<void>
}

/**
 * The end of a step. `lost`: the step may have begun, and its end is unknown. `isAskable`: the
 * system that runs the step can be queried later.
 */
type StepEnd =
  | { kind: 'ended'; outcome: JobOutcome }
  | { kind: 'lost'; detail: string; isAskable: boolean; isOtherwise?: boolean }

/** Runs one step to its end. Secrets are removed from its output. */
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
    const detail = `the run had not ended after ${timeoutSeconds} s, or did not answer`
    return outcome ? ended(outcome) : { kind: 'lost', detail, isAskable: true }
  } catch (error) {
    if (error instanceof NoCredential) return ended(notBegun(error.message))
    if (!(error instanceof JobSystemError)) throw error
    const detail = credentials.cleanse(error.message)
    const { isOtherwise } = error
    return error.mayHaveBegun ? { kind: 'lost', detail, isAskable: false, isOtherwise } : ended(notBegun(detail))
  }
}

/**
 * Reads the outcome of a job that was sent. Null while the job runs, or if its system does not
 * answer.
 */
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

/** The result of a job's check mode. */
export type CheckFound = {
  worked: boolean
  /** Whether the job would change something; null if the job declares no sign of that. */
  wouldChange: boolean | null
  outcome: JobOutcome
  fingerprint: string
  /** Whether the job's system did something else than the check mode that was requested. */
  isOtherwise: boolean
}

/** Most parallel checks in this process, because checks begin without approval. */
const maxChecks = 4
/** Milliseconds that a caller waits for a check. While the check runs, the caller asks again. */
const answerWithinMs = 20_000
/** Milliseconds after which the result of a check that nobody took is dropped. */
const keptMs = 10 * 60_000
/** Milliseconds for which a check counts as current when the approved job begins. */
export const recentMs = 60_000

type Named = Parameters<typeof requireJob>[1]

/** Runs the check mode of a job. */
export async function runCheck(job: ResourceJob, check: JobCheck, key: string): Promise<CheckFound> {
  const { timeoutSeconds } = check
  const end = await runStep({ step: check, isCheck: true, key, timeoutSeconds })
  const outcome: JobOutcome =
    end.kind === 'ended'
      ? end.outcome
      : {
          isOk: false,
          exitCode: null,
          output: '',
          isCut: false,
          detail: `the check of the job did not answer: ${end.detail}`,
        }
  const worked = check.okExitCodes.includes(outcome.exitCode ?? -1)
  return {
    worked,
    wouldChange: worked ? wouldChange(check, outcome) : null,
    outcome,
    fingerprint: fingerprintOf(job, check, outcome),
    isOtherwise: end.kind === 'lost' && end.isOtherwise === true,
  }
}

/**
 * Whether the check's output lacks the declared signs of no change. A cut output proves nothing
 * about a missing text.
 */
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

/**
 * Parts of an output that differ in each run, as whole words: times, and Ansible's run directories.
 */
const volatile = [
  /\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:[.,]\d+)?(?:Z|[+-]\d{2}:?\d{2})?/g,
  /\b\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?\b/g,
  /(?<![\w./~-])(?:~|\/tmp|\/var\/tmp|\/root|\/home\/[\w.-]+)(?:\/\.ansible\/tmp)?\/ansible-(?:tmp-\d+(?:\.\d+)?(?:-\d+)*|local-\d+[a-z0-9_]{0,12})(?:\/tmp[a-z0-9_]{8})?(?![\w.-])/g,
]

/**
 * Fingerprints the declaration of a job and the output of its check mode; without a check mode,
 * only the declaration.
 */
function fingerprintOf({ definition, resource }: ResourceJob, check: JobCheck | null, outcome: JobOutcome | null) {
  const ignored = [...volatile, ...(check?.ignore ?? []).map((each) => new RegExp(each, 'gm'))]
  const output = ignored.reduce((text, each) => text.replace(each, ''), outcome?.output ?? '').replace(/[ \t]+$/gm, '')
  return `${definition}.${digestOf({ resource: { ...resource }, exitCode: outcome?.exitCode ?? null, output })}`
}

/** Whether this fingerprint is about the current declaration. */
export function matchesDefinition(fingerprint: string, { definition }: ResourceJob): boolean {
  return fingerprint.startsWith(`${definition}.`)
}

export const jobSlot = ({ job, resource: { kind, id } }: ResourceJob): string => `${job.name} ${kind}:${id}`

/**
 * Describes a job's effect for its approval card, by the output of its check mode, which runs now.
 * Returns null while the check runs; a later call with the same key takes the result. Refuses if
 * the check fails, or reports that nothing would change.
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
    const detail = `The check mode of ${job.job.name} reports that nothing would change on ${named.kind} ${named.id}.`
    throw new EffectRefused('conflict', 'NOTHING_TO_CHANGE', detail)
  }
  deps.jobs.recent.set(jobSlot(job), { fingerprint, atMs: performance.now() })
  const prepared = describe(job, found)
  return { ...prepared, dryRun: { ...prepared.dryRun, ...(await attachOutput(deps, job, outcome)) } }
}

type Deps = Pick<EffectDeps, 'db' | 'jobs'>

/**
 * Reads whether a job had its effect, by running its check mode again. Null while the check runs.
 */
export async function observeJob(deps: Deps, named: Named, key: string): Promise<Observation | null> {
  const job = await requireJob(deps, named)
  if (!job.check?.noChanges) {
    return {
      holds: null,
      observed: `${job.job.name} does not declare the output of its check mode when nothing would change`,
    }
  }
  const found = await takeCheck(deps.jobs, job, job.check, `observation ${key}`)
  if (!found) return null
  await noteOtherwise(deps, job, found)
  const said = lastLine(found.outcome.output)
  if (!found.worked) return { holds: false, observed: `the check mode failed (${found.outcome.detail}) ${said}`.trim() }
  if (found.wouldChange) return { holds: false, observed: `the check mode still reports changes: ${said}` }
  return { holds: true, observed: `the check mode of ${job.job.name} reports that nothing would change` }
}

/**
 * Records that the system of a job did not run the check mode that was requested. A person has to
 * know, because that system may have changed something.
 */
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
 * Begins a check, or joins a running check for the same question. A result is taken only once, so
 * that the next question begins a new check.
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
    const detail = `${maxChecks} checks of jobs are already running: try again later.`
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
  // Ignores the failure here, because the caller may be gone; a later request reads the result.
  running.promise.catch(() => {})
  jobs.checks.set(slot, running)
  return running
}

const maxLines = 80
const maxLineCharacters = 300

/** Shortens the output for an approval card to its beginning and its end. */
function linesOf({ output, isCut }: JobOutcome): { told: string[]; truncated: boolean } {
  const lines = output.split('\n').map((line) => line.trimEnd().slice(0, maxLineCharacters))
  const told = lines.filter((line) => line !== '')
  if (told.length <= maxLines) return { told, truncated: isCut }
  return { told: [...told.slice(0, maxLines / 2), '…', ...told.slice(-maxLines / 2)], truncated: true }
}

/** Attaches the whole output of the check mode if the card's lines leave something out. */
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
    declared.undo &&
    `the job ${declared.undo}, while the check mode of ${declared.name} reports that nothing would change`
  const details = {
    job: declared.name,
    about: declared.about,
    definition: job.definition,
    runs: describeStep(job.run),
    ...(undo && { undo }),
  }
  const text = declared.proof ?? 'the check mode of the job reports that nothing would change'
  return {
    targets: [{ kind, id }],
    identity: { job: declared.name, kind, id },
    stateFingerprint: found?.fingerprint ?? fingerprintOf(job, null, null),
    // Demands approval each time, because an operator wrote the job and its effects are unknown. No
    // grant covers a job.
    asks: found
      ? { risk: 'medium', why: 'a declared job requires approval every time' }
      : { risk: 'high', why: 'a declared job without a check mode: its changes are not known beforehand' },
    dryRun: {
      possible: found !== null,
      summary: `Run the job ${declared.name} on ${kind} ${id}: ${declared.about}`,
      details: found
        ? { ...details, rehearsal: { ...linesOf(found.outcome), tried: true } }
        : { ...details, notRehearsed: 'The job declares no check mode.' },
      proof: declared.check?.noChanges
        ? { by: 'state', text }
        : { by: 'nothing', text: `the job declares no verification; check ${kind} ${id} afterwards` },
    },
  }
}
