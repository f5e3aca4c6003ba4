import type { Command } from 'commander'
import { cancelIncident, escalateIncident, resolveIncident } from './end.ts'
import { expectIncident } from './expect.ts'
import { exportIncident } from './export.ts'
import { investigateIncident } from './investigate.ts'
import { listIncidents } from './list.ts'
import { noteOnIncident } from './note.ts'
import { giveBackIncident, takeIncident } from './own.ts'
import { showIncident } from './show.ts'
import { verifyIncident } from './verify.ts'
import { watchIncidents } from './watch.ts'

export function incidentsCommand(program: Command): void {
  const parent = program
    .command('incidents')
    .description('what happened, what was done, and how it ended')
    .addHelpText('after', '\nExample:\n  nightshift incidents list\n  nightshift incidents show inc_01k…')
  listIncidents(parent)
  showIncident(parent)
  watchIncidents(parent)
  verifyIncident(parent)
  exportIncident(parent)
  noteOnIncident(parent)
  takeIncident(parent)
  giveBackIncident(parent)
  resolveIncident(parent)
  cancelIncident(parent)
  escalateIncident(parent)
  expectIncident(parent)
  investigateIncident(parent)
}
