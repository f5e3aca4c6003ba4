import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { connect, type Db } from '../db/connect.ts'
import { declareResources, findByNames, leaseKeys, otherNames } from '../db/inventory/registry.ts'
import { findAlertResources, neighboursOf } from '../db/inventory/resources.ts'
import { listResources, showResource } from '../db/inventory/show-resource.ts'
import { systemScope } from '../db/scope.ts'
import type { RegistrySource, SourceDeclaration } from '../domain/declared-resources.ts'
import { migrateToLatest } from '../migrations/migrate.ts'
import { startPostgres } from '../start/postgres.ts'
import { temporaryDirectory } from '../test/support/directory.ts'
import { median, percentile, report } from './stage.ts'

const resources = Number(process.env.RESOURCES ?? 50_000)
const calls = 100

/**
 * Measures the registry of a large installation: 50,000 resources and 200,000 relations; a fifth of
 * the resources are targets of a Prometheus. `RESOURCES=` scales the registry. Measures how long a
 * source's whole list takes when it is new, unchanged, and with a hundredth changed, and how long
 * the queries of ingest, leases and pages take.
 */
export async function benchRegistry(): Promise<void> {
  const dir = temporaryDirectory().path
  const postgres = await startPostgres({ dir: join(dir, 'postgres'), durable: false })
  await migrateToLatest(postgres.url)
  const db = connect(postgres.url, { max: 4 })
  try {
    const site = aSite(resources)
    const platform: RegistrySource = { name: 'platform', hasAuthority: true }
    const scraped: RegistrySource = { name: 'prometheus:main', hasAuthority: false }
    const seconds = {
      'first list of the platform (s)': await declared(db, platform, site.platform),
      'first list of targets (s)': await declared(db, scraped, site.targets),
      'the same list again (s)': await declared(db, platform, site.platform),
      'a hundredth changed (s)': await declared(db, platform, changedABit(site.platform)),
      'a hundredth of the targets changed (s)': await declared(db, scraped, changedABit(site.targets)),
    }
    const table: Record<string, Record<string, number>> = {}
    for (const [name, question] of Object.entries(questions(db))) {
      const took: number[] = []
      for (let n = -5; n < calls; n += 1) {
        const startedAt = performance.now()
        await question((n * 7_919 + 50_000) % (resources / 2))
        if (n >= 0) took.push(performance.now() - startedAt)
      }
      table[name] = { 'median (ms)': round(median(took)), '95 % (ms)': round(percentile(took, 95)) }
    }
    console.table(table)
    const { relations } = site.platform
    report('registry', {
      resources: site.platform.resources.length + site.targets.resources.length,
      relations: relations.length + site.targets.relations.length,
      ...seconds,
      'slowest question, median (ms)': Math.max(...Object.values(table).map((row) => row['median (ms)'] ?? 0)),
    })
  } finally {
    await db.destroy()
    await postgres.stop()
    rmSync(dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
  }
}

const round = (ms: number) => Number(ms.toFixed(2))

async function declared(db: Db, source: RegistrySource, list: SourceDeclaration): Promise<number> {
  const startedAt = performance.now()
  await db.transaction().execute((trx) => declareResources(trx, source, list))
  return round((performance.now() - startedAt) / 1_000)
}

const name = (at: number) => `app-${at}`

type DeclaredResource = SourceDeclaration['resources'][number]
type DeclaredRelation = SourceDeclaration['relations'][number]

/** Creates nodes with a service, a container and a VM each, and a target for every second node. */
function aSite(count: number): { platform: SourceDeclaration; targets: SourceDeclaration } {
  const platform = { resources: [] as DeclaredResource[], relations: [] as DeclaredRelation[] }
  const targets = { resources: [] as DeclaredResource[], relations: [] as DeclaredRelation[] }
  const nodes = Math.floor((count * 0.8) / 4)
  const kinds = ['node', 'service_unit', 'container', 'vm'] as const
  for (let at = 0; at < nodes; at += 1) {
    for (const kind of kinds) {
      const id = kind === 'node' ? name(at) : `${kind}-${at}`
      platform.resources.push({
        kind,
        id,
        name: id,
        aliases: [`${id}.example.com`, `10.${(at >> 16) & 255}.${(at >> 8) & 255}.${at & 255}`],
        attributes: { rack: `r${at % 40}` },
      })
      if (kind === 'node') continue
      platform.relations.push({ from: { kind, id }, kind: 'runs_on', to: { kind: 'node', id: name(at) } })
      for (const far of [1, 7, 31, 97])
        platform.relations.push({
          from: { kind, id },
          kind: 'depends_on',
          to: { kind: 'service_unit', id: `service_unit-${(at + far) % nodes}` },
        })
    }
    platform.relations.push({
      from: { kind: 'node', id: name(at) },
      kind: 'same_as',
      to: { kind: 'vm', id: `vm-${at}` },
    })
  }
  for (let at = 0; at < count - nodes * 4; at += 1) {
    const id = `${name(at % nodes)}:${9_100 + Math.floor(at / nodes)}`
    targets.resources.push({ kind: 'target', id, name: id, attributes: { job: 'node' } })
    targets.relations.push({
      from: { kind: 'target', id },
      kind: 'same_as',
      to: { kind: 'node', id: name(at % nodes) },
    })
    targets.relations.push({
      from: { kind: 'target', id },
      kind: 'watches',
      to: { kind: 'node', id: name(at % nodes) },
    })
  }
  return { platform, targets }
}

const changedABit = ({ resources: all, relations }: SourceDeclaration): SourceDeclaration => ({
  resources: all.map((each, at) =>
    at % 100 === 0 ? { ...each, attributes: { ...each.attributes, moved: true } } : each,
  ),
  relations: relations.filter((_, at) => at % 100 !== 0),
})

const questions = (db: Db): Record<string, (at: number) => Promise<unknown>> => ({
  'what an alert is about, by instance': (at) =>
    findAlertResources(db, [{ instance: `${name(at % 10_000)}:9100` }], []),
  'ten alerts of one body': (at) =>
    findAlertResources(
      db,
      Array.from({ length: 10 }, (_, n) => ({ instance: `${name((at + n * 97) % 10_000)}.example.com:9100` })),
      [],
    ),
  'by an address': (at) => findByNames(db, [`10.0.${(at >> 8) & 31}.${at & 255}`]),
  'keys of leases': (at) =>
    leaseKeys(db, [
      { kind: 'node', id: name(at % 10_000) },
      { kind: 'vm', id: `vm-${at % 10_000}` },
    ]),
  'other names': (at) => otherNames(db, [{ kind: 'node', id: name(at % 10_000) }]),
  'the vicinity': (at) => neighboursOf(db, { kind: 'vm', id: `vm-${at % 10_000}` }),
  'the page of one': (at) => showResource(systemScope(db), { kind: 'node', id: name(at % 10_000) }),
  'the list, a page': () =>
    listResources(systemScope(db), { kind: null, q: null, isStale: null }, { after: null, limit: 51 }),
  'the list, searched': (at) =>
    listResources(systemScope(db), { kind: null, q: name(at % 10_000), isStale: null }, { after: null, limit: 51 }),
})
