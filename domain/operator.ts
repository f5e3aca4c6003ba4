import { z } from 'zod'
import { incidentType } from './incident.ts'
import { type Risk, risks } from './tool.ts'

/** Somebody did something. */
export const auditRow = z.object({
  /** Also the cursor of what comes after it: time, table, number. */
  id: z.string(),
  at: z.string(),
  /** A person's name, or what stands for one that is not known. */
  who: z.string(),
  /** As `token.revoked`. */
  what: z.string(),
  subject: z.string(),
  detail: z.string(),
  incidentId: z.string().nullable(),
  address: z.string().nullable(),
})
export type AuditRow = z.infer<typeof auditRow>

export const role = z.enum(['viewer', 'operator', 'approver', 'admin', 'agent', 'ingest'])
export type Role = z.infer<typeof role>

/** Roles of people, the weakest first: each may what those before it may. */
export const personRoles = ['viewer', 'operator', 'approver', 'admin'] as const
export type PersonRole = (typeof personRoles)[number]

/** What a role may do, as data: the route table names a permission, never a role. */
export const permission = z.enum([
  'read',
  'ingest',
  'record',
  'act_on_platform',
  'manage_incident',
  'decide',
  'audit',
  'read_config',
  'write_config',
  'manage_tokens',
  'manage_operators',
  'manage_devices',
])
export type Permission = z.infer<typeof permission>

/**
 * `agent` and `ingest` can neither decide nor configure, and no setting changes that: the table is code.
 */
export const permissions: Record<Role, readonly Permission[]> = {
  viewer: ['read', 'read_config'],
  operator: ['read', 'record', 'manage_incident', 'act_on_platform', 'audit', 'read_config'],
  approver: ['read', 'record', 'manage_incident', 'act_on_platform', 'decide', 'audit', 'read_config'],
  admin: [
    'read',
    'ingest',
    'record',
    'manage_incident',
    'act_on_platform',
    'decide',
    'audit',
    'read_config',
    'write_config',
    'manage_tokens',
    'manage_operators',
    'manage_devices',
  ],
  agent: ['read', 'record', 'act_on_platform'],
  ingest: ['ingest'],
}

/** Narrows a token below its role: to some permissions, or in what it changes to incidents of some types. */
export const scope = z.union([
  permission,
  z.string().regex(/^type:[a-z0-9_]{1,48}$/, 'is no permission and no type:<incident type>'),
])

/** What is about one incident, and so can be left to those who look after its type. */
export const perIncident: readonly Permission[] = ['record', 'manage_incident', 'decide']
const looking: readonly Permission[] = ['read', 'audit', 'read_config']

/** Who is asking: an operator behind a token, or a machine role. `name` is the person's, whatever the token is called. */
export type Principal = {
  tokenId: string
  role: Role
  operatorId: string | null
  name: string
  scopes: readonly string[]
}

/** The incident types that a token may change something about; null: all of them. */
export function typesOf({ scopes }: { scopes: readonly string[] }): string[] | null {
  const types = scopes.filter((each) => each.startsWith('type:')).map((each) => each.slice(5))
  return types.length > 0 ? types : null
}

/**
 * What a token may do: of its role's permissions those that its scopes leave. One for some incident types changes nothing
 * that is not about an incident. A scope that this version does not know takes away and never gives.
 */
export function permissionsOf(token: { role: Role; scopes: readonly string[] }): readonly Permission[] {
  const named = token.scopes.filter((each) => !each.startsWith('type:'))
  const typed = typesOf(token) !== null
  return permissions[token.role].filter(
    (each) =>
      (named.length === 0 || named.includes(each)) && (!typed || perIncident.includes(each) || looking.includes(each)),
  )
}

/** The lesser of two roles of people: a token is worth what its person still is. */
export function weakerRole(a: PersonRole, b: PersonRole): PersonRole {
  return personRoles.indexOf(a) < personRoles.indexOf(b) ? a : b
}

export function isPersonRole(role: Role): role is PersonRole {
  return (personRoles as readonly Role[]).includes(role)
}

/** A person as approvals see them. */
export type Decider = {
  name: string
  role: PersonRole
  maxRisk: Risk
  /** Null: all. */
  incidentTypes: readonly string[] | null
  disabled: boolean
}

/**
 * Why this person may not decide this approval, either way; null when they may. A denial counts as deciding: it ends what
 * somebody else was asked to judge. A risk that this version does not know is above everybody.
 */
