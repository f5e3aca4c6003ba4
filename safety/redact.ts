import { argumentRules, gluesPassword, secretFlag } from './redact-arguments.ts'
import { formats } from './redact-formats.ts'
import { classRule, holdsPrefix, prefixRule, redactListed, signedRule } from './redact-listed.ts'
import {
  foreignNames,
  isNoSecret,
  isUuid,
  kindOfName,
  kindOfPair,
  looksRandom,
  mark,
  type SecretKind,
} from './redact-names.ts'
import { bareRule, rules, type SecretRule } from './redact-rules.ts'

/**
 * Cleans everything that is stored, shown or sent: removes invisible characters, then redacts
 * secrets.
 */

/**
 * Matches terminal sequences: CSI, then strings (OSC, DCS, SOS, PM, APC) up to their end or the
 * next escape, then short ones.
 */
const sequences =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters this file is about
  /(?:\u001b\[|\u009b)[0-?]{0,64}[ -/]{0,16}[@-~]?|(?:\u001b[\]PX^_]|[\u009d\u0090\u0098\u009e\u009f])[^\u0007\u001b\u009c\u0018\u001a\n]{0,4096}(?:\u0007|\u001b\\|\u009c)?|\u001b[ -/]{0,4}[0-~]?/g

/**
 * Matches control characters except tab and newline; line separators; characters that Unicode hides
 * (bidi, zero-width, tags, fillers).
 */
const invisible =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: as above
  /[\u0001-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\u2800\ufff9-\ufffb\u{13430}-\u{1343f}\p{Default_Ignorable_Code_Point}]/gu

/** Matches characters that need cleaning; most texts are plain and have none. */
const odd = /[^\t\n\u0020-\u007e\u00a0-\u00ac\u00ae-\u034e]/

/**
 * Makes a text show exactly what it contains, on a page, in a terminal and to a model. Escape
 * sequences, control characters, bidi marks and invisible characters are removed; U+0000 and lone
 * surrogates become U+FFFD. Tabs stay; newlines too, unless one line is requested. Combining marks
 * and every script stay. (Unicode 17, UTS 55 and UTR 36.)
 */
export function stripText(text: string, options: { keepNewlines?: boolean } = {}): string {
  const plain = odd.test(text)
    ? text
        .replaceAll('\u0000', '\ufffd')
        .replaceAll('\r\n', '\n')
        .replace(sequences, '')
        .toWellFormed()
        .replace(invisible, '')
    : text
  return options.keepNewlines === false ? plain.replace(/[\n\t]+/g, ' ') : plain
}

/**
 * Words and signs: every text that a rule changes contains one of them. Most lines contain none, so
 * that no rule is tried on them.
 */
const hint = new RegExp(
  [
    // names
    `pass|pwd|pw|psk|secret|token|key|auth|cookie|salt|pepper|sess|sid|logged_in|SAML|cred|ident|encrypt|${foreignNames}`,
    // text before a value, or in it
    'bearer|eyJ|:\\/\\/|-----BEGIN|@|\\$|\\*[0-9A-F]{40}|md5|SCRAM|pbkdf2|[?&](?:sig|jwt|code)|x-(?:amz|goog)|hook|response=|\\{(?:S?SHA|SMD5|MD5|CRYPT|PBKDF2|PLAIN|CLEAR)|LS0t|ZXlK|6Ly|Oi8v|"[dpqk]|\\^%#|[_-][A-Za-z0-9]{14}',
    // programs and files whose secrets have no name
    'machine |login|identified|communit|com2sec|snmp|createUser|masterauth|wep|XAUTH|Private-Lines|acl |user[ _]|EAP |ipmi|fence_|7z|rar |sqlplus|rman |expdp|smb|sudo|unseal|recovery |zip |code=|erlang|echo|ssl|rdp|ldap|sqlcmd|bcp|racadm|lftp|mosquitto|docker|podman|helm|redis-cli|mongo|mysql|mariadb|curl|cifs|net +use|hmac-|pgp_|cipher|ENC ',
    // lists of users, tables of tokens, letters of options
    '\\* ["]|\\*:|:\\*|:\\d+[: ]|[\\w"\'=;][\\w.-]{0,64}:[A-Za-z][\\w!%+.-]{0,40}\\d|"[\\w.-]+" "|\\d[hms] |\\w,\\w+,|\\s-(?:[pPwWakANXs]|pw)[ "\']?\\S{0,40}\\d',
  ].join('|'),
  'i',
)

/**
 * Matches a sequence as long as a token. A text without any hint is searched only for such a
 * sequence and for known prefixes.
 */
const longRun = /[A-Za-z0-9_-]{43}/

/**
 * Replaces secrets in a text by `[redacted:<kind>]`: passwords by name, headers, URLs, cloud keys,
 * tokens, password hashes, private keys. A JSON text keeps its shape. Idempotent and linear: 1 MB
 * takes well under a second.
 */
