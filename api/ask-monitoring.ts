import type { AskedWitnesses, Suspect } from '../db/inventory/deaths.ts'
import { listSources } from '../db/inventory/sources.ts'
import { measuresOthers, toMachineNames } from '../domain/alert-machines.ts'
import type { Witness } from '../domain/death.ts'
import type { ListedTarget, Source } from '../domain/source.ts'
import { SourceError } from '../sources/kind.ts'
import { listResources } from '../sources/kinds.ts'
import type { ApiDeps } from './deps.ts'

type MonitoringDeps = Pick<ApiDeps, 'db' | 'sources' | 'log'>

/** Milliseconds for a Prometheus. A person waits for the card, or a plan for its next step. */
const answerWithinMs = 5_000

/**
 * Queries Prometheus servers as witnesses of hosts, because they scrape the exporters on hosts and
 * in VMs directly, not through the platform. An alert is no witness, because its origin is unknown.
 * A Prometheus that does not respond proves nothing.
 */
export async function askMonitoring(deps: MonitoringDeps, suspects: readonly Suspect[]): Promise<AskedWitnesses> {
  const found = new Map<string, Witness[]>(suspects.map(({ host }) => [host, []]))
  const scraping = (await listSources(deps.db)).filter(({ kind }) => kind === 'prometheus')
  if (scraping.length === 0) return found
  const names = await namesOf(deps, suspects)
  const answers = await Promise.all(scraping.map((source) => targetsOf(deps, source)))
  for (const [index, targets] of answers.entries()) {
    const who = `Prometheus (${scraping[index]?.name})`
    for (const { host, vms } of suspects) {
      const on = (key: string) => targets.filter((target) => isOn(target, names.get(key) ?? []))
      const ofVms = vms.map((vm) => toWitness(`${who}, which scrapes ${vm},`, on(`vm:${vm}`)))
      // Uses only VMs that respond, because they show that the host is alive. A VM that does not
      // respond may be stopped.
      const said = [toWitness(who, on(`host:${host}`)), ...ofVms.filter((each) => each?.says === 'up')]
      found.get(host)?.push(...said.filter((each) => each !== null))
    }
  }
  return found
}

/** Maps resource keys to the names of hosts and VMs with which targets are compared. */
async function namesOf({ db }: MonitoringDeps, suspects: readonly Suspect[]): Promise<Map<string, string[]>> {
  const rows = await db
    .selectFrom('resource')
    .select(['kind', 'id', 'names'])
    .where('kind', 'in', ['host', 'vm'])
    .where(
      'id',
      'in',
      suspects.flatMap(({ host, vms }) => [host, ...vms]),
    )
    .execute()
  return new Map(rows.map(({ kind, id, names }) => [`${kind}:${id}`, names]))
}

async function targetsOf({ sources, log }: MonitoringDeps, source: Source): Promise<readonly ListedTarget[]> {
  const tooLong = new Promise<null>((resolve) => setTimeout(resolve, answerWithinMs, null).unref())
  try {
    const listed = await Promise.race([listResources(source, sources), tooLong])
    return listed !== null && 'targets' in listed ? listed.targets : []
  } catch (error) {
    if (!(error instanceof SourceError)) throw error
    log.debug({ source: source.name, code: error.code }, 'a source did not answer the query for the state of hosts')
    return []
  }
}

/**
 * Whether this exporter runs on the machine. An exporter that measures other machines responds even
 * if they are down.
 */
function isOn({ labels: { instance = '', job = '' } }: ListedTarget, names: readonly string[]): boolean {
  return !measuresOthers(job) && toMachineNames(instance).some((name) => names.includes(name))
}

/** Makes a witness: a host is up if one of its exporters responds, and down if none responds. */
function toWitness(who: string, targets: readonly ListedTarget[]): Witness | null {
  const scraped = targets.flatMap((each) => each.scraped ?? [])
  const up = scraped.filter(({ isUp }) => isUp)
  const last = (up.length > 0 ? up : scraped)
    .map(({ at }) => at)
    .sort()
    .at(-1)
  if (last === undefined) return null
  return { who, sees: 'monitoring', says: up.length > 0 ? 'up' : 'down', at: last }
}
