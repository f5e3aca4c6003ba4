import type { Permission, PersonRole, Role } from '../domain/permissions.ts'
import { type BrowserSession, useSession } from './session.ts'

/**
 * Returns why a person may not do something. Null for a permitted action. The server decides in the
 * end.
 */
export function missing(session: BrowserSession | null | undefined, permission: Permission): string | null {
  if (!session) return 'Sign in first.'
  if (session.permissions.includes(permission)) return null
  return `Your role (${session.role}) may not do this: it needs the permission ${permission}.`
}

/** Returns why the signed-in person may not do something. Null for a permitted action. */
export const useMissing = (permission: Permission): string | null => missing(useSession().data, permission)

/**
 * Every role, and whether people can have it. The list in the domain comes with zod, which a
 * browser need not load. The code does not compile until a new role is added here.
 */
const roles: Record<Role, boolean> = {
  viewer: true,
  operator: true,
  approver: true,
  admin: true,
  agent: false,
  ingest: false,
}

export const allRoles = Object.keys(roles) as Role[]

export const rolesOfPeople = allRoles.filter(isOfPeople)

export function isOfPeople(role: Role): role is PersonRole {
  return roles[role]
}
