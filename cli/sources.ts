import { InvalidArgumentError } from 'commander'
import { z } from 'zod'
import { clusterRights, tokenCommand } from '../domain/cluster-rights.ts'
import {
  type DatabaseKind,
  type DatabaseProduct,
  isDatabaseKind,
  listRights,
  productsOf,
} from '../domain/database-rights.ts'
import { allowsStatements, type ListedSource, listedSource, sourceName, sourceTest } from '../domain/source.ts'
import type { ApiClient } from './api.ts'
import type { CliCommand, ConnectionOptions } from './connection.ts'
import { CommandFailed } from './exit-codes.ts'
import { formatMoment, printList } from './ui/table.ts'
import { inert, paint, parseWholeNumber, print, printJson, printNote } from './ui/terminal.ts'

export function addSourcesCommand(program: CliCommand): void {
  const parent = program
    .command('sources')
    .description('the systems where Nightshift reads metrics, alerts and logs')
    .addHelpText(
      'after',
      '\nExample:\n  nightshift sources add main --kind prometheus --at https://prometheus.example.com',
    )
  addAddCommand(parent)
  addListCommand(parent)
  addShowCommand(parent)
  addTestCommand(parent)
  addRemoveCommand(parent)
  addRightsCommand(parent)
}

function parseName(text: string): string {
  const name = sourceName.safeParse(text)
  if (!name.success) throw new InvalidArgumentError('Use small letters, digits and dashes, 40 at most.')
  return name.data
}

type AddOptions = ConnectionOptions & {
  kind: string
  at: string
  credential?: string
  writeCredential?: string
  credentialSha256?: string
  scheme?: string
  header: Record<string, string>
  ca?: string
  cert?: string
  key?: string
  timeout: number
  option: Record<string, string>
}

function addAddCommand(parent: CliCommand): void {
  const collect = (pair: string, all: Record<string, string>) => {
    const [name = '', value] = pair.split(/=(.*)/s)
    if (value === undefined) throw new InvalidArgumentError('Write name=value.')
    return { ...all, [name]: value }
  }
  parent
    .command('add')
    .description('add a source, or change the source with that name, and test it with one query')
    .argument('<name>', 'its name in Nightshift', parseName)
    .requiredOption('--kind <kind>', 'kind of the source; an unknown kind lists all kinds')
    .requiredOption('--at <url>', 'address of the source, with the path of its API')
    .option(
      '--credential <ref>',
      'file:/path below SOURCES_DIR, env:NIGHTSHIFT_SOURCE_…, or none; only the API process reads it',
    )
    .option(
      '--write-credential <ref>',
      'for a database: the credential of the login that writes, in the form of --credential',
    )
    .option('--credential-sha256 <hex>', "the credential's SHA-256, if the address changes")
    .option('--scheme <word>', 'Bearer, Basic, ApiKey or Token; Bearer unless given, and Basic for user:password')
    .option(
      '--header <name=tenant>',
      'a header that names the tenant, such as X-Scope-OrgID=tenant-a; may be repeated',
      collect,
      {},
    )
    .option('--ca <file>', 'PEM file of the certificate authorities to trust, below SOURCES_DIR')
    .option('--cert <file>', 'PEM file of the client certificate, below SOURCES_DIR')
    .option('--key <file>', 'PEM file of the key of the client certificate')
    .option('--timeout <seconds>', 'time limit for one response', parseWholeNumber, 10)
    .option('--option <name=value>', 'an option of this kind of source; may be repeated', collect, {})
    .connected(
      '\nExample:\n  nightshift sources add main --kind prometheus --at https://prometheus.example.com --credential file:/run/nightshift-api/sources/prometheus-token',
    )
    .calls(addSource)
}

async function addSource(api: ApiClient, name: string, options: AddOptions): Promise<void> {
  const { kind, json } = options
  const added = listedSource.loose().parse(await api.put(`/api/v1/sources/${name}`, bodyOf(options)))
  const tested = await askSource(api, name)
  if (json) printJson({ ...added, test: tested })
  if (!json && isDatabaseKind(kind)) printRights(kind, { writes: added.writeCredential !== null })
  if (!json && kind === clusterKind) printClusterRights(name, namespacesOf(added.options))
  if (!json && allowsStatements(added.options))
    printNote('Investigations may read the rows that its login may read: GRANT SELECT ON … TO that login.')
  reportTest(name, tested, options)
}

