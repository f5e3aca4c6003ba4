import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ConfigError, readConfig } from '../../config/settings.ts'
import { newMeshKey } from '../../start/mesh-keys.ts'
import { portHolder } from '../../start/port-holder.ts'
import { isFree } from '../../start/process.ts'
import { type Answers, answerOf, askFor, knownAnswer } from './answers.ts'
import { makeSecret, readEnvFile, type Values, writeEnvFile } from './env-file.ts'
import type { SiteFiles } from './place.ts'
import { printRow, row, type StepRow } from './steps.ts'

/** Returns the address of the API in these settings, as this machine reaches it. */
export const localUrl = (answers: Answers): string => `http://127.0.0.1:${knownAnswer(answers, 'PORT') ?? 8080}`

/**
 * Checks with a public path whether a Nightshift responds at this address. Waits up to 10 s,
 * because a Nightshift may be busy.
 */
export async function isNightshift(url: string): Promise<boolean> {
  const answer = await fetch(new URL('/auth/methods', url), { signal: AbortSignal.timeout(10_000) }).catch(() => null)
  const said = answer?.ok
    ? ((await answer.json().catch(() => null)) as { token?: unknown; oidc?: unknown } | null)
    : null
  return said?.token === true && typeof said.oidc === 'boolean'
}

/** `wrong` is the setting for which to ask again if the check failed. */
type SettledAddress = { row: StepRow; settings: Values; wrong: 'PORT' | 'PUBLIC_URL' }

/** Asks for the address of the site, and checks whether the API can listen at its port. */
export async function settleAddress(answers: Answers, place: SiteFiles): Promise<SettledAddress> {
  for (;;) {
    const fallback = place.isCheckout ? undefined : localUrl(answers)
    const url = place.isCheckout ? knownAnswer(answers, 'PUBLIC_URL') : await answerOf(answers, 'PUBLIC_URL', fallback)
    const found = await lookAtAddress(answers, place, url)
    if (found.row.state !== 'failed' || !answers.canAsk) return found
    printRow(found.row)
    await askFor(answers, found.wrong, found.wrong === 'PORT' ? undefined : fallback)
  }
}

async function lookAtAddress(answers: Answers, place: SiteFiles, url: string | undefined): Promise<SettledAddress> {
  const port = knownAnswer(answers, 'PORT')
  const failed = (wrong: SettledAddress['wrong'], detail: string, remedy: string): SettledAddress => ({
    row: row('address', 'failed', detail, remedy),
    settings: {},
    wrong,
  })
  if (url !== undefined && !isOrigin(url))
    return failed(
      'PUBLIC_URL',
      `${url} is not an address of a site`,
      'Write the address like https://nightshift.example.com, without a path: --public-url.',
    )
  const local = localUrl(answers)
  const number = Number(port ?? 8080)
  if (!Number.isInteger(number) || number < 1 || number > 65_535)
    return failed('PORT', `${port} is not a port`, 'Give a port from 1 to 65535: --port.')
  const isThere = await isNightshift(local)
  if (!isThere && !(await isFree(number)) && (port !== undefined || !place.isCheckout)) {
    const holder = portHolder(number)
    return failed(
      'PORT',
      `port ${number} is in use${holder ? ` by ${holder}` : ''}, and not by Nightshift`,
      'Free the port, or name another port with --port.',
    )
  }
  const settings: Values = {
    ...(url !== undefined && { PUBLIC_URL: url }),
    ...(port !== undefined && { PORT: port, ...(!place.isCheckout && { CORE_API_URL: local }) }),
  }
  const where = place.isCheckout && port === undefined ? 'a free port' : local
  const shown = url ?? (place.isCheckout ? 'the address that the start prints' : local)
  return {
    row: row(
      'address',
      'works',
      `people use ${shown}; the API ${isThere ? `answers at ${local}` : `will listen at ${where}`}`,
    ),
    settings,
    wrong: 'PUBLIC_URL',
  }
}

function isOrigin(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, pathname, search, username } = new URL(text)
  return /^https?:$/.test(protocol) && pathname === '/' && search === '' && username === ''
}

/** The machine tokens that are used before people exist, and the file of each. */
const tokens = [
  ['BOOTSTRAP_ADMIN_TOKEN', 'admin-token'],
  ['BOOTSTRAP_INGEST_TOKEN', 'ingest-token'],
  ['AGENT_API_KEY', 'agent-token'],
] as const
const keys = [
  ['MESH_ROOT_KEY_FILE', 'mesh-root.pem'],
  ['MESH_SIGNING_KEY_FILE', 'mesh-signing.pem'],
] as const

type SecretFiles = { settings: Values; apiSettings: Values; files: { path: string; text: () => string }[] }

/** Lists the files of tokens and keys that the settings lack. Creates none of them. */
export function planSecrets(answers: Answers, { envFile, apiEnvFile, isCheckout }: SiteFiles): SecretFiles {
  if (isCheckout) return { settings: {}, apiSettings: {}, files: [] }
  const at = (name: string) => join(dirname(envFile), name)
  const isSet = (name: string) =>
    knownAnswer(answers, name) !== undefined || knownAnswer(answers, `${name}_FILE`) !== undefined
  const lacking = tokens.filter(([name]) => !isSet(name))
  const apiKept = readEnvFile(apiEnvFile)
  const lackingKeys = keys.filter(([name]) => !apiKept[name] && knownAnswer(answers, name) === undefined)
  return {
    settings: Object.fromEntries(lacking.map(([name, file]) => [`${name}_FILE`, at(file)])),
    apiSettings: Object.fromEntries(lackingKeys.map(([name, file]) => [name, at(file)])),
    files: [
      ...lacking.map(([, file]) => ({ path: at(file), text: () => `${randomBytes(24).toString('hex')}\n` })),
      ...lackingKeys.map(([, file]) => ({ path: at(file), text: newMeshKey })),
    ],
  }
}

/** Writes everything in order: secrets first, so that no setting names a missing file. */
export function writeSite(
  place: SiteFiles,
  { settings, secrets }: { settings: Values; secrets: SecretFiles },
): { made: string[]; kept: string | null } {
  mkdirSync(dirname(place.envFile), { recursive: true, mode: 0o700 })
  const made = secrets.files.filter(({ path, text }) => makeSecret(path, text(), place.readers)).map(({ path }) => path)
  if (Object.keys(secrets.apiSettings).length > 0) writeEnvFile(place.apiEnvFile, secrets.apiSettings, place.readers)
  const changed = { ...settings, ...secrets.settings }
  const kept = Object.keys(changed).length > 0 ? writeEnvFile(place.envFile, changed, place.readers) : null
  return { made, kept }
}

/**
 * Checks the future contents of the file against the rules of all settings. Returns one text per
 * problem.
 */
export function problemsOf(answers: Answers, settings: Values): string[] {
  try {
    // The login of the database's owner is not a setting of a process.
    const { MIGRATE_DATABASE_URL: _, ...kept } = answers.kept
    readConfig({ AGENT_API_KEY: 'created by setup', ...withoutAgentKey(kept), ...withoutAgentKey(settings) })
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
}

/** Leaves out the machine tokens, because setup creates their files after this check. */
const withoutAgentKey = (values: Values): Values =>
  Object.fromEntries(
    Object.entries(values).filter(([name]) => !/^(AGENT_API_KEY|BOOTSTRAP_\w+_TOKEN)(_FILE)?$/.test(name)),
  )
