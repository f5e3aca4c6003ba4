import type { JudgedDeath, Witness } from './death.ts'
import { formatList, formatMinute } from './format.ts'

/**
 * Reads the deaths of hosts from a dry run. Empty if no VM of a dead host would start elsewhere,
 * and in rows of older versions.
 */
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

/**
 * Formats the reports of witnesses about a host: `the platform says that it is down (03:50); the
 * agent of host-1 saw it alive (03:51)`.
 */
export function formatWitnesses(witnesses: readonly Witness[]): string {
  if (witnesses.length === 0) return 'no source reports its state'
  return witnesses
    .map(({ who, says, at }) => `${who} ${saysWords[says]}${at === null ? '' : ` (${formatMinute(at)})`}`)
    .join('; ')
}

/** The conditions under which VMs of a dead host start elsewhere without a decision of a person. */
export const whatConfirms = 'This needs fencing, a second independent source'

/** Formats the statement that hosts are off: `host-1 and host-2 are off`. */
export function nameOff(hosts: readonly string[]): string {
  return `${formatList(hosts)} ${hosts.length === 1 ? 'is' : 'are'} off`
}

/** Lists the hosts that a person must state to be off. */
export function hostsToSay(deaths: readonly JudgedDeath[]): string[] {
  return deaths.filter(({ verdict }) => verdict === 'unconfirmed').map(({ host }) => host)
}

/**
 * Formats the statement about a host that a person confirms: with a tick on the page, or with the
 * name of the host in the terminal.
 */
export function formatHostToSay(host: string): string {
  return `I checked myself that ${host} is off and stays off.`
}

/** Whether a witness saw a host alive. If so, no approval is accepted. */
export function isDisputed(deaths: readonly JudgedDeath[]): boolean {
  return deaths.some(({ verdict }) => verdict === 'disputed')
}

/** Explains why the server refuses an approval now; null if no witness saw a host alive. */
export function formatDispute(deaths: readonly JudgedDeath[]): string | null {
  const hosts = deaths.filter(({ verdict }) => verdict === 'disputed').map(({ host }) => host)
  return hosts.length === 0
    ? null
    : `This plan cannot be approved while a source has seen ${formatList(hosts)} alive. It can be denied.`
}