/**
 * Builds the body of the request. The credential `none` removes the credential, and an absent flag
 * keeps it.
 */
function bodyOf({ kind, at, credential, writeCredential, credentialSha256, ...more }: AddOptions) {
  const { ca, cert, key, timeout, option, scheme, header } = more
  return {
    kind,
    url: at,
    scheme: scheme ?? null,
    headers: header,
    ...(credential !== undefined && { credential: credential === 'none' ? null : credential }),
    ...(writeCredential !== undefined && { writeCredential: writeCredential === 'none' ? null : writeCredential }),
    ...(credentialSha256 !== undefined && { credentialSha256: credentialSha256.toLowerCase() }),
    caFile: ca ?? null,
    certFile: cert ?? null,
    keyFile: key ?? null,
    timeoutSeconds: timeout,
    options: option,
  }
}

function addListCommand(parent: CliCommand): void {
  parent
    .command('list')
    .description('sources, and whether each works')
    .connected('\nExample:\n  nightshift sources list')
    .calls(async (api, options: ConnectionOptions) => {
      const items = await readSources(api)
      printList(options, items, 'No sources. Add a source: nightshift sources add main --kind prometheus --at URL.', {
        NAME: (each) => inert(each.name),
        KIND: (each) => inert(each.kind),
        HEALTH: (each) => formatHealth(each),
        ADDRESS: ({ url, headers }) => inert([url, ...Object.entries(headers).map((pair) => pair.join('='))].join(' ')),
      })
    })
}

const readSources = async (api: ApiClient) =>
  z.object({ items: z.array(listedSource.loose()) }).parse(await api.get('/api/v1/sources')).items

function addShowCommand(parent: CliCommand): void {
  parent
    .command('show')
    .description('a source: its settings, whether it works, and who connected it')
    .argument('<name>', 'its name', parseName)
    .connected('\nExample:\n  nightshift sources show main')
    .calls(async (api, name: string, options: ConnectionOptions) => {
      const items = await readSources(api)
      const found = items.find((each) => each.name === name)
      const names = items.map((each) => each.name).join(', ') || 'none'
      if (!found) throw new CommandFailed('error', `No source is called ${name}. There are: ${inert(names)}.`)
      if (options.json) return printJson(found)
      for (const [fact, value] of Object.entries(listFacts(found)))
        if (value !== '') print(`${`${fact}:`.padEnd(14)}${inert(value)}`)
    })
}

/**
 * Lists facts about a source. A credential is shown only as its reference, because its value stays
 * with the API process.
 */
function listFacts(found: ListedSource): Record<string, string> {
  const joined = (pairs: Record<string, unknown>) =>
    Object.entries(pairs)
      .map(([name, value]) => `${name}=${value}`)
      .join(', ')
  const { credential, scheme, certFile, keyFile, health } = found
  return {
    name: found.name,
    kind: found.kind,
    address: found.url,
    tenant: joined(found.headers),
    credential: [credential ?? 'none', credential && scheme].filter(Boolean).join(', sent as '),
    'writes with': found.writeCredential ?? '',
    authorities: found.caFile ?? '',
    certificate: certFile ? `${certFile}, key ${keyFile}` : '',
    options: joined(found.options),
    statements: allowsStatements(found.options) ? 'allowed: investigations may read rows of its tables' : '',
    'waits up to': `${found.timeoutSeconds} s`,
    health: formatHealth(found),
    'last failure': health.state === 'ok' ? (health.lastError ?? '') : '',
    'connected by': `${found.createdBy}, ${formatMoment(found.createdAt)}`,
  }
}

function formatHealth({ health: { state, lastOkAt, lastError } }: ListedSource): string {
  if (state === 'ok') return `ok, ${formatMoment(lastOkAt ?? '')}`
  return state === 'unknown' ? 'not queried yet' : `${state}: ${inert(lastError ?? '')}`
}

function addTestCommand(parent: CliCommand): void {
  parent
    .command('test')
    .description('test a source with one query')
    .argument('<name>', 'its name', parseName)
    .connected('\nExample:\n  nightshift sources test main')
    .calls(async (api, name: string, options: ConnectionOptions) => {
      const tested = await askSource(api, name)
      if (options.json) printJson(tested)
      reportTest(name, tested, options)
    })
}

const testAnswer = sourceTest.loose()

