import { parse } from 'yaml'
import { tokenCommand } from '../../domain/cluster-rights.ts'

/**
 * Reads a kubeconfig as data. Runs nothing in it: refuses a command or helper for credentials, and
 * names the replacement.
 */

/**
 * A part of a credential, either inline in the kubeconfig or in a file that the kubeconfig names.
 */
export type KubeconfigPart = { text: string } | { file: string }

export type Kubeconfig = {
  context: string
  server: string
  ca: KubeconfigPart | null
  cert: KubeconfigPart | null
  key: KubeconfigPart | null
  /** The token of the user. A token file is read at each request, because tokens rotate. */
  token: KubeconfigPart | null
}

/** The reason why a kubeconfig is refused, with the remedy. Quotes names in it, but no values. */
export class KubeconfigRefused extends Error {
  override name = 'KubeconfigRefused' as const
}

type Fields = Record<string, unknown>

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * Whether the text is a single word, as tokens are. Any other text, such as a one-line kubeconfig
 * or a key, must not be sent as a token to a server.
 */
export const isToken = (text: string): boolean => /^[^\s"'{}[\]]+$/.test(text)

/**
 * Reads one context of a kubeconfig. `context`: null for the current context. Throws
 * KubeconfigRefused.
 */
export function readKubeconfig(text: string, context: string | null): Kubeconfig {
  const config = parseFields(text)
  const contexts = named(config.contexts, 'context')
  const wanted = context ?? plain(config['current-context'])
  const names = [...contexts.keys()].map(quote).join(', ') || 'none'
  const chosen = wanted === null ? undefined : contexts.get(wanted)
  if (wanted === null)
    throw new KubeconfigRefused(`has no current context: choose one of ${names} with --option context=NAME`)
  if (!chosen) throw new KubeconfigRefused(`has no context ${quote(wanted)}: there is ${names}`)
  const cluster = named(config.clusters, 'cluster').get(plain(chosen.cluster) ?? '')
  const user = named(config.users, 'user').get(plain(chosen.user) ?? '')
  const server = plain(cluster?.server)
  if (!cluster || server === null)
    throw new KubeconfigRefused(`has no server in the cluster of its context ${quote(wanted)}`)
  if (!user) throw new KubeconfigRefused(`has no user for its context ${quote(wanted)}`)
  refuseCluster(cluster)
  refuseUser(user)
  return {
    context: wanted,
    server,
    ca: partOf(cluster, 'certificate-authority'),
    cert: partOf(user, 'client-certificate'),
    key: partOf(user, 'client-key'),
    token: tokenOf(user),
  }
}

function parseFields(text: string): Fields {
  try {
    // Forbids aliases, because they may expand a small text into a large value.
    const parsed: unknown = parse(text, { maxAliasCount: 0, logLevel: 'silent' })
    if (isFields(parsed)) return parsed
  } catch {
    // Drops the parser's error, because the error quotes the text.
  }
  throw new KubeconfigRefused('is not a kubeconfig in YAML or JSON')
}

function named(list: unknown, what: string): Map<string, Fields> {
  const entries = Array.isArray(list) ? list.filter(isFields) : []
  return new Map(
    entries.flatMap((entry) => {
      const [name, value] = [plain(entry.name), entry[what]]
      return name !== null && isFields(value) ? [[name, value] as const] : []
    }),
  )
}

const plain = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null)

const quote = (name: string): string => name.replace(/[^\w.:@/-]+/g, '?').slice(0, 80)

/** The service account that replaces a command or helper, with the commands that make it. */
const accountInstead = `apply the ServiceAccount, ClusterRole and binding that "nightshift sources rights kubernetes" prints, and create a token: ${tokenCommand}`

/** Credential helpers in kubeconfigs of the large cloud providers. */
const clouds: readonly (readonly [RegExp, string])[] = [
  [/aws|eks/, 'of EKS'],
  [/gke|gcloud|gcp/, 'of GKE'],
  [/kubelogin|azure/, 'of AKS'],
  [/oidc/, 'of OIDC'],
]

function refuseUser(user: Fields): void {
  const exec = isFields(user.exec) ? user.exec : null
  const provider = isFields(user['auth-provider']) ? user['auth-provider'] : null
  if (exec || user.exec !== undefined) {
    const command = quote(plain(exec?.command)?.split('/').at(-1) ?? '') || 'a program'
    const cloud = clouds.find(([pattern]) => pattern.test(command))?.[1]
    throw new KubeconfigRefused(
      `gets its credential by running ${command}${cloud ? `, as kubeconfigs ${cloud} do` : ''}, and Nightshift runs no such program: ${accountInstead}`,
    )
  }
  if (provider || user['auth-provider'] !== undefined) {
    const helper = quote(plain(provider?.name) ?? 'of no name')
    throw new KubeconfigRefused(
      `gets its credential from the auth-provider ${helper}, and Nightshift runs no such program: ${accountInstead}`,
    )
  }
  if (user.username !== undefined || user.password !== undefined)
    throw new KubeconfigRefused(
      `has a user name and a password, which no API server accepts since 1.19: ${accountInstead}`,
    )
  if (user.as !== undefined || user['as-groups'] !== undefined || user['as-user-extra'] !== undefined)
    throw new KubeconfigRefused(`impersonates another user, which reading does not need: ${accountInstead}`)
}

function refuseCluster(cluster: Fields): void {
  if (cluster['insecure-skip-tls-verify'] === true)
    throw new KubeconfigRefused(
      'skips the check of the certificate (insecure-skip-tls-verify): name the authority of the cluster as certificate-authority or with --ca; kubectl -n kube-system get configmap kube-root-ca.crt prints it',
    )
  if (plain(cluster['proxy-url']) !== null)
    throw new KubeconfigRefused('uses a proxy (proxy-url): name an address that can be reached directly')
  if (plain(cluster['tls-server-name']) !== null)
    throw new KubeconfigRefused(
      'expects a name in the certificate that its address does not have (tls-server-name): write that name in the address',
    )
}

/** Reads a part of a kubeconfig. Inline data takes precedence over a file, as in kubectl. */
function partOf(fields: Fields, name: string): KubeconfigPart | null {
  const data = plain(fields[`${name}-data`])
  if (data !== null) return { text: Buffer.from(data, 'base64').toString('utf8') }
  const file = plain(fields[name])
  return file === null ? null : { file }
}

/** Reads the token of a user. A token file takes precedence over an inline token, as in kubectl. */
function tokenOf(user: Fields): KubeconfigPart | null {
  const file = plain(user.tokenFile)
  if (file !== null) return { file }
  const token = plain(user.token)
  return token === null ? null : { text: token }
}
