import { erasure, erasureRefusals } from '../domain/erasure.ts'
import { formatNumber } from '../domain/format.ts'
import { type CliCommand, type ConnectionOptions, commandLine } from './connection.ts'
import { CommandFailed } from './exit-codes.ts'
import { inert, print, printJson, printNote } from './ui/terminal.ts'

type EraseOptions = ConnectionOptions & { forGood?: boolean }

export function addEraseCommand(parent: CliCommand): void {
  parent
    .command('erase')
    .description(
      "erase a person's data (GDPR, article 17); without --for-good the command only shows what would change",
    )
    .argument('<name>', 'as in "operators list"')
    .option('--for-good', 'erase for good: only an earlier backup can bring the data back')
    .connected('\nExample:\n  nightshift operators erase anna\n  nightshift operators erase anna --for-good')
    .calls(async (api, name: string, { forGood: isForGood, ...options }: EraseOptions) => {
      const path = `/api/v1/operators/${encodeURIComponent(name)}/erasure`
      const answer = isForGood ? await api.post(path, { confirm: name }) : await api.get(path)
      if (options.json) return printJson(answer)
      const { pseudonym, rows, refusal } = erasure.parse(answer)
      if (pseudonym !== null) print(`${inert(name)} is ${inert(pseudonym)} from now on.`)
      for (const [table, count] of Object.entries(rows))
        print(`  ${inert(table.replaceAll('_', ' '))}: ${formatNumber(count)}`)
      if (refusal !== null) throw new CommandFailed('error', erasureRefusals[refusal])
      if (isForGood) printNote('Older backups still name this person until they are deleted.')
      else
        printNote(
          `Nothing was changed. "${commandLine(`operators erase ${inert(name)} --for-good`)}" erases the person, and you cannot undo the erasure.`,
        )
    })
}
