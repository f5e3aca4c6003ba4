import { parseTime } from './format.ts'
import { isType } from './incident-type.ts'
import { type InventoryKind, inventoryKinds } from './kinds.ts'
import { type Risk, risks } from './tool.ts'

/**
 * One right to decide: up to a risk, in incidents of some types, about some resources, until a
 * time.
 */
export type DecisionRight = {
  maxRisk: Risk
  /** Null stands for all types of incidents. */
  incidentTypes: readonly string[] | null
  /**
   * Patterns such as `host:db-*`: a kind and an id, in which `*` stands for any characters. Null
   * stands for all resources, and calls that name none.
   */
  resources: readonly string[] | null
  /** The end in UTC; null if there is none. */
  until: string | null
}

/** The question that has to be decided. */
export type DecisionSubject = {
  risk: string
  incidentType: string
  /** All resources to which the call writes. */
  targets: readonly { kind: string; id: string }[]
  /** The time of the decision by the database's clock, in UTC. */
  at: string
}

type Refusal = { stage: number; reason: string }

/**
 * Returns why no right covers the subject; null if one right covers all of it. Rights do not add
 * up: one right must cover the risk, the type and every target. The reason is about the right that
 * comes nearest to covering the subject.
 */
export function refusalOfRights(
  name: string,
  rights: readonly DecisionRight[],
  { risk, incidentType, targets, at }: DecisionSubject,
): string | null {
  const asked = (risks as readonly string[]).indexOf(risk)
  if (asked < 0) return `nobody decides about the unknown risk ${risk}`
  const refused = rights.map((right): Refusal | null => {
    if (hasEnded(right, at)) return { stage: 0, reason: `the right of ${name} ended at ${right.until}` }
    if (asked > risks.indexOf(right.maxRisk))
      return { stage: 1, reason: `${name} may decide risks up to ${right.maxRisk}, and this one is ${risk}` }
    const { incidentTypes: types } = right
    if (types !== null && !types.some((each) => isType(each, incidentType)))
      return { stage: 2, reason: `${name} may not decide about incidents of type ${incidentType}` }
    const other = describeOtherResource(right.resources, targets)
    return other === null ? null : { stage: 3, reason: `${name} decides about ${other}` }
  })
  if (refused.includes(null)) return null
  const [nearest] = (refused as Refusal[]).sort((a, b) => b.stage - a.stage)
  return nearest?.reason ?? `${name} has no right to decide`
}

function hasEnded({ until }: Pick<DecisionRight, 'until'>, at: string): boolean {
  return until !== null && Date.parse(until) <= Date.parse(at)
}

/**
 * Describes what this right covers and the first target that it does not cover; null if it covers
 * all.
 */
function describeOtherResource(
  patterns: DecisionRight['resources'],
  targets: DecisionSubject['targets'],
): string | null {
  if (patterns === null) return null
  const named = patterns.join(', ')
  // Refuses a call without a named resource, because the call may affect any resource.
  if (targets.length === 0) return `${named}, and this call names no resource`
  const other = targets.find((target) => !coversResource(patterns, target))
  return other ? `${named}, and this call is about ${other.kind}:${other.id}` : null
}

/** Whether one of the patterns, such as `host:db-*`, covers the resource. */
export function coversResource(patterns: readonly string[], { kind, id }: { kind: string; id: string }): boolean {
  return patterns.some((each) => coversText(each, `${kind}:${id}`))
}

/**
 * Whether a pattern covers a resource, or everything that another pattern (`text`) covers. A letter
 * of `pattern` never covers a `*` in `text`.
 */
function coversText(pattern: string, text: string): boolean {
  const parts = pattern.split('*')
  const [first = '', ...rest] = parts
  if (rest.length === 0) return pattern === text
  const last = rest.pop() as string
  if (!text.startsWith(first) || !text.endsWith(last) || text.length < first.length + last.length) return false
  let from = first.length
  const end = text.length - last.length
  for (const part of rest) {
    const found = text.indexOf(part, from)
    if (found < 0 || found + part.length > end) return false
    from = found + part.length
  }
  return true
}

