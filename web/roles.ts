import type { PersonRole, Role } from '../domain/operator.ts'

/**
 * Every role, and whether people have it. The domain's own list comes with zod, which a browser need not load; one that is added
 * does not compile until it stands here.
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
