import { readFileSync } from 'node:fs'
import { InvalidArgumentError } from 'commander'
import { z } from 'zod'
import { destinationDelivery, destinationName, listedDestination } from '../domain/destination.ts'
import { destinationKinds, type Route } from '../domain/route.ts'
import { webhookTest } from '../domain/setting-row.ts'
import { type ApiClient, ApiProblem } from './api.ts'
import type { CliCommand, ConnectionOptions } from './connection.ts'
import { CommandFailed } from './exit-codes.ts'
import { formatMoment, formatTable, printList } from './ui/table.ts'
import { inert, paint, parseOneOf, print, printJson, printNote } from './ui/terminal.ts'

// Accepts further fields and kinds, so that those of a newer API are still shown.
const listed = listedDestination
  .extend({ kind: z.string(), secrets: z.array(z.string()), route: z.looseObject({}) })
  .loose()
type Listed = z.infer<typeof listed>
const delivery = destinationDelivery.extend({ status: z.string() }).loose()
const tested = webhookTest.extend({ outcome: z.string() }).loose()

export function addDestinationsCommand(program: CliCommand): void {
  const parent = program
    .command('destinations')
    .description('where messages go: webhooks, PagerDuty, Microsoft Teams, e-mail')
    .addHelpText(
      'after',
      '\nExample:\n  nightshift destinations set on-call --kind pagerduty --secret integrationKey=- < key.txt\n  nightshift destinations test on-call',
    )
  addListCommand(parent)
  addShowCommand(parent)
  addSetCommand(parent)
  addDeleteCommand(parent)
  addTestCommand(parent)
}

function parseName(text: string): string {
  const name = destinationName.safeParse(text)
  if (!name.success) throw new InvalidArgumentError('Use small letters, digits and dashes, 40 at most.')
  return name.data
}

function addListCommand(parent: CliCommand): void {
  parent
    .command('list')
    .description('destinations by name, and what each gets')
    .connected('\nExample:\n  nightshift destinations list')
    .calls(async (api, options: ConnectionOptions) => {
      const { items } = z.object({ items: z.array(listed) }).parse(await api.get('/api/v1/destinations'))
      printList(
        options,
        items,
        'No destinations. Set a destination: nightshift destinations set NAME --kind email --option host=HOST …',
        {
          NAME: ({ name }) => inert(name),
          KIND: ({ kind }) => inert(kind),
          IS: ({ enabled }) => (enabled ? 'on' : paint('dim', 'off')),
          TO: ({ address }) => inert(address),
          'WHAT GOES THERE': (each) => inert(describeRoute(each)),
        },
      )
    })
}

function describeRoute({ route }: Listed): string {
  const { severities, types, triggers, hours, wakes } = route as Partial<Route>
  const parts = [
    severities?.join(', '),
    types?.join(', '),
    triggers?.join(', '),
    hours && `${hours.from} to ${hours.to} ${hours.zone}`,
    typeof wakes === 'boolean' && (wakes ? 'wakes' : 'wakes nobody'),
  ]
  return parts.filter(Boolean).join('; ') || 'everything'
}

const toPath = (name: string) => `/api/v1/destinations/${encodeURIComponent(name)}`

function addShowCommand(parent: CliCommand): void {
  parent
    .command('show')
    .description('one destination, with the last messages to it')
    .argument('<name>', 'its name', parseName)
    .connected('\nExample:\n  nightshift destinations show on-call')
    .calls(async (api, name: string, options: ConnectionOptions) => {
      const found = listed.parse(await api.get(toPath(name)))
      const { items } = z
        .object({ items: z.array(delivery) })
        .parse(await api.get(`${toPath(name)}/deliveries?limit=10`))
      if (options.json) return printJson({ ...found, deliveries: items })
      const rows = [
        ['kind', found.kind],
        ['to', found.address],
        ['state', found.enabled ? 'on' : 'off'],
        ['takes', describeRoute(found)],
        ...Object.entries(found.options).map(([option, value]) => [option, describeOption(value)]),
        ['secrets', found.secrets.join(', ') || 'none'],
      ]
      print(
        formatTable(
          ['', found.name],
          rows.map((row) => row.map((cell) => inert(cell))),
          1,
        ),
      )
      printList({}, items, 'Nothing was sent to this destination yet.', {
        WHEN: ({ createdAt }) => formatMoment(createdAt),
        WHAT: ({ trigger }) => inert(trigger),
        TRY: ({ attempt }) => String(attempt),
        STATUS: ({ status }) => inert(status),
        'THE RECEIVER SAID': ({ response }) => inert(response ?? ''),
      })
    })
}

