import { InvalidArgumentError } from 'commander'
import { z } from 'zod'
import { alertState, receivedAlert, type UnmappedLabel, unmappedLabel } from '../domain/alert.ts'
import { formatCount } from '../domain/format.ts'
import { kinds } from '../domain/kinds.ts'
import { parseResourceKey } from '../domain/registry.ts'
import { alertDoubts } from '../domain/unproven-end.ts'
import type { CliCommand, ConnectionOptions } from './connection.ts'
import { listAll } from './read-api.ts'
import { formatMoment, printList, shortenIds } from './ui/table.ts'
import { inert, parseOneOf, parseWholeNumber, print, printJson } from './ui/terminal.ts'

export function addAlertsCommand(program: CliCommand): void {
  const parent = program
    .command('alerts')
    .description('alerts as monitoring systems sent them')
    .addHelpText('after', '\nExample:\n  nightshift alerts list --resource node:web-1 --status firing')
  addListCommand(parent)
}

type ListOptions = ConnectionOptions & {
  resource?: string
  status?: string
  source?: string
  q?: string
  unmatched?: boolean
  limit: number
}

function parseResource(text: string): string {
  if (!parseResourceKey(text)) throw new InvalidArgumentError('Write the resource as kind:id, such as node:web-1.')
  return text
}

function addListCommand(parent: CliCommand): void {
  parent
    .command('list')
    .description('alerts as they arrived, newest first')
    .option('--resource <kind:id>', 'only alerts about this resource, under any of its names', parseResource)
    .option('--status <status>', alertState.options.join(', '), parseOneOf(alertState.options))
    .option('--source <name>', 'only alerts of this sender, such as alertmanager')
    .option('--q <text>', 'only alerts with this text in name, title or fingerprint')
    .option('--unmatched', 'only alerts without a known resource, with the labels that a rule could map')
    .option('--limit <n>', 'how many at most', parseWholeNumber, 50)
    .connected(
      '\nExample:\n  nightshift alerts list --resource node:web-1 --status firing\n  nightshift alerts list --unmatched',
    )
    .calls(async (api, { resource, status, source, q, unmatched, limit, ...options }: ListOptions) => {
      const query = new URLSearchParams({
        ...(resource && { resource }),
        ...(status && { status }),
        ...(source && { source }),
        ...(q && { q }),
        ...(unmatched && { unmatched: 'true' }),
        limit: String(Math.min(limit, 100)),
      })
      const alerts = await listAll(api, `/api/v1/alerts?${query}`, receivedAlert.loose(), limit)
      if (unmatched) {
        const { items } = unmappedLabels.parse(await api.get('/api/v1/alerts/unmapped-labels'))
        if (options.json) return printJson({ labels: items, alerts })
        for (const each of items) print(describeUnmapped(each))
      }
      const shorten = shortenIds(alerts.flatMap(({ incidentId }) => incidentId ?? []))
      printList(options, alerts, 'No alert fits.', {
        STATUS: (each) => (each.status === 'resolved' && each.endReason ? 'unproven' : inert(each.status)),
        SINCE: (each) => formatMoment(each.startsAt),
        SENDER: (each) => inert(each.source),
        INCIDENT: (each) => shorten(each.incidentId ?? ''),
        ALERT: (each) => [inert(each.name), ...alertDoubts(each).map((doubt) => `(${inert(doubt)})`)].join(' '),
      })
    })
}

const unmappedLabels = z.object({ items: z.array(unmappedLabel.loose()) })

/** Formats how many resources an unmapped label names, and the command that maps it. */
function describeUnmapped({ label, kind, things, alerts, examples, command }: UnmappedLabel): string {
  const named = things === 1 ? `1 known ${kind}` : `${things} known ${kinds[kind].plural}`
  const [example] = examples
  const as = example ? ` (${inert(example.value)} is ${inert(example.resource)})` : ''
  return `${inert(label)} names ${named} in ${formatCount(alerts, 'alert')}${as}. Map the label:\n  ${inert(command)}\n`
}
