import { InvalidArgumentError } from 'commander'
import { z } from 'zod'
import { changeSources, nearChange, type StoredChange, storedChange } from '../domain/change.ts'
import { parseResourceKey, type ResourceRef, resourceKey } from '../domain/registry.ts'
import { parseDuration } from '../domain/source.ts'
import { type CliCommand, type ConnectionOptions, connect } from './connection.ts'
import { CommandFailed } from './exit-codes.ts'
import { listAll } from './read-api.ts'
import { formatMoment, formatTable } from './ui/table.ts'
import { inert, parseOneOf, parseWholeNumber, print, printJson, printNote } from './ui/terminal.ts'

export function addChangesCommand(program: CliCommand): void {
  const parent = program
    .command('changes')
    .description('deployments and configuration changes')
    .addHelpText('after', '\nExample:\n  nightshift changes list --resource node:web-1')
  addChangesList(parent)
}

type ChangesOptions = ConnectionOptions & {
  resource?: ResourceRef
  window?: string
  source?: string
  unmatched?: boolean
  q?: string
  limit: number
}

function parseResource(text: string): ResourceRef {
  const ref = parseResourceKey(text)
  if (!ref) throw new InvalidArgumentError('Write the resource as kind:id, such as node:web-1.')
  return ref
}

function parseWindow(text: string): string {
  if (parseDuration(text) === null) throw new InvalidArgumentError('Write a duration, such as 6h.')
  return text
}

function addChangesList(parent: CliCommand): void {
  parent
    .command('list')
    .description('changes by their time, newest first')
    .option(
      '--resource <kind:id>',
      'only changes of this resource, and of what this resource runs on or depends on',
      parseResource,
    )
    .option('--window <duration>', 'with --resource: how far back (default 7d)', parseWindow)
    .option('--source <name>', changeSources.join(', '), parseOneOf(changeSources))
    .option('--unmatched', 'only changes without a known resource, and why')
    .option('--q <text>', 'only changes with this text in title, author or revision')
    .option('--limit <n>', 'how many at most', parseWholeNumber, 50)
    .connected('\nExample:\n  nightshift changes list --resource node:web-1\n  nightshift changes list --unmatched')
    .action(async (options: ChangesOptions) => {
      const changes = options.resource ? await readNear(options, options.resource) : await readAll(options)
      if (options.json) return printJson(changes)
      if (changes.length === 0)
        return printNote('No changes. Let your deploy pipeline report them: nightshift ingest change FILE.')
      print(formatTable(['WHEN', 'RESOURCE', 'CHANGE'], changes.map(toRow), 3))
    })
}

async function readNear({ limit, ...options }: ChangesOptions, { kind, id }: ResourceRef): Promise<StoredChange[]> {
  const { source, unmatched, q } = options
  if (source !== undefined || unmatched || q !== undefined)
    throw new CommandFailed('usage', 'With --resource, only --window and --limit are allowed.')
  const { api } = connect(options)
  const query = new URLSearchParams({ window: options.window ?? '7d' })
  const path = `/api/v1/inventory/resources/${kind}/${encodeURIComponent(id)}/changes?${query}`
  const { items } = z.object({ items: z.array(nearChange.loose()) }).parse(await api.get(path))
  return items.slice(0, limit)
}

async function readAll({ source, unmatched, q, limit, window, ...options }: ChangesOptions): Promise<StoredChange[]> {
  if (window !== undefined) throw new CommandFailed('usage', '--window goes with --resource.')
  const { api } = connect(options)
  const query = new URLSearchParams({
    ...(source && { source }),
    ...(unmatched && { unmatched: 'true' }),
    ...(q && { q }),
    limit: String(Math.min(limit, 200)),
  })
  return await listAll(api, `/api/v1/changes?${query}`, storedChange.loose(), limit)
}

function toRow({ at, resource, why, title, author, revision, url }: StoredChange): string[] {
  const more = [author && `by ${author}`, revision && `at ${revision.slice(0, 12)}`, url].filter(Boolean).join(', ')
  return [
    formatMoment(at),
    inert(resource ? resourceKey(resource) : `(none: ${why})`),
    inert(more === '' ? title : `${title} (${more})`),
  ]
}
