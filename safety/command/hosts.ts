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

/**
 * The host of an address that every program reads alike: no user part, no backslash, no blank, no braces or brackets, which some
 * clients expand into many requests.
 */
export function hostOfUrl(text: string): string | null {
  const found = /^https?:\/\/(\[[0-9a-f:]+\]|[a-z0-9.-]+)(?::\d{1,5})?(?:[/?#][^\s\\{}[\]<>"`^|]*)?$/i.exec(text)
  return found ? found[1]! : null
}