/** Whether the held right includes the wanted right. */
export function coversRight(held: DecisionRight, wanted: DecisionRight): boolean {
  const { incidentTypes: types, resources } = held
  return (
    risks.indexOf(wanted.maxRisk) <= risks.indexOf(held.maxRisk) &&
    (types === null || Boolean(wanted.incidentTypes?.every((each) => types.some((own) => isType(own, each))))) &&
    (resources === null ||
      Boolean(wanted.resources?.every((each) => resources.some((own) => coversText(own, each))))) &&
    (held.until === null || (wanted.until !== null && Date.parse(wanted.until) <= Date.parse(held.until)))
  )
}

/**
 * Formats a right as people write it: `critical host:db-* vm:db-* type:disk_pressure
 * until:2026-12-06T06:00Z`.
 */
export function formatRight({ maxRisk, incidentTypes, resources, until }: DecisionRight): string {
  return [
    maxRisk,
    ...(resources ?? []),
    ...(incidentTypes ?? []).map((each) => `type:${each}`),
    ...(until ? [`until:${until}`] : []),
  ].join(' ')
}

/** Parses a right. Throws an `Error` whose message names the faulty word and the remedy. */
export function parseRight(text: string): DecisionRight {
  const [risk = '', ...words] = text.trim().split(/[\s,]+/)
  if (!isGivenRisk(risk))
    throw new Error(`"${risk}" is not a risk: begin with ${givenRisks.join(', ')}, as in ${exampleOfRight}`)
  const right = {
    maxRisk: risk,
    incidentTypes: [] as string[],
    resources: [] as string[],
    until: null as string | null,
  }
  for (const word of words) {
    const [name, value] = splitAt(word)
    if (name === 'until') right.until = readUntil(value)
    else if (name === 'type') right.incidentTypes.push(readType(value))
    else right.resources.push(word)
  }
  for (const each of right.resources) {
    const fault = faultOfPattern(each)
    if (fault) throw new Error(`"${each}" ${fault}`)
  }
  const { incidentTypes, resources } = right
  return {
    ...right,
    incidentTypes: incidentTypes.length > 0 ? incidentTypes : null,
    resources: resources.length > 0 ? resources : null,
  }
}

export const exampleOfRight = 'critical host:db-* type:disk_pressure until:2026-12-06T06:00:00Z'
const givenRisks = risks.filter((each) => each !== 'none')
const isGivenRisk = (word: string): word is Risk => (givenRisks as readonly string[]).includes(word)

function splitAt(word: string): [name: string, value: string] {
  const at = word.indexOf(':')
  return at < 0 ? ['', word] : [word.slice(0, at), word.slice(at + 1)]
}

function readType(value: string): string {
  if (/^[a-z0-9_]{1,48}$/.test(value)) return value
  throw new Error(`"type:${value}" is not an incident type: write it as type:disk_pressure`)
}

function readUntil(value: string): string {
  // Requires a time zone, because each machine would otherwise use its own time zone.
  const at = /^[\d-]+$|(Z|[+-]\d\d:\d\d)$/.test(value) ? parseTime(value) : Number.NaN
  if (Number.isNaN(at))
    throw new Error(
      `"until:${value}" is not a time: write until:2026-12-06 (midnight UTC) or until:2026-12-06T06:00:00Z`,
    )
  return new Date(at).toISOString()
}

/**
 * Returns the fault of a pattern as words that can follow the pattern itself; null if the pattern
 * has no fault.
 */
export function faultOfPattern(pattern: string): string | null {
  const [kind, id] = splitAt(pattern)
  if (!inventoryKinds.includes(kind as InventoryKind))
    return `is not a resource: write KIND:ID with a kind of ${inventoryKinds.join(', ')}; * in an id matches any characters`
  if (!/^[\w.@:/+*-]{1,200}$/.test(id)) return 'has an invalid id: write it as host:db-1 or host:db-*'
  if (id.split('*').length > 5) return 'has more than four *'
  return null
}
