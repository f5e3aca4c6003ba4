import { type Command, InvalidArgumentError } from 'commander'
import { z } from 'zod'
import { type ListedSource, listedSource, sourceName, sourceTest } from '../domain/source.ts'
import { type ConnectionOptions, connect, withConnectionOptions } from './connection.ts'
import { CommandFailed } from './exit-codes.ts'
import { formatMoment, formatTable } from './ui/table.ts'
import { inert, paint, parseWholeNumber, print, printJson, printNote } from './ui/terminal.ts'

export function addSourcesCommand(program: Command): void {
  const parent = program
    .command('sources')
    .description('where metrics, alerts and logs are read')
    .addHelpText(
      'after',
      '\nExample:\n  nightshift sources add main --kind prometheus --at https://prometheus.example.com',
    )
  addAddCommand(parent)
  addListCommand(parent)
  addTestCommand(parent)
  addRemoveCommand(parent)
}

function parseName(text: string): string {
  const name = sourceName.safeParse(text)
  if (!name.success) throw new InvalidArgumentError('It takes small letters, digits and dashes, 40 at most.')
  return name.data
}

type AddOptions = ConnectionOptions & {
  kind: string
  at: string
  credential?: string
  credentialSha256?: string
  ca?: string
  timeout: number
  option: Record<string, string>
}

function addAddCommand(parent: Command): void {
  const collect = (pair: string, all: Record<string, string>) => {
    const [name = '', value] = pair.split(/=(.*)/s)
    if (value === undefined) throw new InvalidArgumentError('It takes name=value.')
    return { ...all, [name]: value }
  }
  withConnectionOptions(
    parent
      .command('add')
      .description('add a source, or change the one of that name, and ask it something small')
      .argument('<name>', 'what it is called here', parseName)
      .requiredOption('--kind <kind>', 'what it speaks; an unknown word is answered with those that are known')
      .requiredOption('--at <url>', 'its address, with the path below which its API lives')
      .option(
        '--credential <ref>',
        'file:/path below SOURCES_DIR, env:NIGHTSHIFT_SOURCE_…, or none; the API process reads it, nothing else does',
      )
      .option('--credential-sha256 <hex>', 'its SHA-256, where it would go to another address than before')
      .option('--ca <file>', 'PEM file of the authorities to believe, below SOURCES_DIR')
      .option('--timeout <seconds>', 'how long it may take to answer', parseWholeNumber, 10)
      .option('--option <name=value>', 'an option of its kind; may be repeated', collect, {}),
  )
    .addHelpText(
      'after',
      '\nExample:\n  nightshift sources add main --kind prometheus --at https://prometheus.example.com --credential file:/run/nightshift-api/sources/prometheus-token',
    )
    .action(
      async (name: string, { kind, at, credential, credentialSha256, ca, timeout, option, ...options }: AddOptions) => {
        const { api } = connect(options)
        const body = {
          kind,
          url: at,
          ...(credential !== undefined && { credential: credential === 'none' ? null : credential }),
          ...(credentialSha256 !== undefined && { credentialSha256: credentialSha256.toLowerCase() }),
          caFile: ca ?? null,
          timeoutSeconds: timeout,
          options: option,
        }
        const added = listedSource.loose().parse(await api.put(`/api/v1/sources/${name}`, body))
        const tested = await askSource(api, name)
        if (options.json) return printJson({ ...added, test: tested })
        printTest(name, tested)
      },
    )
}

function addListCommand(parent: Command): void {
  withConnectionOptions(parent.command('list').description('sources, and how each does'))
    .addHelpText('after', '\nExample:\n  nightshift sources list')
    .action(async (options: ConnectionOptions) => {
      const { api } = connect(options)
      const { items } = z.object({ items: z.array(listedSource.loose()) }).parse(await api.get('/api/v1/sources'))
      if (options.json) return printJson(items)
      if (items.length === 0) return printNote('None. Add one: nightshift sources add main --kind prometheus --at URL.')
      const rows = items.map((each) => [inert(each.name), inert(each.kind), formatHealth(each), inert(each.url)])
      print(formatTable(['NAME', 'KIND', 'HEALTH', 'ADDRESS'], rows, 3))
    })
}

function formatHealth({ health: { state, lastOkAt, lastError } }: ListedSource): string {
  if (state === 'ok') return `ok, ${formatMoment(lastOkAt ?? '')}`
  return state === 'unknown' ? 'not asked yet' : `${state}: ${inert(lastError ?? '')}`
}

function addTestCommand(parent: Command): void {
  withConnectionOptions(
    parent.command('test').description('ask a source something small').argument('<name>', 'its name', parseName),
  )
    .addHelpText('after', '\nExample:\n  nightshift sources test main')
    .action(async (name: string, options: ConnectionOptions) => {
      const { api } = connect(options)
      const tested = await askSource(api, name)
      if (options.json) printJson(tested)
      else printTest(name, tested)
      if (!tested.ok) throw new CommandFailed('error', '')
    })
}

const testAnswer = sourceTest.loose()

const askSource = async (api: ReturnType<typeof connect>['api'], name: string) =>
  testAnswer.parse(await api.post(`/api/v1/sources/${name}/test`))

function printTest(name: string, { ok, code, detail }: z.infer<typeof testAnswer>): void {
  if (ok) print(`${paint('green', '✔')} ${name}: ${inert(detail)}`)
  else print(`${paint('red', '✖')} ${inert(detail)}${code === null ? '' : ` (${inert(code)})`}`)
}

function addRemoveCommand(parent: Command): void {
  withConnectionOptions(
    parent.command('remove').description('remove a source').argument('<name>', 'its name', parseName),
  )
    .addHelpText('after', '\nExample:\n  nightshift sources remove main')
    .action(async (name: string, options: ConnectionOptions) => {
      const { api } = connect(options)
      const removed = await api.post(`/api/v1/sources/${name}/remove`)
      if (options.json) return printJson(removed)
      printNote(`${name} is removed. What was read of it stays with its incidents.`)
    })
}
