import {
  isNoSecret,
  isUuid,
  kindOfName,
  kindOfPair,
  likelyNamePattern,
  looksEncoded,
  looksMade,
  looksRandom,
  mark,
  type SecretKind,
  secretNamePattern,
} from './redact-names.ts'

/**
 * One rule. `hints`: literals, of which a text must contain one before the pattern is tried.
 * `test`: a pattern with the same purpose as `hints`, if there are no literals. `replace` gets the
 * match and the text before the match, and returns the replacement; without `replace`, the match is
 * removed. No match crosses an unescaped double quote or cuts an escape, so that JSON inside a text
 * stays JSON. Each pattern is bounded or cannot fail late, so that the time is linear.
 */
export type SecretRule = {
  kind: SecretKind
  pattern: RegExp
  hints?: string[]
  test?: RegExp
  /**
   * Most times that the rule is applied to a text. More than one is needed if a match may hide the
   * next.
   */
  again?: number
  replace?: (match: string, groups: Record<string, string | undefined>, before: string) => string
}

/** Matches the start of a word, also directly after an escaped line break in a JSON text. */
const start = '(?<=^|[^A-Za-z0-9_-]|\\\\[nrtbf]|\\\\u[0-9a-fA-F]{4})'
/** Matches an escaped or plain line break or blank. */
const gap = '(?:\\s|\\\\+[nr])'
const bare = '(?:[^\\s"\'\\\\;&|<>`,]|,(?!\\s|$|[A-Za-z_][\\w.-]{0,30}[=:]))'
/** Matches a value in quotes, in quotes that a JSON text escapes, or without quotes. */
const value = `(?!["'][ \\t]{0,4}[,:}\\]])(?:[bBeEfFnNrRuU]?(?<quote>["'])(?<quoted>(?:[^"'\\\\\\n]|\\\\[^\\n]|(?!\\k<quote>)'){0,4096})|(?<escaped>\\\\+["'])(?<inner>[^"'\\\\\\n]{0,4096})|(?<bare>(?![[{])${bare}{1,65536}))`

function swap(kind: SecretKind, groups: Record<string, string | undefined>): string | null {
  const { quote, quoted, escaped, inner } = groups
  const text = quoted ?? inner ?? groups.bare ?? ''
  if (isNoSecret(text)) return null
  if (quote) return `${quote}${mark(kind)}`
  if (escaped) return `${escaped}${mark(kind)}`
  // Excludes a closing bracket or the end of a sentence, which is no part of the value.
  let length = text.length
  while (length > 0 && ')]},.'.includes(text[length - 1]!)) length--
  const body = text.slice(0, length)
  return isNoSecret(body) || body.startsWith('[redacted:') ? null : mark(kind) + text.slice(length)
}

/** Rule for `name = value` in all its spellings. */
const assignment: SecretRule = {
  kind: 'secret',
  pattern: new RegExp(
    `(?<name>(?<![A-Za-z0-9_.-])[A-Za-z0-9_.-]{0,60}?(?:${secretNamePattern}))(?<close>\\\\*["']\\]?)?(?<sign>[ \\t]{0,8}(?:=>|:=|=(?!=)|:(?!:)|：)[ \\t]{0,48})${value}`,
    'gi',
  ),
  replace(match, groups, before) {
    const { name = '', close = '', sign = '', bare: text } = groups
    const kind = kindOfName(name)
    if (kind === null) return match
    if (text !== undefined) {
      // Excludes PWD, which is the working directory.
      if (/pwd$/i.test(name) && /^[~/.]/.test(text)) return match
      // Leaves "unexpected token: foo" and "secret: app/db", which are prose, unless the value
      // looks random.
      const prose = /:[ \t]+$/.test(sign) && close === '' && (kind === 'token' || kind === 'secret')
      if (prose && !/\d/.test(text) && text.length < 16) return match
      // Leaves a short number, such as `tokens: 12`, because the number counts tokens.
      const isCount = /^\d{1,6}[)\]},.]*$/.test(text)
      if (isCount && (kind !== 'password' || /^pass$/i.test(name))) return match
      if (kind === 'header' || (kind === 'cookie' && !looksRandom(text))) return match
      // Leaves `passwd: all …` and `pam_unix(passwd:auth)`, which are a program's messages, and
      // `…:secret:prod/db`, which is a path.
      if (/^passwd$/i.test(name) && /:/.test(sign) && /^[a-z]+\b/.test(text) && !/\d/.test(text)) return match
      if (before.endsWith(':') && sign === ':') return match
    }
    // Leaves the name of a Kubernetes Secret in a label of a metric.
    const shown = groups.quoted ?? groups.inner
    if (kind === 'secret' && sign === '=' && /^[a-z]+(?:-[a-z]+){1,3}$/.test(shown ?? text ?? '')) return match
    const swapped = swap(kind, groups)
    if (swapped === null) return match
    // Quotes the replacement of a number under a quoted key, because it is JSON in a text and must
    // stay JSON.
    const quoted =
      text !== undefined && /["']$/.test(close) ? swapped.replace(/^\[[^\]]*\]/, `${close}$&${close}`) : swapped
    return `${name}${close}${sign}${quoted}`
  },
}

