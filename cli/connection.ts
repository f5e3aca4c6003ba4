import { type Command, Option } from 'commander'
import { type Core, core } from './core.ts'
import { tellInUtc } from './time.ts'
import { type Where, type WhereOptions, whereToAsk } from './where.ts'

export type Asking = WhereOptions & { json?: boolean }

/** The flags of every command that asks the API: where, as whom, and for whom the output is. */
export function asking(command: Command): Command {
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
    .on('option:utc', tellInUtc)
    .option('--json', 'JSON for programs; errors are problem+json on stderr')
}

export function connected(options: Asking, wanted?: Parameters<typeof whereToAsk>[1]): { api: Core; where: Where } {
  const where = whereToAsk(options, wanted)
  return { api: core(where), where }
}
