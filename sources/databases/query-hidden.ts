import type { SqlNames } from '../../safety/sql/postgres-names.ts'
import type { SiteColumn } from './query-catalogue.ts'
import { hideLiterals } from './statement.ts'

/** Hidden in rows: columns that are called like credentials, and the values within statements of other sessions. */

/** Names of columns of passwords, tokens and their hashes. */
const secretName =
  /pass(?:wo?r?d|phrase|code)|(?:^|_)(?:pass|pwd|pin|otp|totp|mfa|cvv|cvc|salt|hash|iban)(?:_|$)|secret|(?:^|_)tokens?(?:_?hash|_?digest|_?value)?$|_hash$|credential|api_?key|(?:access|private|signing|encryption|key)_?(?:key|hash)|cookie|session_?(?:key|id|data)$|recovery_?code/i

const isSecretName = (name: string): boolean => secretName.test(name)

/** The reason why a statement is not asked: it would show such a column under another name, or tell of its values by a condition. */
export function findSecretUse(names: SqlNames, columns: readonly SiteColumn[]): string | null {
  const secret = columns.filter(({ column }) => isSecretName(column))
  const named = secret.find(({ column }) => names.columns.includes(column))
  if (named)
    return `column ${named.column} of ${named.relation} is called like a credential: leave it out; IS NULL may be asked`
  const field = names.jsonFields.flatMap((each) => each.replace(/[{}$"[\]]/g, '').split(/[,.]/)).find(isSecretName)
  if (field !== undefined) return `field ${field.trim()} is called like a credential: leave it out`
  const search = findSearch(names, columns)
  if (search !== null) return search
  const [first] = secret
  if (!first || !names.takesRows) return null
  const others = columns.filter(({ relation, column }) => relation === first.relation && !isSecretName(column))
  return `${first.relation} has columns that are called like credentials (${secret
    .filter(({ relation }) => relation === first.relation)
    .map(({ column }) => column)
    .join(', ')}): name the others instead of a star or a row: ${others
    .slice(0, 20)
    .map(({ column }) => column)
    .join(', ')}`
}

/** Fields of JSON that nobody named. */
function findSearch({ jsonSearches }: SqlNames, columns: readonly SiteColumn[]): string | null {
  const { operators, subscripts, all } = jsonSearches
  if (all !== null)
    return `${all} shows each field, also one that is called like a credential: name the fields, or ask jsonb_object_keys`
  if (operators || (subscripts && columns.some(({ type }) => type === 'json' || type === 'jsonb')))
    return 'a JSON field is looked up by a name that does not stand there: write the name as a text'
  return null
}

/** A cell as it is shown. */
export function hideCell(value: unknown, column: string, hidesStatements: boolean): unknown {
  if (value === null || typeof value === 'boolean') return value
  if (isSecretName(column)) return '[hidden]'
  if (typeof value !== 'string') return value
  const text = hidesStatements && looksLikeStatement(value) ? hideLiterals(value, 'postgres') : value
  return hideAddresses(hidePairs(hideJson(text)))
}

const looksLikeStatement = (text: string): boolean =>
  /['$]|\b(?:select|insert|update|delete|merge|with|values|copy|call|execute|set|alter|create|grant|do|begin)\b/i.test(
    text,
  ) && /\s/.test(text)

/** The password of an address, and of a list of words as libpq takes them. */
const hideAddresses = (text: string): string =>
  text
    .replace(/\b([a-z][a-z0-9+.-]{1,20}:\/\/[^\s:@/'"]{0,100}):[^\s@/'"]{1,200}@/gi, '$1:[hidden]@')
    .replace(
      /\b(password|passwd|pwd|secret|token|api_?key)(\s*[=:]\s*)(?:'[^']*'|"[^"]*"|[^\s'",;&}]+)/gi,
      '$1$2[hidden]',
    )

/** The same in a part of a JSON text, and in one that stands in quotes of another. */
const hidePairs = (text: string): string =>
  text.replace(
    /(\\*"{1,4})([\w .-]{1,60})(\1\s*:\s*)(\\*"{1,4}(?:(?!\1).)*|[^\s",}\]]+)/gs,
    (pair, quote: string, key: string, between: string, value: string) =>
      isSecretName(key) && !/^(?:null|true|false)$/.test(value)
        ? `${quote}${key}${between}${value.startsWith('[hidden]') ? value : value.startsWith(quote) ? `${quote}[hidden]` : '[hidden]'}`
        : pair,
  )

/** Fields of a JSON text that are called like credentials; without one it stays as it was written. */
function hideJson(text: string): string {
  if (!/^\s*[[{]/.test(text)) return text
  let isHidden = false
  const hide = (key: string, each: unknown) => {
    if (!isSecretName(key) || each === null || typeof each === 'boolean') return each
    isHidden = true
    return '[hidden]'
  }
  try {
    const hidden = JSON.stringify(JSON.parse(text, hide))
    return isHidden ? hidden : text
  } catch {
    return text
  }
}
