import type { AskedWitnesses, Suspect } from '../db/inventory/deaths.ts'
import { listSources } from '../db/inventory/sources.ts'
import { measuresOthers, toMachineNames } from '../domain/alert-machines.ts'
import type { Witness } from '../domain/death.ts'
import type { ListedTarget, Source } from '../domain/source.ts'
import { SourceError } from '../sources/kind.ts'
import { listResources } from '../sources/kinds.ts'
import type { ApiDeps } from './deps.ts'

type MonitoringDeps = Pick<ApiDeps, 'db' | 'sources' | 'log'>

/** A person waits for the card, and a plan for its next step. */
const answerWithinMs = 5_000

/**
 * Prometheus servers as witnesses of hosts: they scrape the exporters there and in VMs directly,
 * not through the platform. An alert is no such witness, since nobody knows what it looked at. A
 * silent server says nothing.
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
      // A VM that does not answer may be stopped; one that does is at work, wherever its host is.
      const said = [toWitness(who, on(`host:${host}`)), ...ofVms.filter((each) => each?.says === 'up')]
      found.get(host)?.push(...said.filter((each) => each !== null))
    }
  }
  return found
}

/** Names of hosts and VMs as targets are matched with them, by resource key. */
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
    log.debug({ source: source.name, code: error.code }, 'a source was asked how hosts are, and did not answer')
    return []
  }
}

/** Does this exporter run there? One that measures others answers though they are dead. */
function isOn({ labels: { instance = '', job = '' } }: ListedTarget, names: readonly string[]): boolean {
  return !measuresOthers(job) && toMachineNames(instance).some((name) => names.includes(name))
}

/** One exporter that answers shows that the host is alive; it is down where none does. */
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
