import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { parseDocument } from 'yaml'
import { z } from 'zod'
import { inventoryKind, listedResource, type ShownResource, shownResource } from '../domain/registry.ts'
import { findSiteFaults, type SiteFile, siteChange, siteFile } from '../domain/site.ts'
import { CommandFailed, listAll } from './api.ts'
import { type ConnectionOptions, connect, withConnectionOptions } from './connection.ts'
import { formatMoment, formatTable } from './ui/table.ts'
import { inert, parseOneOf, parseWholeNumber, print, printJson, printNote } from './ui/terminal.ts'

export function addResourcesCommand(program: Command): void {
  const parent = program
    .command('resources')
    .description('what there is, who says so, and how it hangs together')
    .addHelpText('after', '\nExample:\n  nightshift resources show node:web-1')
  addListCommand(parent)
  addShowCommand(parent, 'show', 'one resource: who says what of it, what fires on it, its incidents', printResource)
  addShowCommand(parent, 'relations', 'what a resource belongs to, runs on and holds', printRelations)
}

type ListOptions = ConnectionOptions & { kind?: string; q?: string; stale?: boolean; limit: number }

function addListCommand(parent: Command): void {
  withConnectionOptions(
    parent
      .command('list')
      .description('resources by kind and id')
      .option('--kind <kind>', inventoryKind.options.join(', '), parseOneOf(inventoryKind.options))
      .option('--q <text>', 'only those with this text in id, name or alias')
      .option('--stale', 'only what no source has listed for a day')
      .option('--limit <n>', 'how many at most', parseWholeNumber, 50),
  )
    .addHelpText('after', '\nExample:\n  nightshift resources list --kind service_unit --q nginx')
    .action(async ({ kind, q, stale, limit, ...options }: ListOptions) => {
      const { api } = connect(options)
      const query = new URLSearchParams({
        ...(kind && { kind }),
        ...(q && { q }),
        ...(stale && { stale: 'true' }),
        limit: String(Math.min(limit, 200)),
      })
      const items = await listAll(api, `/api/v1/inventory/resources?${query}`, listedResource.loose(), limit)
      if (options.json) return printJson(items)
      if (items.length === 0) return printNote('Nothing. Import what there is: nightshift inventory import FILE.')
      const rows = items.map((each) => [
        inert(`${each.kind}:${each.id}`),
        inert(each.sources.join(', ')),
        `${formatMoment(each.seenAt)}${each.isStale ? ' (stale)' : ''}`,
        inert([each.name === each.id ? '' : each.name, ...each.aliases].filter(Boolean).join(', ')),
      ])
      print(formatTable(['RESOURCE', 'SOURCE', 'LAST SEEN', 'ALSO KNOWN AS'], rows, 3))
    })
}

function addShowCommand(
  parent: Command,
  name: string,
  description: string,
  printFound: (found: ShownResource) => void,
): void {
  withConnectionOptions(parent.command(name).description(description).argument('<resource>', 'kind:id, as node:web-1'))
    .addHelpText('after', `\nExample:\n  nightshift resources ${name} node:web-1`)
    .action(async (resource: string, options: ConnectionOptions) => {
      const at = resource.indexOf(':')
      const kind = inventoryKind.safeParse(resource.slice(0, at))
      if (at < 1 || !kind.success) {
        const known = inventoryKind.options.join(', ')
        throw new CommandFailed(
          'usage',
          `${inert(resource)} names no resource. Write kind:id, with a kind of ${known}.`,
        )
      }
      const { api } = connect(options)
      const path = `/api/v1/inventory/resources/${kind.data}/${encodeURIComponent(resource.slice(at + 1))}`
      const found = shownResource.loose().parse(await api.get(path))
      if (options.json) return printJson(name === 'relations' ? found.relations : found)
      printFound(found)
    })
}

function printResource(found: ShownResource): void {
  print(`${inert(`${found.kind}:${found.id}`)}${found.isStale ? '  STALE: no source has listed it for a day' : ''}`)
  const names = [found.name, ...found.aliases, ...found.sameAs].filter((each) => each !== found.id)
  if (names.length > 0) print(`  also known as  ${inert(names.join(', '))}`)
  for (const { source, seenAt, attributes } of found.said) {
    const facts = Object.entries(attributes).map(([name, value]) => `${name} ${value}`)
    print(`  ${inert(source).padEnd(13)}  ${inert(facts.join(', ') || 'lists it')} (${formatMoment(seenAt)})`)
  }
  printRelations(found)
  for (const { name, status, incidentId } of found.alerts)
    print(`  ${inert(status).padEnd(13)}  ${inert(name)} ${inert(incidentId ?? '')}`)
  for (const { id, status, title } of found.incidents)
    print(`  ${inert(status).padEnd(13)}  ${inert(id)} ${inert(title)}`)
}

