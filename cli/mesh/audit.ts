import { join } from 'node:path'
import type { Command } from 'commander'
import { z } from 'zod'
import { segmentsOf, verifyChain } from '../../mesh/agent/chain.ts'
import { type Asking, asking, connected } from '../connection.ts'
import { type Core, listAll } from '../core.ts'
import { CommandFailed } from '../exit-code.ts'
import { inert } from '../inert.ts'
import { data, json, paint } from '../terminal.ts'
import { aDevice } from './a-device.ts'

const audited = z.looseObject({
  device: z.string(),
  journal: z.looseObject({ entries: z.number(), head: z.string() }).nullable(),
  calls: z.array(z.looseObject({ key: z.string(), auditHash: z.string() })),
  problems: z.array(z.string()),
})
type Audited = z.infer<typeof audited>

export function auditMesh(parent: Command): void {
  const audit = parent
    .command('audit')
    .description('what devices journalled, against what rows say')
    .addHelpText('after', '\nExample:\n  nightshift mesh audit verify')
  asking(
    audit
      .command('verify')
      .description("hold the devices' journals, the calls and the incidents' rows against each other")
      .argument('[device]', 'one of them alone')
      .option('--journal <dir>', 'state directory of that device, or a copy: verifies its whole chain too'),
  )
    .addHelpText(
      'after',
      '\nExample:\n  nightshift mesh audit verify\n  nightshift mesh audit verify node-osl-1 --journal /var/lib/nightshift-agent',
    )
    .action(async (device: string | undefined, options: Asking & { journal?: string }) => {
      const { api } = connected(options)
      if (options.journal && !device) throw new CommandFailed('usage', '--journal is of one device: name it.')
      const reports: Audited[] = []
      for (const name of device ? [device] : await enrolledDevices(api)) {
        const report = audited.parse(await api.get(`/api/v1/devices/${encodeURIComponent(name)}/audit`))
        if (options.journal) report.problems.push(...chainProblems(options.journal, report))
        reports.push(report)
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

/** Does the chain hold, is each call in it, and is it the one that the device tells of? */
function chainProblems(state: string, { calls, journal, device }: Audited): string[] {
  const directory = segmentsOf(join(state, 'journal')).length > 0 ? join(state, 'journal') : state
  const hashes = new Set<string>()
  const chain = verifyChain(directory, (_entry, hash) => hashes.add(hash))
  if (!chain.ok) return [`the journal does not hold: ${chain.reason}`]
  if (chain.entries === 0) return [`there is no journal in ${state}`]
  const missing = calls.filter(({ auditHash }) => !hashes.has(auditHash))
  return [
    ...(chain.first === 1 ? missing : []).map(({ key }) => `${key}: its hash is not in the journal`),
    ...(journal?.entries === chain.entries && journal.head !== chain.head
      ? [`${device} tells of another head than this journal has`]
      : []),
  ]
}

function tell({ device, calls, journal, problems }: Audited): void {
  const entries = journal ? `${journal.entries} entries` : 'no journal'
  if (problems.length === 0) {
    data(
      `${paint('green', '✔')} ${inert(device)}: ${calls.length} calls agree with its journal (${entries}) and the incidents`,
    )
    return
  }
  data(`${paint('red', '✘')} ${inert(device)} (${entries})`)
  for (const problem of problems) data(`  ${inert(problem)}`)
}