function describeOption(value: unknown): string {
  if (value === null) return 'none'
  const text = Array.isArray(value) ? value.join(', ') : String(value)
  return text.startsWith('-----BEGIN') ? 'given' : text
}

const wakesWords = ['yes', 'no', 'kind'] as const

type SetOptions = ConnectionOptions & {
  kind?: string
  option: Record<string, string>
  secret: Record<string, string>
  severities?: string
  types?: string
  triggers?: string
  hours?: string
  zone?: string
  wakes?: (typeof wakesWords)[number]
  enable?: boolean
  disable?: boolean
}

function collectPairs(pair: string, all: Record<string, string>): Record<string, string> {
  const [name = '', value] = pair.split(/=(.*)/s)
  if (value === undefined) throw new InvalidArgumentError('Write name=value.')
  return { ...all, [name]: value }
}

function addSetCommand(parent: CliCommand): void {
  parent
    .command('set')
    .description('add a destination, or change one; options that you leave out stay as they are')
    .argument('<name>', 'its name in Nightshift', parseName)
    .option('--kind <kind>', `one of ${destinationKinds.join(', ')}`, parseOneOf(destinationKinds))
    .option(
      '--option <name=value>',
      'webhook: template; pagerduty: events (us, eu, an address); email: host, port, tls (starttls, tls, none), user, from, to (joined by commas), ca (a PEM file). The value none removes the option; may be repeated',
      collectPairs,
      {},
    )
    .option(
      '--secret <name=value>',
      'webhook: url, secret; pagerduty: integrationKey, webhookSecret; teams: url; email: password. The value - reads the secret from stdin, none removes it; may be repeated',
      collectPairs,
      {},
    )
    .option('--severities <list>', 'critical, warning, info, joined by commas (default all)')
    .option('--types <list>', 'types of incidents, with * as a wildcard (default all)')
    .option('--triggers <list>', 'kinds of messages, such as critical,escalated,approval (default all)')
    .option('--hours <from-to>', 'as 22:00-06:00; all')
    .option('--zone <zone>', 'time zone of --hours, such as Europe/Oslo')
    .option(
      '--wakes <word>',
      'whether a page to this destination wakes somebody: yes, no, or kind (yes for pagerduty and for a webhook of the template generic)',
      parseOneOf(wakesWords),
    )
    .option('--disable', 'stop sending messages to this destination')
    .option('--enable', 'send messages to this destination again')
    .connected(
      '\nExample:\n  nightshift destinations set ops-mail --kind email --option host=smtp.example.com --option user=nightshift --option from=nightshift@example.com --option to=ops@example.com --secret password=- --severities critical --hours 22:00-06:00 --zone Europe/Oslo < password.txt',
    )
    .calls(async (api, name: string, options: SetOptions) => {
      const before = await findDestination(api, name)
      const kind = options.kind ?? before?.kind
      if (!kind) throw new CommandFailed('usage', `There is no destination ${name} yet: give --kind.`)
      const kept = before?.kind === kind ? before : null
      const answer = await api.put(toPath(name), {
        kind,
        options: { ...kept?.options, ...toOptions(options.option) },
        secrets: toSecrets(options.secret),
        route: { ...before?.route, ...toRoute(options, before) },
        enabled: options.disable ? false : options.enable ? true : (before?.enabled ?? true),
      })
      if (options.json) return printJson(answer)
      printNote(`${name} is ${before ? 'changed' : 'set'}. Next: nightshift destinations test ${name}`)
    })
}

