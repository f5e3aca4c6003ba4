import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { writeWhole } from '../children.ts'
import { type Lab, ownDirectory } from '../state.ts'
import type { DatabaseName } from './faults.ts'
import { askMariadb, startMariadb, startMariadbWork } from './mariadb.ts'
import { runSql, startPostgresql } from './postgresql.ts'
import { shopWork } from './schema.ts'
import { adminName, type DrawerPlace, drawerPlace, type LabServer, type Secrets, serverUrl } from './server.ts'
import { watchDatabases } from './watch.ts'

export type DatabaseDrawer = { place: DrawerPlace; secrets: Secrets; servers: LabServer[] }

const opening = new WeakMap<Lab, Promise<DatabaseDrawer>>()

/**
 * Starts PostgreSQL and MariaDB, each with a primary, a replica and a working shop. A lab has one
 * set of databases. Rejects if a server does not start.
 */
export function openDrawer(lab: Lab): Promise<DatabaseDrawer> {
  const begun = opening.get(lab) ?? open(lab)
  opening.set(lab, begun)
  begun.catch(() => opening.delete(lab))
  return begun
}

async function open(lab: Lab): Promise<DatabaseDrawer> {
  const directory = join(lab.dir, 'databases')
  removeDrawer(lab.dir)
  ownDirectory(lab, directory)
  const place = drawerPlace(directory, lab.account)
  const secret = () => randomBytes(18).toString('hex')
  const secrets: Secrets = {
    admin: secret(),
    app: secret(),
    replicator: secret(),
    exporter: secret(),
    read: secret(),
    write: secret(),
  }
  writeCredentials(lab, secrets)
  const started = await Promise.allSettled([startPostgresql(lab, place, secrets), startMariadb(lab, place, secrets)])
  const failed = started.find((each) => each.status === 'rejected')
  if (failed) {
    for (const name of ['pg-1', 'pg-2', 'maria-1', 'maria-2']) await lab.children.kill(name)
    throw failed.reason
  }
  const servers = started.flatMap((each) => (each.status === 'fulfilled' ? each.value : []))
  const drawer = { place, secrets, servers }
  const appUrl = (name: DatabaseName) => serverUrl(serverNamed(drawer, name), 'shop_app', secrets.app)
  await startClients(lab, drawer, 'shop', shopWork(appUrl('pg-1'), appUrl('pg-2')))
  await startMariadbWork(lab, place, serverNamed(drawer, 'maria-1'), secrets)
  await watchDatabases(lab, drawer)
  return drawer
}

export function serverNamed({ servers }: Pick<DatabaseDrawer, 'servers'>, name: DatabaseName): LabServer {
  const found = servers.find((each) => each.name === name)
  if (!found) throw new Error(`there is no database ${name}`)
  return found
}

/**
 * Starts a program of the shop. The program's data is in a file that only its user can read,
 * because every user of the machine can read command lines.
 */
export async function startClients(
  lab: Lab,
  { place }: DatabaseDrawer,
  name: string,
  sessions: object[],
): Promise<void> {
  const file = `${name}.json`
  writeFileSync(join(place.directory, file), JSON.stringify(sessions), { mode: 0o600 })
  place.giveAway(join(place.directory, file))
  await lab.children.start(clientsOf(name), 'sql-clients.ts', place.directory, { file })
}

export const clientsOf = (name: string): string => `clients-${name}`

const credentialFiles = (dir: string) => {
  const directory = join(dir, 'database-credentials')
  return { directory, read: join(directory, 'nightshift_read'), write: join(directory, 'nightshift_write') }
}

function writeCredentials(lab: Lab, { read, write }: Secrets): void {
  const files = credentialFiles(lab.dir)
  mkdirSync(files.directory, { recursive: true, mode: 0o700 })
  writeWhole(files.read, `nightshift_read:${read}`)
  writeWhole(files.write, `nightshift_write:${write}`)
}

/**
 * Removes a lab's database files after their servers ended, and the shared memory of killed
 * servers.
 */
export function removeDrawer(dir: string): void {
  const directory = join(dir, 'databases')
  for (const name of ['pg-1', 'pg-2']) {
    try {
      // Reads the id of the shared memory segment, which the seventh line of the file contains.
      const id = readFileSync(join(directory, name, 'postmaster.pid'), 'utf8')
        .split('\n')[6]
        ?.trim()
        .split(/\s+/)[1]
      if (id) execFileSync('ipcrm', ['-m', id], { stdio: 'ignore' })
    } catch {
      // Ignores the error, because the server ended by itself, or never existed.
    }
  }
  for (const path of [directory, credentialFiles(dir).directory]) {
    rmSync(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 })
  }
}

/** Describes the databases for the code that breaks, judges or reads them. */
export function describeDrawer(lab: Lab, { servers }: DatabaseDrawer): object {
  const { read, write } = credentialFiles(lab.dir)
  const all = servers.map(({ name, kind, role, replicatesFrom, url, instance }) => ({
    name,
    kind,
    role,
    replicatesFrom,
    url,
    instance,
    adminUser: adminName,
  }))
  return { servers: all, credentials: { read, write } }
}

/**
 * Runs GRANT statements as the admin. The rights of a replica are granted on its primary, because
 * the replica copies them.
 */
export async function applyGrants(drawer: DatabaseDrawer, name: DatabaseName, sql: string): Promise<void> {
  const named = serverNamed(drawer, name)
  const server = named.replicatesFrom ? serverNamed(drawer, named.replicatesFrom) : named
  if (server.kind === 'postgresql') await runSql(server, drawer.secrets, [sql])
  else await askMariadb(server, drawer.secrets, [sql])
}
