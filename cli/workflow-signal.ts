import type { Run } from '../start/run-file.ts'
import { findTemporalCli } from '../start/temporal-cli.ts'
import type { AnApproval } from './core.ts'
import { rootDir } from './where.ts'

/** The `temporal` that start uses here; elsewhere the one on the PATH of whoever pastes the command. */
export async function temporalProgram(run: Run | null): Promise<string> {
  // Only an embedded server has certainly fetched its program already, and looking must not begin a download.
  if (!run?.temporalUiUrl) return 'temporal'
  try {
    return (await findTemporalCli({ rootDir, env: process.env })).path
  } catch {
    return 'temporal'
  }
}

/** The command that decides through Temporal, broken into lines that a shell takes as one. `input` is JSON in quotes. */
export function signalCommand(
  program: string,
  address: string,
  approval: Pick<AnApproval, 'incidentId' | 'attempt'>,
  name: 'approve' | 'deny',
  input: string,
): string {
  return [
    `${/^[\w./-]+$/.test(program) ? program : `'${program.replaceAll("'", `'\\''`)}'`} workflow signal`,
    `--address ${address}`,
    `--workflow-id investigate:${approval.incidentId}:${approval.attempt}`,
    `--name ${name}`,
    `--input ${input}`,
  ].join(' \\\n  ')
}
