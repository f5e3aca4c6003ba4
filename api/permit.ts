import { type Permission, permissions } from '../domain/operator.ts'
import type { Middleware } from './hono.ts'
import { Problem } from './problem.ts'

/** Lets only roles with the permission through. Every endpoint names one; none can be declared without. */
export function permit(permission: Permission): Middleware {
  return async (c, next) => {
    const { role, name } = c.get('principal')
    if (!permissions[role].includes(permission)) {
      throw new Problem(403, 'FORBIDDEN', `${name} (${role}) may not do this: it needs the permission ${permission}.`)
    }
    await next()
  }
}
