import { type Permission, type PersonRole, personRoles, type Role } from './permissions.ts'

/** The person who is signed in with a browser, and how commands are typed where the API runs. */
export type Session = { name: string; role: Role; permissions: readonly Permission[]; commandPrefix: string }

/**
 * A person by a provider's word. Only issuer and subject are identity: names and addresses are
 * given out again.
 */
export type Identity = { issuer: string; subject: string; name: string; groups: string[] }

/** The strongest role of the groups; null: none has one, and there is no way in. */
export function roleOfGroups(
  groups: readonly string[],
  roles: Readonly<Record<string, PersonRole>>,
): PersonRole | null {
  const mapped = groups.flatMap((group) => (Object.hasOwn(roles, group) ? [roles[group] as PersonRole] : []))
  return personRoles.findLast((role) => mapped.includes(role)) ?? null
}

/** What stands in rows for nobody in particular. */
const nobody = new Set(['unknown', 'system', 'sql', 'start', 'agent', 'ingest'])

/** People whom a start finds by name and gives a role: none that a provider sent. */
const ours = new Set(['admin', 'approver'])

export function isUnusableName(name: string): boolean {
  return nobody.has(name.toLowerCase())
}

/** Could somebody who signs in through a provider be called this, if the name is free? */
export function isFreeName(name: string): boolean {
  return !isUnusableName(name) && !ours.has(name.toLowerCase())
}

/** A person's name in rows: one word, so that it reads like no sentence and no other column. */
export function operatorNameOf(claimed: string): string {
  const name = claimed
    .normalize('NFKC')
    .replace(/[^\w.@+-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '')
    .slice(0, 48)
  return name || 'person'
}

/** Where a browser goes after signing in: a page of ours, whatever a link asked for. */
export function localReturnPath(asked: string | undefined): string {
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
