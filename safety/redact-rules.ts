/** What was taken out: the closed words of `[redacted:<kind>]`. */
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

/** Names that end in one of these hold a secret: `DB_PASSWORD`, `vault.token`, `x-api-key`. */
const endings: [pattern: string, kind: SecretKind][] = [
  ['password|passwd|passphrase|passcode|(?<![a-z])pwd|(?<=[_-])(?:pass|pw)|(?<=ssh|become)pass', 'password'],
  ['(?:client|app|shared|signing|webhook)?[_-]?secret(?:[_-]?string|[_-]?key[_-]?base)?', 'secret'],
  [
    '(?:api|access|private|secret|account|signing|encryption|master|license|ssh|storage|sharedaccess|hmac|(?<![a-z])app|(?<![a-z])auth)[_-]?key|sharedaccesssignature',
    'key',
  ],
  ['token', 'token'],
  ['authorization', 'header'],
  ['cookie', 'cookie'],
]

/** One source for texts and for the keys of objects; a name ends here, so `tokens`, `token_type`, `secretName` are none. */
const secretNamePattern = endings.map(([pattern]) => `(?:${pattern})`).join('|')

const named = endings.map(([pattern, kind]) => [new RegExp(`(?:${pattern})$`, 'i'), kind] as const)

/** Names that look secret and are not: where a list goes on, what a parser met, an operating system's directory. */
const harmless =
  /(?:next|page|continue|continuation|sync|resume|unexpected|public)[_-]?(?:page)?[_-]?(?:token|key)$|^oldpwd$/i

const any = new RegExp(`(?:${secretNamePattern.replaceAll('[_-]', '[ _-]')})$`, 'i')

/** What kind of secret a name promises, or null. */
export function kindOfName(name: string): SecretKind | null {
  if (name.length > 120 || !any.test(name) || harmless.test(name)) return null
  // `accessKey` and `access key` name what `access_key` names.
  const plain = name.replace(/ /g, '_')
  return named.find(([pattern]) => pattern.test(plain))?.[1] ?? null
}

/** Words that say something about a secret instead of being one, and references that only name where it is. */
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

/**
 * One rule. `hints` are literals, one of which a text must hold before the pattern is tried. `replace` answers the match
 * again; without it the whole match goes. No match reaches over an unescaped double quote or cuts an escape in two, so
 * JSON inside a text stays what it is; each pattern either cannot fail late or is bounded: linear time.
 */
export type SecretRule = {
  kind: SecretKind
  pattern: RegExp
  hints?: string[]
  replace?: (match: string, groups: Record<string, string | undefined>) => string
}

export const mark = (kind: SecretKind) => `[redacted:${kind}]`

/** A word starts here, also right behind an escaped line break of a JSON text. */
const start = '(?<=^|[^A-Za-z0-9_-]|\\\\[nrtbf]|\\\\u[0-9a-fA-F]{4})'
/** An escaped or plain line break or blank. */
const gap = '(?:\\s|\\\\+[nr])'
const bare = '(?:[^\\s"\'\\\\;&|<>`,]|,(?!\\s|$|[A-Za-z_][\\w.-]{0,30}[=:]))'
/** A value in quotes, in quotes that a JSON text escapes, or bare. */
const value = `(?!["'][ \\t]{0,4}[,:}\\]])(?:(?<quote>["'])(?<quoted>(?:[^"'\\\\\\n]|\\\\[^\\n]|(?!\\k<quote>)'){0,4096})|(?<escaped>\\\\+["'])(?<inner>[^"'\\\\\\n]{0,4096})|(?<bare>(?![[{])${bare}{1,65536}))`

function swap(kind: SecretKind, groups: Record<string, string | undefined>): string | null {
  const { quote, quoted, escaped, inner } = groups
  const text = quoted ?? inner ?? groups.bare ?? ''
  if (isNoSecret(text)) return null
  if (quote) return `${quote}${mark(kind)}`
  if (escaped) return `${escaped}${mark(kind)}`
  // What closes a bracket or a sentence is no part of the value.
  let length = text.length
  while (length > 0 && ')]},.'.includes(text[length - 1]!)) length--
  const body = text.slice(0, length)
  return isNoSecret(body) || body.startsWith('[redacted:') ? null : mark(kind) + text.slice(length)
}

