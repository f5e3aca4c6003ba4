import type { Command } from 'commander'
import { incidentStatus, severity } from '../../domain/incident.ts'
import { remarks } from '../../domain/status-words.ts'
import { type Asking, asking, connected } from '../connection.ts'
import { anIncident, listAll } from '../core.ts'
import { inert } from '../inert.ts'
import { oneOf, whole } from '../one-of.ts'
import { table } from '../table.ts'
import { data, json, note, width } from '../terminal.ts'
import { span } from '../time.ts'
import { word } from '../word.ts'

type Options = Asking & { status?: string; type?: string; severity?: string; search?: string; limit: number }

export function listIncidents(parent: Command): void {
  asking(
    parent
      .command('list')
      .description('incidents, newest first')
      .option('--status <status>', `one of ${incidentStatus.options.join(', ')}`, oneOf(incidentStatus.options))
      .option('--severity <severity>', `one of ${severity.options.join(', ')}`, oneOf(severity.options))
      .option('--type <type>', 'type of incident, as replication_lag')
      .option('--search <text>', 'text in the title')
      .option('--limit <n>', 'how many at most', whole, 25),
  )
    .addHelpText('after', '\nExample:\n  nightshift incidents list --status escalated --json')
    .action(async (options: Options) => {
      const { api } = connected(options)
      const query = new URLSearchParams({ limit: String(Math.min(options.limit, 100)) })
      for (const [name, value] of Object.entries({ ...options, q: options.search })) {
        if (['status', 'severity', 'type', 'q'].includes(name) && value) query.set(name, String(value))
      }
      const incidents = await listAll(api, `/api/v1/incidents?${query}`, anIncident, options.limit)
      if (options.json) return json(incidents)
      if (incidents.length === 0) return note('No incidents match.')
      const rows = incidents.map((each) => [
        inert(each.id),
        word(each.severity),
        word(each.status),
        span(Date.now() - Date.parse(each.createdAt)),
        titled(inert(each.title), inert(remarks(each).join(', '))),
      ])
      data(table(['ID', 'SEVERITY', 'STATUS', 'AGE', 'TITLE'], rows, 4))
    })
}

/** A title with what is to be known about its incident, which no long title pushes out of sight. */
function titled(title: string, said: string): string {
  if (said === '') return title
  if (!process.stdout.isTTY) return `${title} (${said})`
  const room = Math.max(20, width() - said.length - 6)
  return `${title.length > room ? `${title.slice(0, room - 1).trimEnd()}…` : title} (${said})`
}
