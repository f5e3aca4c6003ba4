import { readFileSync } from 'node:fs'
import { type Document, isNode, LineCounter, parseDocument } from 'yaml'
import { registeredResource } from '../../db/inventory/registry.ts'
import { listGroups } from '../../db/inventory/site.ts'
import { runsOfJob } from '../../db/writes/effects.ts'
import { digestOf } from '../../domain/digest.ts'
import {
  type DeclaredJob,
  fillStep,
  fitsJob,
  type JobStep,
  jobsFile,
  type ListedJob,
  type ShownJob,
  toListedJob,
  toShownJob,
  whyUnnameable,
} from '../../domain/job.ts'
import type { InventoryKind } from '../../domain/kinds.ts'
import { listFaults } from '../../domain/schema-faults.ts'
import { kindOfName } from '../../safety/redact-names.ts'
import { type EffectDeps, EffectRefused, refuseMissing } from '../effect.ts'
import type { CheckFound } from './check.ts'

/** The declared jobs, and recent results of their check modes, in this process only. */
export type Jobs = {
  declared: readonly DeclaredJob[]
  checks: Map<string, RunningCheck>
  /** The last check of each job and resource whose result was taken. */
  recent: Map<string, { fingerprint: string; atMs: number }>
  /** Keys of the jobs that run now. */
  atWork: Set<string>
}

type RunningCheck = { promise: Promise<void>; found: CheckFound | null; atMs: number }

export function openJobs(declared: readonly DeclaredJob[]): Jobs {
  return { declared, checks: new Map(), recent: new Map(), atWork: new Set() }
}

/**
 * A declared job for one resource of the registry, with the placeholders filled in for that
 * resource.
 */
export type ResourceJob = {
  job: DeclaredJob
  resource: { kind: InventoryKind; id: string; name: string }
  run: JobStep
  check: DeclaredJob['check']
  /** Identifies the declaration, because an approval is for that declaration only. */
  definition: string
}

/** Lists the jobs that fit a resource, or all jobs if no resource is given. */
export function listJobs({ declared }: Jobs, resource: { kind: string; id: string } | null): ListedJob[] {
  return declared.filter((job) => resource === null || fitsJob(job, resource)).map(toListedJob)
}

const maxRuns = 10

/** Returns everything that is known of a job. Refuses a name that no job has. */
export async function showJob({ db, jobs }: Pick<EffectDeps, 'db' | 'jobs'>, name: string): Promise<ShownJob> {
  return toShownJob(requireDeclared(jobs, name), await runsOfJob(db, name, maxRuns))
}

function requireDeclared(jobs: Jobs, name: string): DeclaredJob {
  const job = jobs.declared.find((each) => each.name === name)
  if (job) return job
  const remedy = jobs.declared.length === 0 ? 'JOBS_FILE declares none' : `JOBS_FILE declares ${namesOf(jobs)}`
  throw refuseMissing(`job ${name}: ${remedy}`)
}

/**
 * Returns the job for a resource. Refuses if the job or the resource does not exist, if the job
 * does not fit the resource, or if the name means several resources.
 */
export async function requireJob(
  { db, jobs }: Pick<EffectDeps, 'db' | 'jobs'>,
  named: { name: string; kind: InventoryKind; id: string },
): Promise<ResourceJob> {
  const job = requireDeclared(jobs, named.name)
  const resource = await registeredResource(db, named)
  if (!resource) throw refuseMissing(`${named.kind} ${named.id} in the inventory`)
  if (!fitsJob(job, resource)) {
    const fitting = listJobs(jobs, resource).map(({ name }) => name)
    const others =
      fitting.length === 0
        ? 'No job is declared for this resource.'
        : `Declared for this resource: ${fitting.join(', ')}.`
    throw new EffectRefused(
      'invalid',
      'JOB_NOT_FOR_THIS',
      `${job.name} is not for ${named.kind} ${named.id}. ${others}`,
    )
  }
  const why = whyUnnameable(job, resource, ['shard', 'region'].includes(resource.kind) ? [] : await listGroups(db))
  if (why !== null) throw new EffectRefused('invalid', 'JOB_UNNAMEABLE', `${named.kind} ${named.id}: ${why}.`)
  return {
    job,
    resource,
    run: fillStep(job.run, resource),
    check: job.check && fillCheck(job.check, resource),
    definition: digestOf(job).slice(0, 16),
  }
}

/**
 * Fills placeholders only in the command or request that runs. The patterns of the declaration stay
 * unchanged.
 */
function fillCheck(check: NonNullable<DeclaredJob['check']>, words: ResourceJob['resource']) {
  const { timeoutSeconds, okExitCodes, noChanges, ignore, ...step } = check
  return { ...fillStep(step, words), timeoutSeconds, okExitCodes, noChanges, ignore }
}

