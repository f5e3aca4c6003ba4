import { type FollowUp, followUp, type ShiftView, shiftView } from '../domain/shift.ts'
import type { CliCommand, ConnectionOptions } from './connection.ts'
import { printList, shortenIds } from './ui/table.ts'
import { getTerminalWidth, inert, paint, print, printJson, printNote, wrap } from './ui/terminal.ts'

export function addMorningCommand(program: CliCommand): void {
  program
    .command('morning')
    .description('the night: what waits, what was escalated or repaired, and which pages were not sent')
    .connected('\nExample:\n  nightshift morning')
    .calls(async (api, options: ConnectionOptions) => {
      const { morning } = shiftView.parse(await api.get('/api/v1/shift'))
      if (options.json) return printJson(morning)
      printCard(morning)
    })
}

export function addHandOverCommand(program: CliCommand): void {
  program
    .command('hand-over')
    .description('a shift in five lines: what is open, waits, is watched or lost, and what to check first')
    .connected('\nExample:\n  nightshift hand-over')
    .calls(async (api, options: ConnectionOptions) => {
      const { handOver } = shiftView.parse(await api.get('/api/v1/shift'))
      if (options.json) return printJson(handOver)
      printCard(handOver)
    })
}

function printCard({ title, lines }: ShiftView['morning']): void {
  print(paint('bold', inert(title)))
  for (const { text, path } of lines) {
    print(wrap(inert(text), getTerminalWidth()))
    const id = path?.split('/')[1]
    if (id) print(paint('dim', `  ${inert(id)}`))
  }
}

export function addFollowUpsCommand(program: CliCommand): void {
  const parent = program
    .command('follow-ups')
    .description('open follow-ups of incidents that ended as mitigated')
    .connected(
      '\nExample:\n  nightshift follow-ups\n  nightshift follow-ups close inc_… --note "the disk was replaced"',
    )
    .calls(async (api, options: ConnectionOptions) => {
      const found = shiftView.shape.followUps.parse(await api.get('/api/v1/follow-ups'))
      if (options.json) return printJson(found)
      const shorten = shortenIds(found.first.map(({ incidentId }) => incidentId))
      printList(options, found.first, 'No follow-up is open.', {
        DUE: ({ dueOn, isOverdue }) => (isOverdue ? paint('red', `${inert(dueOn)} overdue`) : inert(dueOn)),
        OWNER: ({ owner, group }) => inert(owner ?? group ?? 'nobody yet'),
        INCIDENT: ({ incidentId }) => shorten(incidentId),
        WHAT: ({ title }) => inert(title),
      })
    })
  addChangeCommand(parent)
  parent
    .command('close')
    .description('close a follow-up, and say what was done')
    .argument('<incident>', 'the incident, such as inc_…')
    .requiredOption('--note <text>', 'what was done, recorded in the log')
    .connected('\nExample:\n  nightshift follow-ups close inc_… --note "the disk was replaced"')
    .calls(async (api, id: string, { note, ...options }: ConnectionOptions & { note: string }) => {
      const closed = followUp.parse(await api.post(`${toPath(id)}/close`, { note }))
      if (options.json) return printJson(closed)
      printNote(`Closed: ${inert(closed.title)}.`)
    })
}

type ChangeOptions = ConnectionOptions & { owner?: string; group?: string; due?: string }

function addChangeCommand(parent: CliCommand): void {
  parent
    .command('change')
    .description('give a follow-up another owner or date')
    .argument('<incident>', 'the incident, such as inc_…')
    .option('--owner <name>', 'a person')
    .option('--group <words>', 'a group of people as the owner, instead of one person')
    .option('--due <day>', 'as 2026-12-02')
    .connected('\nExample:\n  nightshift follow-ups change inc_… --owner anna --due 2026-12-02')
    .calls(async (api, id: string, { owner, group, due, ...options }: ChangeOptions) => {
      const body = { ...(owner && { owner }), ...(group && { group }), ...(due && { dueOn: due }) }
      const changed = followUp.parse(await api.post(toPath(id), body))
      if (options.json) return printJson(changed)
      printNote(`${describe(changed)}.`)
    })
}

const toPath = (id: string) => `/api/v1/follow-ups/${encodeURIComponent(id)}`
const describe = ({ owner, group, dueOn }: FollowUp) =>
  `For ${inert(owner ?? group ?? 'nobody yet')}, due ${inert(dueOn)}`
