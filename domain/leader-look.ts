import type { ResourceRef } from './registry.ts'

/** A read that decided the leader's incident: its tool and its arguments. */
export type LeaderLook = { tool: string; arguments: Record<string, unknown> }

/** The reads before the repair, the repair, and the reads that showed its effect. */
export type LeaderLooks = { before: LeaderLook[]; write: string | null; after: LeaderLook[] }

/**
 * The names that may occur in calls of an incident: its id, its resource, its vicinity, and the
 * labels of its alert.
 */
export type IncidentTerms = {
  incidentId: string
  resource: ResourceRef | null
  near: readonly ResourceRef[]
  labels: Readonly<Record<string, string>>
}

/**
 * Maps the names of the leader's incident to the names of the follower's incident; null for a name
 * without a counterpart.
 */
type Names = ReadonlyMap<string, string | null>

/** Arguments that are valid for only one moment or process, so they differ for the follower. */
const momentary = /^(?:pid|start_time|cursor|digest|seq|call_id|proposal_id)$/
const moment = /\d{4}-\d{2}-\d{2}(?:T|\s)\d{2}:\d{2}/
/**
 * Minimum length of a name that is replaced within a longer text. A shorter name, or a number, is
 * replaced only if it is the whole text.
 */
const minWithinText = 4
/**
 * Characters allowed in a name. Labels are text of the sender, and could otherwise add a quote,
 * blank or option to a call that code makes.
 */
const plainName = /^[\p{L}\p{N}/][\p{L}\p{N}_.:@/+-]{0,252}$/u
const pathUp = /(?:^|\/)\.\.(?:\/|$)/
/**
 * Maximum length of a read's arguments after names are replaced. A text may contain a short name
 * many times.
 */
const maxArguments = 8_000

/**
 * Translates the reads of the leader to the names of the follower. Leaves out a read that names a
 * moment, a process, a neighbour without exactly one counterpart, or a thing that the follower's
 * alert does not name in plain characters. Returns null if the resources of leader and follower are
 * of different kinds.
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
  // Uses names in the alerts to tell apart two neighbours of one kind.
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

/** Replaces whole names, all at once, so that a replacement is not replaced again. */
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
