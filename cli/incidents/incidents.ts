import type { Command } from 'commander'
import { addCancelCommand, addEscalateCommand, addResolveCommand } from './end.ts'
import { addExpectCommand } from './expect.ts'
import { addExportCommand } from './export.ts'
import { addInvestigateCommand } from './investigate.ts'
import { addListCommand } from './list.ts'
import { addNoteCommand } from './note.ts'
import { addGiveBackCommand, addTakeCommand } from './own.ts'
import { addShowCommand } from './show.ts'
import { addVerifyCommand } from './verify.ts'
import { addWatchCommand } from './watch.ts'

export function addIncidentsCommand(program: Command): void {
  const parent = program
    .command('incidents')
    .description('what happened, what was done, and how it ended')
    .addHelpText('after', '\nExample:\n  nightshift incidents list\n  nightshift incidents show inc_01k…')
  addListCommand(parent)
  addShowCommand(parent)
  addWatchCommand(parent)
  addVerifyCommand(parent)
  addExportCommand(parent)
  addNoteCommand(parent)
  addTakeCommand(parent)
  addGiveBackCommand(parent)
  addResolveCommand(parent)
  addCancelCommand(parent)
  addEscalateCommand(parent)
  addExpectCommand(parent)
  addInvestigateCommand(parent)
}
