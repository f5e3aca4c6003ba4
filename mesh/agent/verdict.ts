import { type CommandVerdict, judgeArgv, judgeCommand } from '../../safety/command/judge.ts'
import { loadSql } from '../../safety/sql/inspect.ts'
import type { RunOptions, Weight } from './capability.ts'

/** A device knows no other hosts and no containers by name: whoever looked them up can vouch for them with a grant. */
const nothingKnown = { knownHosts: new Set<string>() }

/** Where a command runs when nobody says otherwise. */
export const defaultDirectory = '/'

export function argvVerdict(argv: readonly string[], cwd: string): CommandVerdict {
  return judgeArgv(argv, { ...nothingKnown, directory: cwd })
}

export function textVerdict(text: string, cwd: string): CommandVerdict {
  return judgeCommand(text, { ...nothingKnown, directory: cwd })
}

let isSqlLoaded = false

/** PostgreSQL's parser takes memory that most devices never need: it is loaded when a command first names its client. */
export async function loadParsers(args: Record<string, unknown>): Promise<void> {
  if (
    isSqlLoaded ||
    !JSON.stringify(args)
      .replace(/['"\\]/g, '')
      .includes('psql')
  )
    return
  await loadSql()
  isSqlLoaded = true
}

/** The kernel's verdict as the guard weighs it. */
export function weightOf(verdict: CommandVerdict, command: string): Weight {
  const { code, reason, rewrite, commands: programs } = verdict
  const said = `${code}: ${reason}`
  if (verdict.verdict === 'run') return { effect: 'read', reason: said, command, programs }
  if (verdict.verdict === 'refuse') return { effect: 'refused', reason: said, command, programs }
  // An endless read is nobody's to approve: the deadline would kill it without an answer.
  if (code === 'UNBOUNDED')
    return { effect: 'refused', reason: rewrite ? `${said}. Instead: ${rewrite}` : said, command, programs }
  return { effect: 'write', reason: said, command, programs }
}

/** What looks at the network itself, or asks somebody who listens on this machine: without it the answer would be wrong. */
const looksAtNetwork = new Set(
  (
    'arp bridge conntrack curl dig drill ethtool getent host hostname ifconfig ip iw iwconfig kubectl lsof mongosh mtr mysql mysqladmin ' +
    'nc ncat netstat networkctl nft nmap nmcli nslookup nstat openssl pg_isready ping ping6 psql redis-cli resolvectl route ss tc ' +
    'tracepath traceroute wget iptables ip6tables iptables-save ip6tables-save docker podman rabbitmqctl crictl helm'
  ).split(' '),
)
const looksAtMounts = new Set(['mount', 'findmnt', 'mountpoint'])

/**
 * What of the machine a proven read must see as it is. In a namespace of its own `ss` would find nobody listening, and every mount would
 * be read-only: wrong answers at night are worse than a sandbox that is thinner for a few programs that the judge knows well.
 */
export function seenBy(verdict: CommandVerdict, command: string): RunOptions['sees'] {
  const sees: ('network' | 'mounts')[] = []
  const onNetwork = /\/(?:proc\/(?:self|thread-self|\d+)?\/?net|sys\/class\/net)\b/.test(command)
  if (onNetwork || verdict.commands.some((name) => looksAtNetwork.has(name))) sees.push('network')
  const onMounts = /\/proc\/(?:self\/|thread-self\/|\d+\/)?mount|\/etc\/mtab/.test(command)
  if (onMounts || verdict.commands.some((name) => looksAtMounts.has(name))) sees.push('mounts')
  return sees
}
