import { readdir, readFile, readlink, stat } from 'node:fs/promises'
import { isIPv6 } from 'node:net'
import { endianness } from 'node:os'
import { stripText } from '../../safety/redact.ts'
import { type CapabilityContext, CapabilityError, type RunResult } from './capability.ts'
import { find, isRoot, whyNotDone } from './programs.ts'

/** How this machine's service manager is spoken to: the words before the verb. `isUsers`: the manager of the agent's own user. */
export type Systemd = { words: readonly string[]; isUsers: boolean }

/** `systemctl` is the program with what every call gets; without it the system's own. */
export function systemdBy(systemctl: readonly string[] | undefined): Systemd {
  const words = systemctl ?? [find('systemctl') ?? '/usr/bin/systemctl']
  return { words, isUsers: systemctl !== undefined }
}

/** Null where systemd runs, as sd_booted(3) finds out. */
export async function missingSystemd({ words, isUsers }: Systemd): Promise<string | null> {
  if (isUsers) return null
  const isThere = await stat('/run/systemd/system').then(
    (found) => found.isDirectory(),
    () => false,
  )
  if (!isThere) return 'systemd does not run here'
  return find('systemctl') === null ? `${words[0]} is not here` : null
}

const asked = {
  unit: 'Id',
  description: 'Description',
  load: 'LoadState',
  active: 'ActiveState',
  sub: 'SubState',
  type: 'Type',
  result: 'Result',
  exit_status: 'ExecMainStatus',
  main_pid: 'MainPID',
  restarts: 'NRestarts',
  invocation: 'InvocationID',
  since: 'StateChangeTimestamp',
  file: 'FragmentPath',
  enabled: 'UnitFileState',
  is_changed_on_disk: 'NeedDaemonReload',
  memory_bytes: 'MemoryCurrent',
  tasks: 'TasksCurrent',
  started_by: 'TriggeredBy',
  required_by: 'RequiredBy',
  bound_by: 'BoundBy',
  parts: 'ConsistsOf',
  stops_too: 'PropagatesStopTo',
} as const

export type UnitState = Record<keyof typeof asked, string>

/** Plain answers without colours, in English and UTC, of the agent's own user. */
const environment = { LC_ALL: 'C', TZ: 'UTC', SYSTEMD_COLORS: '0', SYSTEMD_PAGER: '' }

/**
 * What systemd says of units, in the order they were asked for; `null` for none of that name. Not in the sandbox of reads: the words are
 * ours, and a namespace of users would hide from systemd who asks.
 */
export async function showUnits(
  { words }: Systemd,
  units: readonly string[],
  { run }: Pick<CapabilityContext, 'run'>,
): Promise<(UnitState | null)[]> {
  if (units.length === 0) return []
  const argv = [...words, 'show', '--no-pager', `--property=${Object.values(asked).join(',')}`, '--', ...units]
  const ran = await run(argv, { confine: 'write', env: environment })
  requireDone('systemctl show', ran)
  return ran.stdout.split(/\n\n+/).map((block) => {
    const fields = new Map(block.split('\n').map((line) => splitOnce(line)))
    const state = Object.fromEntries(
      Object.entries(asked).map(([name, property]) => [
        name,
        clean(fields.get(property) ?? '', lists.has(name) ? mostOfList : undefined),
      ]),
    ) as UnitState
    return state.load === 'not-found' || state.unit === '' ? null : state
  })
}

const splitOnce = (line: string): [string, string] => {
  const at = line.indexOf('=')
  return [line.slice(0, at), line.slice(at + 1)]
}

/** Lists of units are whole: what is cut off one would stop unseen. */
const clean = (text: string, most = 2_000) => stripText(text, { keepNewlines: false }).slice(0, most)
const lists = new Set(['required_by', 'bound_by', 'parts', 'stops_too'])
const mostOfList = 200_000

/** `root`: it is root. `sudo`: sudoers allows exactly this. `unknown`: nothing shows that it may; polkit decides when it is tried. */
export type Privilege = 'own' | 'root' | 'sudo' | 'unknown'

