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
 * What everything that is stored, shown or sent goes through: what cannot be seen is stripped,
 * then secrets are redacted.
 */

/**
 * Terminal sequences: CSI, then strings (OSC, DCS, SOS, PM, APC) to their end or the next escape,
 * then short ones.
 */
const sequences =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters this file is about
  /(?:\u001b\[|\u009b)[0-?]{0,64}[ -/]{0,16}[@-~]?|(?:\u001b[\]PX^_]|[\u009d\u0090\u0098\u009e\u009f])[^\u0007\u001b\u009c\u0018\u001a\n]{0,4096}(?:\u0007|\u001b\\|\u009c)?|\u001b[ -/]{0,4}[0-~]?/g

/**
 * Controls without tab and newline; line separators; what Unicode hides (bidi, zero-width, tags,
 * fillers).
 */
const invisible =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: as above
  /[\u0001-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\u2800\ufff9-\ufffb\u{13430}-\u{1343f}\p{Default_Ignorable_Code_Point}]/gu

/** One cheap look: plain printable text, which is nearly all, needs nothing. */
const odd = /[^\t\n\u0020-\u007e\u00a0-\u00ac\u00ae-\u034e]/

/**
 * Text that shows exactly what it holds, on a page, in a terminal and to a model: escape sequences,
 * controls, bidi marks and invisible characters go, U+0000 and lone surrogates become U+FFFD. Tabs
 * stay; newlines too, unless one line is asked for. Combining marks and every script stay. (Unicode
 * 17, UTS 55 and UTR 36.)
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
 * Words and signs, one of which is in every text that a rule changes: the first look, which most
 * lines do not pass.
 */
const hint = new RegExp(
  [
    // names
    `pass|pwd|pw|psk|secret|token|key|auth|cookie|salt|pepper|sess|sid|logged_in|SAML|cred|ident|encrypt|${foreignNames}`,
    // what stands before a value, or in it
    'bearer|eyJ|:\\/\\/|-----BEGIN|@|\\$|\\*[0-9A-F]{40}|md5|SCRAM|pbkdf2|[?&](?:sig|jwt|code)|x-(?:amz|goog)|hook|response=|\\{(?:S?SHA|SMD5|MD5|CRYPT|PBKDF2|PLAIN|CLEAR)|LS0t|ZXlK|6Ly|Oi8v|"[dpqk]|\\^%#|[_-][A-Za-z0-9]{14}',
    // programs and files whose words have no name
    'machine |login|identified|communit|com2sec|snmp|createUser|masterauth|wep|XAUTH|Private-Lines|acl |user[ _]|EAP |ipmi|fence_|7z|rar |sqlplus|rman |expdp|smb|sudo|unseal|recovery |zip |code=|erlang|echo|ssl|rdp|ldap|sqlcmd|bcp|racadm|lftp|mosquitto|docker|podman|helm|redis-cli|mongo|mysql|mariadb|curl|cifs|net +use|hmac-|pgp_|cipher|ENC ',
    // lists of users, tables of tokens, letters of options
    '\\* ["]|\\*:|:\\*|:\\d+[: ]|[\\w"\'=;][\\w.-]{0,64}:[A-Za-z][\\w!%+.-]{0,40}\\d|"[\\w.-]+" "|\\d[hms] |\\w,\\w+,|\\s-(?:[pPwWakANXs]|pw)[ "\']?\\S{0,40}\\d',
  ].join('|'),
  'i',
)

/** Without any of them a run as long as a token, or one that says whose it is, is looked for. */
const longRun = /[A-Za-z0-9_-]{43}/

/**
 * Takes secrets out of a text and leaves `[redacted:<kind>]`: passwords by name, headers, URLs,
 * cloud keys, tokens, password hashes, private keys. A JSON text keeps its shape. Idempotent and
 * linear: 1 MB of anything takes well under a second.
 */
export function redact(text: string): string {
  if (text.length < 5) return text
  if (!hint.test(text) && !(text.length >= 20 && holdsPrefix(text)) && !(text.length >= 43 && longRun.test(text)))
    return text
  const json = redactDocument(text)
  if (json !== null) return json
  let clean = text
  // One rule may leave what another seeks: it ends once each has seen the text as it is.
  let quiet = 0
  for (let at = 0; quiet < steps.length && at < maxRounds * steps.length; at += 1) {
    const before = clean
    clean = (steps[at % steps.length] as Step)(before)
    quiet = clean === before ? quiet + 1 : 0
  }
  return clean
}

