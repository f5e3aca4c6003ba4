import type { Command } from 'commander'
import type { TemporalSettings } from '../../clients/temporal/trouble.ts'
import type { Decision } from '../../domain/approval.ts'
import { investigationId } from '../../domain/workflow-id.ts'
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
      .description('create a token to decide through Temporal; prints it, and how to use it on stderr')
      .argument('<id>', 'as apr_…')
      .argument('<verdict>', 'approve or deny: the token is valid for this verdict only', parseOneOf(verdicts)),
  )
    .addHelpText('after', '\nExample:\n  nightshift approvals token apr_01k… approve')
    .action(async (id: string, verdict: Decision, options: ConnectionOptions) => {
      const { api, target } = connect(options)
      const approval = await readApproval(api, id)
      const minted = await mintToken(api, id, verdict)
      if (options.json) return printJson(minted)
      print(minted.token)
      const temporal = readTemporalSettings(target.run) ?? defaultTemporal
      const program = await findTemporalProgram(target.run)
      const input = {
        decision: verdict,
        token: minted.token,
        ...(verdict === 'deny' && { reason: 'why not; the agent reads it' }),
      }
      printNote(`Valid once, until ${formatMoment(minted.expiresAt)}. To ${verdict} ${id}:\n`)
      printNote(formatUpdateCommand(program, temporal, approval, `'${JSON.stringify(input)}'`))
      printNote('\nIt prints the result; so does "nightshift approvals show".')
    })
}

/** The `temporal` program of the start that runs here, else `temporal`, to be found on the PATH. */
export async function findTemporalProgram(run: Run | null): Promise<string> {
  // Only an embedded server has its program for certain. Looking for another would start a
  // download.
  if (!run?.temporalUiUrl) return 'temporal'
  try {
    return (await findTemporalCli({ rootDir, env: process.env })).path
  } catch {
    return 'temporal'
  }
}

/**
 * The shell command that decides through Temporal, on several lines. It is an Update, because that
 * returns an answer and a Signal does not. `input` is quoted JSON. `temporal` reads TLS and keys
 * from the same variables as Nightshift.
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
    `--workflow-id ${investigationId(approval)}`,
    '--name decide',
    `--input ${input}`,
  ].join(' \\\n  ')
}
