import { type Permission, type Principal, permissions, permissionsOf, type Role, typesOf } from './permissions.ts'
import { type Risk, risks } from './tool.ts'

/** What somebody may: permissions, and for decisions the riskiest action and the incident types (null: all). */
export type Authority = {
  permissions: readonly Permission[]
  maxRisk: Risk
  incidentTypes: readonly string[] | null
}

type Limits = Pick<Authority, 'maxRisk' | 'incidentTypes'>

/** Of a person, with every token they could have; nothing where they are disabled. */
export function authorityOfPerson(person: Limits & { role: Role; disabled: boolean }): Authority {
  const { role, disabled, maxRisk, incidentTypes } = person
  return { permissions: disabled ? [] : permissions[role], maxRisk, incidentTypes }
}

/** Of the caller: a token is worth what its scopes leave of its person. */
export function authorityOfPrincipal(principal: Principal, person: Limits): Authority {
  const types = typesOf(principal)
  const own = person.incidentTypes
  const incidentTypes = types === null ? own : own === null ? types : types.filter((type) => own.includes(type))
  return { permissions: permissionsOf(principal), maxRisk: person.maxRisk, incidentTypes }
}

/**
 * What of a grant the giver does not have, in words; none: they may give it. Nobody grants what they do not have. `before` is what
 * the receiver had: what stays as it was is not granted.
 */
export function excessAuthority(giver: Authority, wanted: Authority, before: Authority | null): string[] {
  const had = before?.permissions ?? []
  const found: string[] = wanted.permissions.filter((each) => !had.includes(each) && !giver.permissions.includes(each))
  if (!wanted.permissions.includes('decide')) return found
  // Limits say something about those alone who may decide.
  const deciding = [giver, before].filter((each) => each?.permissions.includes('decide')) as Authority[]
  const highest = Math.max(-1, ...deciding.map(({ maxRisk }) => risks.indexOf(maxRisk)))
  if (risks.indexOf(wanted.maxRisk) > highest) found.push(`decisions about risks up to ${wanted.maxRisk}`)
  const known = deciding.map(({ incidentTypes }) => incidentTypes)
  const foreign = typesBeyond(wanted.incidentTypes, known)
  if (foreign !== null) found.push(`decisions about ${foreign}`)
  return found
}

/** Types that none of the sets holds; null: there are none. */
function typesBeyond(wanted: readonly string[] | null, known: readonly (readonly string[] | null)[]): string | null {
  if (known.includes(null)) return null
  if (wanted === null) return 'incidents of all types'
  const foreign = wanted.filter((type) => !known.some((types) => types?.includes(type)))
  return foreign.length > 0 ? `incidents of type ${foreign.join(', ')}` : null
}
