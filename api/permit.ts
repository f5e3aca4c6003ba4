import { type Permission, permissions, permissionsOf } from '../domain/operator.ts'
import type { Middleware } from './hono.ts'
import { Problem } from './problem.ts'

/** Lets only those with the permission through. Every endpoint names one; none can be declared without. */
export function permit(permission: Permission): Middleware {
  return async (c, next) => {
    const principal = c.get('principal')
    if (!permissionsOf(principal).includes(permission)) {
      const { role, name } = principal
      const narrowed = permissions[role].includes(permission) ? ', which the scopes of this token leave out' : ''
      throw new Problem(
        403,
        'FORBIDDEN',
        `${name} (${role}) may not do this: it needs the permission ${permission}${narrowed}.`,
      )
    }
    await next()
  }
}
