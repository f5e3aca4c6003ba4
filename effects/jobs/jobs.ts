import { registeredResource } from '../../db/registry.ts'
import { digestOf } from '../../domain/digest.ts'
import {
  type DeclaredJob,
  fillStep,
  fitsJob,
  type JobStep,
  type ListedJob,
  toListedJob,
  whyUnnameable,
} from '../../domain/job.ts'
import type { InventoryKind } from '../../domain/kinds.ts'
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

export type RunningCheck = { promise: Promise<void>; found: CheckFound | null; atMs: number }

export function openJobs(declared: readonly DeclaredJob[]): Jobs {
  return { declared, checks: new Map(), recent: new Map(), atWork: new Set() }
}

/** A declared job for one resource of the registry, with its words filled in. */
export type ResourceJob = {
  job: DeclaredJob
  resource: { kind: InventoryKind; id: string; name: string }
  run: JobStep
  check: DeclaredJob['check']
  /** Of the declaration: an approval is for what was declared then. */
  definition: string
}

/** Jobs that fit a resource; all of them where none is named. */
export function listJobs({ declared }: Jobs, resource: { kind: string; id: string } | null): ListedJob[] {
  return declared.filter((job) => resource === null || fitsJob(job, resource)).map(toListedJob)
}

/** The job for a resource. Refused where there is no such job or resource, where they do not fit, and where a name could mean more. */
export async function requireJob(
  { db, jobs }: Pick<EffectDeps, 'db' | 'jobs'>,
  named: { name: string; kind: InventoryKind; id: string },
): Promise<ResourceJob> {
  const job = jobs.declared.find(({ name }) => name === named.name)
  if (!job) throw refuseMissing(`job ${named.name}: JOBS_FILE declares ${namesOf(jobs) || 'none'}`)
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
  const why = whyUnnameable(job, resource)
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
