import { truncate } from '../domain/format.ts'
import { searchAnswer } from '../domain/incident-detail.ts'
import { withAlertName } from '../domain/status-words.ts'
import { type CliCommand, type ConnectionOptions, connect } from './connection.ts'
import { formatMoment, formatTable } from './ui/table.ts'
import { inert, print, printJson, printNote } from './ui/terminal.ts'

export function addSearchCommand(program: CliCommand): void {
  program
    .command('search')
    .description(
      'finds incidents by their names or their alert, resources by their names, rows of the log by their words',
    )
    .argument(
      '<words...>',
      'parts of a title, resource or type; an alert by name, fingerprint or label (env=prod); words of the log',
    )
    .connected('\nExample:\n  nightshift search OOMKilled checkout')
    .action(async (words: string[], options: ConnectionOptions) => {
      const text = words.join(' ')
      const found = searchAnswer.parse(
        await connect(options).api.get(`/api/v1/search?q=${encodeURIComponent(text.slice(0, 200))}`),
      )
      if (options.json) return printJson(found)
      const rows = [
        ...found.incidents.map(({ id, title, alertName, createdAt }) => [
          'incident',
          id,
          formatMoment(createdAt),
          inert(withAlertName(title, alertName)),
        ]),
        ...found.resources.map(({ kind, id }) => [kind, '', '', inert(id)]),
        ...found.log.map(({ incidentId, seq, detail, at }) => {
          const line = truncate(detail.split('\n')[0] ?? '', 200)
          return ['log', incidentId, formatMoment(at), `row ${seq}: ${inert(line)}`]
        }),
      ]
      if (rows.length === 0) printNote(`Nothing found for "${inert(text)}".`)
      else print(formatTable(['WHAT', 'ID', 'AT', 'TEXT'], rows, 3))
      if (found.isPartial) printNote('Too many rows of the log have these words. Add another word.')
    })
}
