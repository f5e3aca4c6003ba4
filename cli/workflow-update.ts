import type { TemporalSettings } from '../clients/temporal/settings.ts'
import type { Run } from '../start/run-file.ts'
import { findTemporalCli } from '../start/temporal-cli.ts'
import type { ApiApproval } from './core.ts'
import { rootDir } from './where.ts'

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