const askSource = async (api: ApiClient, name: string) =>
  testAnswer.parse(await api.post(`/api/v1/sources/${name}/test`))

/** Reports that a source responded. Throws if it did not. */
function reportTest(name: string, tested: z.infer<typeof testAnswer>, { json }: ConnectionOptions): void {
  const { ok, code, detail } = tested
  if (!ok) throw new CommandFailed('error', json ? '' : `${inert(detail)}${code === null ? '' : ` (${inert(code)})`}`)
  if (!json) print(`${paint('green', '✔')} ${name}: ${inert(detail)}`)
}

function addRemoveCommand(parent: CliCommand): void {
  parent
    .command('remove')
    .description('remove a source')
    .argument('<name>', 'its name', parseName)
    .connected('\nExample:\n  nightshift sources remove main')
    .calls(async (api, name: string, options: ConnectionOptions) => {
      const removed = await api.post(`/api/v1/sources/${name}/remove`)
      if (options.json) return printJson(removed)
      printNote(`${name} is removed. Its earlier readings stay with their incidents.`)
    })
}

function addRightsCommand(parent: CliCommand): void {
  parent
    .command('rights')
    .description('the rights that a source needs: for a database the SQL of its two logins, for a cluster a role')
    .argument('<name>', 'a source, or its kind: postgresql, mysql, kubernetes')
    .option('--write', 'of a database: the rights of the login that writes')
    .option(
      '--namespaces <names>',
      'of a cluster: a role in each of these namespaces (joined by commas) instead of one cluster role',
    )
    .connected(
      '\nExample:\n  nightshift sources rights pg-1 --write\n  nightshift sources rights kubernetes | kubectl apply -f -',
    )
    .calls(async (api, name: string, { write, namespaces, json }: RightsOptions) => {
      const isKind = isDatabaseKind(name) || name === clusterKind
      const found = isKind ? undefined : (await readSources(api)).find((each) => each.name === name)
      const kind = isKind ? name : found?.kind
      if (kind === undefined) throw new CommandFailed('error', `No source is called ${inert(name)}.`)
      if (kind === clusterKind) {
        const rights = clusterRights(namespacesOf({ namespaces }) ?? namespacesOf(found?.options ?? {}))
        return json ? printJson({ kind, manifest: rights, token: tokenCommand }) : print(rights)
      }
      if (!isDatabaseKind(kind))
        throw new CommandFailed('error', `${inert(name)} is neither a database nor a cluster: it needs no rights.`)
      const login = write ? 'write' : 'read'
      if (json)
        return printJson({
          kind,
          products: productsOf(kind).map((product) => ({ product, statements: listRights(product, login) })),
        })
      print(formatRights(kind, login))
    })
}

type RightsOptions = ConnectionOptions & { write?: boolean; namespaces?: string }

const clusterKind = 'kubernetes'

/**
 * Returns the namespaces that the rights for a cluster cover. Undefined for the complete cluster.
 */
const namespacesOf = ({ namespaces }: Record<string, unknown>): string[] | undefined =>
  typeof namespaces === 'string' ? namespaces.split(',').map((each) => each.trim()) : undefined

/** Prints the rights that the account of a new cluster source needs. */
function printClusterRights(name: string, namespaces: string[] | undefined): void {
  printNote(
    `The account of the source needs only these rights (nightshift sources rights ${name} | kubectl apply -f -):`,
  )
  printNote(clusterRights(namespaces).replaceAll(/^(?=.)/gm, '  '))
  printNote(`Create its token: ${tokenCommand}`)
}

/** Formats the statements that give a login its rights, by product if the kind has several. */
function formatRights(kind: DatabaseKind, login: 'read' | 'write'): string {
  const products = productsOf(kind)
  const headOf = (product: DatabaseProduct) => (products.length > 1 ? [`-- ${product}`] : [])
  return products
    .flatMap((product) => [...headOf(product), ...listRights(product, login).map((each) => `${each};`)])
    .join('\n')
}

/** Prints the rights that the login of a new database source needs. */
function printRights(kind: DatabaseKind, { writes }: { writes: boolean }): void {
  printNote(`The login of the source needs only these rights:\n${formatRights(kind, 'read').replaceAll(/^/gm, '  ')}`)
  if (!writes)
    printNote(
      `Nightshift only reads this source. For the four writes: nightshift sources rights ${kind} --write, then --write-credential.`,
    )
}
