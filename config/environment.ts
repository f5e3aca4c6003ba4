import { readFileSync } from 'node:fs'
import type { z } from 'zod'
import type { EnvironmentVariable } from '../domain/setting-row.ts'
import { agent, knowledge, platform, processes } from './agent.ts'
import { mesh, oidc, slack } from './credentials.ts'
import { secrets, settingNames } from './settings.ts'
import { temporal } from './temporal.ts'

/** Groups of environment variables, in the order of docs/reference/configuration.md. */
const groups: [group: string, part: z.ZodObject][] = [
  ['Agent and model', agent],
  ['Processes', processes],
  ['Temporal', temporal],
  ['Platform and placement', platform],
  ['Runbooks', knowledge],
  ['Sign-in through a provider', oidc],
  ['Slack', slack],
  ['Devices', mesh],
]

const isSecret = (name: string): boolean => (secrets as readonly string[]).includes(name)

/**
 * Whether a variable has several lines that no page may show: certificates, or a key by mistake.
 */
const isMaterial = (name: string): boolean => name.endsWith('_DATA')

/**
 * Lists the variables that configure a process, with their values. A secret is only reported as
 * `set` or not: neither the length of the secret nor its file is shown. Addresses are shown without
 * credentials and query. `text`: the documentation page that describes each variable.
 */
export function listEnvironment(
  environment: Record<string, string | undefined>,
  text = readFileSync(new URL('../docs/reference/configuration.md', import.meta.url), 'utf8'),
): EnvironmentVariable[] {
  const said = readDescriptions(text)
  return groups.flatMap(([group, part]) =>
    Object.entries(part.shape)
      .filter(([name]) => settingNames.some((each) => each === name))
      .map(([name, schema]) => {
        const secret = isSecret(name)
        const isHidden = secret || isMaterial(name)
        const given = environment[name] || (secret ? environment[`${name}_FILE`] : undefined)
        const fallback = defaultOf(schema as z.ZodType)
        const state = given ? 'set' : fallback !== null ? 'default' : 'not_set'
        const value = isHidden ? null : given ? withoutCredentials(given) : fallback
        return { name, group, description: said.get(name) ?? '', secret, state, value }
      }),
  )
}

/** Returns the default as a person writes it; null without a default or with an empty default. */
function defaultOf(schema: z.ZodType): string | null {
  const { success, data } = schema.safeParse(undefined)
  return success && data !== undefined && data !== '' ? String(data) : null
}

/** Removes user, password and query from addresses. Other text stays unchanged. */
export function withoutCredentials(text: string): string {
  return text
    .replaceAll(/([a-z][a-z0-9+.-]*:\/\/)[^/?#\s]*@/gi, '$1')
    .replaceAll(/([a-z][a-z0-9+.-]*:\/\/[^?#\s,]*)\?[^#\s,]*/gi, '$1?…')
}

/** Reads the descriptions of variables from the table of the documentation page, without markup. */
function readDescriptions(text: string): Map<string, string> {
  const rows = text.matchAll(/^\| `([A-Z_]+)` \| .*? \| ?(.*) \|$/gm)
  const plain = (meaning: string) => meaning.replaceAll('`', '').replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
  return new Map([...rows].map(([, name = '', meaning = '']) => [name, plain(meaning.replace(/ \(secret\)\.$/, '.'))]))
}
