import { z } from 'zod'
import type { OidcSettings } from '../clients/oidc.ts'
import type { PersonRole } from '../domain/permissions.ts'
import type { SlackSettings } from '../notify/slack/client.ts'
import { certificatesIn, type EnvironmentTexts, isReadable, url } from './agent.ts'

/** Settings of the identity provider through which people sign in. */
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
 * Parses `sre-admins=admin,sre=approver` into a map from group to role. If semicolons separate the
 * pairs, group names may contain commas, as in LDAP. Accepts no machine role, so that no group
 * makes a person an agent.
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
  if (Object.keys(roles).length === 0) context.addIssue('names no group, so nobody could sign in')
  return roles
}

/**
 * Lists problems: an identity provider needs all of its settings, and needs TLS unless it runs on
 * this machine.
 */
export function oidcProblems(given: EnvironmentTexts): string[] {
  if (!given.OIDC_ISSUER) return []
  const problems = (['OIDC_CLIENT_ID', 'OIDC_ROLE_MAP', 'PUBLIC_URL'] as const)
    .filter((name) => !given[name])
    .map((name) => `${name} is required when OIDC_ISSUER is set`)
  if (isReadable(given.OIDC_ISSUER)) problems.push('OIDC_ISSUER must be https, unless it is on this machine')
  return problems
}

/** Returns the settings of the identity provider; null without a configured provider. */
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

/** Settings of the Slack bot. */
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
 * Lists problems: the Slack bot needs all of its settings. Without the signing secret no button
 * press can be verified. Without `PUBLIC_URL` Slack cannot reach this API.
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

/**
 * Returns the settings of the Slack bot, which notifies people and asks for approvals; null without
 * a configured bot.
 */
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

/** Key files of the device mesh (ed25519, PKCS8, PEM). Only the API process has them. */
export const mesh = z.object({
  MESH_ROOT_KEY_FILE: z.string().min(1).optional(),
  MESH_SIGNING_KEY_FILE: z.string().min(1).optional(),
  MESH_NEXT_KEY_FILE: z.string().min(1).optional(),
  MESH_CA_FILE: z.string().min(1).optional(),
  MESH_PUBLIC_CA_FILE: z.string().min(1).optional(),
})

/**
 * Lists problems: the mesh needs a root key and a different signing key, so that nobody can sign a
 * manifest with a stolen signing key.
 */
export function meshProblems(given: EnvironmentTexts): string[] {
  const { MESH_ROOT_KEY_FILE: root, MESH_SIGNING_KEY_FILE: signing, MESH_CA_FILE: ca, MESH_PUBLIC_CA_FILE: own } = given
  const keys = (['MESH_ROOT_KEY_FILE', 'MESH_SIGNING_KEY_FILE', 'MESH_NEXT_KEY_FILE'] as const).filter(
    (name) => given[name],
  )
  const problems: string[] = []
  if (keys.length > 0 && !root) problems.push(`MESH_ROOT_KEY_FILE is required when ${keys[0]} is set`)
  if (keys.length > 0 && !signing) problems.push(`MESH_SIGNING_KEY_FILE is required when ${keys[0]} is set`)
  if (new Set(keys.map((name) => given[name])).size < keys.length) {
    problems.push(`${keys.join(' and ')} name the same file: give each of them its own key`)
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
  /**
   * PEM of the certificate authority that signed the certificate of PUBLIC_URL, for agents that
   * connect to PUBLIC_URL.
   */
  authority?: string
}

/** Returns the files of the mesh's keys; null without a root key or a signing key. */
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
 * Reads the address of a device from the environment variable that the device's row names.
 * Undefined for a name without the ending `_DEVICE_MESH_URL`.
 */
export function deviceUrlVariable(name: string): string | undefined {
  return name.endsWith('_DEVICE_MESH_URL') ? process.env[name] || undefined : undefined
}
