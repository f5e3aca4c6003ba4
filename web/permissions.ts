import type { Permission, PersonRole, Role } from '../domain/permissions.ts'
import type { BrowserSession } from './session.ts'

/** Why a person may not do something; null when they may. The server refuses it all the same. */
export function missing(session: BrowserSession | null | undefined, permission: Permission): string | null {
  if (!session) return 'Sign in first.'
  if (session.permissions.includes(permission)) return null
  return `Your role (${session.role}) may not do this: it needs the permission ${permission}.`
}

/**
 * Every role, and whether people have it. The domain's list comes with zod, which a browser need
 * not load; a new one does not compile until it is here.
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
