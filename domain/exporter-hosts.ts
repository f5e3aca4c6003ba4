import { measuresOthers } from './alert-machines.ts'

/** Which machines run exporters that measure others. Their address in `instance` says who asked, and not what is ill. */

/** The attribute with which an inventory says so of a machine, and with which targets are marked that tell it. */
export const runsExportersAttribute = 'runs_exporters'

/** As many jobs that are scraped on one machine alone make it a monitoring host, where one of them is known to measure others. */
const minJobs = 4

/** One job on one machine, by its key. */
type ScrapedJob = { job: string; machine: string }

/**
 * Machines on which several jobs are scraped that are scraped nowhere else, such as those of blackbox and Proxmox VE: a node exporter, or the
 * exporter of a database, runs on other machines as well. A server with all services of a site is one only beside an exporter that measures others.
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
