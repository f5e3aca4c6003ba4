import { z } from 'zod'
import { findScriptText } from './job-command.ts'
import { type InventoryKind, inventoryKinds } from './kinds.ts'

/**
 * Jobs that an operator declares in `JOBS_FILE`: how to return a resource to its wanted state, and
 * how to check what would change.
 */

export const runJobTool = 'run_job'

export const jobName = z
  .string()
  .regex(
    /^[a-z][a-z0-9-]{0,39}$/,
    'must begin with a small letter, then have small letters, digits and dashes, 40 at most',
  )

/**
 * A reference to a credential. The credential itself is read at each use, and is never in the jobs
 * file or in a row.
 */
const credential = z
  .string()
  .max(500)
  .regex(/^(file:\/[^\0]+|env:NIGHTSHIFT_JOB_[A-Z0-9_]+)$/, 'must be file:/path, or env:NIGHTSHIFT_JOB_ with a name')
const from = z.strictObject({ from: credential, prefix: z.string().max(20).default('') })

const placeholder = /\{([A-Za-z_][A-Za-z_.]*)\}/g
const placeholders = ['kind', 'id', 'name'] as const
type TemplateWords = Record<(typeof placeholders)[number], string>

/** A text that may contain `{kind}`, `{id}` and `{name}`, and no other placeholder. */
const template = z
  .string()
  .max(2_000)
  .refine((text) => !text.includes('\0'), 'holds NUL')
  .superRefine((text, context) => {
    for (const [whole, word = ''] of text.matchAll(placeholder))
      if (!(placeholders as readonly string[]).includes(word))
        context.addIssue(`has ${whole}: only {kind}, {id} and {name} are filled in`)
  })

