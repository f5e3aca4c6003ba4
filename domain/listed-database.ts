import type { DeclaredRelation, SourceDeclaration } from './declared-resources.ts'
import { idPattern } from './kinds.ts'
import { type ResourceRef, ref } from './registry.ts'
import { addressOf } from './source.ts'

/** A database server as its source lists it: product, replication origin and databases. */
export type ListedDatabase = {
  product: string
  version: string
  role: 'primary' | 'replica'
  /** The server from which this server replicates, according to its own report. */
  replicatesFrom: { host: string; port: number } | null
  databases: readonly string[]
}

/** Words in the names of exporter jobs that name a server of each product. */
const jobWords: Record<string, readonly string[]> = {
  PostgreSQL: ['postgres', 'postgresql'],
  MySQL: ['mysql'],
  MariaDB: ['mysql', 'mariadb'],
}

const maxNames = 40

/**
 * Converts a database server to the resource `database:<source>`. The resource runs on the machine
 * with the server's address, if the registry knows this machine. The resource depends on the server
 * from which it replicates, if that server is a source too. Alerts name the resource by its address
 * and by its databases.
 */
export function databaseToDeclared(
  { name, url }: { name: string; url: string },
  listed: ListedDatabase,
  known: { machine: ResourceRef | null; origin: string | null },
): SourceDeclaration {
  const { hostname, pathname } = new URL(url)
  const { product, version, role, databases } = listed
  const given = decodeURIComponent(pathname.slice(1))
  const aliases = [addressOf(url).replace(/^.*\/\//, ''), ...(jobWords[product] ?? []), given, ...databases].map(
    (each) => each.toLowerCase(),
  )
  const own = ref('database', name)
  const relations: DeclaredRelation[] = [
    ...(known.machine ? [{ from: own, kind: 'runs_on' as const, to: known.machine }] : []),
    ...(known.origin ? [{ from: own, kind: 'depends_on' as const, to: ref('database', known.origin) }] : []),
  ]
  return {
    resources: [
      {
        kind: 'database',
        id: name,
        name,
        aliases: [...new Set(aliases)].filter((each) => idPattern.test(each)).slice(0, maxNames),
        attributes: { product, version, role, address: hostname },
      },
    ],
    relations,
  }
}
