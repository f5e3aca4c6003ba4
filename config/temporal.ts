import { createPrivateKey, X509Certificate } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { loadClientConnectConfig } from '@temporalio/envconfig'
import { z } from 'zod'
import type { TemporalSettings } from '../clients/temporal.ts'
import { certificatesIn, type EnvironmentTexts, flag, url } from './agent.ts'

/** Settings of Temporal, in the variables that its command line and every SDK read. */
export const temporal = z.object({
  TEMPORAL_ADDRESS: z.string().min(1).optional(),
  TEMPORAL_NAMESPACE: z.string().min(1).optional(),
  TEMPORAL_API_KEY: z
    .string()
    .regex(/^[\x21-\x7e]+$/, 'is not a key: it has spaces or characters beyond ASCII')
    .optional(),
  TEMPORAL_TLS: flag.optional(),
  TEMPORAL_TLS_SERVER_NAME: z.string().min(1).optional(),
  TEMPORAL_TLS_SERVER_CA_CERT_PATH: z.string().optional(),
  TEMPORAL_TLS_SERVER_CA_CERT_DATA: z.string().optional(),
  TEMPORAL_TLS_CLIENT_CERT_PATH: z.string().optional(),
  TEMPORAL_TLS_CLIENT_CERT_DATA: z.string().optional(),
  TEMPORAL_TLS_CLIENT_KEY_PATH: z.string().optional(),
  TEMPORAL_TLS_CLIENT_KEY_DATA: z.string().optional(),
  TEMPORAL_CONFIG_FILE: z.string().optional(),
  TEMPORAL_PROFILE: z.string().optional(),
  TEMPORAL_UI_URL: url.optional(),
})

type TemporalConfig = z.infer<typeof temporal>

const onThisMachine = /^(localhost|127(\.\d+){3}|\[::1\])(:\d+)?$/
const pairs = ['TEMPORAL_TLS_SERVER_CA_CERT', 'TEMPORAL_TLS_CLIENT_CERT', 'TEMPORAL_TLS_CLIENT_KEY'] as const

/**
 * Lists faults of Temporal's settings that can be found without contacting the server. Each fault
 * names the setting or file.
 */
export function temporalProblems(given: EnvironmentTexts): string[] {
  const problems = pairs
    .filter((name) => given[`${name}_PATH`] && given[`${name}_DATA`])
    .map((name) => `${name}_PATH and ${name}_DATA are both set: keep one`)
  for (const name of ['TEMPORAL_TLS_SERVER_CA_CERT_PATH', 'TEMPORAL_TLS_CLIENT_CERT_PATH'] as const) {
    const file = given[name]
    if (file && !certificatesIn(file)) {
      problems.push(`${name} names ${file}, which cannot be read or holds no PEM certificate`)
    }
  }
  const { TEMPORAL_TLS_CLIENT_KEY_PATH: key, TEMPORAL_CONFIG_FILE: file } = given
  if (key && !existsSync(key)) problems.push(`TEMPORAL_TLS_CLIENT_KEY_PATH names ${key}, which cannot be read`)
  // Reports an absent configuration file, because the loader would treat it as empty and connect to
  // another server.
  if (file && !isReadableFile(file)) problems.push(`TEMPORAL_CONFIG_FILE names ${file}, which cannot be read`)
  if (problems.length > 0) return problems
  const parsed = temporal.safeParse(given)
  // Stops here, because `readConfig` already reports faults of single settings.
  if (!parsed.success) return []
  try {
    return contradictions(temporalSettings(parsed.data), given)
  } catch (error) {
    // Shows only the first line of the error: further lines quote the file, which may have a key.
    const [message] = String(error instanceof Error ? error.message : error).split('\n')
    return [`${sourceOf(given)}: ${message}`]
  }
}

/**
 * Returns the settings of Temporal: the profile of the configuration file, if TEMPORAL_CONFIG_FILE
 * or TEMPORAL_PROFILE is set, overridden by each variable. If neither is set, ignores the
 * configuration file in the home directory, which is for a person's terminal.
 */
