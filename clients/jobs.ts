import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import type { AwxStep, HttpStep, JobOutcome, RundeckStep } from '../domain/job.ts'
import { HttpError, request } from './http.ts'

/**
 * Systems that run jobs for us: AWX, Rundeck and any HTTP service, each sent a job and asked how
 * it went.
 */

/** A system that runs jobs for us: it is sent one, and asked by its number how it went. */
export type RemoteJobs = {
  /** `isCheck`: its mode that changes nothing. `key` goes along where the system takes one. */
  launch(options: { isCheck: boolean; key: string }): Promise<{ ref: string } | { outcome: JobOutcome }>
  /** Null while it runs. Throws JobSystemError where it cannot be told. */
  look(ref: string): Promise<JobOutcome | null>
  /** Asks it to stop; whether it did is to be looked at. */
  cancel(ref: string): Promise<void>
  everyMs: number
}

/** The system said no, or said nothing. `mayHaveBegun`: the job was sent, and nobody can say what became of it. */
export class JobSystemError extends Error {
  override name = 'JobSystemError' as const
  readonly mayHaveBegun: boolean
  constructor(message: string, mayHaveBegun: boolean) {
    super(message)
    this.mayHaveBegun = mayHaveBegun
  }
}

export type Exchange = {
  method: 'GET' | 'POST' | 'PUT'
  url: string
  headers?: Record<string, string>
  body?: unknown
  ca?: string | undefined
  /** Of the system, for errors. */
  who: string
  accept?: 'json' | 'text'
}

const answerWithinMs = 30_000
const mostAnswerBytes = 2_000_000
/** More of an output than people or models read. */
export const mostOutputCharacters = 64_000

