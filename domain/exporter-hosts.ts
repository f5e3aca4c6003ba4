import { measuresOthers } from './alert-machines.ts'

/**
 * Finds machines that run exporters for other machines. In alerts of such exporters, `instance` is
 * the address of the exporter, not of the subject.
 */

/**
 * The attribute that marks, in an inventory, a machine with exporters for other machines, and the
 * targets on that machine.
 */
export const runsExportersAttribute = 'runs_exporters'

/**
 * A machine counts as a monitoring host if it has at least this many jobs that are scraped on no
 * other machine, and one of these jobs measures other machines.
 */
const minJobs = 4

/** A job that is scraped on a machine. `machine`: the key of the machine. */
type ScrapedJob = { job: string; machine: string }

/**
 * Finds machines with several jobs that are scraped nowhere else, such as those of blackbox and
 * Proxmox VE. (Exporters of nodes and databases also run on other machines.) At least one of the
 * jobs must measure other machines, so that a single server with all services does not count.
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
