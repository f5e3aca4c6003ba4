import { z } from 'zod'
import { formatNumber } from '../domain/format.ts'
import {
  incidentHold,
  type KeptReason,
  keptReasons,
  type RetainedNow,
  retainedNow,
  retention,
} from '../domain/retention.ts'
import { type CliCommand, type ConnectionOptions, commandLine } from './connection.ts'
import { formatMoment, printList } from './ui/table.ts'
import { inert, parseWholeNumber, print, printJson, printNote } from './ui/terminal.ts'

// Accepts further fields, so that fields of a newer API still appear in --json.
const answer = retention.extend({ items: z.array(retainedNow.loose()) }).loose()
const holds = z.looseObject({ items: z.array(incidentHold.loose()) })

type Days = number | 'keep'
type PreviewOptions = ConnectionOptions & { incidents?: Days; deliveries?: Days; alerts?: Days }

export function addRetentionCommand(root: CliCommand): void {
  const parent = root
    .command('retention')
    .description('which old data is removed, and which is kept')
    .addHelpText('after', '\nExample:\n  nightshift retention preview --incidents 90\n  nightshift retention holds')
  parent
    .command('preview')
    .description(
      'what retention would remove now, by the settings or by the ages in days that you give; removes nothing',
    )
    .option('--incidents <days>', 'age in days of closed incidents to remove, or keep to remove none', parseDays)
    .option('--deliveries <days>', 'age in days of finished messages to remove, or keep to remove none', parseDays)
    .option(
      '--alerts <days>',
      'age in days of ended alerts without an incident to remove, or keep to remove none',
      parseDays,
    )
    .connected('\nExample:\n  nightshift retention preview --incidents 180')
    .calls(async (api, { incidents, deliveries, alerts, ...options }: PreviewOptions) => {
      const given = { incidents, deliveries, alerts }
      const asked = Object.entries(given).flatMap(([kind, days]) => (days === undefined ? [] : [[kind, String(days)]]))
      const query = new URLSearchParams(asked as [string, string][])
      const found = answer.parse(await api.get(`/api/v1/retention?${query}`))
      if (options.json) return printJson(found)
      for (const item of found.items) print(formatItem(item))
      const { bodies, lastRound } = found
      if (bodies > 0) print(`  ${formatNumber(bodies)} stored texts of removed incidents are deleted after a day.`)
      print(
        lastRound
          ? `  The last complete run of retention ended at ${formatMoment(lastRound.endedAt)}.`
          : '  Retention has not run yet. It first runs a minute after the API starts.',
      )
      for (const [kind, days] of asked)
        printNote(`Set it with "${commandLine(`config set retention.${kind} ${days}`)}".`)
    })
  parent
    .command('holds')
    .description('incidents that people keep at any age')
    .connected('\nExample:\n  nightshift retention holds --json')
    .calls(async (api, options: ConnectionOptions) => {
      const { items } = holds.parse(await api.get('/api/v1/holds'))
      printList(options, items, 'No incident is held. Hold an incident with "nightshift incidents hold".', {
        INCIDENT: (each) => inert(each.incidentId),
        SINCE: (each) => formatMoment(each.heldAt),
        'BY AND WHY': (each) => inert(`${each.heldBy}: ${each.reason}`),
      })
    })
}

const parseDays = (text: string): Days => (text === 'keep' ? text : parseWholeNumber(text))

function formatItem({ kind, setting, days, due, kept, isPartial }: RetainedNow): string {
  if (days === null) return `${kind}: kept for ever (${setting} is keep).`
  const lines = [
    `${kind}: ${formatNumber(due)}${isPartial ? ' and more' : ''} are older than ${days} days and would go (${setting}).`,
  ]
  for (const [reason, count] of Object.entries(kept))
    lines.push(`  ${formatNumber(count)} of that age stay: ${keptReasons[reason as KeptReason]}.`)
  return lines.join('\n')
}

type Because = ConnectionOptions & { reason: string }

export function addHoldCommand(parent: CliCommand): void {
  parent
    .command('hold')
    .description('keep an incident at any age')
    .argument('<id>', 'the incident, such as inc_…')
    .requiredOption('--reason <text>', 'why it has to be kept')
    .connected('\nExample:\n  nightshift incidents hold inc_01k… --reason "the insurer asks for it"')
    .calls(async (api, id: string, { reason, ...options }: Because) => {
      const made = await api.post(`/api/v1/incidents/${encodeURIComponent(id)}/hold`, { reason })
      if (options.json) return printJson(made)
      printNote(
        `${inert(id)} is kept at any age. To end the hold: "${commandLine(`incidents release ${inert(id)} --reason "…"`)}".`,
      )
    })
}

export function addReleaseCommand(parent: CliCommand): void {
  parent
    .command('release')
    .description('release an incident: retention may remove it again')
    .argument('<id>', 'the incident, such as inc_…')
    .requiredOption('--reason <text>', 'why it need not be kept any more')
    .connected('\nExample:\n  nightshift incidents release inc_01k… --reason "the case is closed"')
    .calls(async (api, id: string, { reason, ...options }: Because) => {
      const ended = await api.post(`/api/v1/incidents/${encodeURIComponent(id)}/release`, { reason })
      if (options.json) return printJson(ended)
      printNote(`${inert(id)} is released: retention may remove it again.`)
    })
}
