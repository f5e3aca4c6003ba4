import { InvalidArgumentError } from 'commander'
import { formatNumber } from '../domain/format.ts'
import type { InventoryKind } from '../domain/kinds.ts'
import { inventoryKind } from '../domain/registry.ts'
import { knowledgeList, runbookMatch, runbookName, shownRunbook } from '../domain/runbook.ts'
import { type CliCommand, type ConnectionOptions, connect } from './connection.ts'
import { formatTable } from './ui/table.ts'
import { inert, paint, print, printJson, printNote } from './ui/terminal.ts'

export function addKnowledgeCommand(program: CliCommand): void {
  const parent = program
    .command('knowledge')
    .description('runbooks: those that ship with the product, and those of this site')
    .addHelpText('after', '\nExample:\n  nightshift knowledge test disk_pressure --kind node')
  addListCommand(parent)
  addShowCommand(parent)
  addTestCommand(parent)
}

export function parseKind(text: string): InventoryKind {
  const kind = inventoryKind.safeParse(text)
  if (!kind.success) throw new InvalidArgumentError(`Write one of ${inventoryKind.options.join(', ')}.`)
  return kind.data
}

function addListCommand(parent: CliCommand): void {
  parent
    .command('list')
    .description('runbooks by name, their origin, and the files that could not be read as a runbook')
    .connected('\nExample:\n  nightshift knowledge list')
    .action(async (options: ConnectionOptions) => {
      const known = knowledgeList.parse(await connect(options).api.get('/api/v1/knowledge'))
      if (options.json) return printJson(known)
      const rows = known.items.map(({ name, origin, replaces, incidentTypes, resourceKinds, reviewedAt }) => [
        inert(name),
        replaces.length > 0 ? `${origin}, before ${replaces.join(' and ')}` : origin,
        inert(incidentTypes.join(', ')) || 'any',
        resourceKinds.join(', ') || 'any',
        reviewedAt ?? '',
      ])
      print(formatTable(['NAME', 'FROM', 'TYPES', 'KINDS', 'REVIEWED'], rows, 2))
      for (const { origin, at, commit, readAt, error } of known.places) {
        const state = commit === null ? '' : ` at ${commit.slice(0, 12)}`
        printNote(
          `${origin}: ${inert(at)}${state}, read ${readAt ?? 'never'}${error === null ? '' : `; ${inert(error)}`}`,
        )
      }
      for (const { origin, file, why, remedy } of known.refused)
        printNote(`${paint('yellow', '✖')} ${origin} ${inert(file)} is not used: ${inert(why)}. ${inert(remedy)}.`)
    })
}

function addShowCommand(parent: CliCommand): void {
  const parseName = (text: string) => {
    if (!runbookName.safeParse(text).success)
      throw new InvalidArgumentError('Use small letters, digits and single dashes, 64 at most.')
    return text
  }
  parent
    .command('show')
    .description('one runbook, as the model reads it')
    .argument('<name>', 'its name', parseName)
    .connected('\nExample:\n  nightshift knowledge show host-down')
    .action(async (name: string, options: ConnectionOptions) => {
      const found = shownRunbook.parse(await connect(options).api.get(`/api/v1/knowledge/${name}`))
      if (options.json) return printJson(found)
      print(`${inert(found.name)}  ${inert(found.description)}`)
      const before = found.replaces.length > 0 ? `, before ${found.replaces.join(' and ')}` : ''
      print(`  from      ${found.origin}${before}`)
      print(`  types     ${inert(found.incidentTypes.join(', ')) || 'any'}`)
      print(`  kinds     ${found.resourceKinds.join(', ') || 'any'}`)
      print(`  owner     ${inert(found.owner ?? 'not said')}, reviewed ${found.reviewedAt ?? 'never'}`)
      print(`  content   ${found.digest.slice(0, 12)}, ${formatNumber(found.bytes)} bytes\n`)
      print(inert(found.body, { lines: true }))
    })
}

type TestOptions = ConnectionOptions & { kind?: InventoryKind; words?: string }

function addTestCommand(parent: CliCommand): void {
  parent
    .command('test')
    .description('which runbook an incident of a type gets')
    .argument('<incident-type>', 'type of the incident, which is the name of its alert')
    .option('--kind <kind>', 'kind of the resource of the incident', parseKind)
    .option('--words <text>', 'text of the alert')
    .connected('\nExample:\n  nightshift knowledge test NodeDiskFull --kind node')
    .action(async (type: string, { kind, words, ...options }: TestOptions) => {
      const query = new URLSearchParams({ type, ...(kind && { kind }), ...(words && { words }) })
      const match = runbookMatch.parse(await connect(options).api.get(`/api/v1/knowledge-match?${query}`))
      if (options.json) return printJson(match)
      const { chosen, others } = match
      if (chosen) print(`in full  ${inert(chosen.name)} (${chosen.origin}), by ${byWhat[chosen.why]}`)
      for (const { name, description, why } of others)
        print(`by name  ${inert(name)}, by ${byWhat[why]}: ${inert(description)}`)
      if (!chosen) printNote('No runbook fits this type or kind. Add the type to the incident_types of a runbook.')
    })
}

const byWhat = { type: 'its type', pattern: 'a pattern of its type', kind: 'its kind', words: 'its words' }
