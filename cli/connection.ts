import { type Command, Option } from 'commander'
import { type ApiClient, createApiClient } from './core.ts'
import { useUtc } from './time.ts'
import { type ApiTarget, resolveTarget, type TargetOptions } from './where.ts'

export type ConnectionOptions = TargetOptions & { json?: boolean }

/** The flags of every command that asks the API: where, as whom, and for whom the output is. */
export function withConnectionOptions(command: Command): Command {
  return command
    .option('--url <url>', 'where the API is (else NIGHTSHIFT_URL, else the start that runs here)')
    .option('--token-file <file>', 'file with the bearer token (else NIGHTSHIFT_TOKEN_FILE or NIGHTSHIFT_TOKEN)')
    .addOption(
      new Option('--as <token>', 'which token of the start that runs here').choices([
        'admin',
        'approver',
        'ingest',
        'agent',
      ]),
    )
    .option('--utc', 'times in UTC instead of local time')
    .on('option:utc', useUtc)
    .option('--json', 'JSON for programs; errors are problem+json on stderr')
}

export function connect(
  options: ConnectionOptions,
  wanted?: Parameters<typeof resolveTarget>[1],
): { api: ApiClient; where: ApiTarget } {
  const where = resolveTarget(options, wanted)
  return { api: createApiClient(where), where }
}
