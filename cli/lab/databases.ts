import type { LabClient } from '../../lab/client.ts'
import { formatTable } from '../ui/table.ts'
import { inert, print, printJson, printNote } from '../ui/terminal.ts'

/** Has the databases of the lab run, and says where they are and which credentials Nightshift may use. */
export async function showDatabases(lab: LabClient, { json }: { json?: boolean }): Promise<void> {
  if (!json) printNote('PostgreSQL and MariaDB start with their replicas; the first time they take some seconds.')
  const { servers, credentials } = await lab.openDatabases()
  if (json) return printJson({ servers, credentials })
  const rows = servers.map((each) => [
    each.name,
    each.replicatesFrom ? `replica of ${each.replicatesFrom}` : each.role,
    each.url,
  ])
  print(formatTable(['DATABASE', 'ROLE', 'ADDRESS'], rows, 2))
  print(
    `\nCredentials, as user:password in a file:\n  reads   ${inert(credentials.read)}\n  writes  ${inert(credentials.write)}`,
  )
}
