/** Names of machines as labels write them and as the registry keeps them: without scheme, port and path, addresses in one form. */

/** Addresses that mean the machine that asks, or none. */
const isNowhere = /^(localhost(\..*)?|ip6-localhost|127\.[\d.]+|::1|0\.0\.0\.0|::|fe80:.*|n\/a|none|unknown|-)$/

/**
 * The name of a machine without scheme, path, port and node prefix (`rabbit@mq-1`), then its first part. None of a loopback address, and
 * none of a number: a number beside a machine is an id or a count.
 */
export function toMachineNames(value: string): string[] {
  const text = value
    .trim()
    .replace(/^[a-z][a-z0-9+.-]*:\/\//i, '')
    .replace(/[/?#].*$/, '')
    .replace(/^.*@/, '')
  const bare = toOneAddress(
    text
      .replace(/^\[([^\]]+)\](?::\d+)?$/, '$1')
      .replace(/^([^:]*):\d+$/, '$1')
      .replace(/\.$/, '')
      .toLowerCase(),
  )
  if (bare === '' || isNowhere.test(bare) || /^\d+$/.test(bare)) return []
  const first = isAddress(bare) ? bare : (bare.split('.')[0] ?? bare)
  return first === bare || first === '' ? [bare] : [bare, first]
}

export const isAddress = (text: string): boolean => /^[\d.]+$/.test(text) || text.includes(':')

/** IPv6 is written in many ways, and as a wrapping of IPv4: one form of each, so that texts can be compared. Other texts stay as they are. */
export function toOneAddress(text: string): string {
  const plain = text.replace(/%.*$/, '')
  const wrapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(plain)?.[1]
  if (wrapped) return wrapped
  if (!/^[0-9a-f:.]+$/.test(plain) || plain.split(':').length < 3) return text
  const url = URL.parse(`http://[${plain}]`)
  return url ? url.hostname.slice(1, -1) : text
}

/** Names that only a site's own resolver knows. */
const isPrivateName = /\.(local|localdomain|lan|internal|intra|intranet|private|home|corp|home\.arpa|test)$/

/**
 * Whether the first part of a full name is that machine's name. `api` of `api.github.com` is a word that a machine may bear by chance;
 * a numbered name, or one under a domain that is private, is not.
 */
export const isOwnName = (full: string, first: string): boolean => /\d/.test(first) || isPrivateName.test(full)

/** A label's value as the one name that it is; none where it says nothing. */
export function namesOf(value: string | undefined): string[] {
  const text = value?.trim().toLowerCase() ?? ''
  return text === '' ? [] : [text]
}
