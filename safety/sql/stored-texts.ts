/**
 * Expressions for the parts of a stored text that are hidden: the values of a statement, wherever
 * it was copied to, and fields with names of credentials. Each expression works in JavaScript and
 * in PostgreSQL: no look-behind, and `.` is any character.
 */

const words =
  'pass(?:wo?r?d|phrase|code)|secret|credential|api_?key|(?:access|private|signing|encryption|key)_?(?:key|hash)|cookie|recovery_?code'
const wholeWords = 'pass|pwd|pin|otp|totp|mfa|cvv|cvc|salt|hash|iban'
const endWords = 'tokens?(?:_?hash|_?digest|_?value)?|session_?(?:key|id|data)'

const secretName = new RegExp(`${words}|(?:^|_)(?:${wholeWords})(?:_|$)|(?:^|_)(?:${endWords})$|_hash$`, 'i')

/** Whether the name of a column or JSON field is that of a password, a token or a hash of one. */
export const isSecretName = (name: string): boolean => secretName.test(name)

/**
 * Matches a name of a credential before its value, in JSON, hstore, XML or plain text, and an
 * address with a password.
 */
export const secretPairs: RegExp = new RegExp(
  `(?:(?:${words})\\w*|\\b(?:\\w*_)?(?:${wholeWords})(?:_\\w*)?|\\b(?:\\w*_)?(?:${endWords})|\\w_hash)[ .-]?[\\\\"']*\\s*(?::|=|>)|://[^\\s:@/]*:[^\\s@/]+@`,
  'is',
)

const named =
  'role|user|group|database|schema|table|view|materialized|index|sequence|function|procedure|trigger|rule|type|domain|server|extension|publication|subscription|policy|system|aggregate|cast|event|foreign|unlogged|unique|temp|temporary|or\\s+replace|default'

/** Matches the beginning of a statement within a text. */
export const statementForms: RegExp = new RegExp(
  `\\b(?:${[
    `select\\b(?=[^;]*(?:'|\\bfrom\\b|\\$)|[\\s(+-]*\\d)`,
    '(?:insert|replace|merge)\\s+into\\b',
    `update\\s+(?:only\\s+)?[\\w."\`]+\\s+(?:as\\s+)?(?:\\w+\\s+)?set\\b`,
    'delete\\s+from\\b',
    'values\\s*\\(',
    `(?:call|execute)\\s+[\\w."]+\\s*\\(`,
    `do\\s+(?:'|\\$|language\\b)`,
    `set\\s+(?:session\\s+|local\\s+)?[\\w.]+\\s*(?:=|to\\b)`,
    `copy\\s+[\\w."(]+.*\\b(?:from|to)\\b`,
    `(?:create|alter)\\s+(?:${named})\\b`,
    `(?:notify|load|comment|security|prepare|declare|import)\\s[^']*'`,
  ].join('|')})`,
  'is',
)

/** Matches the text form of a PostgreSQL parse tree, which contains the statement's constants. */
export const nodeTree: RegExp = /\{[A-Z]+ :[a-z_]+ /

/** Returns where a statement begins within a text; null if none does. */
export function findStatement(text: string): number | null {
  const start = statementForms.exec(text)?.index
  if (start === undefined) return null
  // Returns 0 if the text begins with a comment, because the comment is part of the statement.
  return /^\s*(?:--|\/\*|#)/.test(text) ? 0 : start
}
