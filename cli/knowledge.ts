import { type Command, InvalidArgumentError } from 'commander'
import { z } from 'zod'
import { formatCount, formatNumber } from '../domain/format.ts'
import type { InventoryKind } from '../domain/kinds.ts'
import { inventoryKind } from '../domain/registry.ts'
import { knowledgeList, runbookMatch, runbookName, shownRunbook } from '../domain/runbook.ts'
import { type ConnectionOptions, connect, withConnectionOptions } from './connection.ts'
import { formatTable } from './ui/table.ts'
import { inert, paint, print, printJson, printNote } from './ui/terminal.ts'

export function addKnowledgeCommand(program: Command): void {
  const parent = program
    .command('knowledge')
    .description('runbooks: those that ship with the product, and those of this site')
    .addHelpText('after', '\nExample:\n  nightshift knowledge test disk_pressure --kind node')
  addListCommand(parent)
  addShowCommand(parent)
  addTestCommand(parent)
}

function parseKind(text: string): InventoryKind {
  const kind = inventoryKind.safeParse(text)
  if (!kind.success) throw new InvalidArgumentError(`It takes one of ${inventoryKind.options.join(', ')}.`)
  return kind.data
}

function addListCommand(parent: Command): void {
  withConnectionOptions(
    parent.command('list').description('runbooks by name, their origin, and the files that were not taken'),
  )
    .addHelpText('after', '\nExample:\n  nightshift knowledge list')
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
        printNote(`${paint('yellow', '✖')} ${origin} ${inert(file)} is not taken: ${inert(why)}. ${inert(remedy)}.`)
    })
}

function addShowCommand(parent: Command): void {
  const parseName = (text: string) => {
    if (!runbookName.safeParse(text).success)
      throw new InvalidArgumentError('It takes small letters, digits and single dashes, 64 at most.')
    return text
  }
  withConnectionOptions(
    parent.command('show').description('one runbook as a model reads it').argument('<name>', 'its name', parseName),
  )
    .addHelpText('after', '\nExample:\n  nightshift knowledge show host-down')
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

function addTestCommand(parent: Command): void {
  withConnectionOptions(
    parent
      .command('test')
      .description('which runbook an incident of a type gets')
      .argument('<incident-type>', 'its type, which is the name of its alert')
      .option('--kind <kind>', 'the kind of its resource', parseKind)
      .option('--words <text>', 'what its alert says'),
  )
    .addHelpText('after', '\nExample:\n  nightshift knowledge test NodeDiskFull --kind node')
    .action(async (type: string, { kind, words, ...options }: TestOptions) => {
      const query = new URLSearchParams({ type, ...(kind && { kind }), ...(words && { words }) })
      const match = runbookMatch.parse(await connect(options).api.get(`/api/v1/knowledge-match?${query}`))
      if (options.json) return printJson(match)
      const { chosen, others } = match
      if (chosen) print(`in full  ${inert(chosen.name)} (${chosen.origin}), by ${byWhat[chosen.why]}`)
      for (const { name, description, why } of others)
        print(`by name  ${inert(name)}, by ${byWhat[why]}: ${inert(description)}`)
      if (!chosen) printNote('No runbook fits by type or kind: name the type in incident_types of one.')
    })
}

const byWhat = { type: 'its type', pattern: 'a pattern of its type', kind: 'its kind', words: 'its words' }

const promptShown = z.looseObject({
  system: z.string(),
  tools: z.array(z.looseObject({ function: z.looseObject({ name: z.string() }) })),
  more: z.array(z.string()),
  context: z.string().nullable(),
  runbooks: z.string().nullable(),
  bytes: z.object({
    system: z.number(),
    tools: z.number(),
    first: z.number(),
    context: z.number(),
    runbooks: z.number(),
  }),
})

type PromptOptions = ConnectionOptions & { incident?: string; type?: string; kind?: InventoryKind; protocol: string }

export function addPromptCommand(program: Command): void {
  const parent = program
    .command('prompt')
    .description('what a model reads of this site and of an incident')
    .addHelpText('after', '\nExample:\n  nightshift prompt show --type disk_pressure --kind node')
  withConnectionOptions(
    parent
      .command('show')
      .description('the prompt, the tools and the runbook of a first turn, with their bytes')
      .option('--incident <id>', 'what the model of its newest attempt read, as it is stored')
      .option('--type <type>', 'what a model would read of an incident of this type')
      .option('--kind <kind>', 'about a resource of this kind', parseKind)
      .option('--protocol <name>', 'native or json', 'native'),
  )
    .addHelpText('after', '\nExample:\n  nightshift prompt show --type host_down --kind host')
    .action(async ({ incident, type, kind, protocol, ...options }: PromptOptions, command: Command) => {
      if (incident !== undefined && (type !== undefined || kind !== undefined))
        command.error("error: --incident takes neither --type nor --kind: they are the incident's own")
      const query = new URLSearchParams({ ...(type && { type }), ...(kind && { kind }), protocol })
      const path = incident === undefined ? `/prompt?${query}` : `/incidents/${encodeURIComponent(incident)}/prompt`
      const shown = promptShown.parse(await connect(options).api.get(`/api/v1${path}`))
      if (options.json) printJson(shown)
      else printPrompt(shown)
    })
}

function printPrompt({ system, tools, more, context, runbooks, bytes }: z.infer<typeof promptShown>): void {
  const part = (head: string, size: number, text: string) => {
    print(paint('bold', `── ${head}, ${formatNumber(size)} bytes`))
    print(`${inert(text, { lines: true })}\n`)
  }
  part('system prompt', bytes.system, system)
  part(formatCount(tools.length, 'tool'), bytes.tools, tools.map((tool) => tool.function.name).join(', '))
  if (more.length > 0) print(`more_tools adds: ${inert(more.join(', '))}\n`)
  if (context !== null) part('context', bytes.context, context)
  if (runbooks !== null) part('runbooks', bytes.runbooks, runbooks)
  print(`system prompt and tools: ${formatNumber(bytes.first)} bytes`)
}
