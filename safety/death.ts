import type { Death, JudgedDeath, Witness } from '../domain/death.ts'
import { formatWitnesses, nameOff, whatConfirms } from '../domain/format-death.ts'

/**
 * Guards against a second copy of a VM. A silent host may be cut off and alive, with its VMs
 * writing to their disks, and a second copy of a VM destroys the disk. The statement of one witness
 * never allows that a VM of the host starts elsewhere.
 */

/**
 * Milliseconds for which an observation counts: three times an agent's interval of 30 s, or two
 * scrapes.
 */
const freshMs: Record<Witness['sees'], number> = { platform: 60_000, agent: 90_000, monitoring: 120_000 }

/**
 * Returns what a witness states now. Fencing stays valid, and all other statements expire. A
 * statement of "alive" from before the fencing does not contradict the fencing.
 */
function saysNow({ sees, says, at }: Witness, fencedAtMs: number | null, nowMs: number): Witness['says'] {
  if (says === 'fenced' || at === null) return says
  const atMs = Date.parse(at)
  // Treats an observation by a clock that is ahead as fresh.
  if (!(nowMs - atMs <= freshMs[sees])) return 'silent'
  return says === 'up' && fencedAtMs !== null && atMs < fencedAtMs ? 'silent' : says
}

/**
 * Decides whether VMs of this host may start elsewhere. One witness that sees the host alive
 * forbids a start, whatever other witnesses state. Otherwise a start needs fencing, two witnesses
 * that observe different things, or a person's statement about this host. Pure and total.
 */
export function judgeDeath(death: Death, said: readonly string[], nowMs: number): JudgedDeath {
  const { host, witnesses, isForecast } = death
  const fencedAt = witnesses.find(({ says, at }) => says === 'fenced' && at !== null)?.at ?? null
  const fencedAtMs = fencedAt === null ? null : Date.parse(fencedAt)
  const now = witnesses.map((each) => ({ ...each, says: saysNow(each, fencedAtMs, nowMs) }))
  const saying = (word: Witness['says']) => now.filter(({ says }) => says === word)
  const told = formatWitnesses(now)
  const verdict = (word: JudgedDeath['verdict'], so: string): JudgedDeath => ({
    ...death,
    verdict: word,
    sentence: `${host}: ${told}. ${so}`,
  })
  if (saying('up').length > 0) {
    const so = `The sources disagree. Nothing is written until ${host} is fenced, or no source has seen the host alive for two minutes.`
    return verdict('disputed', so)
  }
  if (saying('fenced').length > 0) return verdict('fenced', 'Therefore the host counts as off.')
  if (isForecast)
    return verdict(
      'forecast',
      'The platform fences the host before it starts the VMs elsewhere. Nightshift starts none of these VMs.',
    )
  if (new Set(saying('down').map(({ sees }) => sees)).size > 1)
    return verdict('witnessed', 'These sources are independent, so the host counts as down.')
  if (said.includes(host)) return verdict('said', 'A person says that the host is off.')
  return verdict('unconfirmed', 'One source is not enough: the host may be alive but cut off.')
}

/**
 * Returns the reason why a plan may not start VMs of these hosts elsewhere; null if the plan may
 * start them. A host with a dispute comes first, because no person's statement ends a dispute.
 */
export function whyNotDead(
  deaths: readonly Death[],
  said: readonly string[],
  nowMs: number,
): { code: 'WITNESSES_DISAGREE' | 'HOST_NOT_CONFIRMED'; hosts: string[]; reason: string } | null {
  const judged = deaths.map((each) => judgeDeath(each, said, nowMs))
  for (const [verdict, code] of [
    ['disputed', 'WITNESSES_DISAGREE'],
    ['unconfirmed', 'HOST_NOT_CONFIRMED'],
  ] as const) {
    const open = judged.filter((each) => each.verdict === verdict)
    if (open.length === 0) continue
    const hosts = open.map(({ host }) => host)
    const passes = verdict === 'unconfirmed' ? [`${whatConfirms}, or a person who says that ${nameOff(hosts)}.`] : []
    return { code, hosts, reason: [...open.map(({ sentence }) => sentence), ...passes].join(' ') }
  }
  return null
}
