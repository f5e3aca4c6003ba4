import { InvalidArgumentError } from 'commander'
import { alertState, receivedAlert } from '../domain/alert.ts'
import { parseResourceKey } from '../domain/registry.ts'
import { alertDoubts } from '../domain/unproven-end.ts'
import type { CliCommand, ConnectionOptions } from './connection.ts'
import { listAll } from './read-api.ts'
import { formatMoment, printList } from './ui/table.ts'
import { inert, parseOneOf, parseWholeNumber } from './ui/terminal.ts'

export function addAlertsCommand(program: CliCommand): void {
  const parent = program
    .command('alerts')
    .description('what the senders of alerts sent')
    .addHelpText('after', '\nExample:\n  nightshift alerts list --resource node:web-1 --status firing')
  addListCommand(parent)
}

type ListOptions = ConnectionOptions & {
  resource?: string
  status?: string
  source?: string
  q?: string
  limit: number
}

function parseResource(text: string): string {
  if (!parseResourceKey(text)) throw new InvalidArgumentError('It takes kind:id, as node:web-1.')
  return text
}

function addListCommand(parent: CliCommand): void {
  parent
    .command('list')
    .description('alerts as they were taken in, newest first')
    .option('--resource <kind:id>', 'about this, under any of its names', parseResource)
    .option('--status <status>', alertState.options.join(', '), parseOneOf(alertState.options))
    .option('--source <name>', 'of this sender, as alertmanager')
    .option('--q <text>', 'only those with this text in name, title or fingerprint')
    .option('--limit <n>', 'how many at most', parseWholeNumber, 50)
    .connected('\nExample:\n  nightshift alerts list --resource node:web-1 --status firing')
    .calls(async (api, { resource, status, source, q, limit, ...options }: ListOptions) => {
      const query = new URLSearchParams({
        ...(resource && { resource }),
        ...(status && { status }),
        ...(source && { source }),
        ...(q && { q }),
        limit: String(Math.min(limit, 100)),
      })
      const alerts = await listAll(api, `/api/v1/alerts?${query}`, receivedAlert.loose(), limit)
      printList(options, alerts, 'No alert fits.', {
        STATUS: (each) => (each.status === 'resolved' && each.endReason ? 'unproven' : inert(each.status)),
        SINCE: (each) => formatMoment(each.startsAt),
        SENDER: (each) => inert(each.source),
        INCIDENT: (each) => inert(each.incidentId ?? ''),
        ALERT: (each) => [inert(each.name), ...alertDoubts(each).map((doubt) => `(${inert(doubt)})`)].join(' '),
      })
    })
}