function printRelations({ relations, kind, id }: ShownResource): void {
  const own = `${kind}:${id}`
  for (const relation of relations) {
    const word = relation.kind.replaceAll('_', ' ')
    const text = relation.from === own ? `${word} ${relation.to}` : `${relation.from} ${word} it`
    print(`  ${inert(text)}${relation.hasAuthority ? '' : ` (says ${inert(relation.source)}: widens nothing)`}`)
  }
}

export function addInventoryCommand(program: Command): void {
  const parent = program
    .command('inventory')
    .description('hosts, nodes, services and whatever else alerts may be about')
    .addHelpText('after', '\nExample:\n  nightshift inventory import site.yaml --dry-run')
  addExportCommand(parent)
  addImportCommand(parent)
}

function addExportCommand(parent: Command): void {
  withConnectionOptions(parent.command('export').description('the inventory as JSON that "inventory import" reads'))
    .addHelpText('after', '\nExample:\n  nightshift inventory export > site.json')
    .action(async (options: ConnectionOptions) => {
      const { api } = connect(options)
      printJson(siteFile.loose().parse(await api.get('/api/v1/inventory')))
    })
}

function addImportCommand(parent: Command): void {
  withConnectionOptions(
    parent
      .command('import')
      .description('add and change resources and their relations from a file')
      .argument('<file>', 'YAML or JSON, as from "inventory export"; - for stdin')
      .option('--dry-run', 'print what would change, and store nothing')
      .option('--prune', 'remove what is not in the file, unless it has a device'),
  )
    .addHelpText(
      'after',
      '\nExample:\n  nightshift inventory import site.yaml --dry-run\n\nA file:\n  nodes:\n    - { id: web-1, group: web, hostname: web-1.example.com, ip: 192.0.2.11 }\n  resources:\n    - { kind: service_unit, id: "web-1:nginx.service", name: nginx.service }\n  relations:\n    - { from: "service_unit:web-1:nginx.service", kind: runs_on, to: "node:web-1" }',
    )
    .action(async (file: string, options: ConnectionOptions & { dryRun?: boolean; prune?: boolean }) => {
      const { api } = connect(options)
      const wanted = readSiteFile(file)
      const query = new URLSearchParams({
        ...(options.dryRun && { dry_run: 'true' }),
        ...(options.prune && { prune: 'true' }),
      })
      const answer = await api.put(`/api/v1/inventory${query.size > 0 ? `?${query}` : ''}`, wanted)
      const change = siteChange.extend({ applied: z.boolean() }).parse(answer)
      if (options.json) return printJson(change)
      const lists = { added: change.added, changed: change.changed, removed: change.removed, kept: change.kept }
      for (const [word, ids] of Object.entries(lists))
        if (ids.length > 0) print(`${word.padEnd(8)} ${ids.map((id) => inert(id)).join(', ')}`)
      if (!change.applied) printNote('Nothing was stored: this was a dry run.')
    })
}

/**
 * Reads and checks the file. Throws CommandFailed with every problem and its place, before anything
 * is sent.
 */
function readSiteFile(file: string): SiteFile {
  let text: string
  try {
    text = readFileSync(file === '-' ? 0 : file, 'utf8')
  } catch (error) {
    throw new CommandFailed('usage', `${inert(file)} cannot be read: ${(error as Error).message}`)
  }
  const wanted = parseText(file, text)
  const faults = findSiteFaults(wanted, null)
  if (faults.length === 0) return siteFile.parse(wanted)
  const lines = faults.slice(0, mostFaults).map(({ field, message }) => `  ${field ?? 'file'}: ${message}`)
  if (faults.length > mostFaults) lines.push(`  and ${faults.length - mostFaults} more`)
  throw new CommandFailed(
    'usage',
    `${inert(file)} is not an inventory:\n${lines.map((line) => inert(line)).join('\n')}`,
  )
}

const mostFaults = 200

/** YAML or JSON as a value. Aliases that would unfold to more than a file should hold are refused. */
function parseText(file: string, text: string): unknown {
  const document = parseDocument(text)
  if (document.errors.length > 0) {
    const lines = document.errors.slice(0, 20).map(({ message }) => inert(message))
    throw new CommandFailed('usage', `${inert(file)} is not YAML or JSON: ${lines.join('\n')}`)
  }
  try {
    return document.toJS({ maxAliasCount: 100 }) ?? {}
  } catch (error) {
    throw new CommandFailed('usage', `${inert(file)} cannot be read: ${inert((error as Error).message)}`)
  }
}