/**
 * Rule for `{ "name": "DB_PASSWORD", "value": "…" }`, as in containers' environments, JSON and
 * YAML.
 */
const listed: SecretRule = {
  kind: 'secret',
  hints: ['alue'],
  pattern: new RegExp(
    `(?<head>\\b(?:name|key)(?:\\\\*["'])?[ \\t]{0,8}:[ \\t]{0,8}(?:\\\\*["'])?(?<name>[\\w.-]{0,60}?(?:${secretNamePattern}))(?:\\\\*["'])?,?${gap}{0,40}(?:\\\\*["'])?value(?:\\\\*["'])?[ \\t]{0,8}:[ \\t]{0,8})${value}`,
    'gi',
  ),
  replace: (match, groups) => {
    const swapped = swap(kindOfName(groups.name ?? '') ?? 'secret', groups)
    return swapped === null ? match : `${groups.head}${swapped}`
  },
}

/**
 * Matches the text between a name and its value: a sign, or blanks with words for the value's form,
 * as in `password 7 …`, `set psksecret ENC …`.
 */
const kindWords =
  '\\d{1,3}|ENC|clear|(?:irreversible-)?cipher|(?:--)?plain(?:text)?|ascii-text|ascii|encrypted|md5|sha\\d{0,3}|aes|des|3des|manager|operator'
const oneWord =
  '(?<value>(?=[^\\s"\'\\\\;,&|<>`(){}[\\]]{0,200}[\\d!%+^~#])(?!\\[redacted:)[^\\s"\'\\\\;,&|<>`(){}[\\]]{6,4096})'

/**
 * Rule for a name and one random-looking word, if the name does not always hold a secret:
 * directives of configuration files and network devices, session cookies. Name and word decide
 * together.
 */
const loose: SecretRule = {
  kind: 'secret',
  pattern: new RegExp(
    `(?<name>${secretNamePattern}|${likelyNamePattern}|auth|priv)(?<sign>(?:\\\\*["'])?\\]?[ \\t]{0,8}(?:=>|:=|=|:(?!:)|：)[ \\t]{0,48}|(?<typed>(?:[ \\t]{1,16}(?:${kindWords})(?=[ \\t])){0,3})[ \\t]{1,16})(?<open>\\\\*["'])?${oneWord}`,
    'gi',
  ),
  replace(match, { name: end = '', sign = '', typed, open = '', value: word = '' }, before) {
    const name = `${/[\w.$-]{0,60}$/.exec(before)?.[0] ?? ''}${end}`
    const kind = kindOfWord(name, word, typed, open !== '')
    return kind === null ? match : `${end}${sign}${open}${mark(kind)}`
  },
}

/**
 * Returns the kind of secret, or null. `between`: the words between name and value; undefined after
 * a sign. In a sentence a digit is not enough, and a hexadecimal word is a fingerprint.
 */
function kindOfWord(name: string, word: string, between: string | undefined, isQuoted: boolean): SecretKind | null {
  if (isNoSecret(word) || /^\d{1,6}[.]?$/.test(word)) return null
  const sure = kindOfName(name)
  if (between) return looksMade(word) ? (sure ?? 'password') : null
  if (sure === 'password') return looksMade(word) && (isQuoted || /\d/.test(word)) ? sure : null
  const isFingerprint = between === '' && (isUuid(word) || /^[0-9A-Fa-f]+$/.test(word))
  if (isFingerprint) return null
  return sure === null ? kindOfPair(name, word) : looksRandom(word) ? sure : null
}

/**
 * Rule for a passphrase of words, alone on its line, because the rule for assignments would end at
 * the first blank.
 */
const phrase: SecretRule = {
  kind: 'password',
  test: /ass(?:phrase|word|wd)/i,
  pattern:
    /(?<head>(?<=^|\n)[ \t-]{0,16}(?:export[ \t]{1,4})?[\w.-]{0,60}?pass(?:phrase|word|wd)[ \t]{0,4}[:=][ \t]{1,4})(?<value>(?<first>[a-z]{3,14})(?: [a-z]{3,14}){2,12})(?=[ \t]{0,4}(?:\n|$))/gi,
  replace: (match, { head = '', first = '' }) => (isNoSecret(first) ? match : `${head}${mark('password')}`),
}

/**
 * Rule for names and values in XML: an element, an attribute next to a name, Hadoop's two elements.
 */
