import { createHash } from 'node:crypto'
import { copyFileSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { listRights } from '../../domain/database-rights.ts'
import { sourceTest } from '../../domain/source.ts'
import type { LabClient } from '../../lab/client.ts'
import type { ApiClient } from '../api.ts'
import { getStateDir } from '../connection.ts'
import { CommandFailed } from '../exit-codes.ts'
import { formatTable } from '../ui/table.ts'
import { inert, print, printJson, printNote } from '../ui/terminal.ts'

type OpenDrawer = Awaited<ReturnType<LabClient['openDatabases']>>

/** Starts the lab's databases, adds each as a source, and prints their addresses. */
export async function showDatabases(api: ApiClient, lab: LabClient, { json }: { json?: boolean }): Promise<void> {
  const { servers, credentials } = await connectDatabases(api, lab, { isQuiet: json === true })
  if (json) return printJson({ servers, credentials })
  const rows = servers.map((each) => [
    each.name,
    each.replicatesFrom ? `replica of ${each.replicatesFrom}` : each.role,
    each.url,
  ])
  print(formatTable(['DATABASE', 'ROLE', 'ADDRESS'], rows, 2))
  print(
    `\nFiles with the credentials, as user:password:\n  for reads   ${inert(credentials.read)}\n  for writes  ${inert(credentials.write)}`,
  )
}

/**
 * Opens the lab's databases, gives the two logins their rights, and adds each server as a source.
 */
export async function connectDatabases(
  api: ApiClient,
  lab: LabClient,
  { isQuiet }: { isQuiet: boolean },
): Promise<OpenDrawer> {
  if (!isQuiet) printNote('PostgreSQL and MariaDB start with their replicas. The first start takes some seconds.')
  const drawer = await lab.openDatabases()
  for (const { name, kind, replicatesFrom } of drawer.servers) {
    // Skips a replica, which gets the logins of its primary by replication.
    if (replicatesFrom !== null) continue
    const product = kind === 'postgresql' ? 'PostgreSQL' : 'MariaDB'
    for (const login of ['read', 'write'] as const)
      for (const statement of listRights(product, login)) if (isRight(statement)) await lab.applyGrants(name, statement)
  }
  for (const server of drawer.servers) await connectServer(api, drawer, server)
  return drawer
}

/**
 * Whether a statement gives a right. The lab has already created the two logins, with passwords
 * that only the lab knows.
 */
const isRight = (statement: string): boolean => !/^CREATE (?:ROLE|USER)\b/.test(statement)

const digestFile = (file: string): string => createHash('sha256').update(readFileSync(file)).digest('hex')

async function connectServer(
  api: ApiClient,
  { credentials }: OpenDrawer,
  { name, kind, url }: OpenDrawer['servers'][number],
): Promise<void> {
  const directory = join(getStateDir('lab'), 'sources')
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  // Copies the credentials for each server, because a credential belongs to one server.
  const copy = (from: string, login: string): string => {
    const file = join(directory, `${name}-${login}`)
    copyFileSync(from, file)
    return `file:${file}`
  }
  const credential = copy(credentials.read, 'read')
  const writeCredential = copy(credentials.write, 'write')
  // Sets the address again, because the servers of the lab use new ports at each start. The digest
  // of the credentials shows that the caller may set the address.
  const credentialSha256 = [credentials.read, credentials.write].map(digestFile).join(',')
  await api.put(`/api/v1/sources/${name}`, { kind, url, credential, writeCredential, credentialSha256 })
  const { ok, detail } = sourceTest.loose().parse(await api.post(`/api/v1/sources/${name}/test`))
  if (!ok) throw new CommandFailed('error', `${name} does not answer as a source: ${inert(detail)}`)
}
