import { sayVicinity } from '../domain/kinds.ts'
import { listedResource, type ShownResource, shownResource } from '../domain/listed-resource.ts'
import { inventoryKind } from '../domain/registry.ts'
import { type CliCommand, type ConnectionOptions, connect } from './connection.ts'
import { CommandFailed } from './exit-codes.ts'
import { listAll } from './read-api.ts'
import { formatMoment, printList } from './ui/table.ts'
import { inert, parseOneOf, parseWholeNumber, print, printJson } from './ui/terminal.ts'

export function addResourcesCommand(program: CliCommand): void {
  const parent = program
    .command('resources')
    .description('resources, the sources that list them, and their relations')
    .addHelpText('after', '\nExample:\n  nightshift resources show node:web-1')
  addListCommand(parent)
  addShowCommand(
    parent,
    'show',
    'one resource: what each source says about it, its alerts, its incidents',
    printResource,
  )
  addShowCommand(parent, 'relations', 'what a resource belongs to, runs on and holds', printRelations)
}

type ListOptions = ConnectionOptions & { kind?: string; q?: string; stale?: boolean; limit: number }

function addListCommand(parent: CliCommand): void {
  parent
    .command('list')
    .description('resources by kind and id')
    .option('--kind <kind>', inventoryKind.options.join(', '), parseOneOf(inventoryKind.options))
    .option('--q <text>', 'only resources with this text in id, name or alias')
    .option('--stale', 'only resources that no source has listed for a day')
    .option('--limit <n>', 'how many at most', parseWholeNumber, 50)
    .connected('\nExample:\n  nightshift resources list --kind service_unit --q nginx')
    .calls(async (api, { kind, q, stale, limit, ...options }: ListOptions) => {
      const query = new URLSearchParams({
        ...(kind && { kind }),
        ...(q && { q }),
        ...(stale && { stale: 'true' }),
        limit: String(Math.min(limit, 200)),
      })
      const items = await listAll(api, `/api/v1/inventory/resources?${query}`, listedResource.loose(), limit)
      printList(options, items, 'No resources. Import them: nightshift inventory import FILE.', {
        RESOURCE: (each) => inert(`${each.kind}:${each.id}`),
        SOURCE: (each) => inert(each.sources.join(', ')),
        'LAST SEEN': (each) => `${formatMoment(each.seenAt)}${each.isStale ? ' (stale)' : ''}`,
        'ALSO KNOWN AS': (each) =>
          inert([each.name === each.id ? '' : each.name, ...each.aliases].filter(Boolean).join(', ')),
      })
    })
}

function addShowCommand(
  parent: CliCommand,
  name: string,
  description: string,
  printFound: (found: ShownResource) => void,
): void {
  parent
    .command(name)
    .description(description)
    .argument('<resource>', 'kind:id, as node:web-1')
    .connected(`\nExample:\n  nightshift resources ${name} node:web-1`)
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
  print(
    `${inert(`${found.kind}:${found.id}`)}${found.isStale ? '  STALE: no source has listed this resource for a day' : ''}`,
  )
  const names = [found.name, ...found.aliases, ...found.sameAs].filter((each) => each !== found.id)
  if (names.length > 0) print(`  also known as  ${inert(names.join(', '))}`)
  for (const { source, seenAt, attributes } of found.said) {
    const facts = Object.entries(attributes).map(([name, value]) => `${name} ${value}`)
    print(`  ${inert(source).padEnd(13)}  ${inert(facts.join(', ') || 'lists it')} (${formatMoment(seenAt)})`)
  }
  printRelations(found)
  for (const { relation, values } of found.disagreements) {
    const said = values.map(({ to, source, seenAt }) => `${source} ${to} (${formatMoment(seenAt)})`)
    print(
      `  DISAGREEMENT   ${relation.replaceAll('_', ' ')}: ${inert(said.join(', '))}; Nightshift uses none of these claims to find neighbours`,
    )
  }
  if (found.neighbours) print(`  ${inert(sayVicinity(`${found.kind}:${found.id}`, found.neighbours))}`)
  for (const { at, who, did, incidentId } of found.acts)
    print(
      `  ${'by a person'.padEnd(13)}  ${inert(who)}: ${inert(did)} (${formatMoment(at)}) ${inert(incidentId ?? '')}`,
    )
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
    print(
      `  ${inert(text)}${relation.hasAuthority ? '' : ` (source ${inert(relation.source)}, which extends no permissions)`}`,
    )
  }
}
