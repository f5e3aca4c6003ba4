import type { Manifest } from '../../domain/mesh.ts'
import { type PathRejection, parsePlace } from './roots.ts'

/**
 * Where a repository is: on a host that the manifest lists, or a path inside the roots. `shown`
 * never holds a password.
 */
export type Remote = { kind: 'host' | 'path'; url: string; shown: string }

const host = /^[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?$/
const scp = /^([A-Za-z_][A-Za-z0-9_.-]*)@([^:/@]+):([^-:][^\0\n]*)$/

/**
 * Reads the address of a repository; why it may not be spoken to, where that is so. No other
 * transport, and no helper programs.
 */
export function remoteOf(text: string, manifest: Manifest): Remote | PathRejection {
  if (text.startsWith('/')) {
    const place = parsePlace(text, manifest)
    return 'code' in place ? place : { kind: 'path', url: place.path, shown: place.path }
  }
  const named = scp.exec(text)
  // `user@host:path` is how ssh is mostly written, and says the same as ssh://user@host/path.
  const [name, written] = named ? [named[2]!, text] : hostOf(text)
  if (name === null) return { code: 'blocked', message: written }
  if (!host.test(name.split(':')[0]!)) return { code: 'blocked', message: `${name} is no host` }
  if (!manifest.git_hosts.some((listed) => listed.toLowerCase() === name.toLowerCase()))
    return { code: 'blocked', message: `${name} is not one of the git hosts of this device${listOf(manifest)}` }
  return { kind: 'host', url: text, shown: named ? text : withoutPassword(text) }
}

const listOf = ({ git_hosts }: Manifest) => (git_hosts.length === 0 ? ', which has none' : `: ${git_hosts.join(', ')}`)

/** The host (with its port, where one is written), or null and what is wrong. */
function hostOf(text: string): [string, string] | [null, string] {
  let url: URL
  try {
    url = new URL(text)
  } catch {
    return [null, 'this is no address of a repository']
  }
  if (url.protocol !== 'https:' && url.protocol !== 'ssh:')
    return [null, `${url.protocol} is not spoken: https and ssh are`]
  // What the parser drops or rewrites, git would still see.
  if (/[\s\\\0#?]/.test(text)) return [null, 'the address holds white space, a backslash, # or ?']
  if (!/^(?:[A-Za-z_][A-Za-z0-9_.-]*)?$/.test(url.username)) return [null, 'the address names no plain user']
  return [url.host, text]
}

function withoutPassword(text: string): string {
  const url = new URL(text)
  url.username = url.protocol === 'ssh:' ? url.username : ''
  url.password = ''
  return url.href
}
