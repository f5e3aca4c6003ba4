import { type Decider, rightsOf } from './approvers.ts'
import { coversRight, type DecisionRight, formatRight } from './decision-right.ts'
import { type Permission, type Principal, permissions, permissionsOf, type Role, typesOf } from './permissions.ts'
import { risks } from './tool.ts'

/**
 * The permissions of a caller, and the caller's rights to decide. The first right consists of the
 * person's own limits.
 */
export type Authority = {
  permissions: readonly Permission[]
  rights: readonly DecisionRight[]
}

type Limits = Pick<Decider, 'maxRisk' | 'incidentTypes' | 'rights'>

/** Returns the authority that a person has through any token; no permissions if disabled. */
export function authorityOfPerson(person: Limits & { role: Role; disabled: boolean }): Authority {
  const { role, disabled } = person
  return { permissions: disabled ? [] : permissions[role], rights: rightsOf(person) }
}

/** Returns a caller's authority: the person's authority, reduced by the token's scopes. */
export function authorityOfPrincipal(principal: Pick<Principal, 'role' | 'scopes'>, person: Limits): Authority {
  const types = typesOf(principal)
  const rights = rightsOf(person).map((right) => ({ ...right, incidentTypes: narrowTypes(right.incidentTypes, types) }))
  return { permissions: permissionsOf(principal), rights }
}

function narrowTypes(own: readonly string[] | null, types: readonly string[] | null): readonly string[] | null {
  return types === null ? own : own === null ? types : types.filter((type) => own.includes(type))
}

/**
 * Lists in words the rights in a grant that the giver lacks. An empty list allows the grant.
 * `before`: the receiver's previous authority, which needs no new grant.
 */
export function excessAuthority(giver: Authority, wanted: Authority, before: Authority | null): string[] {
  const had = before?.permissions ?? []
  const found: string[] = wanted.permissions.filter((each) => !had.includes(each) && !giver.permissions.includes(each))
  if (!wanted.permissions.includes('decide')) return found
  // Skips the limits of people who may not decide, because limits matter only for decisions.
  const deciding = [giver, before].filter((each) => each?.permissions.includes('decide')) as Authority[]
  const [own, ...further] = wanted.rights
  const held = deciding.flatMap(({ rights }) => rights)
  const given = further.filter((right) => !isHeld(right, held))
  return [
    ...found,
    ...(own ? excessOfLimits(own, deciding) : []),
    ...given.map((each) => `decisions as "${formatRight(each)}"`),
  ]
}

/**
 * Whether a right in `held` covers the wanted right. Each incident type is checked separately: the
 * risk of one right and the type of another right cannot be combined.
 */
function isHeld(wanted: DecisionRight, held: readonly DecisionRight[]): boolean {
  const { incidentTypes: types } = wanted
  const each = types === null ? [wanted] : types.map((type) => ({ ...wanted, incidentTypes: [type] }))
  return each.every((right) => held.some((own) => coversRight(own, right)))
}

/** Lists the parts of the wanted right that no right in `deciding` covers. */
function excessOfLimits(wanted: DecisionRight, deciding: readonly Authority[]): string[] {
  if (wanted.maxRisk === 'none') return []
  const held = deciding
    .flatMap(({ rights }) => rights)
    .filter(({ resources, until }) => resources === null && until === null)
  if (isHeld(wanted, held)) return []
  const highest = Math.max(-1, ...held.map(({ maxRisk }) => risks.indexOf(maxRisk)))
  const foreign = typesBeyond(
    wanted.incidentTypes,
    held.map(({ incidentTypes }) => incidentTypes),
  )
  const risk = risks.indexOf(wanted.maxRisk) > highest ? [`decisions about risks up to ${wanted.maxRisk}`] : []
  const types = foreign === null ? [] : [`decisions about ${foreign}`]
  return risk.length + types.length > 0 ? [...risk, ...types] : [`decisions as "${formatRight(wanted)}"`]
}

/** Names the wanted incident types that no list in `known` contains; null if there are none. */
function typesBeyond(wanted: readonly string[] | null, known: readonly (readonly string[] | null)[]): string | null {
  if (known.includes(null)) return null
  if (wanted === null) return 'incidents of all types'
  const foreign = wanted.filter((type) => !known.some((types) => types?.includes(type)))
  return foreign.length > 0 ? `incidents of type ${foreign.join(', ')}` : null
}