/** One request that follows no redirect. Throws JobSystemError; a 4xx began nothing, and silence may have. */
export async function exchange({ method, url, headers, body, ca, who, accept = 'json' }: Exchange): Promise<unknown> {
  const isLook = method === 'GET'
  let answer: Awaited<ReturnType<typeof request>>
  try {
    answer = await request({
      method,
      url,
      headers: {
        accept: accept === 'json' ? 'application/json' : 'text/plain',
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      timeoutMs: answerWithinMs,
      maxBytes: mostAnswerBytes,
      ...(accept === 'text' && { overflow: 'cut' as const }),
      allow: 'private',
      ...(ca !== undefined && { ca }),
    })
  } catch (error) {
    if (!(error instanceof HttpError)) throw error
    const neverSent = error.code === 'connect' || error.code === 'refused_address'
    throw new JobSystemError(`${who} gave no answer (${error.code})`, !isLook && !neverSent)
  }
  const text = Buffer.from(answer.body).toString('utf8')
  if (answer.status >= 200 && answer.status < 300) {
    if (accept === 'text') return text
    const json = jsonOf(text)
    if (json === undefined) throw new JobSystemError(`${who} answered something that is not JSON`, !isLook)
    return json
  }
  const said = text.replace(/\s+/g, ' ').slice(0, 300)
  throw new JobSystemError(`${who} answered ${answer.status}: ${said}`, !isLook && answer.status >= 500)
}

/** An answer as its schema reads it. */
export function read<T>(schema: z.ZodType<T>, answer: unknown, who: string): T {
  const parsed = schema.safeParse(answer)
  if (parsed.success) return parsed.data
  const at = parsed.error.issues[0]?.path.join('.') || 'the body'
  throw new JobSystemError(`${who} answered something else than its documentation says, at ${at}`, false)
}

/** What a job printed. Where that cannot be had, nothing is to be read out of its absence. */
export async function outputOf(ask: () => Promise<string>): Promise<{ output: string; isCut: boolean }> {
  try {
    return keepEnd(await ask())
  } catch (error) {
    if (error instanceof JobSystemError) return { output: '', isCut: true }
    throw error
  }
}

function jsonOf(text: string): unknown {
  try {
    return text === '' ? null : JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The end of an output, where the recap is. */
export function keepEnd(text: string): { output: string; isCut: boolean } {
  return { output: text.slice(-mostOutputCharacters), isCut: text.length > mostOutputCharacters }
}

/** A job that was asked to stop is given this long to say that it did. */
const stopWithinMs = 30_000

/**
 * Waits for a job that was sent. At its deadline the system is asked to stop it. Null: it gave no answer that says how it ended, and
 * its number is what to ask by.
 */
export async function followRemote(remote: RemoteJobs, ref: string, timeoutMs: number): Promise<JobOutcome | null> {
  const untilMs = performance.now() + timeoutMs
  // A question without an answer changes nothing: the job goes on whatever the network does.
  const look = () =>
    remote.look(ref).catch((error: unknown) => {
      if (error instanceof JobSystemError) return null
      throw error
    })
  for (let waitMs = Math.min(200, remote.everyMs); performance.now() < untilMs; ) {
    const outcome = await look()
    if (outcome) return outcome
    await sleep(Math.min(waitMs, Math.max(0, untilMs - performance.now())))
    waitMs = Math.min(remote.everyMs, waitMs * 2)
  }
  await remote.cancel(ref).catch(() => {})
  const stopByMs = performance.now() + Math.min(stopWithinMs, Math.max(1_000, timeoutMs))
  do {
    const outcome = await look()
    if (outcome) {
      const late = `it was asked to stop after ${Math.round(timeoutMs / 1000)} s; ${outcome.detail}`
      return { ...outcome, detail: late }
    }
    await sleep(Math.min(1_000, remote.everyMs))
  } while (performance.now() < stopByMs)
  return null
}

/** What a job template lets a launch choose. What it does not let be chosen, AWX leaves out without a word. */
const launchable = z.object({
  ask_job_type_on_launch: z.boolean(),
  ask_limit_on_launch: z.boolean(),
  ask_variables_on_launch: z.boolean(),
  ask_diff_mode_on_launch: z.boolean().default(false),
  defaults: z.object({ job_type: z.string().default('run') }).default({ job_type: 'run' }),
})
const launched = z.object({ job: z.number().int().optional(), id: z.number().int().optional() })
const job = z.object({ status: z.string(), job_type: z.string().optional(), job_explanation: z.string().default('') })

const ended: Record<string, boolean> = { successful: true, failed: false, error: false, canceled: false }

/**
 * Jobs of an AWX (or Ansible Automation Platform) by its REST API v2. A template that ignores what is chosen for a launch is refused
 * before it is launched: its check would be a real run, and its limit every host.
 */
export function createAwxJobs(step: AwxStep, { token, ca }: { token: string; ca?: string }): RemoteJobs {
  const base = step.url.replace(/\/+$/, '')
  const ask = (method: 'GET' | 'POST', path: string, more: Partial<Exchange> = {}) =>
    exchange({
      method,
      url: `${base}/api/v2${path}`,
      headers: { authorization: `Bearer ${token}` },
      who: 'AWX',
      ca,
      ...more,
    })

  return {
    everyMs: 2_000,
    async launch({ isCheck }) {
      const path = `/job_templates/${step.template}/launch/`
      const found = launchable.safeParse(await ask('GET', path))
      if (!found.success) throw new JobSystemError('AWX does not say what the launch may choose', false)
      const missing = missingChoices(step, found.data, isCheck)
      if (missing.length > 0) {
        const detail = `template ${step.template} does not let a launch choose its ${missing.join(' and ')}: set "prompt on launch"`
        throw new JobSystemError(detail, false)
      }
      const { ask_job_type_on_launch: asksType, ask_diff_mode_on_launch: asksDiff } = found.data
      const answer = await ask('POST', path, {
        body: {
          ...(asksType && { job_type: isCheck ? 'check' : 'run' }),
          ...(asksDiff && isCheck && { diff_mode: true }),
          ...(step.limit !== undefined && { limit: step.limit }),
          ...(Object.keys(step.extraVars).length > 0 && { extra_vars: step.extraVars }),
        },
      })
      const number = launched.safeParse(answer).data
      const id = number?.job ?? number?.id
      if (id === undefined) throw new JobSystemError('AWX launched a job without saying which', true)
      return { ref: String(id) }
    },
    async look(ref) {
      const found = read(job, await ask('GET', `/jobs/${ref}/`), 'AWX')
      const isOk = ended[found.status]
      if (isOk === undefined) return null
      return await outcomeOf(ref, found, isOk)
    },
    async cancel(ref) {
      await ask('POST', `/jobs/${ref}/cancel/`, { body: {}, accept: 'text' })
    },
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

function missingChoices(step: AwxStep, asks: z.infer<typeof launchable>, isCheck: boolean): string[] {
  const wantedType = isCheck ? 'check' : 'run'
  return [
    ...(asks.ask_job_type_on_launch || asks.defaults.job_type === wantedType ? [] : ['job type']),
    ...(step.limit === undefined || asks.ask_limit_on_launch ? [] : ['limit']),
    ...(Object.keys(step.extraVars).length === 0 || asks.ask_variables_on_launch ? [] : ['variables']),
  ]
}

const execution = z.object({ id: z.union([z.number(), z.string()]).transform(String), status: z.string() })
const output = z.object({ entries: z.array(z.object({ log: z.string().default('') })).default([]) })

const rundeckEnded: Record<string, boolean> = {
  succeeded: true,
  failed: false,
  'failed-with-retry': false,
  aborted: false,
  timedout: false,
  missed: false,
}

/** Jobs of a Rundeck by its API. It knows no check mode: a check is another job, or the same one with another option. */
export function createRundeckJobs(step: RundeckStep, { token, ca }: { token: string; ca?: string }): RemoteJobs {
  const base = `${step.url.replace(/\/+$/, '')}/api/${step.apiVersion}`
  const ask = (method: 'GET' | 'POST', path: string, more: Partial<Exchange> = {}) =>
    exchange({
      method,
      url: `${base}${path}`,
      headers: { 'x-rundeck-auth-token': token },
      who: 'Rundeck',
      ca,
      ...more,
    })

  return {
    everyMs: 2_000,
    async launch() {
      // Options by name: a line of arguments would be taken apart at its spaces.
      const answer = await ask('POST', `/job/${step.job}/run`, { body: { options: step.options } })
      const found = execution.safeParse(answer)
      if (!found.success) throw new JobSystemError('Rundeck ran a job without saying which execution it is', true)
      return { ref: found.data.id }
    },
    async look(ref) {
      const { status } = read(execution, await ask('GET', `/execution/${ref}`), 'Rundeck')
      const isOk = rundeckEnded[status]
      if (isOk === undefined) return null
      const printed = await outputOf(async () => {
        const { entries } = read(output, await ask('GET', `/execution/${ref}/output`), 'Rundeck')
        return entries.map(({ log }) => log).join('\n')
      })
      return { isOk, exitCode: isOk ? 0 : 1, ...printed, detail: `Rundeck execution ${ref} is ${status}` }
    },
    async cancel(ref) {
      await ask('GET', `/execution/${ref}/abort`, { accept: 'text' })
    },
  }
}

const answerPlace = /\{answer\.([\w-]+(?:\.[\w-]+)*)\}/g
const plainValue = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/

/** Any HTTP service: one request, and where it is declared a place that says later how it ended. Its number is that address. */
export function createHttpJobs(
  step: HttpStep,
  { headers, ca }: { headers: Record<string, string>; ca?: string },
): RemoteJobs {
  const { poll } = step
  const who = URL.parse(step.url)?.host ?? 'the service'
  return {
    everyMs: (poll?.everySeconds ?? 2) * 1000,
    async launch({ key }) {
      const answer = await exchange({
        method: step.method,
        url: step.url,
        headers: { ...headers, 'idempotency-key': key },
        body: step.body,
        ca,
        who,
        accept: poll ? 'json' : 'text',
      })
      return poll
        ? { ref: pollUrl(poll.url, answer, who) }
        : { outcome: outcomeOf(true, answer, `${who} answered that it is done`) }
    },
    async look(ref) {
      if (!poll) return null
      const answer = await exchange({ method: 'GET', url: ref, headers, ca, who })
      const state = String(valueAt(answer, poll.state) ?? '')
      if (poll.done.includes(state)) return outcomeOf(true, answer, `${who} says ${state}`)
      return poll.failed.includes(state) ? outcomeOf(false, answer, `${who} says ${state}`) : null
    },
    cancel: async () => {},
  }
}

function outcomeOf(isOk: boolean, answer: unknown, detail: string): JobOutcome {
  const text = typeof answer === 'string' ? answer : JSON.stringify(answer, null, 2)
  return { isOk, exitCode: isOk ? 0 : 1, ...keepEnd(text), detail: detail.slice(0, 200) }
}

/** The service has begun by now: an answer that does not say where to ask leaves its ending unknown. */
function pollUrl(url: string, answer: unknown, who: string): string {
  return url.replace(answerPlace, (_, path: string) => {
    const value = String(valueAt(answer, path) ?? '')
    if (plainValue.test(value)) return value
    throw new JobSystemError(`${who} answered without a plain ${path}, by which it is asked how it went`, true)
  })
}

function valueAt(value: unknown, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>(
      (at, key) =>
        at !== null && typeof at === 'object' && Object.hasOwn(at, key) ? (at as Record<string, unknown>)[key] : null,
      value,
    )
}