export function redact(text: string): string {
  if (text.length < 5) return text
  if (!hint.test(text) && !(text.length >= 20 && holdsPrefix(text)) && !(text.length >= 43 && longRun.test(text)))
    return text
  const json = redactDocument(text)
  if (json !== null) return json
  let clean = text
  // Repeats the rules until each rule has read the final text, because the result of one rule may
  // match another.
  let quiet = 0
  for (let at = 0; quiet < steps.length && at < maxRounds * steps.length; at += 1) {
    const before = clean
    clean = (steps[at % steps.length] as Step)(before)
    quiet = clean === before ? quiet + 1 : 0
  }
  return clean
}

/** Redacts a JSON document as data, so that quotes stay valid; null if the text is not JSON. */
function redactDocument(text: string): string | null {
  if (!/^\s*[{[]/.test(text) || !/[}\]]\s*$/.test(text.slice(-80))) return null
  let data: unknown
  try {
    data = /\d{16}|\d[eE]/.test(text) ? JSON.parse(text, keepDigits as Reviver) : JSON.parse(text)
  } catch {
    return null
  }
  const clean = redactJson(data)
  if (clean === data) return text
  const indent = /^\s*[{[]\n([ \t]{1,8})\S/.exec(text)?.[1]
  return JSON.stringify(clean, null, indent)
}

// Adds the types of `JSON.rawJSON`, which every supported Node has, but TypeScript's library not
// yet.
const raw = JSON as unknown as { rawJSON(text: string): object; isRawJSON(value: unknown): boolean }

type Reviver = (key: string, value: unknown) => unknown

/** Keeps the digits of a number that a double cannot represent. */
function keepDigits(_key: string, value: unknown, context: { source: string }): unknown {
  return typeof value === 'number' && String(value) !== context.source ? raw.rawJSON(context.source) : value
}

const maxRounds = 4
/** Characters before a match that may contain its name. */
const nameCharacters = 64

type Step = (text: string) => string

function step({ kind, pattern, hints, test, replace, again = 1 }: SecretRule): Step {
  const put = (match: string, ...rest: unknown[]): string => {
    if (!replace) return mark(kind)
    const [offset, whole, groups] = rest.slice(-3) as [number, string, Record<string, string | undefined>]
    return replace(match, groups, whole.slice(Math.max(0, offset - nameCharacters), offset))
  }
  return (text) => {
    if (hints && !hints.some((hint) => text.includes(hint))) return text
    if (test && !test.test(text)) return text
    // Applies the rule again, for a command with two secret options: a match of the first option
    // may hide the second one.
    let clean = text.replace(pattern, put)
    for (let more = 1; clean !== text && more < again; more += 1) clean = clean.replace(pattern, put)
    return clean
  }
}

const steps: readonly Step[] = [
  ...[...rules, ...formats, ...argumentRules, prefixRule, signedRule, classRule, bareRule].map(step),
  redactListed,
]

const deepest = 400
/** Function that is applied to each text first. */
type Each = (text: string) => string
/**
 * Removes secrets from a value: in texts, keys, values under names of secrets, `{ name, value }`
 * pairs, and flags of argument lists. A value without secrets is returned as the same object.
 */
export function redactJson<T>(value: T, each: Each = (text) => text): T {
  return deep(value, each, 0) as T
}

function deep(value: unknown, each: Each, depth: number): unknown {
  if (typeof value === 'string') return redact(each(value))
  if (value === null || typeof value !== 'object' || raw.isRawJSON(value)) return value
  if (depth > deepest) return '[nested too deep]'
  if (Array.isArray(value)) {
    const clean = value.map((entry, index) => element(value, entry, index, each, depth))
    return clean.some((entry, index) => entry !== value[index]) ? clean : value
  }
  return deepObject(value as Record<string, unknown>, each, depth)
}

/** Redacts one entry of a list, which may be the arguments of a program. */
function element(list: unknown[], entry: unknown, index: number, each: Each, depth: number): unknown {
  if (typeof entry === 'string' && index > 0) {
    const flag = list[index - 1]
    if (typeof flag === 'string' && secretFlag.test(each(flag)) && !entry.startsWith('-'))
      return hide(each(entry), 'password')
    const glued = typeof list[0] === 'string' && /^-p[^[]/.test(entry) && gluesPassword.test(each(list[0]))
    if (glued) return `-p${mark('password')}`
  }
  return deep(entry, each, depth + 1)
}

function deepObject(value: Record<string, unknown>, each: Each, depth: number): unknown {
  const label = value.name ?? value.key ?? value.Name ?? value.Key
  const clean: [string, unknown][] = []
  let changed = false
  for (const [key, entry] of Object.entries(value)) {
    if (entry === undefined) {
      changed = true
      continue
    }
    const pair = typeof label === 'string' && /^value$/i.test(key) ? kindOfLabel(each(label), value.type) : null
    const shown = each(key)
    const kind = isCount(shown, entry) ? null : (kindOfName(shown) ?? pair ?? kindByForm(shown, entry, value))
    const name = redact(shown)
    const isData = value.kind === 'Secret' && /^(?:data|stringData)$/.test(shown)
    const kept = isData
      ? hiddenValues(entry, each)
      : kind === null && !(isRecord(entry) && holds.test(shown))
        ? deep(entry, each, depth + 1)
        : hidden(entry, kind ?? 'secret', each, depth)
    if (name !== key || kept !== entry) changed = true
    clean.push([name, kept])
  }
  // Uses `fromEntries`, which defines properties, so that `__proto__` is an ordinary key.
  return changed ? Object.fromEntries(clean) : value
}

/** Whether the number is a count, such as the number of passed tests. */
const isCount = (name: string, entry: unknown): boolean =>
  typeof entry === 'number' && entry < 1e6 && /^pass$/i.test(name)

/** Matches names of objects that hold credentials. */
const holds = /(?:^|[_-])(?:credentials?|creds|oauth|secrets?|tokens|passwords|keys?)$/i

/** Returns the kind of secret in a pair, by the pair's name or its type in a credential store. */
function kindOfLabel(label: string, type: unknown): SecretKind | null {
  return kindOfName(label) ?? (typeof type === 'string' ? kindOfName(type) : null)
}

const looksEncoded = /^(?=.{0,200}[\d=])[A-Za-z0-9+/=._-]{12,}$/
/** Matches the private parts of a key by RFC 7517. */
const keyPart = /^(?:d|p|q|dp|dq|qi|k)$/

/** Returns the kind of secret of a value in a document of known form, under an ordinary name. */
function kindByForm(name: string, entry: unknown, beside: Record<string, unknown>): SecretKind | null {
  if (typeof entry !== 'string') return null
  if (keyPart.test(name) && typeof beside.kty === 'string') return 'private_key'
  if (/^(?:auth|identitytoken|registrytoken|client-key-data)$/i.test(name) && looksEncoded.test(entry)) return 'token'
  return kindOfPair(name, entry)
}

/** Redacts the data of a Kubernetes Secret: every value, under any key. */
function hiddenValues(data: unknown, each: Each): unknown {
  if (data === null || typeof data !== 'object') return data
  return Object.fromEntries(
    Object.entries(data).map(([key, entry]) => [
      key,
      typeof entry === 'string' ? hide(each(entry), 'secret') : mark('secret'),
    ]),
  )
}

/**
 * Redacts a value under a secret's name. Texts and lists of texts are replaced, objects are
 * searched, and numbers are replaced except counts.
 */
function hidden(entry: unknown, kind: SecretKind, each: Each, depth: number): unknown {
  if (typeof entry === 'string') return hide(each(entry), kind)
  if (typeof entry === 'number') return kind !== 'password' && entry < 1e6 ? entry : mark(kind)
  if (raw.isRawJSON(entry)) return mark(kind)
  if (Array.isArray(entry) && depth < deepest) return entry.map((item) => hidden(item, kind, each, depth + 1))
  const inner = deep(entry, each, depth + 1)
  return isRecord(inner) ? withoutValues(inner, kind) : inner
}

/** Redacts an object under a secret's name: the field of the value, and texts that look random. */
function withoutValues(held: Record<string, unknown>, kind: SecretKind): Record<string, unknown> {
  const entries = Object.entries(held)
  const isHidden = ([key, entry]: [string, unknown]) =>
    typeof entry === 'string' && (/^(?:value|data|plain(?:text)?)$/i.test(key) || looksRandom(entry)) && !isUuid(entry)
  if (!entries.some(isHidden)) return held
  return Object.fromEntries(
    entries.map(([key, entry]) => [key, isHidden([key, entry]) ? hide(entry as string, kind) : entry]),
  )
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  value !== null && typeof value === 'object' && !Array.isArray(value) && !raw.isRawJSON(value)

function hide(text: string, kind: SecretKind): string {
  return isNoSecret(text) ? text : mark(kind)
}

/**
 * Whether redaction would change a value. A call with a secret in its arguments is refused, because
 * tools take the names of secrets and never the secrets.
 */
export function isSecretive(value: unknown): boolean {
  if (typeof value === 'string') return redact(value) !== value
  return JSON.stringify(redactJson(value)) !== JSON.stringify(value)
}

/**
 * Cleans a value that is stored, shown or sent: removes invisible characters, then redacts secrets
 * (in this order, because a zero-width character would hide a secret). Idempotent. Leaves out what
 * JSON cannot represent, like JSON.stringify; digests, ids and numbers stay.
 */
export function cleanse<T>(value: T): T {
  return redactJson(value, stripText)
}
