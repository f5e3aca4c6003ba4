import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Document, isNode, LineCounter, parseDocument } from 'yaml'
import { z } from 'zod'
import { newId } from '../domain/digest.ts'
import { formatNumber } from '../domain/format.ts'
import { sayVicinity } from '../domain/kinds.ts'
import {
  countEntries,
  findSiteFaults,
  inventoryImport,
  maxEntriesAtOnce,
  type SiteFile,
  siteChange,
  siteFile,
} from '../domain/site.ts'
import type { ApiClient } from './api.ts'
import type { CliCommand, ConnectionOptions } from './connection.ts'
import { CommandFailed } from './exit-codes.ts'
import { inert, print, printJson, printNote } from './ui/terminal.ts'

export function addInventoryCommand(program: CliCommand): void {
  const parent = program
    .command('inventory')
    .description('hosts, nodes, services and other resources that alerts are about')
    .addHelpText('after', '\nExample:\n  nightshift inventory import site.yaml --dry-run')
  addExportCommand(parent)
  addImportCommand(parent)
}

function addExportCommand(parent: CliCommand): void {
  parent
    .command('export')
    .description('the inventory as JSON that "inventory import" reads')
    .connected('\nExample:\n  nightshift inventory export > site.json')
    .calls(async (api, _options: ConnectionOptions) => {
      printJson(siteFile.loose().parse(await api.get('/api/v1/inventory')))
    })
}

function addImportCommand(parent: CliCommand): void {
  parent
    .command('import')
    .description('add and change resources and their relations from a file')
    .argument('<file>', 'YAML or JSON, as from "inventory export"; - for stdin')
    .option('--dry-run', 'print what would change, and store nothing')
    .option('--prune', 'remove resources that are not in the file, except those with a device')
    .connected(
      '\nExample:\n  nightshift inventory import site.yaml --dry-run\n\nA file:\n  nodes:\n    - { id: web-1, group: web, hostname: web-1.example.com, ip: 192.0.2.11 }\n  resources:\n    - { kind: service_unit, id: "web-1:nginx.service", name: nginx.service }\n  relations:\n    - { from: "service_unit:web-1:nginx.service", kind: runs_on, to: "node:web-1" }',
    )
    .calls(async (api, file: string, options: ConnectionOptions & { dryRun?: boolean; prune?: boolean }) => {
      const wanted = readSiteFile(file)
      const query = new URLSearchParams({
        ...(options.dryRun && { dry_run: 'true' }),
        ...(options.prune && { prune: 'true' }),
      })
      const change = await importFile(api, wanted, query)
      if (options.json) return printJson(change)
      const lists = { added: change.added, changed: change.changed, removed: change.removed, kept: change.kept }
      for (const [word, ids] of Object.entries(lists)) if (ids.length > 0) print(`${word.padEnd(8)} ${listIds(ids)}`)
      for (const { of, neighbours } of change.vicinity ?? [])
        if (neighbours > 0) print(inert(sayVicinity(of, neighbours)))
      if (!change.applied) printNote('Nothing was stored: this was a dry run.')
    })
}

const applied = siteChange.extend({ applied: z.boolean() })
type Applied = z.infer<typeof applied>

async function importFile(api: ApiClient, wanted: SiteFile, query: URLSearchParams): Promise<Applied> {
  const asked = query.size > 0 ? `?${query}` : ''
  if (countEntries(wanted) <= maxEntriesAtOnce) return applied.parse(await api.put(`/api/v1/inventory${asked}`, wanted))
  return await importByJob(api, wanted, asked)
}

const lookEveryMs = 500

/** Waits for the job that imports a large file, and shows its progress. */
async function importByJob(api: ApiClient, wanted: SiteFile, asked: string): Promise<Applied> {
  const path = `/api/v1/inventory/imports/${newId('imp')}`
  const job = inventoryImport.loose()
  let known = job.parse(await api.put(`${path}${asked}`, wanted))
  printNote(`Importing ${formatNumber(known.entries)} entries as ${known.id}.`)
  let said = ''
  while (known.state === 'running') {
    const step =
      known.total > 0 ? `${known.step}, ${formatNumber(known.done)} of ${formatNumber(known.total)}` : known.step
    if (step !== said) printNote(`  ${inert(step)}`)
    said = step
    await sleep(lookEveryMs)
    known = job.parse(await api.get(path))
  }
  if (known.state === 'done' && known.change) return { ...known.change, applied: known.applied }
  const places = known.faults.map(({ field, message }) => `\n  ${inert(field ?? 'file')}: ${inert(message)}`)
  throw new CommandFailed('error', `${inert(known.reason ?? 'The import failed.')}${places.join('')}`)
}

const maxListed = 20

function listIds(ids: readonly string[]): string {
  const shown = ids.slice(0, maxListed).map((id) => inert(id))
  if (ids.length <= maxListed) return shown.join(', ')
  return `${formatNumber(ids.length)}: ${shown.join(', ')} and ${formatNumber(ids.length - maxListed)} more (--json names them)`
}

/**
 * Reads and checks a file of resources. Throws CommandFailed with every error and its position,
 * before anything is sent.
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
  const lineOf = lineFinder(text)
  const lines = faults.slice(0, maxFaults).map(({ field, message }) => `  ${lineOf(field)}: ${message}`)
  if (faults.length > maxFaults) lines.push(`  and ${faults.length - maxFaults} more`)
  throw new CommandFailed(
    'usage',
    `${inert(file)} is not an inventory:\n${lines.map((line) => inert(line)).join('\n')}`,
  )
}

/** Returns a function that formats the position of an error: `line 12, relations.3`. */
function lineFinder(text: string): (field: string | null) => string {
  const lineCounter = new LineCounter()
  const document: Document = parseDocument(text, { lineCounter })
  return (field) => {
    const path = (field ?? '').split('.').map((part) => (/^\d+$/.test(part) ? Number(part) : part))
    for (; path.length > 0; path.pop()) {
      const at = document.getIn(path, true)
      if (isNode(at) && at.range) return `line ${lineCounter.linePos(at.range[0]).line}, ${field}`
    }
    return field ?? 'file'
  }
}

const maxFaults = 200

/** Parses YAML or JSON to a value. Refuses aliases that expand to more than a file may contain. */
function parseText(file: string, text: string): unknown {
  const plain = text.length > largeCharacters ? parseLargeJson(text) : undefined
  if (plain !== undefined) return plain
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

/**
 * Characters from which a file is parsed as JSON first. 20 MB take eight seconds and 1.6 GB of
 * memory as YAML, but a fifth of a second as JSON.
 */
const largeCharacters = 1_000_000

function parseLargeJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
