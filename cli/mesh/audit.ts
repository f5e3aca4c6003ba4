import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { JournalEntry } from '../../domain/mesh.ts'
import { segmentsOf, shortOf, verifyChain } from '../../mesh/agent/chain.ts'
import type { ApiClient } from '../api.ts'
import type { CliCommand, ConnectionOptions } from '../connection.ts'
import { CommandFailed } from '../exit-codes.ts'
import { listAll } from '../read-api.ts'
import { inert, paint, print, printJson } from '../ui/terminal.ts'
import { apiDevice } from './devices.ts'
import { auditDevice, type DeviceAudit } from './journal.ts'

export function addAuditCommand(parent: CliCommand): void {
  const audit = parent
    .command('audit')
    .description('compare the journals of devices with the database')
    .addHelpText('after', '\nExample:\n  nightshift mesh audit verify')
  audit
    .command('verify')
    .description("compare the devices' whole journals, all calls and the incidents' rows")
    .argument('[device]', 'only this device')
    .option('--journal <dir>', 'state directory of that device, or a copy; also verifies the content of the entries')
    .connected(
      '\nExample:\n  nightshift mesh audit verify\n  nightshift mesh audit verify node-osl-1 --journal /var/lib/nightshift-agent',
    )
    .calls(async (api, device: string | undefined, options: ConnectionOptions & { journal?: string }) => {
      if (options.journal && !device) throw new CommandFailed('usage', '--journal needs the name of a device.')
      const reports: DeviceAudit[] = []
      const progress = createProgress()
      try {
        for (const name of device ? [device] : await listEnrolledDevices(api)) {
          const files = options.journal ? readJournalCopy(options.journal) : null
          const report = await auditDevice((path) => api.get(`/api/v1${path}`), name, {
            files: files?.entries ?? null,
            onProgress: progress.show,
          })
          if (files?.problem) report.problems.push(files.problem)
          reports.push(report)
        }
      } finally {
        progress.end()
      }
      if (options.json) printJson(reports)
      else for (const report of reports) printReport(report)
      const bad = reports.filter(({ problems }) => problems.length > 0)
      if (bad.length > 0)
        throw new CommandFailed('error', options.json ? '' : `${bad.length} of ${reports.length} do NOT agree.`)
    })
}

async function listEnrolledDevices(api: ApiClient): Promise<string[]> {
  const devices = await listAll(api, '/api/v1/devices', apiDevice)
  return devices.filter(({ enrolledAt, revokedAt }) => enrolledAt && !revokedAt).map(({ id }) => id)
}

/**
 * Reads and hashes the entries of a journal's copy. Returns a problem instead if there is no
 * journal or its hash chain is broken.
 */
function readJournalCopy(state: string): { entries: JournalEntry[] | null; problem: string | null } {
  const directory = existsSync(join(state, 'journal')) ? join(state, 'journal') : state
  if (segmentsOf(directory).length === 0) return { entries: null, problem: `there is no journal in ${state}` }
  const entries: JournalEntry[] = []
  const chain = verifyChain(directory, (entry, hash) => entries.push(shortOf(entry, hash)))
  return chain.ok
    ? { entries, problem: null }
    : { entries: null, problem: `the journal's chain is broken: ${chain.reason}` }
}

const quietMs = 1_000

/** Shows progress in one line of the terminal after a second, and removes it at the end. */
function createProgress(): { show(so: string): void; end(): void } {
  const began = Date.now()
  let shown = false
  return {
    show(so) {
      if (!process.stderr.isTTY || Date.now() - began < quietMs) return
      shown = true
      process.stderr.write(`\r\x1b[K${inert(so)} …`)
    },
    end() {
      if (shown) process.stderr.write('\r\x1b[K')
    },
  }
}

function printReport({ device, calls, journal, older, problems }: DeviceAudit): void {
  const kept = journal ? journal.entries - journal.first + 1 : 0
  const entries = journal ? `${kept} ${kept === 1 ? 'entry' : 'entries'}` : 'no journal'
  const before = older > 0 ? `; ${older} are older than the journal` : ''
  if (problems.length === 0) {
    print(
      `${paint('green', '✔')} ${inert(device)}: ${calls.length} calls agree with the device's journal (${entries}${before}) and with the incidents`,
    )
    return
  }
  print(`${paint('red', '✘')} ${inert(device)} (${entries}${before})`)
  for (const problem of problems) print(`  ${inert(problem)}`)
}