export function mayDecide(decider: Decider, approval: { risk: string; incidentType: string }): string | null {
  const { name, role, maxRisk, incidentTypes, disabled } = decider
  if (disabled) return `${name} is disabled`
  if (!permissions[role].includes('decide')) return `${name} (${role}) may not decide approvals`
  const risk = (risks as readonly string[]).indexOf(approval.risk)
  if (risk < 0) return `nobody decides about the unknown risk ${approval.risk}`
  if (risk > risks.indexOf(maxRisk))
    return `${name} decides about risks up to ${maxRisk}, and this one is ${approval.risk}`
  if (incidentTypes !== null && !incidentTypes.includes(approval.incidentType)) {
    return `${name} decides about incidents of other types than ${approval.incidentType}`
  }
  return null
}

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
export function beyond(giver: Authority, wanted: Authority, before: Authority | null): string[] {
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

/** A token as the API lists it: never what it is. */
export const apiToken = z.object({
  id: z.string(),
  name: z.string(),
  /** Enough to recognise one that leaked, and nothing to guess the rest by. */
  prefix: z.string(),
  /** `sign_in`: what the browsers of one person stand for who signed in through a provider. */
  kind: z.enum(['token', 'sign_in']),
  role,
  scopes: z.array(z.string()),
  operator: z.string().nullable(),
  createdAt: z.string(),
  expiresAt: z.string().nullable(),
  lastUsedAt: z.string().nullable(),
  revokedAt: z.string().nullable(),
})
export type ApiToken = z.infer<typeof apiToken>

/** The one answer that holds the plain token. */
export const newApiToken = apiToken.extend({ token: z.string() })
export type NewApiToken = z.infer<typeof newApiToken>

/** What an admin sets of a person. */
export const operatorLimits = {
  role: z.enum(personRoles),
  /** The riskiest action this person decides about. */
  maxRisk: z.enum(risks),
  /** Null: incidents of all types. */
  incidentTypes: z.array(incidentType).max(100).nullable(),
}

/** A person as the API lists them. */
export const operator = z.object({
  id: z.string(),
  name: z.string(),
  ...operatorLimits,
  permissions: z.array(z.string()),
  createdAt: z.string(),
  disabledAt: z.string().nullable(),
  /** Who vouches for this person and gives their role. */
  issuer: z.string().nullable(),
  /** To some minutes. */
  lastSeenAt: z.string().nullable(),
  /** Who they are at Slack. */
  slackUserId: z.string().nullable(),
})
export type Operator = z.infer<typeof operator>

/** Who is signed in with a browser. */
export type Session = { name: string; role: Role; permissions: readonly Permission[] }

/** Who a provider says somebody is. Only issuer and subject are identity: names and addresses are given out again. */
export type Identity = { issuer: string; subject: string; name: string; groups: string[] }

/** The strongest role that any of the groups stands for; null: none does, and there is no way in. */
export function roleOfGroups(
  groups: readonly string[],
  roles: Readonly<Record<string, PersonRole>>,
): PersonRole | null {
  const mapped = groups.flatMap((group) => (Object.hasOwn(roles, group) ? [roles[group] as PersonRole] : []))
  return personRoles.findLast((role) => mapped.includes(role)) ?? null
}

/** What stands in rows for nobody in particular. */
const nobody = new Set(['unknown', 'system', 'sql', 'start', 'agent', 'ingest'])
/** Whom a start looks up by name and gives a role: never somebody a provider sent. */
const ours = new Set(['admin', 'approver'])

export function namesNobody(name: string): boolean {
  return nobody.has(name.toLowerCase())
}

/** Could somebody who signs in through a provider be called this, if the name is free? */
export function isFreeName(name: string): boolean {
  return !namesNobody(name) && !ours.has(name.toLowerCase())
}

/** What rows will call somebody: one word, so that a name cannot read like a sentence or like another column. */
export function operatorNameOf(claimed: string): string {
  const name = claimed
    .normalize('NFKC')
    .replace(/[^\w.@+-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '')
    .slice(0, 48)
  return name || 'person'
}

/** Where a browser goes after signing in: a page of ours, whatever a link asked for. */
export function safeReturn(asked: string | undefined): string {
  const here = 'http://here.invalid'
  // Browsers read a backslash as a slash, and skip tabs and line ends.
  if (!asked?.startsWith('/') || asked.length > 500 || /[\\\p{Cc}]/u.test(asked)) return '/'
  try {
    const url = new URL(asked, here)
    const path = `${url.pathname}${url.search}${url.hash}`
    const leaves = url.origin !== here || path.startsWith('//') || path.startsWith('/auth/') || path.startsWith('/api/')
    return leaves ? '/' : path
  } catch {
    return '/'
  }
}
