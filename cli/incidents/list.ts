import type { Command } from 'commander'
import { incidentStatus, severity } from '../../domain/incident.ts'
import { remarks } from '../../domain/status-words.ts'
import { type ConnectionOptions, connect, withConnectionOptions } from '../connection.ts'
import { apiIncident, listAll } from '../core.ts'
import { inert } from '../inert.ts'
import { parseOneOf, parseWholeNumber } from '../one-of.ts'
import { formatTable } from '../table.ts'
import { print, printJson, printNote, terminalWidth } from '../terminal.ts'
import { formatSpan } from '../time.ts'
import { paintState } from '../word.ts'

type ListOptions = ConnectionOptions & {
  status?: string
  type?: string
  severity?: string
  search?: string
  limit: number
}

export function addListCommand(parent: Command): void {
  withConnectionOptions(
    parent
      .command('list')
      .description('incidents, newest first')
      .option('--status <status>', `one of ${incidentStatus.options.join(', ')}`, parseOneOf(incidentStatus.options))
      .option('--severity <severity>', `one of ${severity.options.join(', ')}`, parseOneOf(severity.options))
      .option('--type <type>', 'type of incident, as replication_lag')
      .option('--search <text>', 'text in the title')
      .option('--limit <n>', 'how many at most', parseWholeNumber, 25),
  )
    .addHelpText('after', '\nExample:\n  nightshift incidents list --status escalated --json')
    .action(async (options: ListOptions) => {
      const { api } = connect(options)
      const query = new URLSearchParams({ limit: String(Math.min(options.limit, 100)) })
      for (const [name, value] of Object.entries({ ...options, q: options.search })) {
        if (['status', 'severity', 'type', 'q'].includes(name) && value) query.set(name, String(value))
      }
      const incidents = await listAll(api, `/api/v1/incidents?${query}`, apiIncident, options.limit)
      if (options.json) return printJson(incidents)
      if (incidents.length === 0) return printNote('No incidents match.')
      const rows = incidents.map((each) => [
        inert(each.id),
        paintState(each.severity),
        paintState(each.status),
        formatSpan(Date.now() - Date.parse(each.createdAt)),
        formatTitle(inert(each.title), inert(remarks(each).join(', '))),
      ])
      print(formatTable(['ID', 'SEVERITY', 'STATUS', 'AGE', 'TITLE'], rows, 4))
    })
}

/** A title with what is to be known about its incident, which no long title pushes out of sight. */
function formatTitle(title: string, said: string): string {
  if (said === '') return title
  if (!process.stdout.isTTY) return `${title} (${said})`
  const room = Math.max(20, terminalWidth() - said.length - 6)
  return `${title.length > room ? `${title.slice(0, room - 1).trimEnd()}…` : title} (${said})`
}
