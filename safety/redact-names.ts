/**
 * Finds secrets without a known prefix, by the name before the value and by the form of the value.
 */

/** Kinds of redacted secrets, which are the fixed words of `[redacted:<kind>]`. */
export type SecretKind =
  | 'password'
  | 'token'
  | 'secret'
  | 'key'
  | 'header'
  | 'cookie'
  | 'url'
  | 'query'
  | 'jwt'
  | 'private_key'
  | 'hash'

export const mark = (kind: SecretKind) => `[redacted:${kind}]`

/** Words for "password" in the languages whose programs log it. */
export const foreignNames =
  'passwort|kennwort|mot[_ -]?de[_ -]?passe|contrase[ñn]a|(?<![a-z])clave|senha|parola|[şs]ifre|has[łl]o|пароль|passord|l[öo]senord|wachtwoord|salasana|adgangskode|heslo|jelsz[óo]|密码|密碼|口令|パスワード|비밀번호|암호'

/**
 * Endings of names that hold a secret: `DB_PASSWORD`, `vault.token`, `x-api-key`, `dbpass`,
 * `keystorePass`.
 */
const endings: [pattern: string, kind: SecretKind][] = [
  [
    `password(?:2|_in|_out|_mutual)?|bind_?credentials|passwd|passphrase|passcode|(?<![a-z])(?:pwd|pass|pw|psk)|(?:ssh|become|db|auth|root|bind|store|key)p(?:ass|w)|(?-i:(?<=[a-z])(?:Pass|Pw|Pwd))|authtok|${foreignNames}`,
    'password',
  ],
  ['(?:client|app|shared|signing|webhook|psk)?[_-]?secret(?:[_-]?string|[_-]?value|[_-]?key[_-]?base)?', 'secret'],
  [
    '(?:api|access|private|secret|account|signing|(?:en|de)cryption|validation|master|license|ssh|storage|sharedaccess|hmac|pre[_-]?shared|(?<![a-z])app|(?<![a-z])auth)[_.-]?key|wep[_-]?key\\d?|sharedaccesssignature',
    'key',
  ],
  ['token', 'token'],
  ['authorization', 'header'],
  ['cookie', 'cookie'],
]

/** Endings of names that may hold a secret: only a value that looks random counts. */
const likely: [pattern: string, kind: SecretKind][] = [
  [
    'key(?:[_-]?(?:base|string))?|keys|salt|pepper|encrypt|credentials?|creds|(?<![a-z])ident|(?-i:(?<=[a-z])Ident)|(?<![a-z])auth',
    'key',
  ],
  // Matches names in which the word for a secret is not the last word: `SECRETS_SYSTEM`,
  // `password_hash`.
  ['(?:secrets?|passwords?|tokens?)[_.-]\\w{1,24}', 'secret'],
  [
    '(?:session|sess|sid)(?:[_-]?id(?:\\.\\w{1,16})?)?|\\.AspNetCore\\.\\w{1,40}|_logged_in_[0-9a-f]{1,40}|SAMLResponse',
    'cookie',
  ],
]

const joined = (rows: readonly [pattern: string, kind: SecretKind][]) =>
  rows.map(([pattern]) => `(?:${pattern})`).join('|')

/**
 * One pattern for texts and for keys of objects. A name must end here, so `tokens`, `token_type`,
 * `secretName` do not match.
 */
export const secretNamePattern = joined(endings)
export const likelyNamePattern = joined(likely)

const compiled = (rows: readonly [pattern: string, kind: SecretKind][]) =>
  rows.map(([pattern, kind]) => [new RegExp(`(?:${pattern})$`, 'i'), kind] as const)
const named = compiled(endings)
const likelyNamed = compiled(likely)

/**
 * Matches names that only resemble the name of a secret: a list's next page, a parser's token, a
 * table's key.
 */
const harmless =
  /(?:next|page|continue|continuation|sync|resume|unexpected|public|pub|primary|foreign|sort|partition|cache|idempotency|websocket|dedup|incident|object|surrogate|shard|hash|unique|index|row|host|group|message|event|query)[_-]?(?:page)?[_-]?(?:token|keys?)$|(?:secrets?|passwords?|tokens?)[_.-]\w{0,16}(?:id|ref|name|type|kind|path|file|dir|ur[il]|endpoint|version|arn|class|uid)$|^oldpwd$|existing_?secret$/i

const any = new RegExp(`(?:${secretNamePattern.replaceAll('[_', '[ _')})$`, 'i')
const anyLikely = new RegExp(`(?:${likelyNamePattern})$`, 'i')