const namesOf = ({ declared }: Jobs) =>
  declared
    .slice(0, 10)
    .map(({ name }) => name)
    .join(', ')

/** Thrown for a file of jobs that cannot be used. Lists every fault with its line. */
export class JobsFileError extends Error {
  override name = 'JobsFileError' as const
  readonly faults: string[]
  constructor(file: string, faults: string[]) {
    super(`JOBS_FILE ${file} has ${faults.length} fault(s):\n${faults.map((fault) => `  - ${fault}`).join('\n')}`)
    this.faults = faults
  }
}

type Path = readonly PropertyKey[]
type Fault = { path: Path; message: string }

/** Reads the jobs that a file declares (YAML, or JSON, which is YAML too). Throws JobsFileError. */
export function readJobsFile(file: string): DeclaredJob[] {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file))
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new JobsFileError(file, [code?.startsWith('E') ? `it cannot be read (${code})` : 'the file is not UTF-8'])
  }
  return parseJobs(text, file)
}

export function parseJobs(text: string, file = 'jobs.yaml'): DeclaredJob[] {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, merge: true, prettyErrors: false })
  if (document.errors.length > 0) {
    const faults = document.errors.map(({ pos, message }) => `line ${lines.linePos(pos[0]).line}: ${message}`)
    throw new JobsFileError(file, faults)
  }
  const given: unknown = document.toJS({ maxAliasCount: 1_000 }) ?? { jobs: [] }
  const parsed = jobsFile.safeParse(given)
  const faults: Fault[] = [
    ...(parsed.success ? [] : listFaults(parsed.error)),
    ...findSecrets(given),
    ...(parsed.success ? findTwins(parsed.data.jobs) : []),
    ...(parsed.success ? findLostUndos(parsed.data.jobs) : []),
  ]
  if (parsed.success && faults.length === 0) return parsed.data.jobs
  throw new JobsFileError(
    file,
    faults
      .map(({ path, message }) => ({ line: lineOf(document, lines, path), path, message }))
      .toSorted((a, b) => a.line - b.line)
      .map(({ line, path, message }) => `line ${line}: ${path.join('.') || 'the file'}: ${message}`),
  )
}

/**
 * Returns the line of a place in the document. For a missing field it is the line of the nearest
 * parent.
 */
function lineOf(document: Document, lines: LineCounter, path: Path): number {
  for (let length = path.length; length >= 0; length -= 1) {
    const at = path.slice(0, length)
    const node = length === 0 ? document.contents : document.getIn(at, true)
    if (isNode(node) && node.range) return lines.linePos(node.range[0]).line
  }
  return 1
}

function findTwins(jobs: readonly DeclaredJob[]): Fault[] {
  const names = jobs.map(({ name }) => name)
  return names.flatMap((name, at) =>
    names.indexOf(name) < at ? [{ path: ['jobs', at, 'name'], message: `${name} is listed twice` }] : [],
  )
}

/** Finds jobs whose undo is not a declared job, or is a job for another kind of resource. */
function findLostUndos(jobs: readonly DeclaredJob[]): Fault[] {
  return jobs.flatMap(({ name, undo, resources }, at) => {
    if (undo === undefined) return []
    const found = jobs.find((job) => job.name === undo)
    if (found?.resources.kind === resources.kind && undo !== name) return []
    const why = found ? `is ${undo === name ? 'this job itself' : `for a ${found.resources.kind}`}` : 'is not declared'
    return [{ path: ['jobs', at, 'undo'], message: `${undo} ${why}: name another job for a ${resources.kind}` }]
  })
}

/**
 * Finds secrets that the file must not hold: values under names of secrets, and secrets in
 * addresses.
 */
function findSecrets(value: unknown, path: PropertyKey[] = []): Fault[] {
  if (Array.isArray(value)) return value.flatMap((each, at) => findSecrets(each, [...path, at]))
  if (value !== null && typeof value === 'object')
    return Object.entries(value).flatMap(([key, each]) => findSecrets(each, [...path, key]))
  if (typeof value !== 'string' || /^(file:|env:)/.test(value)) return []
  const name = String(path.at(-1))
  const remedy = 'write { from: file:/path } or { from: env:NIGHTSHIFT_JOB_NAME }'
  if (kindOfName(name) !== null) return [{ path, message: `contains a secret: ${remedy}` }]
  const url = URL.parse(value)
  if (!url || !/^https?:$/.test(url.protocol)) return []
  const isSecret = url.password !== '' || [...url.searchParams.keys()].some((key) => kindOfName(key) !== null)
  return isSecret ? [{ path, message: 'contains a secret in the address: send it in a header by reference' }] : []
}