const wrapped: SecretRule = {
  kind: 'password',
  hints: ['<', 'value='],
  pattern: new RegExp(
    `(?<head>(?:<[\\w:.-]{0,40}(?:${secretNamePattern})>|\\b(?:name|key)=\\\\*["'][\\w.-]{0,60}(?:${secretNamePattern})\\\\*["'](?:[ \\t]{1,8}value=\\\\*["']|>)|<name>[\\w.-]{0,60}(?:${secretNamePattern})</name>\\s{0,40}<value>))(?<value>[^<"'\\\\\\n]{1,4096})`,
    'gi',
  ),
  replace: (match, { head = '', value: text = '' }) =>
    isNoSecret(text) || text.startsWith('[redacted:') ? match : `${head}${mark('password')}`,
}

/** Returns a function that keeps the group `head` and redacts the rest of the match. */
const behindHead = (kind: SecretKind) => (match: string, groups: Record<string, string | undefined>) =>
  isNoSecret(groups.value ?? '') || /^\S{0,12} ?\[redacted:/.test(groups.value ?? '')
    ? match
    : `${groups.head}${mark(kind)}${groups.tail ?? ''}`

/** The rules in order: whole blocks first, then names and headers, tokens without a name last. */
export const rules: SecretRule[] = [
  {
    kind: 'private_key',
    hints: ['-----BEGIN'],
    pattern: new RegExp(
      `(?<head>-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)(?<value>(?:${gap}*(?:[A-Z][A-Za-z-]{2,20}: [^\\n"\\\\]{0,80}|[A-Za-z0-9+/=]{20,}))+(?:${gap}*[A-Za-z0-9+/=]{1,76}(?=${gap}{0,8}(?:-----END|$)))?)`,
      'g',
    ),
    replace: behindHead('private_key'),
  },
  listed,
  phrase,
  {
    kind: 'header',
    pattern:
      /(?<head>\b(?:proxy-)?authorization(?:[ \t]{0,8}[:=][ \t]{0,8}|[ \t]{1,8}\\*["'](?=(?:bearer|basic)[ \t]))(?:(?:bearer|basic|digest|token|negotiate|apikey|splunk|geniekey|aws4-hmac-sha256)[ \t]{1,8})?)(?<value>[^\s"'\\][^\r\n"'\\]{0,8192})/gi,
    hints: ['uthorization', 'UTHORIZATION'],
    replace: behindHead('header'),
  },
  {
    kind: 'cookie',
    pattern: /(?<head>\b(?:set-)?cookie[ \t]{0,8}:[ \t]{0,8})(?<value>[^\s"'\\=;]{1,256}=[^\r\n"'\\]{0,8192})/gi,
    hints: ['ookie', 'OOKIE'],
    replace: behindHead('cookie'),
  },
  assignment,
  loose,
  wrapped,
  {
    kind: 'url',
    hints: ['://'],
    pattern: /(?<head>:\/\/[^\s:/@"'\\<>?#]{0,256}:)(?!\d{1,5}[?#/])(?<value>[^\s/"'\\<>]{1,256})(?<tail>@)/g,
    replace: behindHead('url'),
  },
  {
    // Matches user and password without an address before them, for a driver or tool.
    kind: 'url',
    hints: ['@'],
    pattern: /(?<head>(?<!\[redacte)[\w.-]:)(?<value>[^\s@/"'\\:]{1,128})(?<tail>@(?:(?<driver>tcp|unix)\(|[\w.-]))/g,
    replace: (match, { head, value: text = '', tail, driver }) =>
      !isNoSecret(text) && (driver || looksEncoded(text, 10)) ? `${head}${mark('url')}${tail}` : match,
  },
  {
    // Matches an address that is a secret: a word for a hook, key or bot, and a random piece after
    // it.
    kind: 'url',
    hints: ['://'],
    pattern:
      /(?<head>:\/\/(?:hc-ping\.com\/|[^\s"'\\<>?#/]{1,200}\/(?:[\w.@~-]{1,64}\/){0,6}?(?:[\w-]{0,20}hook(?:s|b2)?|services|workflows|triggers|integrations?|alert|key|token|bots?)\/))(?<value>[A-Za-z0-9/_@+.-]{10,})/g,
    replace: (match, { head = '', value: path = '' }) =>
      path.split(/[/@]/).some((piece) => isUuid(piece) || looksRandom(piece) || /^[a-z0-9]{26}$/.test(piece))
        ? `${head}${mark('url')}`
        : match,
  },
  {
    kind: 'url',
    hints: ['hooks.slack', 'webhook'],
    pattern:
      /(?<head>(?:hooks\.slack\.com\/(?:services|workflows|triggers)|discord(?:app)?\.com\/api\/webhooks|webhook\.office\.com\/[a-z0-9]{1,20})\/)(?<value>[A-Za-z0-9/_@+-]{10,})/g,
    replace: behindHead('url'),
  },
  {
    kind: 'url',
    hints: ['://'],
    pattern: /(?<head>:\/\/)(?<value>[A-Za-z0-9_+=.~-]{16,512})(?<tail>@[\w.-])/g,
    replace: (match, { head, value: user = '', tail }) => (looksRandom(user) ? `${head}${mark('url')}${tail}` : match),
  },
  {
    kind: 'query',
    hints: ['?', '&'],
    pattern:
      /(?<head>[?&](?:sig|signature|auth|jwt|x-amz-(?:signature|credential|security-token)|x-goog-(?:signature|credential)|(?:api[_-]?)?key(?==[^&\s"'\\#<>]{20})|code(?==[^&\s"'\\#<>]{20}))=)(?<value>[^&\s"'\\#<>]{1,4096})/gi,
    replace: behindHead('query'),
  },
  {
    kind: 'jwt',
    hints: ['eyJ'],
    pattern: new RegExp(`${start}eyJ[A-Za-z0-9_-]{8,}\\.[A-Za-z0-9_-]{8,}(?:\\.[A-Za-z0-9_-]*)*`, 'g'),
  },
  {
    kind: 'header',
    hints: ['earer', 'EARER'],
    pattern: /(?<head>\bbearer[ \t]{1,8})(?<value>(?=[^\s"'\\]{0,200}\d)[A-Za-z0-9._~+/=-]{16,4096})/gi,
    replace: behindHead('header'),
  },
  {
    kind: 'header',
    hints: ['ApiKey '],
    pattern: /(?<head>\bApiKey[ \t]{1,4})(?<value>(?=[^\s"'\\]{0,200}\d)[A-Za-z0-9+/=_-]{24,512})/g,
    replace: behindHead('header'),
  },
  {
    kind: 'query',
    hints: ['X-Amz-Signature', 'x-amz-signature'],
    pattern: /(?<head>\bx-amz-signature=)(?<value>[a-f0-9]{64})/gi,
    replace: behindHead('query'),
  },
  {
    kind: 'url',
    hints: ['grant_type=authorization_code'],
    pattern:
      /(?<head>(?<=^|[?&\s"'])code=)(?<value>[^&\s"'\\#<>]{8,1024})(?=[^\s"'\\]{0,400}grant_type=authorization_code)/g,
    replace: behindHead('url'),
  },
  {
    kind: 'header',
    hints: ['response='],
    pattern: /(?<head>\bresponse=\\{0,4}")(?<value>[0-9a-f]{32,64})/gi,
    replace: behindHead('header'),
  },
  {
    kind: 'hash',
    hints: ['$', '*', 'md5', '%^', 'grub'],
    pattern: new RegExp(
      `\\$2[abxy]?\\$\\d\\d\\$[./A-Za-z0-9]{22,53}|\\$(?:1|5|6|apr1)\\$(?:rounds=\\d{1,9}\\$)?[./A-Za-z0-9]{1,16}\\$[./A-Za-z0-9]{20,86}|\\$(?:y|gy|7)\\$[./A-Za-z0-9]{1,20}\\$[./A-Za-z0-9]{1,86}\\$[./A-Za-z0-9]{20,86}|\\$argon2(?:id|i|d)\\$[A-Za-z0-9+/=,$]{20,256}|pbkdf2_sha\\d{1,3}\\$\\d{1,9}\\$[A-Za-z0-9+/=$]{20,256}|\\$(?:8|9|M\\$\\w{1,4})\\$[./A-Za-z0-9$+=-]{8,256}|grub\\.pbkdf2\\.sha512\\.\\d{1,9}\\.[0-9A-Za-z.]{40,600}|%\\^%#[^\\s%]{8,256}%\\^%#|SCRAM-SHA-256\\$\\d{1,9}:[A-Za-z0-9+/=$:]{20,256}|(?<![A-Za-z0-9*])\\*[0-9A-F]{40}(?![0-9A-Za-z])|${start}md5[0-9a-f]{32}(?![0-9A-Za-z])`,
      'g',
    ),
  },
]

/**
 * Rule for decision tokens of Nightshift, which have no prefix: 256 bits in base64url. Excludes a
 * public key's fingerprint and a piece of a picture. Comes last, because matches of other rules may
 * contain a sequence like a token.
 */
export const bareRule: SecretRule = {
  kind: 'token',
  pattern: new RegExp(
    `(?<!SHA256:)${start}(?=[a-z0-9_-]{0,42}[A-Z])(?=[A-Z0-9_-]{0,42}[a-z])(?=[A-Za-z_-]{0,42}\\d)(?<![A-Za-z0-9+/]{40}[+/])[A-Za-z0-9_-]{43}(?![A-Za-z0-9_=+/-])`,
    'g',
  ),
}