async function findDestination(api: ApiClient, name: string): Promise<Listed | null> {
  return await api.get(toPath(name)).then(listed.parse, (error: unknown) => {
    if (error instanceof ApiProblem && error.problem.status === 404) return null
    throw error
  })
}

function toOptions(given: Record<string, string>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(given).map(([name, value]) => {
      if (value === 'none' && name !== 'tls') return [name, null]
      if (name === 'port') return [name, Number(value)]
      if (name === 'to') return [name, splitList(value)]
      return [name, name === 'ca' ? readText(value) : value]
    }),
  )
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    throw new CommandFailed('usage', `The file ${inert(file)} cannot be read.`)
  }
}

function toSecrets(given: Record<string, string>): Record<string, string | null> {
  const fromStdin = Object.values(given).filter((value) => value === '-').length
  if (fromStdin > 1)
    throw new CommandFailed('usage', 'Only one secret can come from stdin. Set the others with a second command.')
  return Object.fromEntries(
    Object.entries(given).map(([name, value]) => {
      if (value === 'none') return [name, null]
      return [name, value === '-' ? readFileSync(0, 'utf8').trim() : value]
    }),
  )
}

function toRoute({ severities, types, triggers, hours, zone, wakes }: SetOptions, before: Listed | null): object {
  const listOf = (text: string | undefined) => (text === 'all' ? null : text && splitList(text))
  const known = (before?.route as Partial<Route> | undefined)?.hours
  const [from, to] = hours?.split('-') ?? [known?.from, known?.to]
  if (zone && hours === undefined && !known)
    throw new CommandFailed('usage', '--zone needs --hours, as --hours 22:00-06:00.')
  const changed = {
    severities: listOf(severities),
    types: listOf(types),
    triggers: listOf(triggers),
    hours:
      hours === 'all'
        ? null
        : hours === undefined && zone === undefined
          ? undefined
          : { from, to: to ?? '', zone: zone ?? known?.zone ?? 'UTC' },
    wakes: wakes === undefined ? undefined : wakes === 'kind' ? null : wakes === 'yes',
  }
  return Object.fromEntries(Object.entries(changed).filter(([, value]) => value !== undefined))
}

function splitList(text: string): string[] {
  return text
    .split(',')
    .map((word) => word.trim())
    .filter(Boolean)
}

function addDeleteCommand(parent: CliCommand): void {
  parent
    .command('delete')
    .description('remove a destination, and drop the messages that wait for it')
    .argument('<name>', 'its name', parseName)
    .connected('\nExample:\n  nightshift destinations delete ops-mail')
    .calls(async (api, name: string, options: ConnectionOptions) => {
      const removed = await api.post(`${toPath(name)}/remove`)
      if (options.json) return printJson(removed)
      printNote(`${name} is removed. Messages already sent stay listed with their incidents.`)
    })
}

function addTestCommand(parent: CliCommand): void {
  parent
    .command('test')
    .description('send a test message to a destination, and print what the receiver reports')
    .argument('<name>', 'its name', parseName)
    .connected('\nExample:\n  nightshift destinations test on-call')
    .calls(async (api, name: string, options: ConnectionOptions) => {
      const answer = tested.parse(await api.post(`${toPath(name)}/test`))
      const isSent = answer.outcome === 'sent'
      if (options.json) printJson(answer)
      else {
        print(`${isSent ? paint('green', '✔') : paint('red', '✖')} ${name}: ${inert(answer.detail)}`)
        if (answer.said) printNote(`The receiver said: ${inert(answer.said)}`)
      }
      if (!isSent) throw new CommandFailed('error', '')
    })
}