const address = z.url({ protocol: /^https?$/, error: 'is not an http(s) URL' }).max(500)
const place = z.string().regex(/^\//, 'begins with /').max(500)
const seconds = (max: number) => z.number().int().min(1).max(max)
/**
 * A regular expression. Checked when the jobs file is loaded, because an invalid pattern would
 * otherwise fail only while people wait for the job.
 */
const pattern = z
  .string()
  .min(1)
  .max(500)
  .refine((text) => {
    try {
      new RegExp(text, 'm')
      return true
    } catch {
      return false
    }
  }, 'is not a regular expression')

const httpStep = z.strictObject({
  method: z.enum(['GET', 'POST', 'PUT']).default('POST'),
  url: template.regex(/^https?:\/\/[^/{}@?#]+(?:\/|$)/, 'is not an http(s) URL with a plain host'),
  headers: z.record(z.string().regex(/^[A-Za-z0-9-]{1,60}$/), z.union([z.string().max(500), from])).default({}),
  body: z.unknown().optional(),
  /**
   * The address at which the result of the job is read later. `{answer.id}` is the field `id` of
   * the first response.
   */
  poll: z
    .strictObject({
      url: z
        .string()
        .max(2_000)
        .regex(/^https?:\/\/[^/{}@?#]+\//, 'is not an http(s) URL with a plain host'),
      /** The path of the field with the state of the job, such as `status` or `data.state`. */
      state: z.string().regex(/^[\w-]+(\.[\w-]+)*$/, 'must be a path such as data.state'),
      done: z.array(z.string()).min(1),
      failed: z.array(z.string()).min(1),
      everySeconds: seconds(60).default(2),
    })
    .optional(),
  caFile: place.optional(),
})
export type HttpStep = z.output<typeof httpStep>

const awxStep = z.strictObject({
  url: address,
  /** The number of the job template in AWX. */
  template: z.number().int().positive(),
  token: credential,
  limit: template.optional(),
  extraVars: z.record(z.string().regex(/^\w{1,60}$/), z.union([template, z.number(), z.boolean()])).default({}),
  caFile: place.optional(),
})
export type AwxStep = z.output<typeof awxStep>

const rundeckStep = z.strictObject({
  url: address,
  job: z.string().regex(/^[\w-]{1,100}$/, 'is not the id of a job'),
  token: credential,
  options: z.record(z.string().regex(/^[\w.-]{1,60}$/), template).default({}),
  apiVersion: z.number().int().min(18).max(99).default(41),
  caFile: place.optional(),
})
export type RundeckStep = z.output<typeof rundeckStep>

const stepFields = {
  /** The program and its arguments. No shell reads the command. */
  command: z.array(template).min(1).max(100).optional(),
  cwd: place.optional(),
  env: z.record(z.string().regex(/^[A-Za-z_]\w{0,60}$/), z.union([z.string().max(2_000), from])).optional(),
  http: httpStep.optional(),
  awx: awxStep.optional(),
  rundeck: rundeckStep.optional(),
}
const systems = ['command', 'http', 'awx', 'rundeck'] as const
type JobSystem = (typeof systems)[number]
export type JobStep = z.output<z.ZodObject<typeof stepFields>>

function requireOneSystem(step: JobStep, context: z.core.$RefinementCtx): void {
  const given = systems.filter((name) => step[name] !== undefined)
  if (given.length !== 1)
    context.addIssue(`must have one of ${systems.join(', ')}, and has ${given.join(', ') || 'none'}`)
  if (step.command === undefined && (step.cwd !== undefined || step.env !== undefined))
    context.addIssue('has cwd or env, which belong to a command')
  const [program = ''] = step.command ?? []
  if (program.includes('{'))
    context.addIssue({ code: 'custom', path: ['command', 0], message: 'names no fixed program' })
  const why = findScriptText(step.command ?? [])
  if (why !== null)
    context.addIssue({
      code: 'custom',
      path: ['command'],
      message: `is a text for a shell (${why}): name the program and its arguments, or a script in a file`,
    })
}

const run = z.strictObject(stepFields).superRefine(requireOneSystem)

/**
 * The mode of a job that changes nothing. This mode runs before people are asked for an approval.
 */
const check = z
  .strictObject({
    ...stepFields,
    timeoutSeconds: seconds(600).default(300),
    /** Exit codes of a successful check. Any other exit code means that the check failed. */
    okExitCodes: z.array(z.number().int().min(0).max(255)).min(1).default([0]),
    /** Conditions that show that the job would change nothing. All given ones must be true. */
    noChanges: z
      .strictObject({
        exitCode: z.number().int().min(0).max(255).optional(),
        pattern: pattern.optional(),
        unless: pattern.optional(),
      })
      .refine((given) => Object.keys(given).length > 0, 'must have exitCode, pattern or unless')
      .optional(),
    /** Parts that differ between outputs of equal meaning, such as the number of a run. */
    ignore: z.array(pattern).max(20).default([]),
  })
  .superRefine(requireOneSystem)
export type JobCheck = z.output<typeof check>

const resources = z
  .strictObject({
    kind: z.enum(inventoryKinds),
    ids: z.array(z.string().min(1).max(128)).min(1).max(1_000).optional(),
    pattern: pattern.optional(),
    /** Pattern of allowed names that differ from the ids and full names (`web-1.example.com`). */
    names: pattern.optional(),
  })
  .refine(({ ids, pattern }) => (ids === undefined) !== (pattern === undefined), 'must have ids or pattern, not both')

const declaredJob = z
  .strictObject({
    name: jobName,
    about: z.string().min(3).max(300),
    resources,
    run,
    check: check.optional(),
    timeoutSeconds: seconds(1_800).default(600),
    /** The state of the resource after success, in words for people. */
    proof: z.string().min(3).max(300).optional(),
    /** The job that undoes this job on its resource. */
    undo: jobName.optional(),
  })
  .superRefine((job, context) => {
    // Refuses GET, because a GET changes nothing, and because a GET without a response would count
    // as not begun.
    if (job.run.http?.method === 'GET')
      context.addIssue({
        code: 'custom',
        path: ['run', 'http', 'method'],
        message: 'must not be GET, because GET runs nothing',
      })
    // Requires a check mode with `noChanges`. An undo may run only on the state that the job left,
    // and only the check mode can show this state.
    if (job.undo !== undefined && !job.check?.noChanges)
      context.addIssue({
        code: 'custom',
        path: ['undo'],
        message: 'needs check.noChanges, which shows that the job left nothing to change',
      })
    if (job.resources.ids?.length === 1) return
    // Refuses a job for several resources without a placeholder, because the job would do the same
    // for every resource.
    for (const part of ['run', 'check'] as const)
      if (job[part] && !/\{(?:id|name)\}/.test(JSON.stringify(job[part])))
        context.addIssue({
          code: 'custom',
          path: [part],
          message: 'names no resource: use {id} or {name}, or list one id',
        })
  })
export type DeclaredJob = z.output<typeof declaredJob>

export const jobsFile = z.strictObject({ jobs: z.array(declaredJob).max(500) })

/** A job as the API lists it. */
export const listedJob = z.object({
  name: z.string(),
  about: z.string(),
  kind: z.enum(inventoryKinds),
  system: z.enum(systems),
  hasCheck: z.boolean(),
  /** Whether code can verify that the job succeeded. */
  isProvable: z.boolean(),
})
export type ListedJob = z.infer<typeof listedJob>

export function toListedJob({ name, about, resources: { kind }, run, check }: DeclaredJob): ListedJob {
  const isProvable = check?.noChanges !== undefined
  return { name, about, kind, system: systemOf(run), hasCheck: check !== undefined, isProvable }
}

/** One known run of a job, by an investigation or by a person (then without an incident). */
const jobRun = z.object({
  key: z.string(),
  status: z.enum(['running', 'done', 'failed', 'indeterminate']),
  detail: z.string(),
  resource: z.object({ kind: z.enum(inventoryKinds), id: z.string() }).nullable(),
  incidentId: z.string().nullable(),
  startedAt: z.string(),
  finishedAt: z.string().nullable(),
})
export type JobRun = z.infer<typeof jobRun>

/**
 * A job with what a person needs to judge it: parameters, allowed resources, command, and past
 * runs.
 */
export const shownJob = listedJob.extend({
  /** The placeholders that are filled in. Their values come only from the registry. */
  parameters: z.array(z.enum(placeholders)),
  /** The allowed ids of resources, or a pattern that must match the whole id. */
  on: z.object({ ids: z.array(z.string()).nullable(), pattern: z.string().nullable() }),
  /** The command or request with its placeholders, without headers and variables. */
  runs: z.string(),
  timeoutSeconds: z.number(),
  check: z
    .object({
      runs: z.string(),
      timeoutSeconds: z.number(),
      /** Conditions that show that the job would change nothing; empty if it has none. */
      noChanges: z.array(z.string()),
    })
    .nullable(),
  /** The state of the resource after success, in words. */
  proof: z.string().nullable(),
  lastRuns: z.array(jobRun),
})
export type ShownJob = z.infer<typeof shownJob>

export function toShownJob(job: DeclaredJob, lastRuns: JobRun[]): ShownJob {
  const { resources, run, check, timeoutSeconds, proof } = job
  const text = JSON.stringify([run, check ?? null])
  const { exitCode, pattern, unless } = check?.noChanges ?? {}
  const noChanges = [
    ...(exitCode === undefined ? [] : [`exit code ${exitCode}`]),
    ...(pattern === undefined ? [] : [`output matches ${pattern}`]),
    ...(unless === undefined ? [] : [`output does not match ${unless}`]),
  ]
  return {
    ...toListedJob(job),
    parameters: placeholders.filter((word) => text.includes(`{${word}}`)),
    on: { ids: resources.ids ?? null, pattern: resources.pattern ?? null },
    runs: describeStep(run),
    timeoutSeconds,
    check: check ? { runs: describeStep(check), timeoutSeconds: check.timeoutSeconds, noChanges } : null,
    proof: proof ?? null,
    lastRuns,
  }
}

/** Describes the command or request of a step in one line, without headers and variables. */
export function describeStep({ command, http, awx, rundeck }: JobStep): string {
  if (command) return command.map((word) => (/^[\w./=:@,+{}-]+$/.test(word) ? word : JSON.stringify(word))).join(' ')
  if (http) return `${http.method} ${http.url}`
  if (awx) return `AWX job template ${awx.template} at ${awx.url}${awx.limit ? `, limit ${awx.limit}` : ''}`
  return `Rundeck job ${rundeck?.job} at ${rundeck?.url}`
}

export function systemOf(step: JobStep): JobSystem {
  return systems.find((name) => step[name] !== undefined) ?? 'command'
}

export function fitsJob({ resources }: DeclaredJob, { kind, id }: { kind: string; id: string }): boolean {
  if (resources.kind !== kind) return false
  return resources.ids?.includes(id) ?? new RegExp(`^(?:${resources.pattern})$`).test(id)
}

/**
 * The characters allowed in a value that is filled into a job. Ansible, for example, reads
 * `web-1:all` as two host patterns.
 */
const plainWord = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/
/**
 * Whether a value means several hosts, or the host on which the job runs. `127.1` and `0x7f000001`
 * are also addresses of that host.
 */
function isWideWord(value: string): boolean {
  const word = value.toLowerCase().replace(/\.+$/, '')
  if (/^(?:all|ungrouped|localhost|ip6-localhost|ip6-loopback|broadcasthost)$/.test(word)) return true
  if (/^(?:localhost|.*\.localhost|localhost\..*)$/.test(word)) return true
  const parts = word.split('.')
  if (!parts.every((part) => /^(?:0x[0-9a-f]*|\d+)$/.test(part)) || parts.length > 4) return false
  const first = parseAddressPart(parts[0] ?? '')
  if (parts.length > 1) return first === 127 || first === 0
  return first === 0 || (first >= 127 * 2 ** 24 && first < 128 * 2 ** 24)
}

const parseAddressPart = (part: string): number =>
  /^0x/.test(part) ? Number.parseInt(part.slice(2) || '0', 16) : Number.parseInt(part, /^0[0-7]+$/.test(part) ? 8 : 10)

/** Whether a resource's name is its id, its full name, or a name that the job allows. */
function isNameExpected({ resources }: DeclaredJob, { id, name }: { id: string; name: string }): boolean {
  if (resources.names !== undefined) return new RegExp(`^(?:${resources.names})$`).test(name)
  if (name === id || name.startsWith(`${id}.`)) return true
  return resources.pattern !== undefined && new RegExp(`^(?:${resources.pattern})$`).test(name)
}

/** Explains why the id or name of the resource may not be filled into the job; null if both may. */
export function whyUnnameable(
  job: DeclaredJob,
  resource: { kind: InventoryKind; id: string; name: string },
  groups: readonly string[] = [],
): string | null {
  const text = JSON.stringify([job.run, job.check ?? null])
  for (const word of ['id', 'name'] as const) {
    const value = resource[word]
    if (!text.includes(`{${word}}`)) continue
    if (!plainWord.test(value))
      return `its ${word} has characters that an argument of a job cannot have (letters, digits and . _ - are allowed)`
    const isListed = job.resources.ids?.includes(resource.id) && value === resource.id
    if (isWideWord(value) && !isListed)
      return `a job would read its ${word} as more resources than this one: list it in the job's ids`
    if (groups.some((group) => group.toLowerCase() === value.toLowerCase()) && !isListed)
      return `its ${word} is also the name of a group, and a job would take the whole group: list it in the job's ids`
    if (word === 'name' && !isNameExpected(job, resource))
      return `its name ${value} is neither its id nor a full name of it: list the allowed names in resources.names`
  }
  return null
}

/** Replaces the placeholders in every text of a step by the given values. */
export function fillStep<T>(step: T, words: TemplateWords): T {
  if (typeof step === 'string')
    return step.replace(placeholder, (whole, word) => (Object.hasOwn(words, word) ? words[word as 'id'] : whole)) as T
  if (Array.isArray(step)) return step.map((each) => fillStep(each, words)) as T
  if (step === null || typeof step !== 'object') return step
  return Object.fromEntries(Object.entries(step).map(([key, value]) => [key, fillStep(value, words)])) as T
}

/**
 * The result of a step of a job. `exitCode`: the exit code of a command; for other steps 0 means
 * done and 1 means failed.
 */
export type JobOutcome = {
  isOk: boolean
  exitCode: number | null
  output: string
  /** Whether only a part of the step's output was kept. */
  isCut: boolean
  detail: string
}

/**
 * A record of a running job, stored with the effect. The record contains enough to query the job's
 * system later.
 */
export const jobNote = z.object({
  name: jobName,
  system: z.enum(systems),
  /** `checking`: the job has not begun. `begun`: the job is about to be sent, or runs. */
  phase: z.enum(['checking', 'begun']),
  /** The id of the job's run in the job's system; null if it has none. */
  ref: z.string().nullable(),
  resource: z.object({ kind: z.enum(inventoryKinds), id: z.string() }),
})
export type JobNote = z.infer<typeof jobNote>