/** Returns the kind of secret that a name holds, or null. */
export function kindOfName(name: string): SecretKind | null {
  if (name.length > 120 || !any.test(name) || harmless.test(name)) return null
  // Reads `access key` as `access_key`.
  const plain = name.replace(/ /g, '_')
  return named.find(([pattern]) => pattern.test(plain))?.[1] ?? null
}

/** Returns the kind of secret that a name may hold, or null. */
function kindOfLikelyName(name: string): SecretKind | null {
  if (name.length > 120 || !anyLikely.test(name) || harmless.test(name)) return null
  return likelyNamed.find(([pattern]) => pattern.test(name))?.[1] ?? null
}

/**
 * Words that describe a secret, and references to its place. The words are not secret themselves.
 */
const words = new Set(
  `none null nil true false yes no undefined empty missing required invalid valid expired unset set changed unchanged
  incorrect wrong rejected denied unknown hidden disabled enabled ok failed accepted optional default not is was has had
  must should will may can cannot for of and or the a an in to at by from with file auto rotated rotate required. expired.
  invalid. string str bytes text bearer basic ***`.split(/\s+/),
)
const reference =
  /^(?:\$[({A-Za-z_]|\((?:empty|none|null|unset|hidden|not|no|masked)\b|\{\{|<[^>]*>?$|%[({]|\*{3,}$|x{3,}$|\[redacted:[a-z_]+\]$|[~^]?\d{1,4}\.\d{1,4}\.\d{1,4}$)/i

export function isNoSecret(value: string): boolean {
  return value === '' || words.has(value.toLowerCase()) || reference.test(value)
}

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
export const isUuid = (text: string): boolean => uuid.test(text)

/**
 * Matches ids of Nightshift, with an optional place after them:
 * `inc_01k5m3v7c0q9h2x8z4w6r1t5ya.1:3`.
 */
const ulid = /^[a-z]{2,12}_[0-7][0-9a-hjkmnp-tv-z]{25}(?![0-9A-Za-z])/

/**
 * Returns the kind of secret under a name that may hold one, or null. The value must look random,
 * and not be an id.
 */
export function kindOfPair(name: string, value: string): SecretKind | null {
  const kind = kindOfLikelyName(name)
  if (kind === null || isUuid(value) || ulid.test(value)) return null
  // Requires of a value under the name `key` that it looks like base64, because keys of a table, a
  // cache or a store consist of small letters.
  const isRandom = /^keys?$/i.test(name) ? looksEncoded(value, 12) : looksRandom(value) || looksEncoded(value, 12)
  return isRandom ? kind : null
}

/** Most characters of a value that are examined for randomness. */
const looked = 200

/** Counts changes between capitals, small letters and digits in adjacent characters. */
function changesIn(text: string): number {
  let changes = 0
  let last = 0
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    const kind = code >= 48 && code <= 57 ? 1 : code >= 97 && code <= 122 ? 2 : code >= 65 && code <= 90 ? 3 : 0
    if (kind !== 0 && last !== 0 && kind !== last) changes += 1
    last = kind
  }
  return changes
}

/** Matches an id of Nightshift, made by `newId` of domain/digest.ts, which is not secret. */
export const ownId = /^[a-z]{3}_0[0-9a-hjkmnp-tv-z]{25}$/

/**
 * Whether a value looks random. In a random value, capitals, small letters and digits alternate
 * more often than in words, names, times and paths: at every fourth character, or at every seventh
 * within a sequence of letters and digits only.
 */
export function looksRandom(value: string, minCharacters = 16): boolean {
  if (value.length < minCharacters || !/\d/.test(value) || !/[A-Za-z]/.test(value) || ownId.test(value)) return false
  const text = value.slice(0, looked)
  if (changesIn(text) * 4 >= text.length) return true
  const run = /[A-Za-z0-9]{16,}/.exec(text)?.[0]
  return run !== undefined && changesIn(run) * 7 >= run.length
}

/** Whether a value has capitals, small letters and digits like base64, unlike a hash or an id. */
export function looksEncoded(value: string, minCharacters = 16): boolean {
  return /[A-Z]/.test(value) && /[a-z]/.test(value) && looksRandom(value, minCharacters)
}

/**
 * Whether a word looks invented: it has letters with digits or other characters, and is no
 * assignment, option, path or place.
 */
export function looksMade(value: string): boolean {
  return (
    value.length >= 6 &&
    !ownId.test(value) &&
    /[A-Za-z]/.test(value) &&
    /[0-9!%+^~#]/.test(value) &&
    !/^[-/.~]|^[\w-]+=[^=]|[:()<>]|\.so$|^HTTP\//.test(value)
  )
}
