import { lookup } from 'node:dns'
import { BlockList, isIP, type LookupFunction } from 'node:net'

/**
 * The addresses that a request may reach. `loopback`: only this machine. `private`: this machine,
 * private networks and the internet, because self-hosted receivers are usually internal. `any`:
 * also link-local addresses and cloud metadata, if a setting allows them.
 */
export type AddressPolicy = 'loopback' | 'private' | 'any'

type AddressKind = 'loopback' | 'private' | 'public' | 'denied'

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

const denied = new BlockList()
denied.addSubnet('0.0.0.0', 8, 'ipv4') // "this host", another way to reach loopback services
denied.addSubnet('169.254.0.0', 16, 'ipv4') // link-local, and the metadata service of most clouds
denied.addAddress('100.100.100.200', 'ipv4') // Alibaba's metadata
denied.addAddress('168.63.129.16', 'ipv4') // Azure's wire server
denied.addSubnet('192.0.0.0', 24, 'ipv4') // protocol assignments; Oracle's metadata is 192.0.0.192
denied.addSubnet('224.0.0.0', 3, 'ipv4') // multicast, reserved, broadcast
denied.addAddress('::', 'ipv6')
denied.addSubnet('fe80::', 10, 'ipv6')
denied.addSubnet('fec0::', 10, 'ipv6')
denied.addSubnet('ff00::', 8, 'ipv6')
denied.addSubnet('fd00:ec2::', 32, 'ipv6') // AWS metadata
denied.addSubnet('fd20:ce::', 32, 'ipv6') // Google's metadata

const privateNetworks = new BlockList()
privateNetworks.addSubnet('10.0.0.0', 8, 'ipv4')
privateNetworks.addSubnet('172.16.0.0', 12, 'ipv4')
privateNetworks.addSubnet('192.168.0.0', 16, 'ipv4')
privateNetworks.addSubnet('100.64.0.0', 10, 'ipv4')
privateNetworks.addSubnet('198.18.0.0', 15, 'ipv4')
privateNetworks.addSubnet('fc00::', 7, 'ipv6')

/**
 * Returns the kind of an address literal. `denied` for any other text, or for an address that hides
 * another address in it.
 */
export function kindOfAddress(literal: string): AddressKind {
  const address = literal.replace(/^\[|\]$/g, '').replace(/%.*$/, '')
  const version = isIP(address)
  if (version === 0) return 'denied'
  if (version === 4) return kindIn(address, 'ipv4')
  const groups = groupsOf(address)
  const [a, b, c, d, e, f, g, h] = groups as [number, number, number, number, number, number, number, number]
  const zeros = groups.slice(0, 5).every((group) => group === 0)
  if (zeros && f === 0xffff) return kindIn(dotted(g, h), 'ipv4')
  if (zeros && f === 0 && (g !== 0 || h > 1)) return kindOfTranslated(dotted(g, h)) // ::a.b.c.d
  if (a === 0 && b === 0 && c === 0 && d === 0 && e === 0xffff && f === 0) return kindOfTranslated(dotted(g, h)) // SIIT
  if (a === 0x64 && b === 0xff9b) return kindOfTranslated(dotted(g, h)) // NAT64
  if (a === 0x2002) return kindOfTranslated(dotted(b, c)) // 6to4
  if (a === 0x2001 && b === 0) return 'denied' // Teredo
  if ((e === 0 || e === 0x200) && f === 0x5efe) return kindOfTranslated(dotted(g, h)) // ISATAP
  return kindIn(address, 'ipv6')
}

/** Whether the policy allows a connection to this address. */
export function allows(policy: AddressPolicy, literal: string): boolean {
  if (policy === 'any') return isIP(literal.replace(/^\[|\]$/g, '').replace(/%.*$/, '')) !== 0
  const kind = kindOfAddress(literal)
  return policy === 'loopback' ? kind === 'loopback' : kind !== 'denied'
}

function kindIn(address: string, family: 'ipv4' | 'ipv6'): AddressKind {
  if (denied.check(address, family)) return 'denied'
  if (loopback.check(address, family)) return 'loopback'
  return privateNetworks.check(address, family) ? 'private' : 'public'
}

/**
 * Allows only public targets. A network translator, and not this machine, decides where a packet to
 * a translated address goes.
 */
function kindOfTranslated(inner: string): AddressKind {
  return kindIn(inner, 'ipv4') === 'public' ? 'public' : 'denied'
}

function dotted(high: number, low: number): string {
  return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`
}

/** Splits a valid IPv6 literal into its eight 16-bit groups. */
function groupsOf(address: string): number[] {
  // Normalizes the address: the URL parser writes a dotted end in hexadecimal.
  const normal = new URL(`http://[${address}]`).hostname.slice(1, -1)
  const [head = '', tail] = normal.split('::')
  const read = (part: string) => (part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16)))
  if (tail === undefined) return read(head)
  const [left, right] = [read(head), read(tail)]
  return [...left, ...Array(8 - left.length - right.length).fill(0), ...right]
}

/**
 * Makes a DNS lookup without the addresses that the policy refuses, so that none of them is tried.
 * `refuse` makes the error if no address is left.
 */
export function guardedLookup(policy: AddressPolicy, refuse: (hostname: string) => Error): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, found) => {
      if (error) return callback(error, '', 0)
      const passing = found.filter(({ address }) => allows(policy, address))
      const [first] = passing
      if (!first) return callback(refuse(hostname), '', 0)
      return options.all ? callback(null, passing) : callback(null, first.address, first.family)
    })
  }
}
