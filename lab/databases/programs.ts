import { readdirSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { readVariables } from '../../config/variables.ts'
import { isProgram } from '../monitoring.ts'

/** Programs that the lab's databases need, and the Debian packages that contain them. */
const packageOf = {
  initdb: 'postgresql',
  postgres: 'postgresql',
  pg_basebackup: 'postgresql-client',
  mariadbd: 'mariadb-server',
  'mariadb-install-db': 'mariadb-server',
  mariadb: 'mariadb-client',
  'prometheus-postgres-exporter': 'prometheus-postgres-exporter',
  'prometheus-mysqld-exporter': 'prometheus-mysqld-exporter',
} as const
type DatabaseProgram = keyof typeof packageOf

/** Throws if the machine does not have the program. */
export function programPath(name: DatabaseProgram): string {
  const path = findDatabaseProgram(name)
  if (path === null) throw new Error(`this machine has no ${name}`)
  return path
}

/** Lists the packages that are missing on this machine, each once. */
export function missingDatabasePackages(): string[] {
  const names = Object.keys(packageOf) as DatabaseProgram[]
  return [...new Set(names.filter((name) => findDatabaseProgram(name) === null).map((name) => packageOf[name]))]
}

function findDatabaseProgram(name: DatabaseProgram): string | null {
  const places = (readVariables('PATH').PATH || '/usr/bin').split(delimiter)
  const folders = [...postgresqlFolders(), ...places, '/usr/sbin', '/usr/bin']
  return folders.map((folder) => join(folder, name)).find(isProgram) ?? null
}

/** Lists Debian's PostgreSQL folders by version, the newest first. */
function postgresqlFolders(): string[] {
  const root = '/usr/lib/postgresql'
  try {
    const versions = readdirSync(root).sort((a, b) => Number(b) - Number(a))
    return versions.map((version) => join(root, version, 'bin'))
  } catch {
    return []
  }
}
