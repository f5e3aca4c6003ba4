import { createAwxJobs } from '../../clients/jobs/awx.ts'
import { createHttpJobs } from '../../clients/jobs/http-job.ts'
import { followRemote, JobSystemError, type RemoteJobs } from '../../clients/jobs/remote.ts'
import { createRundeckJobs } from '../../clients/jobs/rundeck.ts'
import type { JobOutcome, JobStep } from '../../domain/job.ts'
import { type Credentials, NoCredential, openCredentials, readCa, runCommand } from './command.ts'

type StepRun = {
  /** With the words of its resource filled in. */
  step: JobStep
  isCheck: boolean
  key: string
  timeoutSeconds: number
  /** Called with the number by which its system knows it, before it is waited for. */
  note?: (ref: string) => Promise<void>
}

/** How a step ended. `lost`: it may have begun, and nobody can say now how it ended; `isAskable` where its system can be asked later. */
export type StepEnd = { kind: 'ended'; outcome: JobOutcome } | { kind: 'lost'; detail: string; isAskable: boolean }

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
    const detail = credentials.hide(error.message)
    return error.mayHaveBegun ? { kind: 'lost', detail, isAskable: false } : ended(notBegun(detail))
  }
}

/** What became of a job that was sent before. Null while it runs, and where its system gives no answer. */
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
  if (awx) return createAwxJobs(awx, { token: credentials.read(awx.token), ...readCa(awx.caFile) })
  if (rundeck) return createRundeckJobs(rundeck, { token: credentials.read(rundeck.token), ...readCa(rundeck.caFile) })
  if (http) return createHttpJobs(http, { headers: credentials.fill(http.headers), ...readCa(http.caFile) })
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
  return { ...outcome, output: credentials.hide(outcome.output), detail: credentials.hide(outcome.detail) }
}