/** `name = value` in all its spellings. */
const assignment: SecretRule = {
  kind: 'secret',
  pattern: new RegExp(
    `(?<name>(?<![A-Za-z0-9_.-])[A-Za-z0-9_.-]{0,60}?(?:${secretNamePattern}))(?<close>\\\\*["'])?(?<sign>[ \\t]{0,8}(?:=>|:=|=(?!=)|:(?!:))[ \\t]{0,8})${value}`,
    'gi',
  ),
  replace(match, groups) {
    const { name = '', close = '', sign = '', bare: text } = groups
    const kind = kindOfName(name)
    if (kind === null) return match
    if (text !== undefined) {
      // The working directory is no password.
      if (/pwd$/i.test(name) && /^[~/.]/.test(text)) return match
      // "unexpected token: foo", "secret: app/db": prose, unless it looks like chance.
      const prose = /:[ \t]+$/.test(sign) && close === '' && (kind === 'token' || kind === 'secret')
      if (prose && !/\d/.test(text) && text.length < 16) return match
      if (kind === 'token' && /^\d{1,6}[)\]},.]*$/.test(text)) return match
      if (kind === 'header' || kind === 'cookie') return match
    }
    const swapped = swap(kind, groups)
    if (swapped === null) return match
    // A number under a quoted key is JSON in a text: what stands for it must be JSON too.
    const quoted = text !== undefined && close !== '' ? swapped.replace(/^\[[^\]]*\]/, `${close}$&${close}`) : swapped
    return `${name}${close}${sign}${quoted}`
  },
}

/** `{ "name": "DB_PASSWORD", "value": "…" }`, as containers list their environment, in JSON and YAML. */
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

