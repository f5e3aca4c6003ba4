import { formatCounts } from '../domain/findings.ts'
import { formatCount, formatNumber } from '../domain/format.ts'
import { formatSize } from '../domain/format-approval.ts'
import { BackupError, backUp } from '../start/backup.ts'
import { setting } from '../start/environment.ts'
import { restoreBackup } from '../start/restore.ts'
import type { CliCommand } from './connection.ts'
import { CommandFailed } from './exit-codes.ts'
import { inert, print, printJson, printNote } from './ui/terminal.ts'

type Flags = { json?: boolean }

export function addBackupCommand(root: CliCommand): void {
  root
    .command('backup')
    .description('dump the database of DATABASE_URL into a folder, with a manifest; Nightshift can keep running')
    .argument('<directory>', 'where a new folder for the backup is made')
    .option('--json', 'JSON for programs')
    .addHelpText(
      'after',
      '\nKeep the backup as secret as the database. Also back up /etc/nightshift and the keys of the mesh.\n\nExample:\n  nightshift backup /var/backups/nightshift',
    )
    .action(async (directory: string, { json: isJson }: Flags) => {
      const { path, manifest } = await orFail(() => backUp(databaseUrl(), directory))
      if (isJson) return printJson({ path, ...manifest })
      const { incidents, audit, dump } = manifest
      print(`${inert(path)}: ${formatNumber(incidents)} incidents, ${formatSize(dump.bytes)}.`)
      print(`  last hash of the audit log ${audit.head}`)
      printNote('Keep this hash in another place too. The hash proves later that nobody altered an earlier row.')
    })
}

export function addRestoreCommand(root: CliCommand): void {
  root
    .command('restore')
    .description('restore a backup into the empty database of DATABASE_URL, and verify all restored data')
    .argument('<backup>', 'the folder that "nightshift backup" made')
    .option('--json', 'JSON for programs')
    .addHelpText(
      'after',
      '\nStop the API and the workers first. The command refuses a database that is not empty.\n\nExample:\n  nightshift restore /var/backups/nightshift/nightshift-20261128T030000Z',
    )
    .action(async (path: string, { json: isJson }: Flags) => {
      const { manifest, applied, found, isHeadThere, endedGrants } = await orFail(() =>
        restoreBackup(databaseUrl(), path),
      )
      const isWhole = isHeadThere && found.differences.length === 0
      if (isJson) printJson({ ok: isWhole, manifest, applied, endedGrants, ...found })
      else {
        print(`Restored the state of ${inert(manifest.at)}: ${formatNumber(manifest.incidents)} incidents.`)
        if (applied.length > 0) print(`  Applied the migrations of this build: ${inert(applied.join(', '))}.`)
        print(`  Checked: ${inert(formatCounts(found.checked))}.`)
        if (endedGrants > 0)
          print(
            `  Ended ${formatCount(endedGrants, 'standing grant')}, because nobody knows how often a grant was used since the backup.`,
          )
        for (const { subject, what } of found.differences) print(`  ${inert(subject)}: ${inert(what)}`)
        if (isWhole)
          printNote(
            'The restored data agrees with its logs. Start the API, then the workers, then "nightshift doctor".',
          )
      }
      if (!isWhole) throw new CommandFailed('error', 'The restored database does not agree with its logs: see above.')
    })
}

function databaseUrl(): string {
  const url = setting(process.env, 'DATABASE_URL')
  if (!url)
    throw new CommandFailed(
      'usage',
      'Set DATABASE_URL to the database, with the login that owns the database, as for "migrate".',
    )
  return url
}

async function orFail<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act()
  } catch (error) {
    if (error instanceof BackupError) throw new CommandFailed('error', error.message)
    if (error instanceof Error && 'code' in error)
      throw new CommandFailed('error', `The database or the folder cannot be used: ${error.message}`)
    throw error
  }
}
