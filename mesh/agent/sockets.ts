import { readdir, readFile, readlink } from 'node:fs/promises'
import { isIPv6 } from 'node:net'
import { endianness } from 'node:os'

/** A socket of TCP or UDP, as the kernel lists it. */
export type Socket = {
  protocol: 'tcp' | 'udp'
  local: string
  /** The address of the peer. Null if no peer is connected. */
  remote: string | null
  state: string
  uid: string
  inode: string
}

const tables = ['tcp', 'tcp6', 'udp', 'udp6'] as const

/** Names of TCP states, by the kernel's numbers. */
const states = [
  ...['', 'established', 'syn_sent', 'syn_recv', 'fin_wait1', 'fin_wait2', 'time_wait'],
  ...['close', 'close_wait', 'last_ack', 'listen', 'closing', 'new_syn_recv'],
]

/** Lists sockets with this port at either end, in the agent's network namespace. */
export async function socketsAt(port: number): Promise<Socket[]> {
  const found: Socket[] = []
  for (const table of tables) {
    // A kernel without IPv6 lacks the file.
    const text = await readFile(`/proc/self/net/${table}`, 'utf8').catch(() => '')
    found.push(...socketsIn(text, table.startsWith('tcp') ? 'tcp' : 'udp', port))
  }
  return found
}

export function socketsIn(text: string, protocol: Socket['protocol'], port: number): Socket[] {
  const wanted = `:${port.toString(16).toUpperCase().padStart(4, '0')} `
  const found: Socket[] = []
  for (const line of text.split('\n')) {
    if (!line.includes(wanted)) continue
    // The format of a line: "0: 0100007F:1F90 00000000:0000 0A queues timer retransmits uid timeout
    // inode …"
    const [, local = '', remote = '', state = '', , , , uid = '', , inode = ''] = line.trim().split(/\s+/)
    if (!`${local} ${remote} `.includes(wanted)) continue
    const isConnected = !remote.endsWith(':0000')
    const name = states[Number.parseInt(state, 16)] ?? state
    found.push({
      protocol,
      local: addressOf(local),
      remote: isConnected ? addressOf(remote) : null,
      uid,
      inode,
      state: protocol === 'tcp' ? name : isConnected ? 'connected' : 'bound',
    })
  }
  return found
}

/** Reads an address in hexadecimal words of 32 bits, each in the machine's byte order. */
function addressOf(text: string): string {
  const [hex = '', port = ''] = text.split(':')
  const words = hex.match(/.{8}/g) ?? []
  const bytes = words.flatMap((word) => {
    const each = [...Buffer.from(word, 'hex')]
    return endianness() === 'LE' ? each.reverse() : each
  })
  const number = Number.parseInt(port, 16)
  if (bytes.length === 4) return `${bytes.join('.')}:${number}`
  // Formats an IPv4 address inside an IPv6 address as IPv4.
  if (bytes.slice(0, 12).join(',') === '0,0,0,0,0,0,0,0,0,0,255,255') return `${bytes.slice(12).join('.')}:${number}`
  const groups = Array.from({ length: 8 }, (_, at) => ((bytes[at * 2]! << 8) | bytes[at * 2 + 1]!).toString(16))
  return `[${short(groups.join(':'))}]:${number}`
}

function short(address: string): string {
  if (!isIPv6(address)) return address
  return new URL(`http://[${address}]`).hostname.slice(1, -1)
}

/**
 * Lists those of the given inodes that are sockets of this process. Null if the agent may not read
 * the process's sockets, as for another user's process.
 */
export async function socketsHeldBy(pid: number, inodes: ReadonlySet<string>): Promise<string[] | null> {
  let names: string[]
  try {
    names = await readdir(`/proc/${pid}/fd`)
  } catch {
    return null
  }
  const links = await Promise.all(names.map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => '')))
  const held = links.flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? [])
  return [...new Set(held)].filter((inode) => inodes.has(inode))
}