/** Keeps the group `head` and redacts what follows it. */
const behindHead = (kind: SecretKind) => (match: string, groups: Record<string, string | undefined>) =>
  isNoSecret(groups.value ?? '') || /^\S{0,12} ?\[redacted:/.test(groups.value ?? '')
    ? match
    : `${groups.head}${mark(kind)}${groups.tail ?? ''}`

const flagValue = '(?<value>[^\\s"\'\\\\;&|<>-][^\\s"\'\\\\;&|<>]{0,255})'
const between = '(?:[ \\t]{1,8}["\']?|\\\\*["\'][ \\t]{0,8},[ \\t\\n]{0,40}\\\\*["\'])'

/** In this order: whole blocks first, names and headers next, bare tokens last. */
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
  {
    kind: 'header',
    pattern:
      /(?<head>\b(?:proxy-)?authorization[ \t]{0,8}[:=][ \t]{0,8}(?:(?:bearer|basic|digest|token|negotiate|apikey|aws4-hmac-sha256)[ \t]{1,8})?)(?<value>[^\s"'\\][^\r\n"'\\]{0,8192})/gi,
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
  {
    kind: 'password',
    hints: ['<'],
    pattern:
      /(?<head><(?:[\w:.-]{0,40})(?:password|passwd|secret|token|api[_-]?key|private[_-]?key)>)(?<value>[^<"\\\n]{1,4096})/gi,
    replace: behindHead('password'),
  },
  {
    kind: 'password',
    hints: ['--'],
    pattern: new RegExp(
      `(?<head>--[a-z-]{0,30}(?:password|passwd|passphrase|secret|token|api-key|access-key|secret-key)${between})${flagValue}`,
      'gi',
    ),
    replace: behindHead('password'),
  },
  {
    kind: 'password',
    hints: ['-p'],
    pattern:
      /(?<head>\b(?:mysql|mysqldump|mysqladmin|mysqlcheck|mysqlimport|mariadb|mariadb-dump|mariadb-admin|sshpass)\b(?:[^\n|;&]{0,200})[ \t"',]-p)(?<value>[^\s"'\\;&|<>-][^\s"'\\;&|<>]{0,255})/g,
    replace: behindHead('password'),
  },
  {
    kind: 'password',
    hints: ['sshpass', 'docker', 'redis-cli', 'ldap', 'mongo', 'curl', 'wget', 'podman', 'helm'],
    pattern:
      /(?<head>\b(?:sshpass[ \t]{1,8}-p|(?:docker|podman|helm)[ \t][^\n|;&]{0,60}\blogin\b[^\n|;&]{0,200}[ \t]-p|redis-cli\b[^\n|;&]{0,200}[ \t]-a|ldap[a-z]{1,10}\b[^\n|;&]{0,200}[ \t]-w|mongo[a-z]{0,10}\b[^\n|;&]{0,200}[ \t]-p|curl\b[^\n|;&]{0,400}[ \t](?:-u|--user|-U|--proxy-user)[ \t]{0,8}["']?[^\s:"'\\]{0,128}:)[ \t]{0,8}["']?)(?<value>[^\s"'\\;&|<>-][^\s"'\\;&|<>]{0,255})/g,
    replace: behindHead('password'),
  },
  {
    kind: 'url',
    hints: ['://'],
    pattern: /(?<head>:\/\/[^\s:/@"'\\<>?#]{0,256}:)(?!\d{1,5}[?#/])(?<value>[^\s/"'\\<>]{1,256})(?<tail>@)/g,
    replace: behindHead('url'),
  },
  {
    kind: 'url',
    hints: ['@tcp(', '@unix('],
    pattern: /(?<head>(?<!\[redacte)[\w.-]:)(?<value>[^\s@/"'\\:]{1,128})(?<tail>@(?:tcp|unix)\()/g,
    replace: behindHead('url'),
  },
  {
    kind: 'url',
    hints: ['hooks.slack', 'webhook'],
    pattern:
      /(?<head>(?:hooks\.slack\.com\/(?:services|workflows|triggers)|discord(?:app)?\.com\/api\/webhooks|webhook\.office\.com\/[a-z0-9]{1,20})\/)(?<value>[A-Za-z0-9/_@+-]{10,})/g,
    replace: behindHead('url'),
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
    hints: ['response='],
    pattern: /(?<head>\bresponse=\\{0,4}")(?<value>[0-9a-f]{32,64})/gi,
    replace: behindHead('header'),
  },
  {
    kind: 'key',
    hints: ['AKIA', 'ASIA', 'AIza', 'sk-', 'sk_', 'rk_', 'whsec_', 'SG.'],
    pattern: new RegExp(
      `${start}(?:A[KS]IA[0-9A-Z]{16}(?![0-9A-Za-z])|AIza[0-9A-Za-z_-]{35}|sk-(?:ant-|proj-|svcacct-|or-|live-)?(?=[A-Za-z_-]{0,80}\\d)[A-Za-z0-9_-]{20,}|[sr]k_(?:live|test)_[0-9A-Za-z]{10,}|whsec_[0-9A-Za-z+/=]{20,}|SG\\.[\\w-]{16,32}\\.[\\w-]{16,64})`,
      'g',
    ),
  },
  {
    kind: 'token',
    hints: ['gh', 'gl', 'xox', 'xapp-', 'npm_', 'hv', 'do', 'pypi-', 'dapi', 'nst_', 'glsa_', 'shpat_', 's.'],
    pattern: new RegExp(
      `${start}(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|gl(?:pat|rt|dt|ptt|cbt)-[A-Za-z0-9_.-]{20,}|xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}|npm_[A-Za-z0-9]{30,}|hv[sbr]\\.[A-Za-z0-9_-]{20,}|do[oprt]_v1_[a-f0-9]{40,}|pypi-[A-Za-z0-9_-]{30,}|dapi[a-f0-9]{32}|nst_[A-Za-z0-9_-]{20,}|glsa_[A-Za-z0-9_]{30,}|shpat_[a-fA-F0-9]{32})`,
      'g',
    ),
  },
  {
    kind: 'token',
    hints: [':AA'],
    pattern: new RegExp(`${start}\\d{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])`, 'g'),
  },
  {
    kind: 'hash',
    hints: ['$', '*', 'md5'],
    pattern: new RegExp(
      `\\$2[abxy]?\\$\\d\\d\\$[./A-Za-z0-9]{22,53}|\\$(?:1|5|6|apr1)\\$(?:rounds=\\d{1,9}\\$)?[./A-Za-z0-9]{1,16}\\$[./A-Za-z0-9]{20,86}|\\$(?:y|gy|7)\\$[./A-Za-z0-9]{1,20}\\$[./A-Za-z0-9]{1,86}\\$[./A-Za-z0-9]{20,86}|\\$argon2(?:id|i|d)\\$[A-Za-z0-9+/=,$]{20,256}|pbkdf2_sha\\d{1,3}\\$\\d{1,9}\\$[A-Za-z0-9+/=$]{20,256}|SCRAM-SHA-256\\$\\d{1,9}:[A-Za-z0-9+/=$:]{20,256}|(?<![A-Za-z0-9*])\\*[0-9A-F]{40}(?![0-9A-Za-z])|${start}md5[0-9a-f]{32}(?![0-9A-Za-z])`,
      'g',
    ),
  },
  {
    // Decision tokens of ours carry no prefix: 256 bits in base64url, and not the fingerprint of a public key.
    kind: 'token',
    pattern: new RegExp(
      `(?<!SHA256:)${start}(?=[a-z0-9_-]{0,42}[A-Z])(?=[A-Z0-9_-]{0,42}[a-z])(?=[A-Za-z_-]{0,42}\\d)[A-Za-z0-9_-]{43}(?![A-Za-z0-9_=+/-])`,
      'g',
    ),
  },
]
