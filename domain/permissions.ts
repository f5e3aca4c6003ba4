import { z } from 'zod'

export const role = z.enum(['viewer', 'operator', 'approver', 'admin', 'agent', 'ingest'])

export type Role = z.infer<typeof role>

/** Roles of people, the weakest first. Each role includes what the earlier roles may do. */
export const personRoles = ['viewer', 'operator', 'approver', 'admin'] as const

export type PersonRole = (typeof personRoles)[number]

/** Permissions of roles. A route of the API requires a permission, never a role. */
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
 * The permissions of each role. `agent` and `ingest` can neither decide nor configure. No setting
 * changes this table.
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

/**
 * Limits a token to less than its role: to some permissions, or to changes of incidents of some
 * types.
 */
export const scope = z.union([
  permission,
  z.string().regex(/^type:[a-z0-9_]{1,48}$/, 'is neither a permission nor type:<incident type>'),
])

/** Permissions that concern one incident, so that a token can limit them to types of incidents. */
export const perIncident: readonly Permission[] = ['record', 'manage_incident', 'decide']

const looking: readonly Permission[] = ['read', 'audit', 'read_config']

/** The caller: a person with a token, or a machine role. `name`: the name of the person. */
export type Principal = {
  tokenId: string
  role: Role
  operatorId: string | null
  name: string
  scopes: readonly string[]
}

/** Lists the incident types that a token may change; null stands for all types. */
export function typesOf({ scopes }: { scopes: readonly string[] }): string[] | null {
  const types = scopes.filter((each) => each.startsWith('type:')).map((each) => each.slice(5))
  return types.length > 0 ? types : null
}

/**
 * Lists the permissions of a token: the permissions of its role that its scopes do not remove. A
 * token that is limited to incident types can change nothing else. An unknown scope only removes
 * permissions.
 */
export function permissionsOf(token: { role: Role; scopes: readonly string[] }): readonly Permission[] {
  const named = token.scopes.filter((each) => !each.startsWith('type:'))
  const typed = typesOf(token) !== null
  return permissions[token.role].filter(
    (each) =>
      (named.length === 0 || named.includes(each)) && (!typed || perIncident.includes(each) || looking.includes(each)),
  )
}

/**
 * Returns the weaker of two roles, so that a token never exceeds the current role of its person.
 */
export function weakerRole(a: PersonRole, b: PersonRole): PersonRole {
  return personRoles.indexOf(a) < personRoles.indexOf(b) ? a : b
}

export function isPersonRole(role: Role): role is PersonRole {
  return (personRoles as readonly Role[]).includes(role)
}
