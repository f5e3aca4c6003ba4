import { z } from 'zod'

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
 * `agent` and `ingest` can neither decide nor configure, and no setting changes that: the table is
 * code.
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

/** Narrows a token below its role: to some permissions, or to changing incidents of some types. */
export const scope = z.union([
  permission,
  z.string().regex(/^type:[a-z0-9_]{1,48}$/, 'is no permission and no type:<incident type>'),
])

/** Permissions about one incident, which can be left to those who look after its type. */
export const perIncident: readonly Permission[] = ['record', 'manage_incident', 'decide']

const looking: readonly Permission[] = ['read', 'audit', 'read_config']

/** The caller: an operator behind a token, or a machine role. `name`: the person's. */
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
 * A token's permissions: those of its role that its scopes leave. One for some incident types
 * changes nothing outside of incidents. An unknown scope takes away and never gives.
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
