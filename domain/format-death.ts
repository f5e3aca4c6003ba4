import type { JudgedDeath, Witness } from './death.ts'
import { formatList, formatMinute } from './format.ts'

/** Empty for a dry run that starts nothing of a dead host, and for one of an older version. */
export function deathsOfDryRun({ deaths }: Record<string, unknown>): JudgedDeath[] {
  const all: (Partial<JudgedDeath> | null)[] = Array.isArray(deaths) ? deaths : []
  return all.every(isDeath) ? all : []
}

function isDeath(each: Partial<JudgedDeath> | null): each is JudgedDeath {
  const texts = [each?.host, each?.verdict, each?.sentence]
  return texts.every((text) => typeof text === 'string') && Array.isArray(each?.witnesses)
}

const saysWords: Record<Witness['says'], string> = {
  fenced: 'confirms that it is powered off',
  down: 'says that it is down',
  up: 'saw it alive',
  silent: 'does not know',
}

/** `the platform says that it is down (03:50); the agent of host-1 saw it alive (03:51)`. */
export function formatWitnesses(witnesses: readonly Witness[]): string {
  if (witnesses.length === 0) return 'nobody says how it is'
  return witnesses
    .map(({ who, says, at }) => `${who} ${saysWords[says]}${at === null ? '' : ` (${formatMinute(at)})`}`)
    .join('; ')
}

/** What lets VMs of a dead host start elsewhere, besides a person. */
export const whatConfirms = 'It takes fencing, a second witness that looks at something else'

/** `host-1 and host-2 are off`. */
export function nameOff(hosts: readonly string[]): string {
  return `${formatList(hosts)} ${hosts.length === 1 ? 'is' : 'are'} off`
}

/** The hosts of which only a person can say that they are off. */
export function hostsToSay(deaths: readonly JudgedDeath[]): string[] {
  return deaths.filter(({ verdict }) => verdict === 'unconfirmed').map(({ host }) => host)
}

/** A person's word on a host before an approval counts: a tick, or its name at the terminal. */
export function formatHostToSay(host: string): string {
  return `I made sure myself that ${host} is off and stays off.`
}

/** No approval counts while somebody has seen a host alive. */
export function isDisputed(deaths: readonly JudgedDeath[]): boolean {
  return deaths.some(({ verdict }) => verdict === 'disputed')
}

/** The server's reason why it cannot be approved now; null where no witness disagrees. */
export function formatDispute(deaths: readonly JudgedDeath[]): string | null {
  const hosts = deaths.filter(({ verdict }) => verdict === 'disputed').map(({ host }) => host)
  return hosts.length === 0
    ? null
    : `It cannot be approved while somebody has seen ${formatList(hosts)} alive. It can be denied.`
}
