import { type LabClient, labClient } from '../../lab/client.ts'
import { CommandFailed } from '../exit-code.ts'
import { readLocalRun } from '../where.ts'

/** The lab of the start that runs here; what it answers badly becomes an error of the command. */
export function connectLab(): LabClient {
  const run = readLocalRun()
  if (!run)
    throw new CommandFailed(
      'error',
      'Nightshift does not run here, and the lab is part of it. Start it with "npm start".',
    )
  if (!run.labUrl || !run.labControlToken) {
    throw new CommandFailed(
      'error',
      'This start has no lab, because the environment names another platform or core API.',
    )
  }
  return labClient(run.labUrl, run.labControlToken)
}
