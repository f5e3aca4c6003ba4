import { harmlessPaths } from './path-index.ts'

/** What leaves this machine in a name or an address: only to a host that was looked up. */

const local: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '::1', 'localhost.localdomain', 'ip6-localhost'])

/** True for a host that is known, or is this machine. */
export function isKnownHost(host: string, known: ReadonlySet<string>): boolean {
  const name = host
    .toLowerCase()
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/\.$/, '')
  return local.has(name) || known.has(name)
}

/** `user@host`, `host:port` and plain `host`. */
export function hostOf(text: string): string | null {
  const found = /^(?:[a-z_][a-z0-9_.-]*@)?(\[[0-9a-f:]+\]|[a-z0-9._-]+|[0-9a-f]*:[0-9a-f:]+)(?::\d{1,5})?$/i.exec(text)
  // What begins with a dash would be an option.
  return found && !found[1]!.startsWith('-') ? found[1]! : null
}

/** Names and addresses that hand out the credentials of a machine to any process on it. */
const metadata =
  /^(?:169\.254\.169\.25[34]|169\.254\.170\.2|100\.100\.100\.200|fd00:ec2::2?54|metadata(?:\.google\.internal)?|instance-data(?:\.ec2\.internal)?)$/i

export const isMetadata = (host: string): boolean => metadata.test(host.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, ''))

/** What an address names: the host, and what is asked of it. */
export type Address = { host: string; target: string }

/**
 * The parts of an address that every program reads alike: no user part, no backslash, no blank, no braces, which some clients expand
 * into many requests. Without a scheme curl guesses one by the name of the host, so a name that it takes for another protocol is no HTTP host.
 */
export function addressOf(text: string): Address | null {
  const found = /^(?:https?:\/\/)?(\[[0-9a-f:]+\]|[a-z0-9.-]+)(?::\d{1,5})?((?:[/?#][^\s\\{}<>"`^|]*)?)$/i.exec(text)
  if (!found || found[1]!.startsWith('-')) return null
  if (!/^https?:/i.test(text) && /^(?:ftp|dict|ldap|imap|smtp|pop3)\./i.test(text)) return null
  return { host: found[1]!, target: found[2]!.replace(/#.*$/, '') }
}

/** Whether a request to a web server only looks, by its path and query. */

type Rule = { segments: readonly string[]; query: ReadonlySet<string> }

const exact = new Map<string, Set<string>>()
const patterned: Rule[] = []
for (const { paths, query = '' } of harmlessPaths) {
  const names = query.split(/\s+/).filter((name) => name !== '')
  for (const path of paths.trim().split(/\s+/)) {
    if (path.includes('*')) patterned.push({ segments: path.split('/'), query: new Set(names) })
    else exact.set(path, new Set([...(exact.get(path) ?? []), ...names]))
  }
}

/** A longer query asks for more than a look takes. */
const longestQuery = 500

/** `target` is what follows the host and port: a path, with or without a query. */
export function isHarmlessRequest(target: string): boolean {
  const asked = target === '' ? '/' : target
  if (exact.has(asked)) return true
  const mark = asked.indexOf('?')
  const path = (mark < 0 ? asked : asked.slice(0, mark)).replace(/^\?/, '/')
  const query = mark < 0 ? '' : asked.slice(mark + 1)
  // Servers differ on what an escape, a parameter or a dot in a path means.
  if (!/^\/[\w./:@~+-]*$/.test(path) || /\/\.{1,2}(?:\/|$)|\/\//.test(path) || query.length > longestQuery) return false
  const names = query.split('&').filter((part) => part !== '')
  return allowed(path).some((known) =>
    names.every((part) => known.has(part.replace(/=.*$/s, '').replace(/%5B%5D$/i, '[]'))),
  )
}

function allowed(path: string): ReadonlySet<string>[] {
  const found = exact.get(path)
  if (found) return [found]
  const segments = path.split('/')
  return patterned
    .filter((rule) => rule.segments.length === segments.length)
    .filter((rule) =>
      rule.segments.every(
        (name, at) =>
          name === segments[at] ||
          (name === '*' && /^[\w.,:@-]+$/.test(segments[at]!) && !/^[_.-]/.test(segments[at]!)),
      ),
    )
    .map(({ query }) => query)
}
