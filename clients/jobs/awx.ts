import { z } from 'zod'
import type { AwxStep, JobOutcome } from '../../domain/job.ts'
import {
  type Exchange,
  exchange,
  type JobCredentials,
  JobSystemError,
  outputOf,
  type RemoteJobs,
  read,
} from './exchange.ts'

/** Options that a template accepts at its launch. AWX silently drops all other options. */
const launchable = z.object({
  ask_job_type_on_launch: z.boolean(),
  ask_limit_on_launch: z.boolean(),
  ask_variables_on_launch: z.boolean(),
  ask_diff_mode_on_launch: z.boolean().default(false),
  defaults: z.object({ job_type: z.string().default('run') }).default({ job_type: 'run' }),
})

const launched = z.object({
  job: z.number().int().optional(),
  id: z.number().int().optional(),
  job_type: z.string().optional(),
  limit: z.string().optional(),
  ignored_fields: z.record(z.string(), z.unknown()).catch({}).default({}),
})

const job = z.object({ status: z.string(), job_type: z.string().optional(), job_explanation: z.string().default('') })

const ended: Record<string, boolean> = { successful: true, failed: false, error: false, canceled: false }

/**
 * Runs jobs of an AWX (or Ansible Automation Platform) over its REST API v2. Refuses a template
 * that ignores options of the launch: its check would be a real run, and would cover every host.
 */
export function createAwxJobs(step: AwxStep, { token, hide, ca }: JobCredentials): RemoteJobs {
  const base = step.url.replace(/\/+$/, '')
  const ask = (method: 'GET' | 'POST', path: string, more: Partial<Exchange> = {}) =>
    exchange({
      method,
      url: `${base}/api/v2${path}`,
      headers: { authorization: `Bearer ${token}` },
      who: 'AWX',
      ca,
      hide,
      ...more,
    })

  return {
    everyMs: 2_000,
    async launch({ isCheck }) {
      const path = `/job_templates/${step.template}/launch/`
      const found = launchable.safeParse(await ask('GET', path))
      if (!found.success) throw new JobSystemError('AWX does not report which options a launch may set', false)
      refuseMissing(step, found.data, isCheck)
      const body = launchOf(step, found.data, isCheck)
      const answer = launched.safeParse(await ask('POST', path, { body })).data
      const id = answer?.job ?? answer?.id
      if (answer === undefined || id === undefined)
        throw new JobSystemError('AWX launched a job, but did not return its id', true)
      const ref = String(id)
      const wrong = await whatIsOtherwise(ref, answer, body, isCheck)
      if (wrong === null) return { ref }
      // Cancels the run: the template changed between the two requests, so the run is not a check,
      // or covers more hosts.
      await cancel(ref).catch(() => {})
      throw new JobSystemError(`AWX job ${ref} was asked to stop: ${wrong}`, true, true)
    },
    async look(ref) {
      const found = read(job, await ask('GET', `/jobs/${ref}/`), 'AWX')
      const isOk = ended[found.status]
      if (isOk === undefined) return null
      return await outcomeOf(ref, found, isOk)
    },
    cancel,
  }

  async function cancel(ref: string): Promise<void> {
    await ask('POST', `/jobs/${ref}/cancel/`, { body: {}, accept: 'text' })
  }

  /** Finds a difference between AWX's job and the request. Null for a job as requested. */
  async function whatIsOtherwise(
    ref: string,
    answer: z.infer<typeof launched>,
    sent: Record<string, unknown>,
    isCheck: boolean,
  ): Promise<string | null> {
    const ignored = Object.keys(answer.ignored_fields).filter((name) => name in sent && name !== 'diff_mode')
    if (ignored.length > 0) return `the template ignores ${ignored.join(' and ')}`
    if (answer.limit !== undefined && sent.limit !== undefined && answer.limit !== sent.limit)
      return 'the limit differs from the requested hosts'
    if (!isCheck) return null
    const type = answer.job_type ?? read(job, await ask('GET', `/jobs/${ref}/`), 'AWX').job_type
    return type === 'check' ? null : `the type is ${type === 'run' ? 'run' : 'unknown'}, not check`
  }

  async function outcomeOf(ref: string, found: z.infer<typeof job>, isOk: boolean): Promise<JobOutcome> {
    const printed = await outputOf(async () =>
      String(await ask('GET', `/jobs/${ref}/stdout/?format=txt`, { accept: 'text' })),
    )
    const why = found.job_explanation ? `: ${found.job_explanation}` : ''
    const detail = `AWX job ${ref} is ${found.status}${why}`
    return { isOk, exitCode: isOk ? 0 : 1, ...printed, detail }
  }
}

function launchOf(step: AwxStep, asks: z.infer<typeof launchable>, isCheck: boolean): Record<string, unknown> {
  return {
    ...(asks.ask_job_type_on_launch && { job_type: isCheck ? 'check' : 'run' }),
    ...(asks.ask_diff_mode_on_launch && isCheck && { diff_mode: true }),
    ...(step.limit !== undefined && { limit: step.limit }),
    ...(Object.keys(step.extraVars).length > 0 && { extra_vars: step.extraVars }),
  }
}

function refuseMissing(step: AwxStep, asks: z.infer<typeof launchable>, isCheck: boolean): void {
  const wantedType = isCheck ? 'check' : 'run'
  const missing = [
    ...(asks.ask_job_type_on_launch || asks.defaults.job_type === wantedType ? [] : ['job type']),
    ...(step.limit === undefined || asks.ask_limit_on_launch ? [] : ['limit']),
    ...(Object.keys(step.extraVars).length === 0 || asks.ask_variables_on_launch ? [] : ['variables']),
  ]
  if (missing.length === 0) return
  const detail = `template ${step.template} does not let a launch set its ${missing.join(' and ')}: enable "prompt on launch"`
  throw new JobSystemError(detail, false)
}
