import { type Permission, type PersonRole, personRoles, type Role } from './permissions.ts'

/**
 * The person who is signed in with this browser, and the form in which people type commands where
 * the API runs.
 */
export type Session = { name: string; role: Role; permissions: readonly Permission[]; commandPrefix: string }

/**
 * A person as an identity provider reports them. Only issuer and subject identify the person,
 * because names and addresses may be reassigned.
 */
export type Identity = { issuer: string; subject: string; name: string; groups: string[] }

/**
 * Returns the strongest role that the person's groups give; null if no group gives a role, so that
 * sign-in is refused.
 */
export function roleOfGroups(
  groups: readonly string[],
  roles: Readonly<Record<string, PersonRole>>,
): PersonRole | null {
  const mapped = groups.flatMap((group) => (Object.hasOwn(roles, group) ? [roles[group] as PersonRole] : []))
  return personRoles.findLast((role) => mapped.includes(role)) ?? null
}

/** Names in rows that stand for no person. */
const nobody = new Set(['unknown', 'system', 'sql', 'start', 'agent', 'ingest'])

/**
 * Names to which an installation itself gives a role. A person from an identity provider cannot get
 * one of these names.
 */
const ours = new Set(['admin', 'approver'])

export function isUnusableName(name: string): boolean {
  return nobody.has(name.toLowerCase())
}

/**
 * Whether an identity provider may give a person this name. Does not check whether the name is
 * already taken.
 */
export function isFreeName(name: string): boolean {
  return !isUnusableName(name) && !ours.has(name.toLowerCase())
}

/**
 * Converts a person's name to one word for rows, so that it cannot look like a sentence or a
 * column.
 */
export function operatorNameOf(claimed: string): string {
  const name = claimed
    .normalize('NFKC')
    .replace(/[^\w.@+-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '')
    .slice(0, 48)
  return name || 'person'
}

/**
 * Returns the page to open after signing in. The page is always on this server, whatever address
 * the link contains.
 */
export function localReturnPath(asked: string | undefined): string {
  const here = 'http://here.invalid'
  // Refuses a backslash, which browsers read as a slash, and tabs and line ends, which browsers
  // skip.
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
