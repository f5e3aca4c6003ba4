import {
  isToken,
  type Kubeconfig,
  type KubeconfigPart,
  KubeconfigRefused,
  readKubeconfig,
} from '../../clients/kubernetes/kubeconfig.ts'
import type { ClusterServer } from '../../clients/kubernetes/server.ts'
import { NoCredential, readAuthorities, readRef } from '../../config/references.ts'
import type { Source } from '../../domain/source.ts'
import { addCommand, readSentWith } from '../credentials.ts'
import { SourceError } from '../kind.ts'

/**
 * Ways to log in to the API server of a source: a kubeconfig, a token, a certificate, or the
 * account of this process's pod.
 */

type ClusterAccess = { server: ClusterServer; secrets: string[] }

type Named = Omit<Source, 'createdBy' | 'createdAt'>

/**
 * The directory in which a pod finds its service account. `ownAddress`: the only address to which
 * the account's token is sent.
 */
const accountDirectory = '/var/run/secrets/kubernetes.io/serviceaccount'
const ownAddress = /^https:\/\/kubernetes\.default\.svc(?:\.cluster\.local)?(?::443)?\/?$/

const loopback = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/

/**
 * Reads the login to a cluster for each request, because tokens rotate. `account` is the directory
 * of the pod's service account. Throws SourceError.
 */
export function readAccess(source: Named, directory: string, account = accountDirectory): ClusterAccess {
  const { url, name, options, timeoutSeconds } = source
  if (new URL(url).protocol === 'http:' && !loopback.test(new URL(url).hostname))
    throw new SourceError('UNTRUSTED_CERTIFICATE', `${name} needs an address that begins with https`)
  const timeoutMs = timeoutSeconds * 1_000
  try {
    if (options.account === 'in-cluster') return { ...readAccount(source, account, timeoutMs) }
    const text = source.credential === null ? null : readRef(source.credential, directory)
    if (text !== null && !isToken(text)) {
      const config = readKubeconfig(text, typeof options.context === 'string' ? options.context : null)
      return readConfigured(source, config, { directory, timeoutMs })
    }
    if (typeof options.context === 'string')
      throw new NoCredential(`${source.credential ?? 'no credential'} is not a kubeconfig with a context`)
    // Reads the credential, which is a token here, and the certificates.
    const { ca, client, secrets } = readSentWith(source, directory)
    if (text === null && client === null)
      throw new NoCredential(`there is no kubeconfig, token or certificate: ${addCommand(source)} --credential REF`)
    return { server: { url, ca, client, token: text, timeoutMs }, secrets }
  } catch (error) {
    if (error instanceof KubeconfigRefused)
      throw new SourceError('NO_CREDENTIAL', `${name}: its kubeconfig ${error.message}`, { cause: error })
    if (error instanceof NoCredential)
      throw new SourceError('NO_CREDENTIAL', `${name}: ${error.message}`, { cause: error })
    throw error
  }
}

function readAccount({ url, caFile, credential }: Named, account: string, timeoutMs: number): ClusterAccess {
  if (!ownAddress.test(url))
    throw new NoCredential(
      'the account of the pod works only for the cluster of the pod: use https://kubernetes.default.svc',
    )
  if (credential !== null || caFile !== null)
    throw new NoCredential(
      'account=in-cluster has its own token and certificate authority: leave credential and ca out',
    )
  const token = readRef(`file:${account}/token`)
  const ca = readAuthorities(`${account}/ca.crt`)
  return { server: { url, ca, client: null, token, timeoutMs }, secrets: [token] }
}

type Place = { directory: string; timeoutMs: number }

function readConfigured(source: Named, config: Kubeconfig, { directory, timeoutMs }: Place): ClusterAccess {
  const { url, caFile, certFile } = source
  const server = toPlain(config.server)
  if (server === '')
    throw new KubeconfigRefused(`has a server with an invalid address in its context ${config.context}`)
  if (server !== toPlain(url))
    throw new KubeconfigRefused(
      `is for another server in its context ${config.context}: give that address, --at ${server}, or another context`,
    )
  const ca = caFile !== null ? readAuthorities(caFile, directory) : readPart(config.ca, directory, 'authority')
  const cert = readPart(config.cert, directory, 'authority')
  const key = readPart(config.key, directory, 'secret')
  if ((cert === null) !== (key === null)) throw new KubeconfigRefused('has a certificate without its key')
  if (certFile !== null)
    throw new KubeconfigRefused('has a certificate of its own: leave --cert out, or name a token instead')
  const token = readPart(config.token, directory, 'secret')
  if (token !== null && !isToken(token))
    throw new KubeconfigRefused(`has another credential than a token for its context ${config.context}`)
  if (token === null && cert === null)
    throw new KubeconfigRefused(`has neither token nor certificate for its context ${config.context}`)
  const client = cert !== null && key !== null ? { cert, key } : null
  return {
    server: { url, ca, client, token, timeoutMs },
    secrets: [token, key].filter((each) => each !== null),
  }
}

/**
 * Normalizes an address and removes its password: `https://h:443/` becomes `https://h`. Empty if
 * the address is invalid.
 */
function toPlain(address: string): string {
  const url = URL.parse(address)
  return url === null || !/^https?:$/.test(url.protocol) ? '' : `${url.origin}${url.pathname.replace(/\/+$/, '')}`
}

/**
 * Reads a part of a kubeconfig: a text or a file. The file must be in the directory of sources,
 * like all files of sources.
 */
function readPart(part: KubeconfigPart | null, directory: string, what: 'authority' | 'secret'): string | null {
  if (part === null) return null
  if ('text' in part) return part.text
  return what === 'authority' ? readAuthorities(part.file, directory) : readRef(`file:${part.file}`, directory)
}
