import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import type { JournalEntry } from '../../domain/mesh.ts'
import { segmentsOf, shortOf, verifyChain } from '../../mesh/agent/chain.ts'
import { type Asking, asking, connected } from '../connection.ts'
import { type Core, listAll } from '../core.ts'
import { CommandFailed } from '../exit-code.ts'
import { inert } from '../inert.ts'
import { data, json, paint } from '../terminal.ts'
import { aDevice } from './a-device.ts'
import { type Audited, auditDevice } from './read-audit.ts'

export function auditMesh(parent: Command): void {
  const audit = parent
    .command('audit')
    .description('what devices journalled, against what rows say')
    .addHelpText('after', '\nExample:\n  nightshift mesh audit verify')
  asking(
    audit
      .command('verify')
      .description("hold the devices' whole journals, all calls and the incidents' rows against each other")
      .argument('[device]', 'one of them alone')
      .option('--journal <dir>', 'state directory of that device, or a copy: verifies what its entries say, too'),
  )
    .addHelpText(
      'after',
      '\nExample:\n  nightshift mesh audit verify\n  nightshift mesh audit verify node-osl-1 --journal /var/lib/nightshift-agent',
    )
    .action(async (device: string | undefined, options: Asking & { journal?: string }) => {
      const { api } = connected(options)
      if (options.journal && !device) throw new CommandFailed('usage', '--journal is of one device: name it.')
      const reports: Audited[] = []
      const progress = progressOnTerminal()
      try {
        for (const name of device ? [device] : await enrolledDevices(api)) {
          const files = options.journal ? readFiles(options.journal) : null
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
      if (options.json) json(reports)
      else for (const report of reports) tell(report)
      const bad = reports.filter(({ problems }) => problems.length > 0)
      if (bad.length > 0)
        throw new CommandFailed('error', options.json ? '' : `${bad.length} of ${reports.length} do NOT agree.`)
    })
}

async function enrolledDevices(api: Core): Promise<string[]> {
  const devices = await listAll(api, '/api/v1/devices', aDevice)
  return devices.filter(({ enrolledAt, revokedAt }) => enrolledAt && !revokedAt).map(({ id }) => id)
}

/** The entries of a copy, whose lines are hashed here; none and why where its chain does not hold. */
function readFiles(state: string): { entries: JournalEntry[] | null; problem: string | null } {
  const directory = existsSync(join(state, 'journal')) ? join(state, 'journal') : state
  if (segmentsOf(directory).length === 0) return { entries: null, problem: `there is no journal in ${state}` }
  const entries: JournalEntry[] = []
  const chain = verifyChain(directory, (entry, hash) => entries.push(shortOf(entry, hash)))
  return chain.ok
    ? { entries, problem: null }
    : { entries: null, problem: `the journal does not hold: ${chain.reason}` }
}

const quietMs = 1_000

/** One line of stderr on a terminal, once it takes longer than a second; gone afterwards. */
function progressOnTerminal(): { show(so: string): void; end(): void } {
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

function tell({ device, calls, journal, older, problems }: Audited): void {
  const kept = journal ? journal.entries - journal.first + 1 : 0
  const entries = journal ? `${kept} ${kept === 1 ? 'entry' : 'entries'}` : 'no journal'
  const before = older > 0 ? `; ${older} are older than it` : ''
  if (problems.length === 0) {
    data(
      `${paint('green', '✔')} ${inert(device)}: ${calls.length} calls agree with its journal (${entries}${before}) and the incidents`,
    )
    return
  }
  data(`${paint('red', '✘')} ${inert(device)} (${entries}${before})`)
  for (const problem of problems) data(`  ${inert(problem)}`)
}