export function temporalSettings(config: Partial<TemporalConfig>): TemporalSettings {
  const variables = Object.entries(config).flatMap(([name, value]) =>
    name.startsWith('TEMPORAL_') && value !== undefined && value !== '' ? [[name, String(value)] as const] : [],
  )
  const overrideEnvVars = {
    // Passes the variables by which the loader finds a profile's file if no file is named.
    ...Object.fromEntries(['HOME', 'XDG_CONFIG_HOME', 'APPDATA'].flatMap((name) => inEnvironment(name))),
    ...Object.fromEntries(variables),
  }
  const { TEMPORAL_CONFIG_FILE: file, TEMPORAL_PROFILE: profile } = config
  const { namespace, connectionOptions } = loadClientConnectConfig({
    overrideEnvVars,
    // Names the profile in addition to the variable. The loader then requires that the file
    // contains the profile.
    ...(file || profile ? { profile: profile || 'default', configFileStrict: true } : { disableFile: true }),
  })
  const { address, apiKey, tls, metadata } = connectionOptions
  return {
    address: withPort(address || '127.0.0.1:7233'),
    namespace: namespace || 'default',
    ...(apiKey && typeof apiKey === 'string' && { apiKey }),
    tls: tls === undefined || tls === null ? false : tls,
    ...(metadata && { metadata: metadata as Record<string, string> }),
  }
}

function contradictions(settings: TemporalSettings, given: EnvironmentTexts): string[] {
  const { address, apiKey, tls } = settings
  const problems: string[] = []
  if (!/^(\[[\da-fA-F:.]+\]|[\w.-]+):\d{1,5}$/.test(address)) {
    problems.push(`TEMPORAL_ADDRESS is ${address}, which is not host:port (no scheme and no path)`)
  }
  if (apiKey && tls === false && !onThisMachine.test(address)) {
    problems.push('TEMPORAL_API_KEY is set and TEMPORAL_TLS is false: a key is sent only over TLS, or to this machine')
  }
  if (given.TEMPORAL_TLS !== undefined && tls === false && pairs.some((name) => isGiven(given, name))) {
    problems.push('TEMPORAL_TLS is false, and certificates are set: remove one or the other')
  }
  const hasCertificate = isGiven(given, 'TEMPORAL_TLS_CLIENT_CERT')
  const hasKey = isGiven(given, 'TEMPORAL_TLS_CLIENT_KEY')
  const pair = typeof tls === 'object' ? tls.clientCertPair : undefined
  if (hasCertificate !== hasKey && !pair) {
    problems.push('TEMPORAL_TLS_CLIENT_CERT and TEMPORAL_TLS_CLIENT_KEY are needed together (each _PATH or _DATA)')
  }
  if (pair) problems.push(...pairProblems(pair))
  return problems
}

/**
 * Checks that the certificate and the key belong together. The error messages of Temporal's two
 * clients do not make this clear.
 */
function pairProblems({ crt, key }: { crt: Uint8Array; key: Uint8Array }): string[] {
  try {
    const isPair = new X509Certificate(crt).checkPrivateKey(createPrivateKey(Buffer.from(key)))
    return isPair ? [] : ['TEMPORAL_TLS_CLIENT_KEY is not the key of TEMPORAL_TLS_CLIENT_CERT']
  } catch {
    return [
      'TEMPORAL_TLS_CLIENT_CERT and TEMPORAL_TLS_CLIENT_KEY cannot be read as PEM; the key must have no passphrase',
    ]
  }
}

const isGiven = (given: EnvironmentTexts, name: (typeof pairs)[number]) =>
  Boolean(given[`${name}_PATH`] || given[`${name}_DATA`])

const withPort = (address: string) => (/^[\w.-]+$|^\[[\da-fA-F:.]+\]$/.test(address) ? `${address}:7233` : address)

function sourceOf({ TEMPORAL_CONFIG_FILE: file, TEMPORAL_PROFILE: profile }: EnvironmentTexts): string {
  if (file) return `TEMPORAL_CONFIG_FILE ${file}${profile ? `, TEMPORAL_PROFILE ${profile}` : ''}`
  return profile ? `TEMPORAL_PROFILE ${profile}` : 'TEMPORAL_ variables'
}

function isReadableFile(file: string): boolean {
  try {
    readFileSync(file)
    return true
  } catch {
    return false
  }
}

function inEnvironment(name: string): [string, string][] {
  const value = process.env[name]
  return value ? [[name, value]] : []
}
