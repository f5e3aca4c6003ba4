import { measuresOthers } from './alert-machines.ts'

/**
 * Finds machines that run exporters for other machines. In alerts of such exporters, `instance` is
 * the address of the exporter, not of the subject.
 */

/** The attribute that marks such a machine in an inventory, and the targets on it. */
export const runsExportersAttribute = 'runs_exporters'

/**
 * The number of jobs that are scraped only on one machine from which that machine is a monitoring
 * host, if one of the jobs measures others.
 */
const minJobs = 4

/** A job that is scraped on a machine. `machine`: the key of the machine. */
type ScrapedJob = { job: string; machine: string }

/**
 * Finds machines with several jobs that are scraped nowhere else, such as those of blackbox and
 * Proxmox VE. (Exporters of nodes and databases also run on others.) At least one of the jobs must
 * measure others, so that a single server with all services does not count.
 */
export function findExporterHosts(scraped: readonly ScrapedJob[]): Set<string> {
  const machinesOf = new Map<string, Set<string>>()
  for (const { job, machine } of scraped) machinesOf.set(job, (machinesOf.get(job) ?? new Set()).add(machine))
  const jobsOf = new Map<string, Set<string>>()
  for (const { job, machine } of scraped)
    if (job !== '' && machinesOf.get(job)?.size === 1) jobsOf.set(machine, (jobsOf.get(machine) ?? new Set()).add(job))
  return new Set(
    [...jobsOf]
      .filter(([, jobs]) => jobs.size >= minJobs && [...jobs].some(measuresOthers))
      .map(([machine]) => machine),
  )
}
