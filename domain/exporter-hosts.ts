import { measuresOthers } from './alert-machines.ts'

/**
 * Finds machines that run exporters which measure other machines. In alerts of these exporters,
 * `instance` is the address of the exporter, not of the subject.
 */

/**
 * The attribute by which an inventory marks a machine that runs exporters for other machines, and
 * the targets on this machine.
 */
export const runsExportersAttribute = 'runs_exporters'

/**
 * Minimum number of scrape jobs that only this machine has, for the machine to count as a
 * monitoring host. One of the jobs must also measure other machines.
 */
const minJobs = 4

/** A scrape job with a target on a machine. `machine`: the key of the machine. */
type ScrapedJob = { job: string; machine: string }

/**
 * Finds machines with several scrape jobs that no other machine has, such as blackbox and Proxmox
 * VE. (Jobs for nodes and databases have targets on many machines.) At least one of the jobs must
 * measure other machines, so that a single server with all services does not count.
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
