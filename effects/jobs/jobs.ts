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

/** The declared jobs, and what their check modes found lately, in this process alone. */
export type Jobs = {
  declared: readonly DeclaredJob[]
  checks: Map<string, RunningCheck>
  /** By job and resource: the last one that somebody took. */
  recent: Map<string, { fingerprint: string; atMs: number }>
  /** Jobs that run now. */
  atWork: Set<string>
}

type RunningCheck = { promise: Promise<void>; found: CheckFound | null; atMs: number }

export function openJobs(declared: readonly DeclaredJob[]): Jobs {
  return { declared, checks: new Map(), recent: new Map(), atWork: new Set() }
}

/** A declared job for one resource of the registry, with its words filled in. */
export type ResourceJob = {
  job: DeclaredJob
  resource: { kind: InventoryKind; id: string; name: string }
  run: JobStep
  check: DeclaredJob['check']
  /** For the declaration: an approval is for what was declared then. */
  definition: string
}

/** Jobs that fit a resource; all of them where none is named. */
export function listJobs({ declared }: Jobs, resource: { kind: string; id: string } | null): ListedJob[] {
  return declared.filter((job) => resource === null || fitsJob(job, resource)).map(toListedJob)
}

const maxRuns = 10

/** All that is known of a job. Refused where none of that name is declared. */
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
 * The job for a resource. Refused where either does not exist, they do not fit, or a name could
 * mean more.
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
    const others = fitting.length === 0 ? 'No job is declared for it.' : `Declared for it: ${fitting.join(', ')}.`
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

/** Only what is run takes words: a pattern of the declaration stays as it is. */
function fillCheck(check: NonNullable<DeclaredJob['check']>, words: ResourceJob['resource']) {
  const { timeoutSeconds, okExitCodes, noChanges, ignore, ...step } = check
  return { ...fillStep(step, words), timeoutSeconds, okExitCodes, noChanges, ignore }
}

const namesOf = ({ declared }: Jobs) =>
  declared
    .slice(0, 10)
    .map(({ name }) => name)
    .join(', ')

/** The file of jobs cannot be used: every fault with its line, to be put right in one go. */
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

/** The jobs that a file declares (YAML, or JSON, which is YAML too). Throws JobsFileError. */
export function readJobsFile(file: string): DeclaredJob[] {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file))
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new JobsFileError(file, [code?.startsWith('E') ? `it cannot be read (${code})` : 'it is not UTF-8'])
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

/** The line of the nearest place in the document: for a missing field, of what lacks it. */
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
    names.indexOf(name) < at ? [{ path: ['jobs', at, 'name'], message: `${name} is there twice` }] : [],
  )
}

/** A job that is to take another back has to be there, and for such things. */
function findLostUndos(jobs: readonly DeclaredJob[]): Fault[] {
  return jobs.flatMap(({ name, undo, resources }, at) => {
    if (undo === undefined) return []
    const found = jobs.find((job) => job.name === undo)
    if (found?.resources.kind === resources.kind && undo !== name) return []
    const why = found ? `is ${undo === name ? 'this job itself' : `for a ${found.resources.kind}`}` : 'is not declared'
    return [{ path: ['jobs', at, 'undo'], message: `${undo} ${why}: name another job for a ${resources.kind}` }]
  })
}

/** Values under secret names, and secrets in addresses: the file is no place for them. */
function findSecrets(value: unknown, path: PropertyKey[] = []): Fault[] {
  if (Array.isArray(value)) return value.flatMap((each, at) => findSecrets(each, [...path, at]))
  if (value !== null && typeof value === 'object')
    return Object.entries(value).flatMap(([key, each]) => findSecrets(each, [...path, key]))
  if (typeof value !== 'string' || /^(file:|env:)/.test(value)) return []
  const name = String(path.at(-1))
  const remedy = 'write { from: file:/path } or { from: env:NIGHTSHIFT_JOB_NAME }'
  if (kindOfName(name) !== null) return [{ path, message: `holds a secret: ${remedy}` }]
  const url = URL.parse(value)
  if (!url || !/^https?:$/.test(url.protocol)) return []
  const isSecret = url.password !== '' || [...url.searchParams.keys()].some((key) => kindOfName(key) !== null)
  return isSecret ? [{ path, message: 'holds a secret in the address: send it in a header by reference' }] : []
}
