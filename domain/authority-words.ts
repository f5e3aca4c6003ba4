import type { Device } from './device.ts'
import { digestOf, sha256 } from './digest.ts'
import type { Operator } from './operator.ts'
import type { SourceInput } from './source.ts'

/**
 * What a row gives, in words for the audit. `verify` holds the stored row against them: a row of the audit that tells of another change of
 * the same person, token, source or device does not tell of this one. Each right that changes changes the words.
 */

/** A row of the audit keeps 2,000 characters, and may hold two of these and a reason. */
const maxWords = 600
const inShort = (words: string) =>
  words.length <= maxWords ? words : `${words.slice(0, maxWords - 20)} … (${sha256(words).slice(0, 12)})`

type DescribedOperator = Pick<Operator, 'role' | 'maxRisk' | 'incidentTypes' | 'disabledAt' | 'slackUserId'>

export function describeOperator({ role, maxRisk, incidentTypes, disabledAt, slackUserId }: DescribedOperator): string {
  const types =
    incidentTypes === null ? 'all incident types' : `incidents of type ${incidentTypes.join(', ') || 'none'}`
  const at = slackUserId ? `, ${slackUserId} at Slack` : ''
  return inShort(`${role}, risks up to ${maxRisk}${at}${disabledAt ? ', disabled' : ''}, ${types}`)
}

type DescribedToken = { role: string; operator: string | null; scopes: readonly string[]; expiresAt: string | null }

/** Its owner, what it is for, and its end to the minute. */
export function describeToken({ role, operator, scopes, expiresAt }: DescribedToken): string {
  const words = [role, operator && `of ${operator}`, scopes.length > 0 && `for ${scopes.join(', ')}`]
  return inShort(
    [...words, expiresAt && `until ${toMinute(expiresAt).replace('T', ' ')} UTC`].filter(Boolean).join(' '),
  )
}

/** Cuts a time in UTC where a row and its JSON begin to write it differently. */
export const toMinute = (at: string): string => at.slice(0, 16)

export function describeGrant({ uses, hours }: { uses: number; hours: number }): string {
  return `may run ${uses} more times within ${Number(hours.toFixed(2))} h without asking`
}

type DescribedSource = Pick<SourceInput, 'kind' | 'url' | 'credential' | 'options'>

/** Options may be long: their digest stands for them. */
export function describeSource({ kind, url, credential, options }: DescribedSource): string {
  const more = Object.keys(options).length > 0 ? `, options ${digestOf(options).slice(0, 12)}` : ''
  return inShort(`${kind} at ${url}${credential ? ` with ${credential}` : ''}${more}`)
}

type DescribedDevice = Pick<
  Device,
  'mode' | 'url' | 'urlEnv' | 'enabled' | 'toolsAllowed' | 'terms' | 'resource' | 'guests'
>

/** A digest stands for the terms that are not written out. */
export function describeDevice(device: DescribedDevice): string {
  const { mode, url, urlEnv, enabled, toolsAllowed, terms, resource, guests } = device
  const roots = terms.roots.map(({ path, writable }) => `${path}${writable ? ' (writable)' : ''}`).join(', ') || 'none'
  const tools = toolsAllowed.length === 0 ? 'all tools of its mode' : toolsAllowed.join(', ')
  const rootReads = terms.root_reads?.length ? `, root looks with ${JSON.stringify(terms.root_reads)}` : ''
  const ways = `mode ${mode}${guests ? `, guests by ${guests}` : ''}`
  // The variable wins over the address while it is set.
  const at = `${url}${urlEnv ? ` or ${urlEnv}` : ''}`
  const all = `${tools}, roots ${roots}${rootReads}, terms ${digestOf(terms).slice(0, 12)}`
  return inShort(`${enabled ? '' : 'Switched off; '}${resource.kind} ${resource.id} at ${at}, ${ways}, ${all}`)
}
