import type { SqlNames } from '../../safety/sql/postgres-names.ts'
import { findStatement, isSecretName, nodeTree, secretPairs } from '../../safety/sql/stored-texts.ts'
import type { SiteColumn } from './query-catalogue.ts'
import { maskLiterals } from './statement.ts'

/**
 * Hides values in rows: of columns with names of credentials, and in statements of other sessions.
 */

/**
 * Returns why a statement is refused: it would show a column with a secret name under another name,
 * or reveal its values by a condition. Null for an allowed statement.
 */
export function findSecretUse(names: SqlNames, columns: readonly SiteColumn[]): string | null {
  const secret = columns.filter(({ column }) => isSecretName(column))
  const named = secret.find(({ column }) => names.columns.includes(column))
  if (named)
    return `column ${named.column} of ${named.relation} is named like a credential: leave it out; IS NULL is allowed`
  const field = names.jsonFields.flatMap((each) => each.replace(/[{}$"[\]]/g, '').split(/[,.]/)).find(isSecretName)
  if (field !== undefined) return `field ${field.trim()} is named like a credential: leave it out`
  const search = findSearch(names, columns)
  if (search !== null) return search
  const [first] = secret
  if (!first || !names.takesRows) return null
  const others = columns.filter(({ relation, column }) => relation === first.relation && !isSecretName(column))
  return `${first.relation} has columns that are named like credentials (${secret
    .filter(({ relation }) => relation === first.relation)
    .map(({ column }) => column)
    .join(', ')}): name the others instead of a star or a row: ${others
    .slice(0, 20)
    .map(({ column }) => column)
    .join(', ')}`
}

/** Returns why a statement is refused that searches JSON fields without naming the field. */
function findSearch({ jsonSearches }: SqlNames, columns: readonly SiteColumn[]): string | null {
  const { operators, subscripts, all } = jsonSearches
  if (all !== null)
    return `${all} shows each field, also one that is named like a credential: name the fields, or use jsonb_object_keys`
  if (operators || (subscripts && columns.some(({ type }) => type === 'json' || type === 'jsonb')))
    return 'a JSON field has a computed name: write the name as a text'
  return null
}

/**
 * The kind of a response. `statements`: it may show statements of sessions and source code of
 * functions. `plan`: it is a query plan.
 */
export type ShownAs = 'rows' | 'statements' | 'plan'

/** Returns the form in which a cell is shown. */
export function hideCell(value: unknown, column: string, as: ShownAs): unknown {
  if (value === null || typeof value === 'boolean') return value
  if (isSecretName(column)) return '[hidden]'
  if (typeof value !== 'string') return value
  if (nodeTree.test(value)) return '[hidden]'
  // Hides all values, because the conditions in a plan may also come from views and policies.
  if (as === 'plan') return hideAddresses(value.replace(/'(?:[^']|'')*'?/g, '?'))
  return hideAddresses(hideElements(hidePairs(hideJson(value, as) ?? hideStatement(value, as))))
}

/** Hides the values in a text that contains a statement, from the statement's beginning on. */
function hideStatement(given: string, as: ShownAs): string {
  if (dateBounds.test(given)) return given
  const text = given.replace(bytes, (run, digits: string) => {
    const held = Buffer.from(digits, 'hex').toString()
    return findStatement(held) === null && !secretPairs.test(held) ? run : '[hidden]'
  })
  const start = as === 'statements' && looksLikeStatement.test(text) ? 0 : findStatement(text)
  return start === null ? text : text.slice(0, start) + maskLiterals(text.slice(start), 'postgres')
}

/** Matches bytes in PostgreSQL's hexadecimal format. */
const bytes = /\\+x((?:[0-9a-f]{2})+)/g

const looksLikeStatement =
  /['$]|\b(?:select|insert|update|delete|merge|with|values|copy|call|execute|set|alter|create|grant|do|begin)\s/i

/** Matches the bounds of a partition by time or number, which are no secret. */
const dateBounds =
  /^FOR VALUES FROM \((?:'[\d :+.-]*'|\d+|MINVALUE|MAXVALUE|, )+\) TO \((?:'[\d :+.-]*'|\d+|MINVALUE|MAXVALUE|, )+\)$/

/** Hides passwords in addresses and in connection strings of libpq. */
const hideAddresses = (text: string): string =>
  text
    .replace(/\b([a-z][a-z0-9+.-]{1,20}:\/\/[^\s:@/'"]{0,100}):[^\s@/'"]{1,200}@/gi, '$1:[hidden]@')
    .replace(
      /\b(password|passwd|pwd|secret|token|api_?key)(\s*[=:]\s*)(?:'[^']*'|"[^"]*"|[^\s'",;&}]+)/gi,
      '$1$2[hidden]',
    )

/**
 * Hides values of secret keys in a part of a JSON text. The JSON may be inside a string of another
 * JSON text, with escaped quotes.
 */
const hidePairs = (text: string): string =>
  text.replace(
    /(\\*"{1,4})([\w .-]{1,60})(\1\s*(?::|=>)\s*)(\\*"{1,4}(?:(?!\1).)*|[^\s",}\]]+)/gs,
    (pair, quote: string, key: string, between: string, value: string) =>
      isSecretName(key) && !/^(?:null|true|false)$/.test(value)
        ? `${quote}${key}${between}${value.startsWith('[hidden]') ? value : value.startsWith(quote) ? `${quote}[hidden]` : '[hidden]'}`
        : pair,
  )

/** Hides secret values in elements and attributes of XML, and quoted values of secret names. */
const hideElements = (text: string): string =>
  text
    .replace(/<([\w:.-]{1,60})([^<>]{0,400})>[^<]*(?=<\/\1|$)/g, (element, name: string, more: string) =>
      isSecretName(name) ? `<${name}${more}>[hidden]` : element,
    )
    .replace(/\b([\w:.-]{1,60}\s*=\s*)(?:"[^"]*"?|'[^']*'?)/g, (pair, before: string) =>
      isSecretName(before.replace(/\s*=\s*$/, '')) ? `${before}[hidden]` : pair,
    )

/**
 * Hides values of credential fields and of statements in a JSON text. A text without either stays
 * unchanged. Null for a text that is not JSON.
 */
function hideJson(text: string, as: ShownAs): string | null {
  if (!/^\s*[[{"]/.test(text)) return null
  let isHidden = false
  const hide = (key: string, each: unknown) => {
    if (each === null || typeof each === 'boolean') return each
    const shown = isSecretName(key) ? '[hidden]' : typeof each === 'string' ? hideStatement(each, as) : each
    isHidden ||= shown !== each
    return shown
  }
  try {
    const hidden = JSON.stringify(JSON.parse(text, hide))
    return isHidden ? hidden : text
  } catch {
    return null
  }
}