const sudo = '/usr/bin/sudo'

/** Whether the agent may do this, found out without doing it: `sudo -l` with the words answers 0 where sudoers allows them. */
export async function privilegeOf(
  systemd: Systemd,
  verb: string,
  unit: string,
  { run }: Pick<CapabilityContext, 'run'>,
): Promise<Privilege> {
  if (systemd.isUsers) return 'own'
  if (isRoot()) return 'root'
  if (find('sudo') === null) return 'unknown'
  const ran = await run([sudo, '-n', '-l', '--', ...systemd.words, verb, unit], { confine: 'root' })
  return ran.exitCode === 0 ? 'sudo' : 'unknown'
}

/** Carries a verb out and waits for systemd's job. Throws with systemd's words where it refuses or fails. */
export async function control(
  systemd: Systemd,
  verb: string,
  unit: string,
  context: Pick<CapabilityContext, 'run' | 'emit'>,
): Promise<void> {
  const privilege = await privilegeOf(systemd, verb, unit, context)
  const words = [...systemd.words, verb, unit]
  const options = { env: environment, onLine: context.emit }
  const ran =
    privilege === 'sudo'
      ? await context.run([sudo, '-n', '--', ...words], { confine: 'root', onLine: context.emit })
      : await context.run([...systemd.words, '--no-ask-password', verb, unit], { confine: 'write', ...options })
  requireDone(`systemctl ${verb}`, ran)
}

function requireDone(what: string, ran: RunResult): void {
  const why = whyNotDone(what, ran)
  if (why && !why.ok) throw new CapabilityError(why.code, clean(why.message))
}

/** A socket of TCP or UDP as the kernel lists it. */
export type Socket = {
  protocol: 'tcp' | 'udp'
  local: string
  /** Null where nothing is connected. */
  remote: string | null
  state: string
  uid: string
  inode: string
}

const tables = ['tcp', 'tcp6', 'udp', 'udp6'] as const
/** The kernel's numbers of the states of TCP. */
const states = [
  ...['', 'established', 'syn_sent', 'syn_recv', 'fin_wait1', 'fin_wait2', 'time_wait'],
  ...['close', 'close_wait', 'last_ack', 'listen', 'closing', 'new_syn_recv'],
]

/** The sockets at this port, on either end, in the network that the agent sees. */
export async function socketsAt(port: number): Promise<Socket[]> {
  const found: Socket[] = []
  for (const table of tables) {
    // A kernel without IPv6 has no such file.
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
    // "0: 0100007F:1F90 00000000:0000 0A queues timer retransmits uid timeout inode …"
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

/** Words of 32 bits as the machine holds them, in hexadecimal. */
function addressOf(text: string): string {
  const [hex = '', port = ''] = text.split(':')
  const words = hex.match(/.{8}/g) ?? []
  const bytes = words.flatMap((word) => {
    const each = [...Buffer.from(word, 'hex')]
    return endianness() === 'LE' ? each.reverse() : each
  })
  const number = Number.parseInt(port, 16)
  if (bytes.length === 4) return `${bytes.join('.')}:${number}`
  // IPv4 inside IPv6.
  if (bytes.slice(0, 12).join(',') === '0,0,0,0,0,0,0,0,0,0,255,255') return `${bytes.slice(12).join('.')}:${number}`
  const groups = Array.from({ length: 8 }, (_, at) => ((bytes[at * 2]! << 8) | bytes[at * 2 + 1]!).toString(16))
  return `[${short(groups.join(':'))}]:${number}`
}

function short(address: string): string {
  if (!isIPv6(address)) return address
  return new URL(`http://[${address}]`).hostname.slice(1, -1)
}

/**
 * Inodes of the sockets that a process holds, among those asked for. Null where the agent may not look, as at another user's process.
 */
export async function heldBy(pid: number, inodes: ReadonlySet<string>): Promise<string[] | null> {
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
