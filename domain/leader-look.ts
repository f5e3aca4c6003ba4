import type { ResourceRef } from './registry.ts'

/** A look that decided the leader's incident, with the follower's own names in it. */
export type LeaderLook = { tool: string; arguments: Record<string, unknown> }

/** The looks before the repair, the repair, and the looks that showed what it did. */
export type LeaderLooks = { before: LeaderLook[]; write: string | null; after: LeaderLook[] }

/**
 * Names in calls that an incident explains: itself, its resource, what is near that, and its
 * alert's words.
 */
export type IncidentTerms = {
  incidentId: string
  resource: ResourceRef | null
  near: readonly ResourceRef[]
  labels: Readonly<Record<string, string>>
}

/** The follower's name for a name of the leader's; null where it has none. */
type Names = ReadonlyMap<string, string | null>

/** What holds for a moment or one process alone: the follower's is another. */
const momentary = /^(?:pid|start_time|cursor|digest|seq|call_id|proposal_id)$/
const moment = /\d{4}-\d{2}-\d{2}(?:T|\s)\d{2}:\d{2}/
/** A shorter name, or a number, is a part of too much: it counts only where it stands alone. */
const minWithinText = 4
/**
 * Characters that may stand in a name. The alert's sender writes its labels: no quote, blank or
 * option of theirs gets into a look of code.
 */
const plainName = /^[\p{L}\p{N}/][\p{L}\p{N}_.:@/+-]{0,252}$/u
const pathUp = /(?:^|\/)\.\.(?:\/|$)/
/** Characters of the arguments of one look: a short name may stand in a text many times. */
const maxArguments = 8_000

/**
 * The looks with the follower's names for the leader's. Leaves out those that name a moment, a
 * process, a neighbour without a single counterpart, or something that the follower's alert does
 * not name plainly. Null where the two are about things of different kinds.
 */
export function inTermsOf(looks: LeaderLooks, leader: IncidentTerms, own: IncidentTerms): LeaderLooks | null {
  if (!leader.resource || !own.resource || leader.resource.kind !== own.resource.kind) return null
  const names = counterparts(leader, own)
  const put = (each: LeaderLook): LeaderLook[] => {
    if (Object.keys(each.arguments).some((key) => momentary.test(key))) return []
    const told = translate(each.arguments, names)
    if (told === untold || JSON.stringify(told).length > maxArguments) return []
    return [{ tool: each.tool, arguments: told as Record<string, unknown> }]
  }
  return { ...looks, before: looks.before.flatMap(put), after: looks.after.flatMap(put) }
}

function counterparts(leader: IncidentTerms, own: IncidentTerms): Names {
  const names = new Map<string, string | null>()
  const add = (theirs: string, ours: string | null) => {
    const known = names.get(theirs)
    names.set(theirs, known === undefined || known === ours ? ours : null)
  }
  for (const { kind, id } of leader.near) {
    if (own.near.some((each) => each.kind === kind && each.id === id)) continue
    const [theirs, ours] = [leader.near, own.near].map((near) => near.filter((each) => each.kind === kind))
    names.set(id, theirs?.length === 1 && ours?.length === 1 ? (ours[0]?.id ?? null) : null)
  }
  // What the alerts say of themselves tells two neighbours of a kind apart.
  const told = new Set<string>()
  const ownLabels = new Map(Object.entries(own.labels))
  for (const [label, theirs] of Object.entries(leader.labels)) {
    const ours = ownLabels.get(label)
    if (theirs === '' || ours === undefined || ours === theirs) continue
    if (!told.has(theirs)) names.delete(theirs)
    told.add(theirs)
    add(theirs, isPlain(ours) ? ours : null)
  }
  names.set(leader.resource?.id ?? '', own.resource?.id ?? '')
  names.set(leader.incidentId, own.incidentId)
  return names
}

const isPlain = (name: string): boolean => plainName.test(name) && !pathUp.test(name)

const untold = Symbol('untold')

function translate(value: unknown, names: Names): unknown {
  if (typeof value === 'string') return moment.test(value) ? untold : translateText(value, names)
  if (Array.isArray(value)) {
    const each = value.map((inner) => translate(inner, names))
    return each.includes(untold) ? untold : each
  }
  if (value === null || typeof value !== 'object') return value
  const entries = Object.entries(value).map(([key, inner]) => [key, translate(inner, names)] as const)
  return entries.some(([, inner]) => inner === untold) ? untold : Object.fromEntries(entries)
}

/** Names as wholes, all at once: what stands for one is not read again for another. */
function translateText(text: string, names: Names): string | typeof untold {
  const alone = names.get(text)
  if (alone !== undefined) return alone ?? untold
  const within = [...names.keys()].filter((name) => name.length >= minWithinText && /\D/.test(name))
  if (within.length === 0) return text
  const longestFirst = within
    .sort((a, b) => b.length - a.length)
    .map((name) => name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  const pattern = new RegExp(`(?<![A-Za-z0-9_-])(?:${longestFirst.join('|')})(?![A-Za-z0-9_-])`, 'g')
  let isTold = true
  const told = text.replace(pattern, (name) => {
    const ours = names.get(name) ?? null
    if (ours === null) isTold = false
    return ours ?? name
  })
  return isTold ? told : untold
}
