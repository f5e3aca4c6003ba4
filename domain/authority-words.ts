import type { Device } from './device.ts'
import { digestOf, sha256 } from './digest.ts'
import type { Expectation } from './expectation.ts'
import type { Operator } from './operator.ts'
import type { SourceInput } from './source.ts'

/**
 * Texts in the audit log that describe what a row grants. `verify` compares the stored row with the
 * text of the audit entry. A changed right gives another text, so an audit entry about another
 * change of the same person, token, source or device does not match.
 */

/**
 * Maximum length of a text that describes what a row grants. An audit row keeps 2,000 characters
 * and may contain two of these texts and a reason.
 */
const maxWords = 600
const inShort = (words: string) =>
  words.length <= maxWords ? words : `${words.slice(0, maxWords - 20)} … (${sha256(words).slice(0, 12)})`

/** Rows from before 0.3 have no `pagerdutyUserId` and no `rights`. */
type DescribedOperator = Pick<Operator, 'role' | 'maxRisk' | 'incidentTypes' | 'disabledAt' | 'slackUserId'> &
  Partial<Pick<Operator, 'pagerdutyUserId' | 'rights'>>

export function describeOperator(described: DescribedOperator): string {
  const { role, maxRisk, incidentTypes, disabledAt, slackUserId, pagerdutyUserId, rights = [] } = described
  const types =
    incidentTypes === null ? 'all incident types' : `incidents of type ${incidentTypes.join(', ') || 'none'}`
  const at = `${slackUserId ? `, ${slackUserId} at Slack` : ''}${pagerdutyUserId ? `, ${pagerdutyUserId} at PagerDuty` : ''}`
  const further = rights.map((each) => `; and ${each}`).join('')
  return inShort(`${role}, risks up to ${maxRisk}${at}${disabledAt ? ', disabled' : ''}, ${types}${further}`)
}

type DescribedToken = { role: string; operator: string | null; scopes: readonly string[]; expiresAt: string | null }

/** Describes a token: owner, purpose, and end to the minute. */
export function describeToken({ role, operator, scopes, expiresAt }: DescribedToken): string {
  const words = [role, operator && `of ${operator}`, scopes.length > 0 && `for ${scopes.join(', ')}`]
  return inShort(
    [...words, expiresAt && `until ${toMinute(expiresAt).replace('T', ' ')} UTC`].filter(Boolean).join(' '),
  )
}

/** Cuts a UTC time to the minute, because a row and its JSON may write seconds differently. */
export const toMinute = (at: string): string => at.slice(0, 16)

export function describeGrant({ uses, hours }: { uses: number; hours: number }): string {
  return `may run ${uses} more times within ${Number(hours.toFixed(2))} h without asking`
}

/** Rows from before 0.3 have only the first five fields. */
type DescribedSource = Pick<SourceInput, 'kind' | 'url' | 'credential' | 'caFile' | 'options'> &
  Partial<Pick<SourceInput, 'writeCredential' | 'scheme' | 'headers' | 'certFile' | 'keyFile'>>

/**
 * Describes a source. Long options become a digest. Addresses stay whole, so that they can be
 * compared.
 */
export function describeSource(described: DescribedSource): string {
  const { kind, url, credential, writeCredential, scheme, headers = {}, caFile, certFile, keyFile, options } = described
  const words = [
    `${kind} at ${url}${credential ? ` with ${credential}` : ''}`,
    writeCredential && `writes with ${writeCredential}`,
    scheme && `scheme ${scheme}`,
    caFile && `authorities of ${caFile}`,
    ...Object.entries(headers)
      .sort()
      .map(([name, value]) => `${name}=${value}`),
    certFile && `certificate ${certFile}`,
    keyFile && `key file:${keyFile}`,
    Object.keys(options).length > 0 && `options ${digestOf(options).slice(0, 12)}`,
  ]
  return words.filter(Boolean).join(', ')
}

/**
 * Reads the address from a text of `describeSource`, and whether the credential with this reference
 * is sent to that address.
 */
export function readSourceWords(words: string, reference: string): { url: string; isGiven: boolean } {
  const url = /^\S+ at (\S+?),?(?: |$)/.exec(words)?.[1] ?? ''
  const isGiven = [' with ', '=', ' key '].some(
    (before) => words.endsWith(before + reference) || words.includes(`${before}${reference}, `),
  )
  return { url, isGiven }
}

type DescribedMark = Pick<Expectation, 'subject' | 'until' | 'state'> &
  Partial<Record<'source' | 'fingerprint' | 'resourceKind' | 'resourceId' | 'type', string | null>>

/**
 * Describes an expected state: the subject, the end, and the state of the subject when it was
 * marked.
 */
export function describeMark({ subject, until, state, ...of }: DescribedMark): string {
  const what = {
    alert: `alert ${of.fingerprint} of ${of.source}`,
    resource: `${of.resourceKind} ${of.resourceId}`,
    type: `incidents of type ${of.type}`,
  }[subject]
  const seen = digestOf(state).slice(0, 12)
  return inShort(`Expects ${what} until ${toMinute(until).replace('T', ' ')} UTC, seen as ${seen}`)
}

type DescribedDevice = Pick<
  Device,
  'mode' | 'url' | 'urlEnv' | 'enabled' | 'toolsAllowed' | 'terms' | 'resource' | 'guests' | 'manifestDays'
>

/** Describes a device. Terms that are not written out appear as a digest. */
export function describeDevice(device: DescribedDevice): string {
  const { mode, url, urlEnv, enabled, toolsAllowed, terms, resource, guests, manifestDays } = device
  const roots = terms.roots.map(({ path, writable }) => `${path}${writable ? ' (writable)' : ''}`).join(', ') || 'none'
  const tools = toolsAllowed.length === 0 ? 'all tools of its mode' : toolsAllowed.join(', ')
  const rootReads = terms.root_reads?.length ? `, root looks with ${JSON.stringify(terms.root_reads)}` : ''
  const ways = `mode ${mode}${guests ? `, guests by ${guests}` : ''}`
  // The variable overrides the address while the variable is set.
  const at = `${url === null ? ', whose agent calls out' : ` at ${url}`}${urlEnv ? ` or ${urlEnv}` : ''}`
  const all = `${tools}, roots ${roots}${rootReads}, terms ${digestOf(terms).slice(0, 12)}, manifests for ${manifestDays} days`
  return inShort(`${enabled ? '' : 'Switched off; '}${resource.kind} ${resource.id}${at}, ${ways}, ${all}`)
}
