import { measuresOthers } from './alert-machines.ts'

/** Machines that run exporters of others. Their address in `instance` says who asked. */

/** The attribute by which an inventory names such a machine, and which marks its targets. */
export const runsExportersAttribute = 'runs_exporters'

/**
 * This many jobs that are scraped on one machine alone make it a monitoring host, if one is known
 * to measure others.
 */
const minJobs = 4

/** One job on one machine, by its key. */
type ScrapedJob = { job: string; machine: string }

/**
 * Machines with several jobs that are scraped nowhere else, such as those of blackbox and Proxmox
 * VE; node exporters and exporters of databases run on others too. A server with all services of a
 * site is one only beside an exporter that measures others.
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