/** Redacts a JSON document as data, so that quotes are sure; null where the text is no JSON. */
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

// `JSON.rawJSON` is in every Node we run on and in no TypeScript library yet.
const raw = JSON as unknown as { rawJSON(text: string): object; isRawJSON(value: unknown): boolean }

type Reviver = (key: string, value: unknown) => unknown

/** A number that doubles cannot hold stays as it is written. */
function keepDigits(_key: string, value: unknown, context: { source: string }): unknown {
  return typeof value === 'number' && String(value) !== context.source ? raw.rawJSON(context.source) : value
}

const maxRounds = 4
/** What stands before a match, as far as a name may reach. */
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
    // Two options of one command: the first is what is between the second and its program.
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
/** Done to each text first. */
type Each = (text: string) => string
/**
 * The value without secrets: in texts, keys, values under secret names, `{ name, value }` pairs,
 * and flags of argument lists. One without any is answered as the same object.
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

/** One entry of a list, which may be the arguments of a program. */
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
  // `fromEntries` defines, so that `__proto__` is a key like any other.
  return changed ? Object.fromEntries(clean) : value
}

/** Passed tests and checks. */
const isCount = (name: string, entry: unknown): boolean =>
  typeof entry === 'number' && entry < 1e6 && /^pass$/i.test(name)

/** Names of objects that hold what signs somebody in. */
const holds = /(?:^|[_-])(?:credentials?|creds|oauth|secrets?|tokens|passwords|keys?)$/i

/** What a pair is about: by its name, or by its type, as a store of credentials writes it. */
function kindOfLabel(label: string, type: unknown): SecretKind | null {
  return kindOfName(label) ?? (typeof type === 'string' ? kindOfName(type) : null)
}

const looksEncoded = /^(?=.{0,200}[\d=])[A-Za-z0-9+/=._-]{12,}$/
/** The private parts of a key by RFC 7517. */
const keyPart = /^(?:d|p|q|dp|dq|qi|k)$/

/** What documents of a known form hold under names that promise nothing by themselves. */
function kindByForm(name: string, entry: unknown, beside: Record<string, unknown>): SecretKind | null {
  if (typeof entry !== 'string') return null
  if (keyPart.test(name) && typeof beside.kty === 'string') return 'private_key'
  if (/^(?:auth|identitytoken|registrytoken|client-key-data)$/i.test(name) && looksEncoded.test(entry)) return 'token'
  return kindOfPair(name, entry)
}

/** The data of a Kubernetes Secret: every value of it, whatever its key is called. */
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
 * A value under a secret's name: texts and lists of texts go, objects are searched, numbers go but
 * for counts.
 */
function hidden(entry: unknown, kind: SecretKind, each: Each, depth: number): unknown {
  if (typeof entry === 'string') return hide(each(entry), kind)
  if (typeof entry === 'number') return kind !== 'password' && entry < 1e6 ? entry : mark(kind)
  if (raw.isRawJSON(entry)) return mark(kind)
  if (Array.isArray(entry) && depth < deepest) return entry.map((item) => hidden(item, kind, each, depth + 1))
  const inner = deep(entry, each, depth + 1)
  return isRecord(inner) ? withoutValues(inner, kind) : inner
}

/** An object under a secret's name: its value goes by its name, others where they look random. */
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
 * Whether redaction would change a value: such arguments are refused, since tools take names of
 * secrets.
 */
export function isSecretive(value: unknown): boolean {
  if (typeof value === 'string') return redact(value) !== value
  return JSON.stringify(redactJson(value)) !== JSON.stringify(value)
}

/**
 * The one walk for all that is stored, shown or sent: strips what cannot be seen, then redacts
 * secrets (in this order, or a zero-width character would hide one). Idempotent. Leaves out what
 * JSON cannot say, as JSON.stringify; digests, ids and numbers stay.
 */
export function cleanse<T>(value: T): T {
  return redactJson(value, stripText)
}
