import type { Command } from 'commander'
import type { TemporalSettings } from '../../clients/temporal/settings.ts'
import type { Decision } from '../../domain/approval.ts'
import type { Run } from '../../start/run-file.ts'
import { findTemporalCli } from '../../start/temporal-cli.ts'
import { type ApiApproval, readApproval } from '../api.ts'
import { type ConnectionOptions, connect, rootDir, withConnectionOptions } from '../connection.ts'
import { defaultTemporal, readTemporalSettings } from '../probes.ts'
import { formatMoment } from '../ui/format.ts'
import { parseOneOf } from '../ui/options.ts'
import { print, printJson, printNote } from '../ui/terminal.ts'
import { mintToken } from './decide.ts'

const verdicts = ['approve', 'deny'] as const

export function addTokenCommand(parent: Command): void {
  withConnectionOptions(
    parent
      .command('token')
      .description('a token to approve or deny through Temporal; prints it, and how to use it on stderr')
      .argument('<id>', 'as apr_…')
      .argument('<verdict>', 'approve or deny: the token does this one, and nothing else', parseOneOf(verdicts)),
  )
    .addHelpText('after', '\nExample:\n  nightshift approvals token apr_01k… approve')
    .action(async (id: string, verdict: Decision, options: ConnectionOptions) => {
      const { api, where } = connect(options)
      const approval = await readApproval(api, id)
      const minted = await mintToken(api, id, verdict)
      if (options.json) return printJson(minted)
      print(minted.token)
      const temporal = readTemporalSettings(where.run) ?? defaultTemporal
      const program = await findTemporalProgram(where.run)
      const input = {
        decision: verdict,
        token: minted.token,
        ...(verdict === 'deny' && { reason: 'why not; the agent reads it' }),
      }
      printNote(`Good once, until ${formatMoment(minted.expiresAt)}. To ${verdict} ${id}:\n`)
      printNote(formatUpdateCommand(program, temporal, approval, `'${JSON.stringify(input)}'`))
      printNote('\nIt answers what came of it; so does "nightshift approvals show".')
    })
}

/** The `temporal` that start uses here; elsewhere the one on the PATH of whoever pastes the command. */
export async function findTemporalProgram(run: Run | null): Promise<string> {
  // Only an embedded server has certainly fetched its program already, and looking must not begin a download.
  if (!run?.temporalUiUrl) return 'temporal'
  try {
    return (await findTemporalCli({ rootDir, env: process.env })).path
  } catch {
    return 'temporal'
  }
}

/**
 * The command that decides through Temporal, broken into lines that a shell takes as one: an Update, which is answered, as a Signal is
 * not. `input` is JSON in quotes. What else it takes to get in (TLS, a key), `temporal` reads from the same variables as we.
 */
export function formatUpdateCommand(
  program: string,
  { address, namespace }: Pick<TemporalSettings, 'address' | 'namespace'>,
  approval: Pick<ApiApproval, 'incidentId' | 'attempt'>,
  input: string,
): string {
  return [
    `${/^[\w./-]+$/.test(program) ? program : `'${program.replaceAll("'", `'\\''`)}'`} workflow update execute`,
    `--address ${address}${namespace === 'default' ? '' : ` --namespace ${namespace}`}`,
    `--workflow-id investigate:${approval.incidentId}:${approval.attempt}`,
    '--name decide',
    `--input ${input}`,
  ].join(' \\\n  ')
}
