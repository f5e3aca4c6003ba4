import type { Death, JudgedDeath, Witness } from '../domain/death.ts'
import { formatWitnesses, nameOff, whatConfirms } from '../domain/format-death.ts'

/**
 * Guards against a second copy. A silent host may be cut off and alive, with its VMs at work on
 * their disks: two copies of one destroy what both write. So nothing of it starts elsewhere on one
 * witness's word.
 */

/** A sighting counts this long: thrice the 30 s between an agent's asks, twice a scrape. */
const freshMs: Record<Witness['sees'], number> = { platform: 60_000, agent: 90_000, monitoring: 120_000 }

/**
 * A witness's word of now. Fencing stays; other sightings age, and one alive before the fencing
 * says nothing against it.
 */
function saysNow({ sees, says, at }: Witness, fencedAtMs: number | null, nowMs: number): Witness['says'] {
  if (says === 'fenced' || at === null) return says
  const atMs = Date.parse(at)
  // A clock that is ahead makes nothing old.
  if (!(nowMs - atMs <= freshMs[sees])) return 'silent'
  return says === 'up' && fencedAtMs !== null && atMs < fencedAtMs ? 'silent' : says
}

/**
 * Whether VMs of this host may start elsewhere. A sighting alive stops everything, whatever others
 * say. Else fencing is enough, or two witnesses that look at different things, or a person's word
 * about this host. Pure and total.
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
    const so = `Witnesses disagree: nothing is written until nobody has seen ${host} alive for two minutes, or it is fenced.`
    return verdict('disputed', so)
  }
  if (saying('fenced').length > 0) return verdict('fenced', 'So it is off.')
  if (isForecast)
    return verdict(
      'forecast',
      'Its platform fences it before it starts its VMs elsewhere, and nothing is sent for them.',
    )
  if (new Set(saying('down').map(({ sees }) => sees)).size > 1)
    return verdict('witnessed', 'They do not look at the same thing, so it counts as down.')
  if (said.includes(host)) return verdict('said', 'A person says that it is off.')
  return verdict('unconfirmed', 'One witness is not enough: it may be cut off and alive.')
}

/**
 * The bar to a plan that starts VMs of these hosts elsewhere; null where there is none. A dispute
 * comes first: no word ends it.
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
