import { z } from 'zod'
import type { OidcSettings } from '../clients/oidc.ts'
import type { PersonRole } from '../domain/operator.ts'
import type { Given } from './process.ts'
import { isReadable, url } from './process.ts'

/** The provider that vouches for people. */
export const oidc = z.object({
  OIDC_ISSUER: url.optional(),
  OIDC_CLIENT_ID: z.string().min(1).optional(),
  OIDC_CLIENT_SECRET: z.string().default(''),
  OIDC_SCOPES: z
    .string()
    .regex(/(^| )openid( |$)/, 'must hold openid')
    .default('openid profile email'),
  OIDC_GROUPS_CLAIM: z.string().min(1).default('groups'),
  OIDC_ROLE_MAP: z.string().transform(roleMap).optional(),
})

/**
 * `sre-admins=admin,sre=approver`; with semicolons between them where names of groups hold commas, as those of LDAP do. The
 * roles of machines are not among them: no group makes a person an agent.
 */
function roleMap(text: string, context: z.core.$RefinementCtx): Record<string, PersonRole> {
  const roles: Record<string, PersonRole> = Object.create(null)
  for (const pair of text.split(text.includes(';') ? ';' : ',')) {
    const [, group, role] = /^\s*(.+)=\s*(viewer|operator|approver|admin)\s*$/.exec(pair) ?? []
    if (group && role) roles[group.trim()] = role as PersonRole
    else if (pair.trim() !== '') {
      context.addIssue(`has "${pair.trim()}", which is not <group>=<viewer, operator, approver or admin>`)
    }
  }
  if (Object.keys(roles).length === 0) context.addIssue('names no group: nobody could sign in')
  return roles
}

/** A provider takes all of its settings; and what it says is believed over TLS, or from this machine. */
export function oidcProblems(given: Given): string[] {
  if (!given.OIDC_ISSUER) return []
  const problems = (['OIDC_CLIENT_ID', 'OIDC_ROLE_MAP', 'PUBLIC_URL'] as const)
    .filter((name) => !given[name])
    .map((name) => `${name} is required when OIDC_ISSUER is set`)
  if (isReadable(given.OIDC_ISSUER)) problems.push('OIDC_ISSUER must be https, unless it is on this machine')
  return problems
}

/** The provider that vouches for people; null where none is set. */
export function oidcSettings(config: z.infer<typeof oidc> & { PUBLIC_URL?: string }): OidcSettings | null {
  const { OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_ROLE_MAP, PUBLIC_URL } = config
  if (!OIDC_ISSUER || !OIDC_CLIENT_ID || !OIDC_ROLE_MAP || !PUBLIC_URL) return null
  return {
    issuer: OIDC_ISSUER,
    clientId: OIDC_CLIENT_ID,
    clientSecret: config.OIDC_CLIENT_SECRET,
    scopes: config.OIDC_SCOPES,
    groupsClaim: config.OIDC_GROUPS_CLAIM,
    roles: OIDC_ROLE_MAP,
    publicUrl: PUBLIC_URL,
  }
}
