import { z } from 'zod'
import type { OidcSettings } from '../clients/oidc.ts'
import type { PersonRole } from '../domain/permissions.ts'
import type { SlackSettings } from '../notify/slack/client.ts'
import { certificatesIn, type EnvironmentTexts, isReadable, url } from './agent.ts'

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
 * `sre-admins=admin,sre=approver`; semicolons between them where group names hold commas, as
 * LDAP's. No machine roles: no group makes a person an agent.
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

/** A provider takes all of its settings; it is believed over TLS, or from this machine. */
export function oidcProblems(given: EnvironmentTexts): string[] {
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

/** Slack with a bot. */
export const slack = z.object({
  SLACK_BOT_TOKEN: z
    .string()
    .regex(/^[\x21-\x7e]+$/, 'is not a token')
    .optional(),
  SLACK_SIGNING_SECRET: z.string().min(16, 'must have at least 16 characters').optional(),
  SLACK_CHANNEL: z
    .string()
    .regex(/^#?[\w-]{1,80}$/, 'is neither the id nor the name of a channel')
    .optional(),
  SLACK_API_URL: url.default('https://slack.com/api'),
})

/**
 * Slack with a bot takes all of its settings: without the secret no button is believed, without
 * `PUBLIC_URL` none is reached.
 */
export function slackProblems(given: EnvironmentTexts): string[] {
  const own = ['SLACK_BOT_TOKEN', 'SLACK_SIGNING_SECRET', 'SLACK_CHANNEL'] as const
  const first = [...own, 'SLACK_API_URL'].find((name) => given[name])
  if (!first) return []
  const missing = [...own, 'PUBLIC_URL'].filter((name) => !given[name])
  const problems = missing.length > 0 ? [`${first} is set, and Slack also needs ${missing.join(', ')}`] : []
  if (given.SLACK_API_URL && isReadable(given.SLACK_API_URL)) {
    problems.push('SLACK_API_URL must be https, unless it is on this machine')
  }
  return problems
}

/** The workspace where a bot notifies and asks; null where none is set. */
export function slackSettings(config: z.infer<typeof slack>): SlackSettings | null {
  const { SLACK_BOT_TOKEN, SLACK_SIGNING_SECRET, SLACK_CHANNEL } = config
  if (!SLACK_BOT_TOKEN || !SLACK_SIGNING_SECRET || !SLACK_CHANNEL) return null
  return {
    botToken: SLACK_BOT_TOKEN,
    signingSecret: SLACK_SIGNING_SECRET,
    channel: SLACK_CHANNEL,
    apiUrl: config.SLACK_API_URL.replace(/\/+$/, ''),
  }
}

/** Keys of the device mesh (ed25519, PKCS8, PEM): in the API process and nowhere else. */
export const mesh = z.object({
  MESH_ROOT_KEY_FILE: z.string().min(1).optional(),
  MESH_SIGNING_KEY_FILE: z.string().min(1).optional(),
  MESH_NEXT_KEY_FILE: z.string().min(1).optional(),
  MESH_CA_FILE: z.string().min(1).optional(),
  MESH_PUBLIC_CA_FILE: z.string().min(1).optional(),
})

/** The mesh takes two keys, for root and signing: a stolen signing key must not sign manifests. */
export function meshProblems(given: EnvironmentTexts): string[] {
  const { MESH_ROOT_KEY_FILE: root, MESH_SIGNING_KEY_FILE: signing, MESH_CA_FILE: ca, MESH_PUBLIC_CA_FILE: own } = given
  const keys = (['MESH_ROOT_KEY_FILE', 'MESH_SIGNING_KEY_FILE', 'MESH_NEXT_KEY_FILE'] as const).filter(
    (name) => given[name],
  )
  const problems: string[] = []
  if (keys.length > 0 && !root) problems.push(`MESH_ROOT_KEY_FILE is required when ${keys[0]} is set`)
  if (keys.length > 0 && !signing) problems.push(`MESH_SIGNING_KEY_FILE is required when ${keys[0]} is set`)
  if (new Set(keys.map((name) => given[name])).size < keys.length) {
    problems.push(`${keys.join(' and ')} name one file twice: each is a key of its own`)
  }
  if (ca && !certificatesIn(ca)) {
    problems.push(`MESH_CA_FILE names ${ca}, which cannot be read or holds no PEM certificate`)
  }
  if (own && !certificatesIn(own)) {
    problems.push(`MESH_PUBLIC_CA_FILE names ${own}, which cannot be read or holds no PEM certificate`)
  }
  return problems
}

export type MeshSettings = {
  rootKeyFile: string
  signingKeyFile: string
  nextKeyFile: string | null
  ca?: string
  /** PEM of the authority behind the certificate at PUBLIC_URL, for agents that call out. */
  authority?: string
}

/** Where the keys of the device mesh are; null where none is set. */
export function meshSettings(config: z.infer<typeof mesh>): MeshSettings | null {
  const { MESH_ROOT_KEY_FILE, MESH_SIGNING_KEY_FILE, MESH_NEXT_KEY_FILE, MESH_CA_FILE, MESH_PUBLIC_CA_FILE } = config
  if (!MESH_ROOT_KEY_FILE || !MESH_SIGNING_KEY_FILE) return null
  const ca = MESH_CA_FILE ? certificatesIn(MESH_CA_FILE) : null
  const authority = MESH_PUBLIC_CA_FILE ? certificatesIn(MESH_PUBLIC_CA_FILE) : null
  return {
    rootKeyFile: MESH_ROOT_KEY_FILE,
    signingKeyFile: MESH_SIGNING_KEY_FILE,
    nextKeyFile: MESH_NEXT_KEY_FILE ?? null,
    ...(ca !== null && { ca }),
    ...(authority !== null && { authority }),
  }
}

/**
 * A device's address that its row leaves to the environment. Only such variables: no other is
 * anybody's business.
 */
export function deviceUrlVariable(name: string): string | undefined {
  return name.endsWith('_DEVICE_MESH_URL') ? process.env[name] || undefined : undefined
}
